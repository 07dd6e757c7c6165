import asyncio

import grpc
import pytest
from facets_client.core.asynchronous import AsyncStream
from facets_client.core.commands import Send
from facets_client.errors import ServerError, UnavailableError
from facets_proto.v1 import documents_pb2


class BrokenStream:
    """A stream whose writes fail as grpc.aio's do when the server ends the call at that moment."""

    def __init__(self, trailing: grpc.aio.Metadata) -> None:
        self._trailing = trailing

    async def write(self, _message: object) -> None:
        code = grpc.StatusCode.INTERNAL
        raise grpc.aio.AioRpcError(code, grpc.aio.Metadata(), self._trailing, details="Internal error from Core")


def send(trailing: grpc.aio.Metadata) -> None:
    message = documents_pb2.UpsertStreamRequest()
    asyncio.run(AsyncStream(BrokenStream(trailing), timeout_s=5.0).step(Send(message)))  # type: ignore[arg-type]


def test_a_write_that_breaks_with_the_connection_may_be_retried() -> None:
    with pytest.raises(UnavailableError, match="broke"):
        send(grpc.aio.Metadata())


def test_the_servers_own_internal_error_stays_one() -> None:
    with pytest.raises(ServerError):
        send(grpc.aio.Metadata(("request-id", "1")))
