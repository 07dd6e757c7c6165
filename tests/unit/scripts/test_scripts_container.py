"""The image, without building it: what it is made from is there, nothing else is sent, and its settings fit."""

import re
import shlex

import pytest
from facets_client.core.channel import DEFAULT_PORT
from facets_server.runtime.config import ServerConfig, load_config
from test_scripts_setup import ROOT, script

from facets.model.loading import DEFAULT_MODEL, TASKS
from facets.model.shipped import DEFAULT_PAIR_READER, DEFAULT_READER

# Instructions, lines that go on joined, comments dropped.
_TEXT = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
INSTRUCTIONS = [line.split(maxsplit=1) for line in re.sub(r"\\\n\s*", "", _TEXT).splitlines() if line.strip()]


def of_last_stage(name: str) -> list[str]:
    """What an instruction says in the stage that is shipped."""
    first = max(number for number, (instruction, _) in enumerate(INSTRUCTIONS) if instruction == "FROM")
    return [rest for instruction, rest in INSTRUCTIONS[first:] if instruction == name]


def copied() -> list[str]:
    """Every file and folder that is copied from the checkout."""
    lines = [shlex.split(rest) for instruction, rest in INSTRUCTIONS if instruction == "COPY"]
    return [path for line in lines if not line[0].startswith("--from=") for path in line[:-1]]


def test_what_is_copied_exists() -> None:
    assert [path for path in copied() if not (ROOT / path).exists()] == []


def test_the_default_models_and_those_that_they_borrow_from_are_in_it() -> None:
    builder = script("build_packages")
    (build,) = (rest for instruction, rest in INSTRUCTIONS if instruction == "RUN" and "build_packages.py" in rest)
    built = set(re.split(r"&&", build.partition("build_packages.py")[2])[0].split())
    wanted = {DEFAULT_MODEL, DEFAULT_READER, DEFAULT_PAIR_READER, *(entry.default for entry in TASKS.values())}
    wanted |= {lender for name in wanted for lender in builder.borrows(ROOT / "models" / name)}
    assert built - {"--wheels", "--out", "/wheels"} == wanted | set(builder.CODE) - {"multifacet-lab"}


def test_it_runs_without_rights_and_its_commands_volume_and_port_are_those_of_the_server() -> None:
    (user,), (entrypoint,), (health,) = map(of_last_stage, ("USER", "ENTRYPOINT", "HEALTHCHECK"))
    assert int(user) > 0
    environment = dict(pair.split("=", 1) for rest in of_last_stage("ENV") for pair in shlex.split(rest))
    assert of_last_stage("VOLUME") == of_last_stage("WORKDIR") == [environment["FACETS_SERVER_DATA_DIR"]]
    assert (entrypoint.split('"')[1], health.partition("CMD")[2].split('"')[1]) == ("facets-server", "facets")
    assert of_last_stage("EXPOSE") == [str(ServerConfig().port)]
    assert ServerConfig().port == DEFAULT_PORT


def test_compose_brings_the_page_for_this_machine_only() -> None:
    yaml = pytest.importorskip("yaml")
    service = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]["facets"]
    http = load_config(environment=service["environment"]).http
    assert f"127.0.0.1:${{HTTP_PORT:-{http.port}}}:{http.port}" in service["ports"]
    assert http.allowed_hosts == ("localhost", "127.0.0.1")
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_what_is_installed_by_its_hash_is_of_the_versions_that_were_tested() -> None:
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    tested = {canonical(pin) for pin in pins if "==" in pin}
    entries = re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text(encoding="utf-8"))
    locked = [entry for entry in entries if entry and not entry.startswith("#")]
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in locked)
    assert {canonical(entry.split(" ", 1)[0]) for entry in locked} <= tested, "make lock"
    assert "--no-deps --require-hashes" in _TEXT and "requirements.lock" in _TEXT


def canonical(pin: str) -> tuple[str, str]:
    name, version = pin.split("==")
    return re.sub("[-_.]+", "-", name).lower(), version
