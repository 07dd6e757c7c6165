"""``make proto-check`` passes on the protos, and fails on breaking changes and rule violations."""

import shutil
import subprocess
from pathlib import Path

import pytest
from source_tree import ROOT

MODULES = ROOT / "proto" / "node_modules"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the check reads."""
    if not (MODULES / ".bin" / "buf").exists():
        pytest.skip("buf is not installed: make proto-check installs it from npm")
    shutil.copytree(
        ROOT / "proto",
        tmp_path / "proto",
        ignore=shutil.ignore_patterns("*.py", "*.pyi", "__pycache__", "node_modules"),
    )
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "check_protos.sh", tmp_path / "scripts")
    (tmp_path / "proto" / "node_modules").symlink_to(MODULES)
    return tmp_path


def check(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = str(checkout / "scripts" / "check_protos.sh")
    return subprocess.run(["sh", script, *arguments], capture_output=True, text=True, timeout=120, check=False)


def change(checkout: Path, before: str, after: str) -> None:
    path = checkout / "proto" / "facets_proto" / "v1" / "texts.proto"
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after, 1), encoding="utf-8")


def test_the_protos_pass(checkout: Path) -> None:
    done = check(checkout)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("bool normalize = 3;", "bool normalise = 3;", "changed name"),
        ("rpc Explain(ExplainRequest) returns (ExplainResponse);", "", "Explain"),
        ("bool normalize = 3;", "bool normalize = 3;\n  bool CamelCase = 99;", "lower_snake_case"),
    ],
)
def test_breaking_changes_and_rule_violations_fail(checkout: Path, before: str, after: str, message: str) -> None:
    change(checkout, before, after)
    done = check(checkout)
    assert done.returncode != 0 and message in done.stdout + done.stderr
