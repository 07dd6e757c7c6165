"""What a person sees while a server does not answer: where the call went, for how long, and until when."""

import sys
import threading
import time
from typing import Any, TextIO

from facets_client.client import FacetsClient
from facets_client.core.commands import Call

__all__ = ["Waiting", "WatchedClient"]

_FIRST_S = 1.0  # shorter waits are none


class Waiting:
    """A line on a terminal from the first second on, gone with the answer.

    Args:
        target: Where the call went.
        limit_s: Seconds until it is given up.
        stream: The terminal.
        first_s: Seconds before the line appears, and between its changes.
    """

    def __init__(self, target: str, limit_s: float, stream: TextIO, *, first_s: float = _FIRST_S) -> None:
        self._target = target
        self._limit_s = limit_s
        self._stream = stream
        self._first_s = first_s
        self._answered = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> "Waiting":
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._answered.set()
        self._thread.join()

    def _show(self) -> None:
        started = time.monotonic()
        is_shown = False
        while not self._answered.wait(self._first_s):
            is_shown = True
            waited = f"{time.monotonic() - started:.0f} s of at most {self._limit_s:g} s (--timeout-s)"
            self._stream.write(f"\r\x1b[Kfacets: no answer from {self._target} yet, trying for {waited}")
            self._stream.flush()
        if is_shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


class WatchedClient(FacetsClient):
    """A client whose calls say on a terminal that they wait."""

    def _call(self, command: Call[Any, Any]) -> Any:
        with Waiting(self.target, self._connection.timeout_of(command.rpc), sys.stderr):
            return super()._call(command)
