"""A server process that is forked from one which has imported everything: its start costs no seconds of imports."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver
from pathlib import Path

# What a server imports before it opens anything: most of the seconds of its start.
_IMPORTED = (
    *("torch", "faiss", "spacy", "scipy.optimize", "tokenizers", "safetensors.torch", "ahocorasick_rs"),
    *("facets.documents", "facets.relations.model", "facets.papers.model", "facets.model.passage_model"),
    *(
        "facets_server.__main__",
        "facets_server.runtime.app",
        "facets_server.runtime.rooms",
        "facets_server.runtime.upkeep",
    ),
    *("facets_server.texts.room", "facets_server.documents.room", "facets_server.relations.room"),
    *("facets_server.papers.room", "facets_server.gateway.process"),
)
CLOCK = "FACETS_FAULTS_CLOCK_S"  # by so many seconds the clock of the day of a forked process is wrong
_CLOCK_READERS = ("facets.documents.store", "facets_server.documents.stream_store")  # what is stored with its time
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(list(_IMPORTED))


class _WrongClock:
    """The module ``time`` as they use it; gRPC and the system go by the right one."""

    def __init__(self, shift_s: int) -> None:
        self._shift_s = shift_s

    def time(self) -> float:
        return time.time() + self._shift_s

    def time_ns(self) -> int:
        return time.time_ns() + self._shift_s * 1_000_000_000


class ForkedServer:
    """``python -m facets_server ARGUMENTS``; what is asked of a ``subprocess.Popen``."""

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], output: Path, errors: Path | None = None
    ) -> None:
        # The first one starts the process that forks, with the environment of now.
        own = os.environ.copy()
        os.environ.update(environment)
        try:
            forkserver.ensure_running()
        finally:
            os.environ.clear()
            os.environ.update(own)
        self._process = FORKS.Process(
            target=_serve, args=(list(arguments), dict(environment), output, errors or output), daemon=True
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("facets-server", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Does nothing where it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


def _serve(arguments: list[str], environment: dict[str, str], output: Path, errors: Path) -> None:
    """The child: its environment, output and arguments are those of ``python -m facets_server``."""
    os.environ.clear()
    os.environ.update(environment)
    for path, stream in ((output, sys.stdout), (errors, sys.stderr)):
        with path.open("ab") as file:
            os.dup2(file.fileno(), stream.fileno())
    from facets_server.__main__ import main

    if shift_s := int(environment.get(CLOCK, "0")):
        for name in _CLOCK_READERS:
            sys.modules[name].time = _WrongClock(shift_s)  # type: ignore[attr-defined]  # the module that it imported

    sys.argv = ["facets-server", *arguments]
    sys.exit(main(arguments))
