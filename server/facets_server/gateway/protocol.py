"""Connections within bounds; uvicorn alone waits for the head of a request as long as it takes."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["ConnectionBounds", "bounded_protocol"]

_TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%b"
)


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """What all connections of a gateway share.

    Attributes:
        most: Connections at once; for one more, the one that has been silent for longest is closed.
        head_timeout_s: Seconds that the head of a request may take.
        silent: Connections whose next request has not begun, the oldest first.
    """

    most: int
    head_timeout_s: float
    silent: dict["_BoundedProtocol", None] = field(default_factory=dict)


def bounded_protocol(bounds: ConnectionBounds) -> Any:
    """What uvicorn's ``Config(http=...)`` takes."""

    def make(*arguments: Any, **named: Any) -> asyncio.Protocol:
        protocol = _BoundedProtocol(*arguments, **named)
        protocol.bounds = bounds
        return protocol

    return make


class _BoundedProtocol(H11Protocol):
    bounds: ConnectionBounds
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look()
        if len(self.connections) > self.bounds.most and self.bounds.silent:
            next(iter(self.bounds.silent))._abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._forget()

    def _abort(self) -> None:
        self._forget()
        self.connections.discard(self)  # at once: many may come before the loop has told us of this end
        self.transport.abort()

    def _look(self) -> None:
        """Starts the clock when a request is waited for, stops it when its head has come."""
        answered = self.cycle is not None and self.cycle.response_complete
        if self.conn.their_state is h11.IDLE or (answered and self.conn.their_state is h11.SEND_BODY):
            self.bounds.silent.setdefault(self)
            if self._timer is None:
                self._timer = self.loop.call_later(self.bounds.head_timeout_s, self._give_up)
        else:
            self._forget()

    def _forget(self) -> None:
        self.bounds.silent.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            seconds = f"{self.bounds.head_timeout_s:g}"
            message = f"the head of the request did not come within {seconds} s"
            problem = json.dumps({"code": "deadline_exceeded", "message": message})
            self.transport.write(_TOO_SLOW % (len(problem), problem.encode()))
        self.transport.close()
