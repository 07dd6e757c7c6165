"""``facets doctor`` finds what is wrong and says what to do; ``facets serve`` starts the server, if it is here."""

import importlib.metadata
import importlib.util
import json
import os
import shutil
import socket
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from facets_client.cli import app
from facets_client.cli import doctor as diagnosis
from facets_client.cli.doctor import Finding, examine_machine, worst_of
from facets_client.cli.settings import config_file
from typer.testing import CliRunner

GIGABYTE = 10**9
NAMES = ["python", "versions", "extras", "models", "port", "disk", "memory", "gpu"]


@pytest.fixture
def healthy(tmp_path, monkeypatch):
    """A machine with nothing but the client, and with room."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: ())
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=50 * GIGABYTE))
    versions(monkeypatch, {"multifacet-client": "0.1.0"})
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable: 8000000 kB\n")
    monkeypatch.setattr(diagnosis, "MEMORY_FILE", tmp_path / "meminfo")
    monkeypatch.setattr(diagnosis, "GPU_SIGNS", (tmp_path / "gpu",))
    monkeypatch.setenv("FACETS_SERVER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def versions(monkeypatch, known):
    def version(name):
        if name in known:
            return known[name]
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)


def found(name):
    return next(finding for finding in examine_machine() if finding.name == name)


def installed(monkeypatch, *modules):
    spec = importlib.util.spec_from_loader("x", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec if name in modules else None)


def doctor(*args, code=0):
    done = CliRunner().invoke(app, [*args, "doctor"])
    assert done.exit_code == code, (done.stdout, done.stderr, done.exception)
    return done.stdout


def test_a_healthy_machine_has_nothing_to_do(healthy):
    assert [(finding.name, finding.status, finding.advice) for finding in examine_machine()] == [
        (name, "ok", "") for name in NAMES
    ]


def test_an_old_python_is_a_problem_and_a_new_one_a_warning(healthy, monkeypatch):
    monkeypatch.setattr(diagnosis, "LOWEST_PYTHON", (99, 0))
    assert found("python").status == "problem"
    monkeypatch.setattr(diagnosis, "LOWEST_PYTHON", (3, 0))
    monkeypatch.setattr(diagnosis, "HIGHEST_PYTHON", (3, 1))
    assert found("python").status == "warning"


def test_parts_of_several_versions_are_a_problem(healthy, monkeypatch):
    versions(monkeypatch, {"multifacet-client": "0.1.0", "multifacet": "0.2.0"})
    assert found("versions").status == "problem"
    assert found("versions").advice == "pip install --upgrade multifacet-client multifacet"


def test_a_server_without_what_it_needs_is_a_problem(healthy, monkeypatch):
    installed(monkeypatch, "facets_server")
    assert (found("extras").status, found("extras").advice) == ("problem", "pip install 'multifacet[server,models]'")
    assert (found("models").status, found("models").advice) == ("problem", "pip install 'multifacet[models]'")


def test_models_of_packages_are_named_and_a_missing_default_is_a_warning(healthy, monkeypatch):
    installed(monkeypatch, "facets_server", "torch")
    names = ["facets-papers-en"]
    entries = [importlib.metadata.EntryPoint(name, "m", "facets.models") for name in names]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: entries)
    assert found("models").status == "warning" and "facets serve --model facets-papers-en" in found("models").advice
    entries.append(importlib.metadata.EntryPoint("facets-en", "m", "facets.models"))
    assert found("models") == Finding("models", "ok", "facets-en, facets-papers-en")


def test_a_port_that_is_taken_comes_with_another(healthy, monkeypatch):
    installed(monkeypatch, "facets_server")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        monkeypatch.setattr(diagnosis, "DEFAULT_PORT", other.getsockname()[1])
        assert f"--port {other.getsockname()[1] + 1}" in found("port").advice


@pytest.mark.parametrize(("free", "status"), [(10 * GIGABYTE, "ok"), (GIGABYTE, "warning"), (1000, "problem")])
def test_a_disk_without_room_is_seen(healthy, monkeypatch, free, status):
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=free))
    assert found("disk").status == status
    assert bool(found("disk").advice) == (status != "ok")


@pytest.mark.parametrize(
    ("text", "status"), [("MemAvailable: 1000 kB\n", "warning"), ("MemAvailable: x\n", "ok"), ("junk\n", "ok")]
)
def test_little_memory_is_a_warning_and_unknown_memory_none(healthy, text, status):
    (healthy / "meminfo").write_text(text)
    assert found("memory").status == status


def test_a_gpu_that_torch_cannot_use_is_a_warning(healthy, monkeypatch):
    (healthy / "gpu").touch()
    versions(monkeypatch, {"torch": "2.13.0+cpu"})
    assert found("gpu").status == "warning"
    versions(monkeypatch, {"torch": "2.13.0"})
    assert found("gpu").status == "ok"


def test_a_server_that_serves_is_ok(healthy, server):
    assert "is serving" in doctor("--target", server.target)


def test_no_server_is_a_warning_unless_it_was_named(healthy, monkeypatch):
    monkeypatch.delenv("FACETS_TARGET", raising=False)
    for module in ("main", "doctor"):
        monkeypatch.setattr(sys.modules[f"facets_client.cli.{module}"], "DEFAULT_TARGET", "localhost:1")
    assert "facets serve starts one" in doctor()
    assert "problem  server" in doctor("--target", "localhost:2", code=1)


def test_programs_get_json(healthy, server):
    report = json.loads(doctor("--json", "--target", server.target))
    assert report["status"] == "ok"
    assert [check["name"] for check in report["checks"]] == [*NAMES, "configuration", "server"]
    assert {tuple(check) for check in report["checks"]} == {("name", "status", "message", "advice")}


def test_a_damaged_configuration_is_a_problem_and_not_the_end(healthy, server):
    config_file().parent.mkdir(parents=True)
    config_file().write_text("junk")
    assert "problem  configuration" in doctor("--target", server.target, code=1)


def test_a_key_that_others_may_read_is_a_warning(healthy, server):
    config_file().parent.mkdir(parents=True)
    config_file().write_text(f'profile = "w"\n[profiles.w]\ntarget = "{server.target}"\napi_key = "k"\n')
    config_file().chmod(0o644)
    assert f"chmod 600 {config_file()}" in doctor().replace("\n", "")
    config_file().chmod(0o600)
    assert "chmod" not in doctor()


def test_the_worst_finding_is_the_status():
    findings = [Finding("a", "ok", ""), Finding("b", "warning", "")]
    assert (worst_of([]), worst_of(findings)) == ("ok", "warning")
    assert worst_of([*findings, Finding("c", "problem", "")]) == "problem"


def test_serve_hands_its_options_to_the_server_in_its_place(monkeypatch):
    started = []
    installed(monkeypatch, "facets_server")
    monkeypatch.setattr(os, "execv", lambda program, command: started.append((program, command)))
    done = CliRunner().invoke(app, ["serve", "--port", "0", "--data-dir", "x", "--model", "a"])
    assert done.exit_code == 0, done.stderr
    options = ["--port", "0", "--data-dir", "x", "--model", "a"]
    assert started == [(sys.executable, [sys.executable, "-P", "-m", "facets_server", *options])]


def test_serve_without_the_server_says_what_to_install(healthy):
    done = CliRunner().invoke(app, ["serve"])
    assert done.exit_code == 2
    assert done.stderr == "facets: the server is not installed: pip install 'multifacet[server,models]'\n"


def test_serve_starts_though_the_configuration_is_damaged(monkeypatch):
    installed(monkeypatch, "facets_server")
    monkeypatch.setattr(os, "execv", lambda program, command: None)
    config_file().parent.mkdir(parents=True)
    config_file().write_text("junk")
    assert CliRunner().invoke(app, ["serve"]).exit_code == 0


def test_the_library_s_constants_are_the_same():
    """The client must not import the library, so it says them again."""
    shipped = Path(__file__).parents[4] / "facets" / "model" / "shipped.py"
    assert 'PACKAGE_GROUP = "facets.models"' in shipped.read_text(encoding="utf-8")
    assert f'"{diagnosis.DEFAULT_MODEL}",' in shipped.read_text(encoding="utf-8")
