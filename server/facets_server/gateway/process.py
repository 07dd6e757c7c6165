"""The gateway in a process of its own: the server's, which it starts, watches and ends; and one started by hand.

Reading HTTP and JSON costs processor time in Python, which in the server's own process would stop its loop and threads
for as long. The server binds the port, so that a busy one is found at start, and starts the gateway again when it dies.
One started by hand may stand on another machine.
"""

import asyncio
import http.client
import json
import logging
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import grpc
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.parser import text_string_to_metric_families

from facets.errors import ConfigError
from facets_server.gateway.serving import Gateway, listen
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.front import exposure
from facets_server.runtime.keys import read_token
from facets_server.runtime.metrics_server import MetricsServer

logger = logging.getLogger(__name__)

COMMAND = (sys.executable, "-P", "-m", "facets_server.gateway")
AGAIN_AFTER_S = 1.0
_SCRAPE_S = 2.0
_KILL_AFTER_S = 1.0
_DEFAULT_PORT = 8080


class GatewayProcess:
    """A gateway that serves one gRPC server.

    Attributes:
        port: Where it listens.
    """

    def __init__(self, config: ServerConfig, *, target: str, token: str) -> None:
        """Binds the port; nothing answers yet.

        Args:
            config: Settings of the server.
            target: Where the server listens for its gateway.
            token: What the server knows the gateway by.

        Raises:
            ConfigError: The port cannot be used.
        """
        self._socket = listen(config.host, config.http)
        self.port = int(self._socket.getsockname()[1])
        order = {"target": target, "token": token, "socket": self._socket.fileno()}
        # Where documents are kept, a password among it, is none of the gateway's business.
        known = config.model_dump(mode="json", exclude={"engine": {"store"}})
        self._order = json.dumps({**order, "config": known})
        self._process: subprocess.Popen[str] | None = None
        self._metrics_port = 0
        self._stopping = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="gateway", daemon=True)

    def start(self) -> None:
        """Starts the process, and returns once it answers.

        Raises:
            ConfigError: It ended at once; it has said why.
        """
        if not self._run():
            raise ConfigError("the HTTP gateway could not be started; its reason stands above")
        self._watcher.start()

    def drain(self) -> None:
        """Takes no new connections; requests that run may end."""
        self._stopping.set()
        self._socket.close()
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def stop(self, grace_s: float) -> None:
        """Drains, and ends the process after ``grace_s`` seconds at the latest. Idempotent."""
        self.drain()
        if self._process is None:
            return
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_KILL_AFTER_S)
        if self._watcher.is_alive():
            self._watcher.join()
            self._process.kill()  # one that was just being started

    def collect(self) -> Iterator[Metric]:
        """Its metrics, for the registry of the server; none while it does not answer."""
        if not self._metrics_port:
            return
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._metrics_port}/metrics", timeout=_SCRAPE_S) as reply:
                text = reply.read().decode()
        except (OSError, http.client.HTTPException):  # it ended, also in the middle of its answer
            return
        yield from text_string_to_metric_families(text)

    def _run(self) -> bool:
        """Starts the process; True once it answers."""
        process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=(self._socket.fileno(),),
            start_new_session=True,  # Ctrl-C is for the server, which ends us in order
        )
        self._process = process
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(self._order + "\n")
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
            if not self._stopping.wait(AGAIN_AFTER_S):
                try:
                    self._run()
                except (OSError, ValueError) as error:  # no room for a process, a socket that was just closed
                    logger.error("the HTTP gateway cannot be started: %s", error)


def run_beside(target: str, config: ServerConfig, *, ca_file: Path | None) -> None:
    """Serves until SIGTERM or SIGINT.

    Args:
        target: ``HOST:PORT`` of the gRPC server.
        config: Settings of the gateway; its port is 8080 where none is set.
        ca_file: Certificates to trust, PEM; None: the server speaks no TLS.

    Raises:
        ConfigError: A port or a file cannot be used.
    """
    http = config.http if config.http.port >= 0 else config.http.model_copy(update={"port": _DEFAULT_PORT})
    token = "" if http.token_file is None else read_token(http.token_file)
    registry = CollectorRegistry()
    gateway = Gateway(target, config, token=token, credentials=_credentials(ca_file), registry=registry)
    with listen(config.host, http) as bound:
        if config.metrics_port >= 0:
            MetricsServer(registry, config.host, config.metrics_port, allowed_hosts=http.allowed_hosts)
        for warning in exposure(config):
            logger.warning("%s", warning)
        logger.info("HTTP on port %d of %s, for the server at %s", bound.getsockname()[1], config.host, target)
        asyncio.run(gateway.serve_until_signal(bound))


def _credentials(ca_file: Path | None) -> grpc.ChannelCredentials | None:
    if ca_file is None:
        return None
    try:
        return grpc.ssl_channel_credentials(ca_file.read_bytes())
    except OSError as error:
        raise ConfigError(f"--target-ca {ca_file} cannot be read: {error.strerror}") from error
