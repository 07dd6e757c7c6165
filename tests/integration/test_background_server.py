"""The ``facets`` command with nothing running: its background server is started, shared, replaced and ended."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from server_process import COMMAND, client_environment, run_server
from waiting import wait_until

TEXTS = ["the cat is on the table", "the ship is on the sea", "the king is at war", "the sun and the moon"]


def listens_at_default_target() -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", 50051)) == 0


pytestmark = pytest.mark.skipif(listens_at_default_target(), reason="a server at localhost:50051 would be used")


class Home:
    """Runs ``facets`` as a user with a home folder of its own and no target."""

    def __init__(self, folder: Path, model: Path) -> None:
        self.folder, self.model = folder, model
        self.data_dir = folder / "share" / "facets"
        names = {"HOME": folder, "XDG_DATA_HOME": folder / "share", "FACETS_SERVER_MODELS": model}
        self.environment = client_environment(folder, **{name: str(value) for name, value in names.items()})
        del self.environment["FACETS_TARGET"]

    def start(self, *args: str, **settings: str) -> subprocess.Popen[str]:
        pipe, environment = subprocess.PIPE, {**self.environment, **settings}
        command = [*COMMAND, *args]
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment, cwd=self.folder)

    def run(self, *args: str, code: int = 0, **settings: str) -> str:
        process = self.start(*args, **settings)
        out, err = process.communicate(timeout=240)
        assert process.returncode == code, err
        return out + err

    def index(self, **settings: str) -> str:
        rows = [json.dumps({"id": str(row), "text": text}) + "\n" for row, text in enumerate(TEXTS)]
        (self.folder / "in.jsonl").write_text("".join(rows))
        return self.run("index", "in.jsonl", "-c", "docs", "--create", **settings)

    def pid(self) -> int:
        return int((self.data_dir / "lock").read_text())

    def is_running(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.data_dir / "server.sock")) == 0


@pytest.fixture
def home(tmp_path: Path, toy_model: Path) -> Iterator[Home]:
    home = Home(tmp_path, toy_model)
    yield home
    home.run("stop")
    assert not home.is_running()


def test_two_commands_on_a_fresh_machine(home: Home) -> None:
    said = home.index()
    assert "4 added" in said and str(home.data_dir) in said
    assert (home.data_dir / "server.sock").stat().st_mode & 0o777 == 0o700
    first = home.pid()
    found = json.loads(home.run("search", TEXTS[1], "-c", "docs", "--json"))
    assert found["hits"][0]["id"] == "1"
    assert str(home.data_dir) in home.run("status")
    assert f"documents in {home.data_dir}\n" in (home.data_dir / "server.log").read_text()
    said = home.run("search", "a", "-c", "none", code=2)
    assert "collection 'none' does not exist" in said and "those that exist: docs" in said
    refused = run_server("--port=0", "--data-dir", str(home.data_dir), "--model", str(home.model))
    assert refused.returncode == 1 and "facets stop ends it" in refused.stderr

    os.kill(home.pid(), signal.SIGKILL)
    wait_until(lambda: not home.is_running())
    counts = [home.start("documents", "count", "-c", "docs", "--quiet") for _ in range(3)]
    assert [count.communicate(timeout=240) for count in counts] == [("4\n", "")] * 3  # with the same documents
    assert home.pid() != first
    assert "has ended" in home.run("stop")
    assert not home.is_running()
    assert "was not running" in home.run("stop")


@pytest.mark.slow
def test_an_idle_server_ends_but_no_command_fails(home: Home) -> None:
    home.index(FACETS_SERVER_IDLE_S="0.2")
    wait_until(lambda: not home.is_running(), timeout_s=60.0)
    for _ in range(4):  # each meets a server that is there, ending or gone
        assert home.run("documents", "count", "-c", "docs", "--quiet", FACETS_SERVER_IDLE_S="0.2") == "4\n"
    wait_until(lambda: not home.is_running(), timeout_s=60.0)


@pytest.mark.slow
def test_a_load_starts_a_killed_server_again(home: Home) -> None:
    rows = [json.dumps({"id": str(row), "text": f"{row} {TEXTS[row % 4]}"}) + "\n" for row in range(3000)]
    (home.folder / "in.jsonl").write_text("".join(rows))
    load = home.start("index", "in.jsonl", "-c", "docs", "--create", "--batch-size", "4", "--window", "1", "--quiet")
    files = home.data_dir.glob
    wait_until(lambda: sum(file.stat().st_size for file in files("documents.sqlite3*")) > 500_000, timeout_s=120.0)
    os.kill(home.pid(), signal.SIGKILL)
    _, err = load.communicate(timeout=240)
    assert (load.returncode, err) == (0, "")
    assert home.run("documents", "count", "-c", "docs", "--quiet") == "3000\n"
