"""Every guide does what it says: its commands run in order and print what the page shows."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from guide_pages import Step, difference, steps
from server_process import ROOT, ServerProcess, client_environment

GUIDES = [
    ROOT / "docs" / f"{page}.md"
    for page in (
        *("use/tutorial", "use/folder", "use/search", "use/compared", "use/examples", "use/encoders"),
        *("run/sizing", "run/production", "change/train"),
    )
]
MODELS = ROOT / "models"
SERVED = ("facets-passages-small-en", "facets-en")
PROGRAMS = {
    "facets": "facets_client.cli",
    "facets-server": "facets_server.__main__",
    "facets-train": "facets_lab.training.__main__",
    "facets-eval": "facets_lab.evaluation.__main__",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("guides") / "data"
    arguments = [part for name in SERVED[1:] for part in ("--model", str(MODELS / name))]
    with ServerProcess(folder, MODELS / SERVED[0], arguments=arguments) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with what a guide may name, as in a checkout, and the four programs; its servers end with it."""
    for name in ("docs", "examples", "samples", "models", "lab"):
        if (ROOT / name).is_dir():
            (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / ".bin").mkdir()
    for program, module in PROGRAMS.items():
        path = tmp_path / ".bin" / program
        code = f"import sys; from {module} import main; sys.exit(main())"
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{code}" "$@"\n')
        path.chmod(0o755)
    yield tmp_path
    for path in tmp_path.glob("*.pid"):
        process = int(path.read_text())
        with contextlib.suppress(OSError):
            if b"facets" in Path(f"/proc/{process}/cmdline").read_bytes():  # or the number is another's by now
                os.kill(process, signal.SIGKILL)


def environment(folder: Path, target: str) -> dict[str, str]:
    path = os.pathsep.join([str(folder / ".bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    return client_environment(folder / ".bin", PATH=path, COLUMNS="120", FACETS_TARGET=target)


def run(step: Step, folder: Path, target: str) -> str:
    command = ["bash", "-euo", "pipefail", "-c"] if step.language == "sh" else [sys.executable, "-c"]
    done = subprocess.run(
        [*command, step.code],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        env=environment(folder, target),
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, f"{step.code}\n{done.stdout}"
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_commands_run_and_print_what_the_page_shows(page: Path, folder: Path, server: ServerProcess) -> None:
    for step in steps(page.read_text(encoding="utf-8")):
        printed = run(step, folder, server.target)
        if step.output is not None:
            missing = difference(step.output, printed)
            assert missing is None, f"{page.name} shows {missing}\n{printed}"


def test_a_shown_line_that_is_not_printed_is_found() -> None:
    assert difference("one 0.51\n...\nlast", "one 0.52\ntwo\nthree\nlast") is None
    assert difference("one 0.51", "one 0.61") == "one 0.51"
    assert difference("first\nlast", "first\nmiddle\nlast") == "'last'; printed was 'middle'"
    assert difference("3 documents", "4 documents") == "3 documents"
    assert difference("0.5 of 'the …'", "0.51 of 'the whole 7'") is None
    assert difference("0.5 of 'the …'", "0.51 of 'a whole'") is not None


def test_blocks_of_a_page_are_found_with_their_output() -> None:
    page = "# Title\n```sh\nls\n```\nprints\n```text\na\n```\n```toml\nx = 1\n```\n```python\nprint(1)\n```\n"
    assert steps(page) == [Step("sh", "ls\n", "a\n"), Step("python", "print(1)\n", None)]
