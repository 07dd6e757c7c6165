"""A server process forked from one that has imported everything: starting it costs no seconds of imports."""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver
from pathlib import Path

# What a server imports before it opens anything.
_PRELOADED = (
    *("torch", "faiss", "spacy", "scipy.optimize", "tokenizers", "safetensors.torch", "ahocorasick_rs"),
    *("facets.documents", "facets.relations.model", "facets.papers.model", "facets.model.passage_model"),
    *("facets_server.__main__", "facets_server.runtime.app", "facets_server.runtime.rooms"),
)
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(list(_PRELOADED))


class ForkedServer:
    """``python -m facets_server ARGUMENTS``, with the methods of ``subprocess.Popen`` that callers need."""

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], output: Path, errors: Path | None = None
    ) -> None:
        # The first server starts the process that forks, which keeps the environment of that moment.
        saved = os.environ.copy()
        os.environ.update(environment)
        try:
            forkserver.ensure_running()
        finally:
            os.environ.clear()
            os.environ.update(saved)
        self._process = FORKS.Process(
            target=_serve, args=(list(arguments), dict(environment), output, errors or output), daemon=True
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Exit code; None while the server runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("facets-server", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Sends a signal; does nothing after the end."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _serve(arguments: list[str], environment: dict[str, str], output: Path, errors: Path) -> None:
    os.environ.clear()
    os.environ.update(environment)
    for path, stream in ((output, sys.stdout), (errors, sys.stderr)):
        with path.open("ab") as file:
            os.dup2(file.fileno(), stream.fileno())
    from facets_server.__main__ import main

    sys.argv = ["facets-server", *arguments]
    sys.exit(main(arguments))
