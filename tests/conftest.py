"""What every test run needs. Standard library only: the client's tests run without the rest installed."""

import signal
from collections import Counter
from pathlib import Path

import pytest

# Started in the background by a shell, pytest inherits an ignored SIGINT and so would every process it starts:
# the tests of Ctrl-C would hang.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


MARKERS = {"adapters": "integration", "browser": "browser", "integration": "integration"}  # by folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first: workers take files in this order, so that none is left alone with one."""
    for item in items:
        if item.path.parents[1] == Path(__file__).parent and item.path.parent.name in MARKERS:
            item.add_marker(MARKERS[item.path.parent.name])
    num_slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -num_slow[item.path])
