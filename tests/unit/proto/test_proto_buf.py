"""``make proto-check`` passes on what is there, and refuses what would break programs or bend the rules."""

import shutil
import subprocess
from pathlib import Path

import pytest
from source_tree import ROOT

MODULES = ROOT / "proto" / "node_modules"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the check reads, to be changed."""
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
    ("before", "after", "says"),
    [
        ("bool normalize = 3;", "bool normalise = 3;", "changed name"),
        ("bool normalize = 3;", "bool normalize = 33;", "normalize"),
        ("bool normalize = 3;", "string normalize = 3;", "changed type"),
        ("rpc Explain(ExplainRequest) returns (ExplainResponse);", "", "Explain"),
        ("bool normalize = 3;", "bool normalize = 3;\n  bool uncommented = 99;", "comment"),
    ],
)
def test_what_breaks_programs_or_rules_is_refused(checkout: Path, before: str, after: str, says: str) -> None:
    change(checkout, before, after)
    done = check(checkout)
    assert done.returncode != 0 and says in done.stdout + done.stderr


def test_additions_pass_and_a_release_keeps_them(checkout: Path) -> None:
    change(checkout, "bool normalize = 3;", "bool normalize = 3;\n  // Something new.\n  bool something = 99;")
    assert check(checkout, "--release").returncode == 0
    change(checkout, "  // Something new.\n  bool something = 99;\n", "")
    assert "something" in check(checkout).stdout
