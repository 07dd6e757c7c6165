"""How a server watches its gateway process. A few lines of Python stand in for the process."""

import subprocess
import sys

import pytest
from facets_server.gateway import process
from facets_server.runtime.config import HttpConfig, ServerConfig
from waiting import wait_until

PROGRAM = """import sys; sys.stdin.readline(); print('ready', flush=True); sys.stdin.readline()"""


def test_a_dead_gateway_is_restarted_even_when_starting_fails_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    started, begin, refusals = list[subprocess.Popen[str]](), subprocess.Popen, list[OSError]()

    def popen(*arguments: object, **keywords: object) -> subprocess.Popen[str]:
        if len(started) == 1 and len(refusals) < 2:
            refusals.append(BlockingIOError(11, "Resource temporarily unavailable"))
            raise refusals[-1]
        started.append(begin(*arguments, **keywords))  # type: ignore[call-overload]  # as it was called
        return started[-1]

    monkeypatch.setattr(process, "RESTART_DELAY_S", 0.01)
    monkeypatch.setattr(process, "COMMAND", (sys.executable, "-c", PROGRAM))
    monkeypatch.setattr(subprocess, "Popen", popen)
    gateway = process.GatewayProcess(ServerConfig(http=HttpConfig(port=0)))
    gateway.start(target="unix:nowhere", token="token")
    started[0].kill()
    wait_until(lambda: len(started) == 2)
    assert len(refusals) == 2
    gateway.stop(1.0)
