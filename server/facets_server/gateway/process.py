"""The gateway as a child process of the server, which starts and watches it.

Parsing HTTP and JSON takes processor time in Python; in the server's own process it would block the event loop. The
server binds the port itself, to detect at start that it is in use, and restarts a gateway that dies.
"""

import http.client
import json
import logging
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from facets.errors import ConfigError
from facets_server.gateway.server import listen
from facets_server.runtime.config import ServerConfig

logger = logging.getLogger(__name__)

COMMAND = (sys.executable, "-P", "-m", "facets_server.gateway")
RESTART_DELAY_S = 1.0
_SCRAPE_TIMEOUT_S = 2.0


class GatewayProcess:
    """A gateway process of a server, with its HTTP socket on ``port``.

    ``target`` is the address where the server accepts the gateway's calls, ``token`` the secret that they carry.
    """

    def __init__(self, config: ServerConfig, *, target: str, token: str) -> None:
        """Binds the port; raises a ConfigError if it cannot be used."""
        self._socket = listen(config.host, config.http)
        self.port = int(self._socket.getsockname()[1])
        # The gateway does not need the address of the document store, which may contain a password.
        settings = config.model_dump(mode="json", exclude={"engine": {"store"}})
        order = {"target": target, "token": token, "socket": self._socket.fileno(), "config": settings}
        self._order = json.dumps(order) + "\n"
        self._process: subprocess.Popen[str] | None = None
        self._metrics_port = 0
        self._stopping = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="gateway", daemon=True)

    def start(self) -> None:
        """Starts the process and returns once it accepts requests; raises a ConfigError if it ends at once."""
        if not self._run():
            raise ConfigError("the HTTP gateway could not be started; the lines above have the reason")
        self._watcher.start()

    def drain(self) -> None:
        """Accepts no new connections; running requests continue."""
        self._stopping.set()
        self._socket.close()
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def stop(self, grace_s: float) -> None:
        """Drains, and kills the process after ``grace_s`` seconds. Idempotent."""
        self.drain()
        if self._process is None:
            return
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
        if self._watcher.is_alive():
            self._watcher.join()
        self._process.kill()  # the watcher may just have started another one
        self._process.wait()

    def collect(self) -> Iterator[Metric]:
        """Yields the gateway's metrics for the registry of the server; none while the gateway does not answer."""
        if not self._metrics_port:
            return
        try:
            url = f"http://127.0.0.1:{self._metrics_port}/metrics"
            with urllib.request.urlopen(url, timeout=_SCRAPE_TIMEOUT_S) as reply:
                text = reply.read().decode()
        except (OSError, http.client.HTTPException):
            return
        yield from text_string_to_metric_families(text)

    def _run(self) -> bool:
        """Starts the process; True once it accepts requests."""
        process = self._process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=(self._socket.fileno(),),
            start_new_session=True,  # Ctrl-C reaches only the server, which then stops the gateway
        )
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(self._order)
            process.stdin.flush()
        except OSError:
            return False
        line = process.stdout.readline()
        self._metrics_port = json.loads(line)["metrics_port"] if line else 0
        return bool(line)

    def _watch(self) -> None:
        while not self._stopping.is_set():
            assert self._process is not None
            code = self._process.wait()
            if self._stopping.is_set():
                return
            self._metrics_port = 0
            logger.error("the HTTP gateway ended with status %d and is started again", code)
            if not self._stopping.wait(RESTART_DELAY_S):
                try:
                    self._run()
                except (OSError, ValueError) as error:  # no memory for a process, or the socket was just closed
                    logger.error("the HTTP gateway cannot be started: %s", error)
