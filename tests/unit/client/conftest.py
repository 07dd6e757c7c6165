import asyncio
import os
from pathlib import Path
from tempfile import TemporaryFile

import pytest
from facets_client import AsyncFacetsClient, FacetsClient
from facets_client.cli import app
from facets_client.core.channel import RETRY_POLICY
from fake_server import FakeServer
from typer.testing import CliRunner

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def short_retries(monkeypatch):
    """The pauses between automatic retries, shortened; what is retried and how often stays."""
    monkeypatch.setitem(RETRY_POLICY, "initialBackoff", "0.01s")
    monkeypatch.setitem(RETRY_POLICY, "maxBackoff", "0.05s")
    for package in ("core", "generated"):
        monkeypatch.setattr(f"facets_client.{package}.calls.RETRY_PAUSES_S", (0.01, 0.02, 0.05, 0.05))


@pytest.fixture
def environment(tmp_path):
    """Environment of a subprocess that finds the client, installed or not."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FACETS_")}
    kept["PYTHONPATH"] = os.pathsep.join(str(ROOT / folder) for folder in ("clients", "proto"))
    kept["FACETS_TARGET"] = "127.0.0.1:1"  # no background server
    return kept


@pytest.fixture
def server():
    fake = FakeServer()
    fake.world.make("news")
    yield fake
    fake.stop()


@pytest.fixture
def world(server):
    return server.world


@pytest.fixture
def facets(server, tmp_path, monkeypatch):
    """Runs ``facets`` in a folder of its own; checks its exit code and that standard error is no traceback."""
    monkeypatch.setenv("FACETS_TARGET", server.target)
    monkeypatch.chdir(tmp_path)

    def run(*args, code=0, stdin=None):
        with TemporaryFile() as given:  # the process that reads files inherits the descriptor
            given.write((stdin or "").encode())
            given.seek(0)
            own = os.dup(0)
            os.dup2(given.fileno(), 0)
            done = CliRunner().invoke(app, [str(arg) for arg in args], input=stdin)
            os.dup2(own, 0)
            os.close(own)
        assert done.exit_code == code, (done.stdout, done.stderr, done.exception)
        assert "Traceback" not in done.stderr
        return done

    return run


class BlockingView:
    """An asynchronous client seen through blocking eyes, so that one test serves both."""

    def __init__(self, *args, **kwargs):
        self._runner = asyncio.Runner()
        self._client = AsyncFacetsClient(*args, **kwargs)

    def __getattr__(self, name):
        method = getattr(self._client, name)

        def call(*args, **kwargs):
            returned = method(*args, **kwargs)
            if hasattr(returned, "__aiter__"):
                return self._iterate(returned)
            return self._runner.run(returned)

        return call

    def _iterate(self, iterator):
        while True:
            try:
                yield self._runner.run(anext(iterator))
            except StopAsyncIteration:
                return

    def close(self):
        with self._runner:
            self._runner.run(self._client.close())


@pytest.fixture(params=["blocking", "asyncio"])
def make_client(request, server):
    """Makes clients of the server; each test runs once with either kind."""
    made = []

    def make(target=server.target, **kwargs):
        kind = FacetsClient if request.param == "blocking" else BlockingView
        made.append(kind(target, **{"timeout_s": 10, **kwargs}))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def client(make_client):
    return make_client()
