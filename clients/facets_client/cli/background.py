"""The background server: the user's own, on a Unix socket in the data folder, started by the command that needs it."""

import contextlib
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from facets_client.cli.failures import CommandError, ExitCode
from facets_client.core.channel import DEFAULT_PORT, DEFAULT_TARGET
from facets_client.core.extras import INSTALL_LOCAL

_CONNECT_S = 0.3
_MAX_SOCKET_BYTES = 107 if sys.platform == "linux" else 103  # of the path, limited by the system
_START_S = 120.0
_HELD_S = 10.0  # for another process to let go of the data folder
_STEP_S = 0.02


def background_server(environment: Mapping[str, str]) -> "BackgroundServer":
    """The server of this user's data folder, which is the one that the server's setting or the platform names."""
    setting = environment.get("FACETS_SERVER_DATA_DIR")
    home = Path.home() / ("Library/Application Support" if sys.platform == "darwin" else ".local/share")
    folder = Path(setting) if setting else Path(environment.get("XDG_DATA_HOME") or home) / "facets"
    return BackgroundServer(folder.absolute())


def is_default_target_up() -> bool:
    """Whether a program listens at the default target."""
    try:
        socket.create_connection(("localhost", DEFAULT_PORT), _CONNECT_S).close()
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class BackgroundServer:
    """The server of one data folder.

    Its files are beside the documents: ``server.sock``; ``server.log``; ``server.lock``, which commands share while
    they use the server, and which it holds alone while it ends by itself; ``start.lock``, held by the command that
    starts or stops it.
    """

    data_dir: Path

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return self.data_dir / "server.sock"

    @property
    def target(self) -> str:
        """Its address for gRPC."""
        return f"unix:{quote(str(self.socket))}"

    def __str__(self) -> str:
        return f"the background server of {self.data_dir}"

    def is_running(self) -> bool:
        """Whether it accepts connections."""
        if (length := len(os.fsencode(self.socket))) > _MAX_SOCKET_BYTES:
            problem = f"the path of the socket, {self.socket}, has {length} bytes, the limit is {_MAX_SOCKET_BYTES}"
            raise CommandError(f"{problem}: set FACETS_SERVER_DATA_DIR to a folder with a shorter path")
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(self.socket))
            except OSError:
                return False
        return True

    def join(self, note: Callable[[str], None]) -> contextlib.ExitStack:
        """Starts the server unless it runs; it does not end by itself until the caller closes what this returns."""
        if importlib.util.find_spec("facets_server") is None:
            problem = f"no server listens at {DEFAULT_TARGET}, and none is installed here to start in the background"
            how = f"{INSTALL_LOCAL} installs it, --target or FACETS_TARGET names another"
            raise CommandError(problem, "UNAVAILABLE", ExitCode.UNAVAILABLE, how)
        try:
            if not self.is_running():  # rejects a path that is too long for the socket before there is a folder
                self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            problem = f"data directory {self.data_dir} cannot be created: {error.strerror}"
            raise CommandError(f"{problem}: set FACETS_SERVER_DATA_DIR to a folder that you can write") from error
        with contextlib.ExitStack() as stack:
            stack.enter_context(_locked(self.data_dir / "server.lock", is_shared=True))
            self.start(note)
            return stack.pop_all()

    def start(self, note: Callable[[str], None]) -> None:
        """Starts the server unless it runs, and returns once it accepts calls."""
        if self.is_running():
            return
        with _locked(self.data_dir / "start.lock"):
            process = None
            started = time.monotonic()
            while not self.is_running():
                waited_s = time.monotonic() - started
                if process is None and (waited_s > _HELD_S or not self._is_held()):
                    note(f"starting the background server, documents in {self.data_dir}; facets stop ends it")
                    process = self._spawn()
                if waited_s > _START_S or (process is not None and process.poll() is not None):
                    lines = self._log.read_text(encoding="utf-8", errors="replace").split("\n")
                    reason = next((line for line in reversed(lines) if line), f"no answer for {_START_S:g} s")
                    problem = f"the background server did not start: {reason.removeprefix('facets-server: ')}"
                    raise CommandError(problem, "FAILED_PRECONDITION", hint=f"log: {self._log}")
                time.sleep(_STEP_S)

    def stop(self) -> bool:
        """Ends the server and waits until it has ended; False if it does not run."""
        if not self.is_running():
            return False
        with _locked(self.data_dir / "start.lock"):
            if is_running := self.is_running():
                os.kill(int((self.data_dir / "lock").read_text()), signal.SIGTERM)
                while self._is_held():
                    time.sleep(_STEP_S)
            return is_running

    @property
    def _log(self) -> Path:
        return self.data_dir / "server.log"

    def _spawn(self) -> "subprocess.Popen[bytes]":
        options = ("--socket", self.socket, "--data-dir", self.data_dir, "--http-port=-1", "--metrics-port=-1")
        with self._log.open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "facets_server", *options],
                cwd=self.data_dir,
                env={"FACETS_SERVER_WARM_UP": "false", **os.environ},  # each model is opened by the first call to it
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # neither Ctrl-C nor a closed terminal reaches it
            )

    def _is_held(self) -> bool:
        try:
            with _locked(self.data_dir / "lock", is_shared=True, waits=False):
                return False
        except BlockingIOError:
            return True


@contextlib.contextmanager
def _locked(path: Path, *, is_shared: bool = False, waits: bool = True) -> Iterator[None]:
    import fcntl  # not on Windows, where the server does not run

    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "rb") as file:
        fcntl.flock(file, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | (0 if waits else fcntl.LOCK_NB))
        yield
