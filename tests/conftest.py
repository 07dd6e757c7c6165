"""What every test run needs. Standard library only: the client's tests run without the rest installed."""

import signal
from collections import Counter
from pathlib import Path

import pytest

# Started in the background by a shell, pytest inherits an ignored SIGINT and so would every process it starts:
# the tests of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-passed", type=Path, help="write the names of the tests that passed to this file")
    parser.addoption("--leave-out", type=Path, help="leave out the tests of this file, a name a line")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files with slow tests come first: workers take files in this order, so that none is left alone with one."""
    if file := config.getoption("--leave-out"):
        known = set(file.read_text(encoding="utf-8").splitlines())
        left_out = [item for item in items if item.nodeid in known]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.nodeid not in known]
    num_slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -num_slow[item.path])


class PassedTests:
    def __init__(self, file: Path) -> None:
        self.file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(f"{report.nodeid}\n")


def pytest_configure(config: pytest.Config) -> None:
    if file := config.getoption("--write-passed"):
        config.pluginmanager.register(PassedTests(file))
