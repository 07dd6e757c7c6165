"""Imports point one way: every import of every module against these tables."""

import pytest
from source_tree import PACKAGES, ROOT, TASK_ROOMS, Module, module_of, modules, room_of

# Package -> our packages that it may import.
ALLOWED_PACKAGES = {
    "facets": {"facets"},
    "facets_lab": {"facets", "facets_lab", "facets_client"},
    "facets_proto": {"facets_proto"},
    "facets_server": {"facets", "facets_proto", "facets_server", "facets_client"},
    "facets_client": {"facets_client", "facets_proto"},
}
# Package -> packages of others that it must not import, not even inside a function.
_RPC = {"grpc", "google", "grpc_health", "grpc_reflection"}
FORBIDDEN = {
    "facets": _RPC,
    "facets_lab": _RPC,
    "facets_proto": {"torch"},
    "facets_server": {"torch", "faiss", "spacy", "sqlite3"},
    "facets_client": {"torch", "faiss", "spacy", "scipy", "transformers", "sentence_transformers", "pydantic"},
}
# Module behind an extra -> package of others that it imports all the same.
OPTIONAL = {"facets_client.papers.assignment": "scipy", "facets_client.mcp": "pydantic"}
# Module -> what it imports for type checkers alone: `facets.open` finds the server by name.
FOR_TYPE_CHECKERS = {"facets": "facets_server.local.LocalClient"}
# Room of the library -> rooms it may import besides itself. "" is facets/__init__.py.
_BASE = {"arrays", "errors", "extras", "config", "devices", "storage"}
_SHARED = _BASE | {"language", "coding", "scoring", "model"}
LIBRARY_ROOMS = {
    "": {"errors", "extras", "model"},
    "arrays": set(),
    "errors": set(),
    "extras": set(),
    "config": {"errors"},
    "devices": {"errors"},
    "storage": {"arrays", "errors", "extras"},
    "language": _BASE | {"index"},
    "coding": _BASE,
    "diagnose": _BASE | {"language"},
    "scoring": _BASE | {"coding"},
    "model": _BASE | {"language"},
    "index": _BASE,
    "documents": _BASE | {"language", "index", "diagnose", "model"},
    "texts": _SHARED,
    "relations": _SHARED,
    "papers": _SHARED | {"index"},
    "__main__": {"documents", "errors", "model"},  # the worker of bulk loads
}
# Package -> task room -> task rooms it may import: a collection holds facets of texts and may hold papers.
TASK_ROOM_IMPORTS = {"documents": {"texts"}, "papers": {"documents", "texts"}}
# Modules that are made of all rooms.
_FRONTS = {
    *("facets_lab.training.__main__", "facets_lab.evaluation.__main__", "facets_server.__main__"),
    *("facets_client", "facets_client.client"),
}


def imports_of(package: str) -> list[tuple[Module, str, str]]:
    """Module, imported full name, and where."""
    return [
        (module, name, module.place(line))
        for module in modules().values()
        if module.package == package
        for name, line in module.imports()
        if FOR_TYPE_CHECKERS.get(module.name) != name
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_only_what_the_table_allows(package: str) -> None:
    wrong = []
    for module, name, place in imports_of(package):
        root = name.partition(".")[0]
        forbidden = FORBIDDEN[package] - {OPTIONAL.get(module.name)}
        if (root in PACKAGES and root not in ALLOWED_PACKAGES[package]) or root in forbidden:
            wrong.append(f"{place}: {package} must not import {root}")
    assert not wrong


def test_rooms_of_the_library_import_only_what_the_table_allows() -> None:
    assert {module.room for module in modules().values() if module.package == "facets"} == set(LIBRARY_ROOMS)
    wrong = []
    for module, name, place in imports_of("facets"):
        target = module_of(name)
        if target.startswith("facets.") and room_of(target) not in LIBRARY_ROOMS[module.room] | {module.room}:
            wrong.append(f"{place}: {module.room or 'facets'} must not import {room_of(target)}")
    assert not wrong


@pytest.mark.parametrize("package", ["facets_lab", "facets_server", "facets_client"])
def test_task_rooms_do_not_import_each_other(package: str) -> None:
    wrong = []
    for module, name, place in imports_of(package):
        target = module_of(name)
        room, imported = module.room, room_of(target)
        if target.startswith(f"{package}.") and module.name not in _FRONTS and room in TASK_ROOMS:
            if imported in set(TASK_ROOMS) - {room} - TASK_ROOM_IMPORTS.get(room, set()):
                wrong.append(f"{place}: {room} must not import {imported}")
    assert not wrong


def test_modules_do_not_import_each_other_in_circles() -> None:
    """An import runs the module and each package on the way to it."""
    graph = {name: _imported_modules(module) - {name} for name, module in modules().items()}
    circles = strongly_connected(graph)
    assert not circles, "modules import each other in a circle:\n" + "\n".join(map(str, circles))


def _imported_modules(module: Module) -> set[str]:
    reached = set()
    for name, _ in module.imports():
        target = "" if FOR_TYPE_CHECKERS.get(module.name) == name else module_of(name)
        while target and not f"{module.name}.".startswith(f"{target}."):
            reached.add(target)
            target = target.rpartition(".")[0]
    return reached


def strongly_connected(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of two or more modules that reach each other."""
    reach: dict[str, set[str]] = {}
    for start in graph:
        seen, waiting = set(), [start]
        while waiting:
            for target in graph.get(waiting.pop(), set()) - seen:
                seen.add(target)
                waiting.append(target)
        reach[start] = seen
    groups = {frozenset({b for b in reach[a] if a in reach.get(b, set())}) for a in graph}
    return sorted(sorted(group) for group in groups if len(group) > 1)


@pytest.mark.parametrize("folder", ["proto", "server", "clients", "lab", "tests"])
def test_outer_folders_are_not_packages(folder: str) -> None:
    assert not (ROOT / folder / "__init__.py").exists()


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_are_marked_as_typed(package: str) -> None:
    assert (PACKAGES[package] / "py.typed").is_file()
