"""Waiting for what another thread or process brings about, instead of sleeping and hoping."""

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], *, timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"the condition did not come true within {timeout_s} s"
        time.sleep(0.01)
