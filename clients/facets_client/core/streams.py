"""A bidirectional stream of the blocking client, with a timeout on every answer."""

import queue
import threading
from typing import Any, cast

import grpc
from google.protobuf.message import Message

from facets_client.core.channel import Connection
from facets_client.core.rpc import Rpc
from facets_client.core.statuses import client_error
from facets_client.errors import DeadlineExceededError


class BlockingStream:
    """A stream of a blocking channel."""

    def __init__(self, channel: grpc.Channel, rpc: Rpc[Any, Any], connection: Connection) -> None:
        self._outgoing: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._timeout_s = connection.timeout_s
        self._timed_out = False
        method = channel.stream_stream(
            rpc.path,
            request_serializer=rpc.request.SerializeToString,
            response_deserializer=rpc.response.FromString,
        )
        self._call = method(iter(self._outgoing.get, None), metadata=connection.metadata)

    def send(self, message: Message) -> None:
        """Queues a message; whoever sends bounds the queue by waiting for answers."""
        self._outgoing.put(message)

    def half_close(self) -> None:
        """Says that nothing more will be sent."""
        self._outgoing.put(None)

    def receive(self) -> Message | None:
        """The next message; None at the end of the stream."""
        timer = threading.Timer(self._timeout_s, self._give_up)
        timer.daemon = True
        timer.start()
        try:
            return cast(Message, next(self._call))
        except StopIteration:
            return None
        except grpc.RpcError as error:
            if self._timed_out:
                raise DeadlineExceededError(
                    grpc.StatusCode.DEADLINE_EXCEEDED, f"no answer on the stream for {self._timeout_s:g} s"
                ) from error
            raise client_error(error) from error
        finally:
            timer.cancel()

    def close(self) -> None:
        """Cancels what is under way; nothing happens after a regular end."""
        self._outgoing.put(None)
        self._call.cancel()

    def _give_up(self) -> None:
        self._timed_out = True
        self._call.cancel()
