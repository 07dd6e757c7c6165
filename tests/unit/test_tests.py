"""The tests keep their own rules: they mirror the tree, use public names, and never sleep for order."""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from source_tree import PACKAGES, ROOT

TESTS = ROOT / "tests"
UNIT_FOLDERS = {
    "facets": PACKAGES["facets"],
    "lab": PACKAGES["facets_lab"],
    "server": PACKAGES["facets_server"],
    "client": PACKAGES["facets_client"],
    "proto": ROOT / "proto",
    "scripts": ROOT / "scripts",
}


@cache
def test_files() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(TESTS.rglob("*.py"))}


test_files.__test__ = False  # type: ignore[attr-defined]


def test_file_names_are_unique() -> None:
    counts = Counter(path.name for path in test_files())
    assert {name for name, count in counts.items() if count > 1} <= {"conftest.py"}


def test_unit_tests_mirror_the_tree() -> None:
    wrong = []
    for path in test_files():
        if not path.name.startswith("test_") or path.parent == TESTS / "unit" or TESTS / "unit" not in path.parents:
            continue
        first, *rooms = path.parent.relative_to(TESTS / "unit").parts
        expected = "_".join(["test", *(rooms if first in ("facets", "lab") else [first])])
        if not UNIT_FOLDERS[first].joinpath(*rooms).exists() or not path.stem.startswith(expected):
            wrong.append(f"{path.relative_to(ROOT)}: expected the folder of a room and a name like {expected}_FILE.py")
    assert not wrong


def test_tests_use_public_names() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path, tree in test_files().items()
        for line, name in private_attributes(tree)
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


def test_nobody_sleeps_for_order() -> None:
    """A pause between two looks, in a loop that ends, is none."""
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in test_files().items()
        for node in sleeps_outside_loops(tree)
    ]
    assert not wrong


def sleeps_outside_loops(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("time.sleep", "sleep"):
            yield node
        if not isinstance(node, ast.While):
            yield from sleeps_outside_loops(node)
