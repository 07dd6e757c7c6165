"""How a server starts, watches and scrapes its gateway process. A few lines of Python stand in for the process."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from facets_server.gateway.process import GatewayProcess
from facets_server.runtime.config import HttpConfig, ServerConfig
from waiting import wait_until

PROGRAM = "import sys; sys.stdin.readline(); print({line!r}, flush=True); sys.stdin.readline()"


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[GatewayProcess]:
    monkeypatch.setattr("facets_server.gateway.process.RESTART_DELAY_S", 0.01)
    made = GatewayProcess(ServerConfig(http=HttpConfig(port=0)), target="unix:nowhere", token="token")
    yield made
    made.stop(1.0)


def says(monkeypatch: pytest.MonkeyPatch, metrics_port: int) -> None:
    program = PROGRAM.format(line=f'{{"metrics_port": {metrics_port}}}')
    monkeypatch.setattr("facets_server.gateway.process.COMMAND", (sys.executable, "-c", program))


def test_a_dead_gateway_is_restarted_even_when_starting_fails_at_first(
    gateway: GatewayProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    says(monkeypatch, 0)
    started, begin, refusals = list[subprocess.Popen[str]](), subprocess.Popen, list[OSError]()

    def popen(*arguments: object, **keywords: object) -> subprocess.Popen[str]:
        if len(started) == 1 and len(refusals) < 2:
            refusals.append(BlockingIOError(11, "Resource temporarily unavailable"))
            raise refusals[-1]
        started.append(begin(*arguments, **keywords))  # type: ignore[call-overload]  # as it was called
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", popen)
    gateway.start()
    started[0].kill()
    wait_until(lambda: len(started) == 2)
    assert len(refusals) == 2


def test_incomplete_metrics_are_ignored(gateway: GatewayProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfacets_up 1\n")

        thread = threading.Thread(target=answer)
        thread.start()
        says(monkeypatch, server.getsockname()[1])
        gateway.start()
        assert list(gateway.collect()) == []
        thread.join(10)
