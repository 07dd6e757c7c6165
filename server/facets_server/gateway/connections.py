"""The limits on HTTP connections that uvicorn lacks.

With a bare application, Hypercorn, which limits the time of headers but not connections, took 1.2 to 2 times the CPU of
uvicorn per request; Granian took 0.5 to 0.8 times, but can neither use a bound socket nor close silent connections.
"""

import asyncio
import json
import select

from uvicorn.protocols.http.h11_impl import H11Protocol

WORK = "work"  # name of the task in the state of a request: cancelled when its client is gone

_LOOK_S = 0.5


def limited_protocol(max_connections: int, head_timeout_s: float) -> type[H11Protocol]:
    """Uvicorn's protocol with a limit of the time that headers may take; the work for a closed connection is cancelled.

    Beyond ``max_connections``, the connection that has been silent longest is closed, except those being answered.
    """
    by_silence: dict[H11Protocol, None] = {}  # all connections; the longest silence first

    class LimitedProtocol(H11Protocol):
        head_timer: asyncio.TimerHandle | None = None
        looking: asyncio.TimerHandle | None = None  # to look whether the client of the running request is gone

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            by_silence[self] = None
            self._wait()
            if len(by_silence) > max_connections:
                silent = next(connection for connection in by_silence if not _is_answered(connection))
                del by_silence[silent]
                self.connections.discard(silent)  # at once: connection_lost is called later
                silent.transport.abort()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self in by_silence:
                by_silence[self] = by_silence.pop(self)
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop_waiting()
                self._look_for_end()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self.cycle.response_complete:  # else the next request has already arrived
                self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            by_silence.pop(self, None)
            self._stop_waiting()
            if self.cycle is not None and not self.cycle.response_complete:
                work = self.cycle.scope["state"].get(WORK)
                if work is not None:
                    work.cancel()

        def _look_for_end(self) -> None:
            """Closes the connection of a client that is gone; asyncio does not notice it while more is not yet read."""
            if self.looking is not None:
                self.looking.cancel()
                self.looking = None
            if self.cycle.response_complete or self.transport.is_closing():
                return
            if not self.transport.is_reading():
                poll = select.poll()
                poll.register(self.transport.get_extra_info("socket"), select.POLLRDHUP)
                if poll.poll(0):
                    self.transport.abort()
                    return
            self.looking = self.loop.call_later(_LOOK_S, self._look_for_end)

        def _wait(self) -> None:
            if self.head_timer is None:
                self.head_timer = self.loop.call_later(head_timeout_s, self._time_out)

        def _stop_waiting(self) -> None:
            if self.head_timer is not None:
                self.head_timer.cancel()
                self.head_timer = None

        def _time_out(self) -> None:
            if self.conn.trailing_data[0]:  # part of the headers
                message = f"the head of the request did not arrive within {head_timeout_s:g} s"
                body = json.dumps({"code": "deadline_exceeded", "message": message})
                head = "HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json\r\nConnection: close\r\n"
                self.transport.write(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
            self.transport.close()

    return LimitedProtocol


def _is_answered(connection: H11Protocol) -> bool:
    """Whether a call has arrived completely, or its reply has begun, and the reply has not ended."""
    cycle = connection.cycle
    return cycle is not None and not cycle.response_complete and (cycle.response_started or not cycle.more_body)
