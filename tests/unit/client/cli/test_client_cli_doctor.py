"""``facets doctor`` checks the installation; ``facets serve`` starts the server if it is installed."""

import importlib.metadata
import importlib.util
import json
import os
import shutil
import sys
from types import SimpleNamespace

import pytest
from facets_client.cli import app
from facets_client.cli.settings import config_file
from typer.testing import CliRunner


@pytest.fixture
def healthy(tmp_path, monkeypatch):
    """A machine with nothing but the client."""
    install(monkeypatch, {})
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: ())
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=50e9))
    monkeypatch.chdir(tmp_path)


def install(monkeypatch, versions, *modules):
    """Installs distributions in these versions and modules, beside the client."""
    spec = importlib.util.spec_from_loader("x", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec if name in modules else None)
    versions = {"multifacet-client": "0.1.0", **versions}

    def version(name):
        if name not in versions:
            raise importlib.metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(importlib.metadata, "version", version)


def doctor(*args, code=0):
    """The checks by name."""
    done = CliRunner().invoke(app, ["--json", *args, "doctor"])
    assert done.exit_code == code, (done.stdout, done.stderr, done.exception)
    return {check.pop("name"): check for check in json.loads(done.stdout)["checks"]}


def test_a_healthy_machine_has_nothing_to_do(healthy, server, monkeypatch):
    checks = doctor("--target", server.target)
    assert {check["status"] for check in checks.values()} == {"ok"}
    assert server.target in checks["server"]["message"]
    monkeypatch.setenv("FACETS_TARGET", server.target)
    assert "is serving" in CliRunner().invoke(app, ["doctor"]).stdout


def test_what_is_wrong_with_the_installation_comes_with_advice(healthy, server, monkeypatch):
    monkeypatch.setenv("FACETS_TARGET", server.target)
    install(monkeypatch, {"multifacet-server": "0.2.0"}, "facets_server")
    checks = doctor(code=1)
    assert checks["versions"]["advice"] == "pip install 'multifacet-client==0.2.0'"
    assert checks["models"]["advice"] == "pip install 'multifacet[models]'"
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=1e9))
    assert doctor(code=1)["disk"]["status"] == "warning"


def test_no_server_is_a_warning_unless_it_was_named(healthy, monkeypatch):
    monkeypatch.delenv("FACETS_TARGET", raising=False)
    for module in ("main", "doctor"):
        monkeypatch.setattr(sys.modules[f"facets_client.cli.{module}"], "DEFAULT_TARGET", "localhost:1")
    assert doctor()["server"] == {
        "status": "warning",
        "message": doctor()["server"]["message"],
        "advice": "facets serve starts one",
    }
    assert doctor("--target", "localhost:2", code=1)["server"]["status"] == "problem"


def test_the_configuration_is_checked(healthy, server):
    config_file().parent.mkdir(parents=True)
    config_file().write_text("junk")
    assert doctor("--target", server.target, code=1)["configuration"]["status"] == "problem"
    config_file().write_text(f'profile = "w"\n[profiles.w]\ntarget = "{server.target}"\napi_key = "k"\n')
    config_file().chmod(0o644)
    assert doctor()["configuration"]["advice"] == f"chmod 600 {config_file()}"
    config_file().chmod(0o600)
    assert doctor()["configuration"]["status"] == "ok"


@pytest.mark.parametrize("configuration", ["", "junk"])
def test_serve_replaces_itself_by_the_server(healthy, monkeypatch, configuration):
    config_file().parent.mkdir(parents=True)
    config_file().write_text(configuration)
    assert "pip install 'multifacet[server,models]'" in CliRunner().invoke(app, ["serve"]).stderr
    started = []
    install(monkeypatch, {}, "facets_server")
    monkeypatch.setattr(os, "execv", lambda program, command: started.append((program, command)))
    options = ["--port", "0", "--data-dir", "x", "--model", "a"]
    assert CliRunner().invoke(app, ["serve", *options]).exit_code == 0
    assert started == [(sys.executable, [sys.executable, "-P", "-m", "facets_server", *options])]
