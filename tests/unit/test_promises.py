"""Promises of the documents about the tree, and rules of the tests."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from source_tree import PACKAGES, ROOT, TASK_ROOMS, modules

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "proto" / "README.md"]
# A path of ours in backticks: it begins with a folder of the checkout and names a file.
PATH = re.compile(r"`((?:facets|server|clients|proto|tests|scripts|benchmarks|lab|docs|samples)/[\w./-]+\.\w+)`")
TESTS = sorted((ROOT / "tests").rglob("*.py"))


def test_the_same_rooms_are_in_every_package() -> None:
    folders = [*(PACKAGES[name] for name in ("facets", "facets_lab", "facets_server", "facets_client"))]
    for folder in [*folders, PACKAGES["facets_client"] / "cli"]:
        assert set(TASK_ROOMS) <= {path.stem for path in folder.iterdir()}, folder


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_and_targets_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not [path for path in PATH.findall(text) if not (ROOT / path).exists()]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"(?:^|`)make ([a-z][a-z-]+)", text, re.MULTILINE)
    assert not [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)]


def test_durable_files_go_through_the_storage_room() -> None:
    opens = {"sqlite3.connect", "os.replace", "os.rename", "os.fsync"}
    wrong = [
        module.place(node.lineno)
        for module in modules().values()
        if module.package not in {"facets_client", "facets_lab"} and module.room != "storage"  # scratch files
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node) in opens
    ]
    assert not wrong


def test_models_are_as_small_as_their_page_says() -> None:
    folder = ROOT / "models"
    most = re.search(r"at most (\d+) MB together", (folder / "README.md").read_text(encoding="utf-8"))
    assert most is not None
    files = [path for path in folder.glob("*/*") if path.is_file() and path.parent.name != "baselines"]
    assert 0 < sum(path.stat().st_size for path in files) <= int(most[1]) * 1_000_000


def test_tests_use_public_names() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in TESTS
        for line, name in private_attributes(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not wrong


def private_attributes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """``thing._x``, also patched, of anything but the own object; a named tuple's ``_replace`` is public."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not own and node.attr not in ("_replace", "_asdict"):
                yield node.lineno, node.attr
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith((".setattr", "patch.object")):
            names = [str(name.value).rpartition(".")[2] for name in node.args[:2] if isinstance(name, ast.Constant)]
            yield from ((node.lineno, name) for name in names if name.startswith("_"))


HEAVY = {"faiss", "spacy", "scipy", "sentence_transformers", "transformers", "openTSNE", "sklearn", "pandas"}


@pytest.mark.parametrize(
    ("module", "left_out"),
    [
        *((light, {*HEAVY, "torch"}) for light in ("facets", "facets_client", "facets_client.cli", "facets_server")),
        ("facets_server.gateway.server", {*HEAVY, "torch"}),
        ("facets_server.gateway.process", {*HEAVY, "torch", "uvicorn", "starlette"}),
        (", ".join(["facets_server.runtime.app", *(f"facets_server.{room}.service" for room in TASK_ROOMS)]), HEAVY),
    ],
)
def test_importing_leaves_heavy_packages_out(module: str, left_out: set[str]) -> None:
    code = f"import sys, {module}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    path = os.pathsep.join(str(ROOT / folder) for folder in ("", "proto", "server", "clients"))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path}
    )
    loaded = set(done.stdout.split())
    assert module.partition(".")[0] in loaded
    assert not loaded & left_out
