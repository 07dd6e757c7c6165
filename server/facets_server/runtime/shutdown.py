"""Ending the process when asked to, within bounds, whatever hangs."""

import logging
import os
import signal
import sys
import threading
import time
from types import FrameType

__all__ = ["Shutdown"]

logger = logging.getLogger(__name__)

_SHORTEST_S = 1.0
_MOST_FOR_CLOSING_S = 2.0


class Shutdown:
    """Waits for SIGTERM or SIGINT; from then on the process has ``drain_s`` seconds to end by itself.

    After these it is ended, whatever still runs: acknowledged writes are on disk, indexes catch up at the next start.
    """

    def __init__(self, drain_s: float) -> None:
        self._drain_s = max(drain_s, _SHORTEST_S)
        self._asked = threading.Event()
        self._deadline = float("inf")

    def install(self) -> None:
        """Takes the signals over; called by the main thread."""
        # Started now: later there may be no room for another thread.
        threading.Thread(target=self._watch, name="shutdown", daemon=True).start()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._handle)

    @property
    def is_asked(self) -> bool:
        """True once a signal has come."""
        return self._asked.is_set()

    def wait(self) -> None:
        """Waits for a signal."""
        self._asked.wait()

    @property
    def grace_s(self) -> float:
        """Seconds that calls may still take; some time is kept for closing files."""
        closing_s = min(_MOST_FOR_CLOSING_S, self._drain_s / 4)
        return max(0.0, self._deadline - closing_s - time.monotonic()) if self.is_asked else 0.0

    def end(self) -> None:
        """Ends the process now that everything is closed; taking the interpreter apart may take seconds."""
        if self.is_asked:
            logging.shutdown()
            sys.stdout.flush()
            os._exit(0)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self._asked.is_set():
            self._deadline = time.monotonic() + self._drain_s
            # The kernel's own: it ends the process even if no Python runs any more.
            signal.setitimer(signal.ITIMER_REAL, self._drain_s + _SHORTEST_S)
            self._asked.set()

    def _watch(self) -> None:
        self._asked.wait()
        time.sleep(max(0.0, self._deadline - time.monotonic()))
        logger.warning("what still runs after %.0f s is left behind: acknowledged writes are on disk", self._drain_s)
        os._exit(0)
