"""The README does what it says: its quickstarts run, its table is the contract, its links lead somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from proto_files import SERVICES
from server_process import ROOT, SHIPPED_MODEL, ServerProcess, client_environment

README = (ROOT / "README.md").read_text(encoding="utf-8")
QUICKSTARTS = README.partition("## Quickstarts")[2].partition("\n## ")[0]
PAGES = [
    ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "models/README.md")
]
PAGES += sorted(path for folder in ("docs", "samples", "proto") for path in (ROOT / folder).rglob("*.md"))


def block(after: str) -> str:
    """The first block of code behind the line that starts with ``after``."""
    found = re.search(rf"^{after}.*?```\w+\n(.*?)```", QUICKSTARTS, re.DOTALL | re.MULTILINE)
    assert found, f"README has no quickstart {after!r}"
    return found[1]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of a program that finds the packages and the ``facets`` command, installed or not."""
    folder = tmp_path_factory.mktemp("readme")
    command = folder / "bin" / "facets"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from facets_client.cli import main; main()" "$@"\n')
    command.chmod(0o755)
    return client_environment(folder, PATH=os.pathsep.join([str(command.parent), os.environ["PATH"]]))


def run(command: list[str], environment: dict[str, str], *, cwd: Path = ROOT) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment, cwd=cwd, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def command_line(server_target: str, channel: object, environment: dict[str, str]) -> str:
    """Output of the quickstart of the command line, whose collection the next quickstart searches."""
    state = environment["XDG_DATA_HOME"] + "/state"
    lines = block("Search your own files").replace(" --create", f" --create --rejected {state}.rejected")
    return run(["bash", "-euxc", lines], {**environment, "FACETS_TARGET": server_target})


def test_a_folder_is_searched_without_a_server(environment: dict[str, str], tmp_path: Path) -> None:
    out = run([sys.executable, "-c", block("Search in Python")], environment, cwd=tmp_path)
    assert out.splitlines()[0].endswith(" The library opens at nine on weekdays.")
    assert (tmp_path / "notes" / "documents.sqlite3").is_file()


def test_library_quickstart_runs(environment: dict[str, str]) -> None:
    assert SHIPPED_MODEL.is_dir(), "the quickstart needs the shipped model models/facets-en"
    code = block("Models") + "\nprint(facet_embeddings.shape)"
    out = run([sys.executable, "-c", code], environment)
    words, scores, shape = out.strip().splitlines()[0], out.strip().splitlines()[-2], out.strip().splitlines()[-1]
    assert words.startswith("[[('") and scores.strip()
    assert shape == "(1, 10, 256)"


def test_command_line_quickstart_runs(command_line: str) -> None:
    assert command_line.count("query facet") >= 3  # one search, three documents, evidence for each
    assert '"score"' in command_line


@pytest.mark.slow
def test_relations_and_papers_quickstart_runs(
    environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    models = [SHIPPED_MODEL.parent / name for name in ("facets-relations-en", "facets-papers-en")]
    folder = tmp_path_factory.mktemp("readme-models") / "data"
    arguments = [part for model in models for part in ("--model", str(model))]
    with ServerProcess(folder, SHIPPED_MODEL, arguments=arguments) as server:
        out = run(["bash", "-euxc", block("Relations")], {**environment, "FACETS_TARGET": server.target})
    assert "birthPlace" in out and "$ARG1 was killed by $ARG2" in out and "facets-papers-en" in out


def test_python_client_quickstart_runs(command_line: str, server_target: str, environment: dict[str, str]) -> None:
    code = block("The same in Python")
    assert "localhost:50051" in code
    out = run([sys.executable, "-c", code.replace("localhost:50051", server_target)], environment)
    assert len(out.splitlines()) == 3


def test_table_of_the_protos_lists_every_rpc() -> None:
    listed = set(re.findall(r"`(\w+)`", (ROOT / "proto" / "README.md").read_text(encoding="utf-8")))
    for service in SERVICES:
        assert {service.name, *(method.name for method in service.methods)} <= listed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not link.startswith(("http://", "https://")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
