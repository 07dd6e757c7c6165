"""The HTTP gateway of a real server: documented commands, streams, restarts."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from guide_pages import difference, steps
from server_process import ROOT, ServerProcess, free_port, make_toy_checkpoint
from waiting import wait_until

pytest.importorskip("starlette", reason="needs the extra gateway")

PAGE = ROOT / "docs" / "use" / "http.md"
SMALL = ROOT / "models" / "facets-passages-small-en"
PAGE_ADDRESS = "http://127.0.0.1:8080"
EMBED = "/facets.v1.EmbeddingService/Embed"
STREAM = "/facets.v1.EmbeddingService/EmbedStream"
LIVE = "/healthz"
LONG_S = 120.0


class Served:
    def __init__(self, server: ServerProcess, port: int) -> None:
        self.server = server
        self.url = f"http://127.0.0.1:{port}"
        self.client = httpx.Client(base_url=self.url, timeout=LONG_S, trust_env=False)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", int(self.url.rpartition(":")[2])), timeout=LONG_S)

    def answers(self) -> bool:
        try:
            return self.client.get(LIVE).status_code == 200
        except httpx.TransportError:
            return False

    def gateway_id(self) -> int:
        (found,) = (int(path.parent.name) for path in Path("/proc").glob("[0-9]*/stat") if self._is_gateway(path))
        return found

    def _is_gateway(self, stat: Path) -> bool:
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            return (
                parent == self.server.process.pid and "facets_server.gateway" in (stat.parent / "cmdline").read_text()
            )
        except OSError:  # the process has ended
            return False


def with_gateway(port: int) -> tuple[str, ...]:
    return ("--http-port", str(port))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server without keys, with the shipped small model, or a toy if the former is missing."""
    folder = tmp_path_factory.mktemp("gateway")
    model = SMALL if (SMALL / "model.safetensors").is_file() else make_toy_checkpoint(folder / "toy")
    port = free_port()
    with ServerProcess(folder / "data", model, arguments=with_gateway(port)) as server:
        yield Served(server, port)


@pytest.fixture
def start(spawn: Callable[..., ServerProcess]) -> Callable[..., Served]:
    """Starts servers with a toy model, which tests may kill."""

    def run(*arguments: str, **settings: object) -> Served:
        port = free_port()
        return Served(spawn(arguments=(*with_gateway(port), *arguments), **settings), port)

    return run


def test_documented_commands_print_what_the_page_shows(served: Served, tmp_path: Path) -> None:
    if not (SMALL / "model.safetensors").is_file():
        pytest.skip("the page shows answers of a shipped model, which is not there")
    shown = [step for step in steps(PAGE.read_text(encoding="utf-8")) if step.language == "sh"]
    assert len(shown) >= 8
    for step in shown:
        printed = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", step.code.replace(PAGE_ADDRESS, served.url)],
            capture_output=True,
            text=True,
            timeout=LONG_S,
            cwd=tmp_path,
            env={**os.environ, "no_proxy": "*"},
            check=False,
        )
        assert printed.returncode == 0, f"{step.code}\n{printed.stderr}"
        missing = None if step.output is None else difference(step.output, printed.stdout)
        assert missing is None, f"{step.code}\nis shown with {missing}\n{printed.stdout}"


class LineStream:
    """An open EmbedStream."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.received = b""
        head = f"POST {STREAM} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())

    def embed(self, sequence: int) -> None:
        line = json.dumps({"sequence": sequence, "request": {"texts": ["a cat"]}}).encode() + b"\n"
        self.connection.sendall(b"%x\r\n%b\r\n" % (len(line), line))
        while f'"sequence":"{sequence}"'.encode() not in self.received:
            part = self.connection.recv(65536)
            assert part, self.received
            self.received += part


def test_streams_answer_each_line_while_the_request_is_open(served: Served) -> None:
    with served.connect() as connection:
        stream = LineStream(connection)
        for sequence in (1, 2, 3):
            stream.embed(sequence)
        connection.sendall(b"0\r\n\r\n")
    assert stream.received.startswith(b"HTTP/1.1 200 ")


def test_a_dead_gateway_is_restarted_and_ends_with_a_killed_server(start: Callable[..., Served]) -> None:
    served = start()
    wait_until(served.answers, timeout_s=LONG_S)
    first = served.gateway_id()
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: "is started again" in served.server.log(), timeout_s=LONG_S)
    wait_until(served.answers, timeout_s=LONG_S)
    second = served.gateway_id()
    assert second != first
    assert served.client.post(EMBED, json={"texts": ["a cat"]}).status_code == 200
    served.server.kill()
    wait_until(lambda: not Path(f"/proc/{second}").exists(), timeout_s=LONG_S)
    assert not served.answers()


def test_sigterm_ends_open_streams_with_an_error_and_frees_the_port(start: Callable[..., Served]) -> None:
    served = start()
    gateway = served.gateway_id()
    with served.connect() as connection:
        stream = LineStream(connection)
        stream.embed(1)
        served.server.terminate()
        while part := connection.recv(65536):
            stream.received += part
    assert b'"error":{"code":"unavailable"' in stream.received
    assert served.server.process.wait(LONG_S) == 0
    wait_until(lambda: not Path(f"/proc/{gateway}").exists(), timeout_s=LONG_S)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", int(served.url.rpartition(":")[2])))
