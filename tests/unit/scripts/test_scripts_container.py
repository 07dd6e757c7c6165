"""The image, without building it: what it is made from is there, nothing else is sent, and its settings fit."""

import re
import shlex
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from facets_client.core.channel import DEFAULT_PORT
from facets_server.runtime.config import ServerConfig
from test_scripts_setup import ROOT, script

from facets.model.loading import DEFAULT_MODEL, TASKS

# Instructions, lines that go on joined, comments dropped.
_TEXT = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
INSTRUCTIONS = [line.split(maxsplit=1) for line in re.sub(r"\\\n\s*", "", _TEXT).splitlines() if line.strip()]
IGNORED = [
    line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[:1] not in ("", "#")
]


def of_last_stage(name: str) -> list[str]:
    """What an instruction says in the stage that is shipped."""
    first = max(number for number, (instruction, _) in enumerate(INSTRUCTIONS) if instruction == "FROM")
    return [rest for instruction, rest in INSTRUCTIONS[first:] if instruction == name]


def is_sent(path: str) -> bool:
    """Whether the builder gets a file of the checkout: the last pattern that matches it or a folder of it decides."""
    places = [path, *map(str, Path(path).parents)][:-1]
    sent = True
    for line in IGNORED:
        pattern = line.removeprefix("!")
        names = [Path(place).name for place in places] if pattern.startswith("**/") else places
        if any(fnmatchcase(name, pattern.removeprefix("**/")) for name in names):
            sent = line.startswith("!")
    return sent


def copied() -> list[str]:
    """Every file and folder that is copied from the checkout."""
    lines = [shlex.split(rest) for instruction, rest in INSTRUCTIONS if instruction == "COPY"]
    return [path for line in lines if not line[0].startswith("--from=") for path in line[:-1]]


@pytest.mark.parametrize("path", copied())
def test_what_is_copied_is_there_and_sent(path: str) -> None:
    assert (ROOT / path).exists()
    assert is_sent(path)


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".venv/bin/python",
        "data/serve/documents.sqlite3",
        "tests/conftest.py",
        "models/baselines/facets-en-k1/config.json",
        "clients/typescript/node_modules/x.js",
        "facets/__pycache__/x.pyc",
        "keys.txt",
    ],
)
def test_what_the_image_needs_not_is_not_sent(path: str) -> None:
    assert not is_sent(path)


def test_code_and_models_are_sent() -> None:
    for path in (
        "facets/model/loading.py",
        "clients/facets_proto/v1/documents.proto",
        f"models/{DEFAULT_MODEL}/config.json",
    ):
        assert is_sent(path), path


def test_the_default_models_and_those_that_they_borrow_from_are_in_it() -> None:
    builder = script("build_packages")
    (build,) = (rest for instruction, rest in INSTRUCTIONS if instruction == "RUN" and "build_packages.py" in rest)
    built = set(re.split(r"&&", build.partition("build_packages.py")[2])[0].split())
    wanted = {DEFAULT_MODEL, *(entry.default for entry in TASKS.values())}
    wanted |= {lender for name in wanted for lender in builder.borrows(ROOT / "models" / name)}
    assert built - {"--wheels", "--out", "/wheels"} == wanted | set(builder.CODE) - {"multifacet-lab"}


def test_it_runs_without_rights_and_keeps_documents_in_its_volume() -> None:
    (user,) = of_last_stage("USER")
    assert user.isdecimal() and int(user) > 0
    environment = dict(pair.split("=", 1) for rest in of_last_stage("ENV") for pair in shlex.split(rest))
    assert of_last_stage("VOLUME") == of_last_stage("WORKDIR") == [environment["FACETS_SERVER_DATA_DIR"]]


def test_its_commands_and_its_port_are_those_of_the_distributions() -> None:
    programs = {
        program
        for folder in ("server", "clients")
        for program in tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"][
            "scripts"
        ]
    }
    (entrypoint,), (health,) = of_last_stage("ENTRYPOINT"), of_last_stage("HEALTHCHECK")
    assert re.findall(r'"([^"]+)"', entrypoint)[0] in programs
    assert re.findall(r'CMD \["([^"]+)"', health)[0] in programs
    assert of_last_stage("EXPOSE") == [str(ServerConfig().port)]
    assert ServerConfig().port == DEFAULT_PORT


def canonical(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def locked() -> dict[str, str]:
    """Versions by name of what the image installs by its hashes."""
    found = {}
    for entry in re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text(encoding="utf-8")):
        if entry and not entry.startswith("#"):
            name, version = entry.split(" ", 1)[0].split("==")
            assert re.findall(r"--hash=sha256:[0-9a-f]{64}", entry), entry
            found[canonical(name)] = version
    return found


def test_what_is_installed_by_its_hash_is_of_the_versions_that_were_tested() -> None:
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    tested = {canonical(name): version for name, _, version in (pin.partition("==") for pin in pins) if version}
    assert locked().items() <= tested.items(), "make lock"
    assert "--no-deps --require-hashes" in _TEXT and "requirements.lock" in _TEXT
