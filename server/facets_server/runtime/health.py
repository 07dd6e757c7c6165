"""Health that tells the truth: a service is SERVING only while it can answer.

Everything is NOT_SERVING until the models are warm, again while a model keeps failing, and from the first
moment of shutting down. A model that failed is probed with a real text, so that health comes back by itself.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence

from facets_server.runtime.probes import HealthBoard

__all__ = ["HealthMonitor"]

logger = logging.getLogger(__name__)

_CHECK_EVERY_S = 1.0


class HealthMonitor:
    """Keeps gRPC's standard health service up to date."""

    def __init__(self, board: HealthBoard, services: Mapping[str, Sequence[Callable[[], bool]]]) -> None:
        """Sets everything to NOT_SERVING.

        Args:
            board: What gRPC's health service shows.
            services: Full service name -> checks that must all hold. The empty name (the whole server) is
                SERVING when all services are.
        """
        self._board = board
        self._services = dict(services)
        self._shown: dict[str, bool] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="health", daemon=True)
        for name in ("", *self._services):
            self._show(name, False)

    def start(self) -> None:
        """Shows the true state from now on, checked every second; called once the models are warm."""
        self._refresh()
        self._thread.start()

    def drain(self) -> None:
        """Everything is NOT_SERVING from now on, for good."""
        with self._lock:
            if self._stopped.is_set():
                return
            self._stopped.set()
            for name in ("", *self._services):
                self._show(name, False)

    def _watch(self) -> None:
        while not self._stopped.wait(_CHECK_EVERY_S):
            self._refresh()

    def _refresh(self) -> None:
        distinct = {check for checks in self._services.values() for check in checks}
        holds = {check: check() for check in distinct}
        states = {name: all(holds[check] for check in checks) for name, checks in self._services.items()}
        with self._lock:
            if self._stopped.is_set():
                return
            for name, is_serving in {**states, "": all(states.values())}.items():
                if self._shown.get(name) != is_serving:
                    self._show(name, is_serving)
                    logger.info("health of %s: %s", name or "the server", "SERVING" if is_serving else "NOT_SERVING")

    def _show(self, name: str, is_serving: bool) -> None:
        self._board.set(name, is_serving)
        self._shown[name] = is_serving
