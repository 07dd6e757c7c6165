"""Imports point one way: every import of every module against a table."""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "facets": ROOT / "facets",
    "facets_proto": ROOT / "proto" / "facets_proto",
    "facets_server": ROOT / "server" / "facets_server",
    "facets_client": ROOT / "clients" / "facets_client",
}

# Package -> the packages of ours that it may import.
ALLOWED_PACKAGES = {
    "facets": {"facets"},
    "facets_proto": {"facets_proto"},
    "facets_server": {"facets", "facets_proto", "facets_server"},
    "facets_client": {"facets_client", "facets_proto"},
}

# Package -> roots of others that it must not import, not even inside a function.
FORBIDDEN_ROOTS = {
    "facets": {"grpc", "google", "grpc_health", "grpc_reflection"},
    "facets_proto": {"torch", "numpy"},
    "facets_server": {"torch", "faiss", "spacy"},
    "facets_client": {"torch", "faiss", "spacy", "scipy", "transformers", "sentence_transformers"},
}

# What every room may import.
_BASE = {"errors", "extras", "config"}
_SHARED = _BASE | {"text", "words", "coding", "scoring", "losses", "model"}
_TASKS = ("texts", "relations", "papers")

# Room of the library -> the rooms it may import, besides itself. "" is facets/__init__.py, which imports lazily.
# The training and evaluation of a room are rooms of their own, imported by the programs alone.
ROOMS = {
    "": {"errors", "extras", "model"},
    "errors": set(),
    "extras": set(),
    "config": {"errors"},
    "text": _BASE,
    "words": _BASE | {"text"},
    "coding": _BASE,
    "scoring": _BASE | {"coding"},
    "losses": _BASE | {"coding"},
    "model": _BASE | {"text", "words"},
    "index": _BASE | {"documents"},
    "documents": _BASE | {"index"},
    "texts": _SHARED,
    "relations": _SHARED | {"texts"},
    "papers": _SHARED | {"index"},
    "training": _BASE | {"text", "words"},
    "evaluation": _BASE | {"text", "words"},
    **{f"{task}.training": _SHARED | {task, "training"} for task in _TASKS},
    **{f"{task}.evaluation": _SHARED | {task, "evaluation"} for task in _TASKS},
    "training.__main__": _SHARED | {"training"} | {f"{task}.training" for task in _TASKS},
    "evaluation.__main__": _SHARED | {"texts", "evaluation"} | {f"{task}.evaluation" for task in _TASKS},
}

# Standard library and NumPy only: cheap to import, free of side effects.
LIGHT_MODULES = {"errors": set(), "extras": set(), "config": {"facets"}}

MODULES = [
    pytest.param(package, path, id=str(path.relative_to(folder.parent)))
    for package, folder in PACKAGES.items()
    for path in sorted(folder.rglob("*.py"))
    if not path.stem.endswith(("_pb2", "_pb2_grpc"))
]


def imported_names(path: Path) -> Iterator[tuple[int, str]]:
    """Yields line and full name of everything a module imports, at the top or inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import, expected the full name"
            assert node.module is not None
            # `from facets import scoring` names a room, `from facets.errors import X` does so in the module.
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


@pytest.mark.parametrize(("package", "path"), MODULES)
def test_packages_import_only_what_the_table_allows(package: str, path: Path) -> None:
    for line, name in imported_names(path):
        root = name.partition(".")[0]
        if root in PACKAGES:
            assert root in ALLOWED_PACKAGES[package], f"{path}:{line}: {package} must not import {root}"
        assert root not in FORBIDDEN_ROOTS[package], f"{path}:{line}: {package} must not import {root}"


@pytest.mark.parametrize("path", [param.values[1] for param in MODULES if param.values[0] == "facets"], ids=str)
def test_rooms_of_the_library_import_only_what_the_table_allows(path: Path) -> None:
    room = room_of(path.relative_to(PACKAGES["facets"]).with_suffix("").parts)
    for line, name in imported_names(path):
        parts = name.split(".")
        if parts[0] != "facets" or parts[1] not in ROOMS:
            continue
        imported = room_of(parts[1:])
        assert imported in ROOMS[room] | {room}, f"{path}:{line}: {room or 'facets'} must not import {imported}"


def room_of(parts: Sequence[str]) -> str:
    first, *rest = parts
    if first == "__init__":
        return ""
    for inner in rest[:1]:
        if f"{first}.{inner}" in ROOMS:
            return f"{first}.{inner}"
    return first


def test_every_room_is_in_the_table() -> None:
    found = {
        room_of(path.relative_to(PACKAGES["facets"]).with_suffix("").parts) for path in PACKAGES["facets"].rglob("*.py")
    }
    assert found == set(ROOMS)


@pytest.mark.parametrize("folder", ["proto", "server", "clients", "tests"])
def test_outer_folders_are_not_packages(folder: str) -> None:
    assert not (ROOT / folder / "__init__.py").exists()


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_say_that_they_are_typed(package: str) -> None:
    assert (PACKAGES[package] / "py.typed").is_file()


@pytest.mark.parametrize("module", LIGHT_MODULES)
def test_light_modules_import_the_standard_library_only(module: str) -> None:
    import sys

    for line, name in imported_names(PACKAGES["facets"] / f"{module}.py"):
        root = name.partition(".")[0]
        assert root in sys.stdlib_module_names | LIGHT_MODULES[module], f"facets/{module}.py:{line}: {name}"
