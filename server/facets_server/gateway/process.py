"""The gateway as a child process of the server, which starts and watches it.

Parsing HTTP and JSON takes processor time in Python; in the server's own process it would block the event loop. The
server binds the port itself, to detect at start that it is in use, and restarts a gateway that dies.
"""

import json
import logging
import subprocess
import sys
import threading

from facets.errors import ConfigError
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.hosts import listen

logger = logging.getLogger(__name__)

_COMMAND = (sys.executable, "-P", "-m", "facets_server.gateway.server")
_RESTART_DELAY_S = 1.0


class GatewayProcess:
    """A gateway process of a server, with its HTTP socket on ``port``."""

    def __init__(self, config: ServerConfig) -> None:
        """Binds the port and begins to start the process; raises a ConfigError if the port cannot be used."""
        self._socket = listen(config.host, config.http.port, "http.port", timeout_s=config.http.read_timeout_s)
        self.port = int(self._socket.getsockname()[1])
        self._config = config
        self._order = ""
        self._process = self._spawn()
        self._stopping = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="gateway", daemon=True)

    def start(self, target: str) -> None:
        """Returns once the process takes requests for the server at ``target``; raises ConfigError if it has ended."""
        # The gateway does not need the address of the document store, which may contain a password.
        settings = self._config.model_dump(mode="json", exclude={"engine": {"store"}})
        order = {"target": target, "socket": self._socket.fileno(), "config": settings}
        self._order = json.dumps(order) + "\n"
        if not self._is_ready():
            raise ConfigError("the HTTP gateway could not be started; the lines above have the reason")
        self._watcher.start()

    def drain(self) -> None:
        """Accepts no new connections; running requests continue."""
        self._stopping.set()
        self._socket.close()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def stop(self, grace_s: float) -> None:
        """Drains, and kills the process after ``grace_s`` seconds. Idempotent."""
        self.drain()
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
        if self._watcher.is_alive():
            self._watcher.join()
        self._process.kill()  # the watcher may just have started another one
        self._process.wait()

    def _spawn(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=(self._socket.fileno(),),
            start_new_session=True,  # Ctrl-C reaches only the server, which then stops the gateway
        )

    def _is_ready(self) -> bool:
        """Sends the order to the process; True once it accepts requests, False if it has ended."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(self._order)
            process.stdin.flush()
        except OSError:
            return False
        return bool(process.stdout.readline())

    def _watch(self) -> None:
        while not self._stopping.is_set():
            code = self._process.wait()
            if self._stopping.is_set():
                return
            logger.error("the HTTP gateway ended with status %d and is started again", code)
            if not self._stopping.wait(_RESTART_DELAY_S):
                try:
                    self._process = self._spawn()
                    self._is_ready()
                except (OSError, ValueError) as error:  # no memory for a process, or the socket was just closed
                    logger.error("the HTTP gateway cannot be started: %s", error)
