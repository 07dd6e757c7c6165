"""Imports point one way: every import of every module against tables.

Seen are imports at the top, inside functions, for type checkers, and by string.
"""

import sys
from collections.abc import Iterator

import pytest
from source_tree import PACKAGES, ROOT, TASK_ROOMS, Import, Module, module_of, modules, room_of

# Package -> the packages of ours that it may import.
ALLOWED_PACKAGES = {
    "facets": {"facets"},
    "facets_lab": {"facets", "facets_lab"},
    "facets_proto": {"facets_proto"},
    "facets_server": {"facets", "facets_proto", "facets_server"},
    "facets_client": {"facets_client", "facets_proto"},
}

# Package -> roots of others that it must not import, not even inside a function.
# Typer brings a click of its own; the package `click` is no dependency of ours.
FORBIDDEN_ROOTS = {
    "facets": {"grpc", "google", "grpc_health", "grpc_reflection", "click"},
    "facets_lab": {"grpc", "google", "grpc_health", "grpc_reflection", "click"},
    "facets_proto": {"torch", "click"},
    "facets_server": {"torch", "faiss", "spacy", "sqlite3", "click"},
    "facets_client": {"torch", "faiss", "spacy", "scipy", "transformers", "sentence_transformers", "pydantic", "click"},
}

# What every room of the library may import.
_BASE = {"errors", "extras", "config", "devices", "storage"}
_SHARED = _BASE | {"language", "coding", "scoring", "model"}

# Room of the library -> the rooms it may import, besides itself. "" is facets/__init__.py, which imports lazily.
LIBRARY_ROOMS = {
    "": {"errors", "extras", "model"},
    "errors": set(),
    "extras": set(),
    "config": {"errors"},
    "devices": {"errors"},
    "storage": {"errors", "extras"},
    "language": _BASE | {"index"},
    "coding": _BASE,
    "diagnose": _BASE | {"language"},
    "scoring": _BASE | {"coding"},
    "model": _BASE | {"language"},
    "index": _BASE,
    **dict.fromkeys(TASK_ROOMS, _SHARED),
    "documents": _BASE | {"language", "index", "diagnose"},
    "__main__": {"documents", "errors", "model"},  # the worker of bulk loads
    "papers": _SHARED | {"index"},
}

# The same for the laboratory: its task rooms know the library and the shared rooms, not each other.
_LAB_SHARED = {"losses", "training", "evaluation"}
LAB_ROOMS = {
    "": set(),
    "program": set(),
    "losses": set(),
    "training": {"program"},
    "evaluation": {"program"},
    "heads": {"program", "training", "evaluation"},
    "generation": {"program", "training", "evaluation"},
    "multicls": {"program", "training", "evaluation", "papers"},
    **dict.fromkeys((*TASK_ROOMS, "language"), _LAB_SHARED),
}
# The two programs with their commands: they are made of all rooms.
_LAB_FRONT = ("facets_lab.training.__main__", "facets_lab.evaluation.__main__")

# The same for the task rooms of server and client: what a task room may import of its own package, besides itself.
# Documents hold facets of texts; papers of a collection are documents.
SERVER_TASK_ROOMS = {room: {"runtime"} for room in TASK_ROOMS} | {
    "documents": {"runtime", "texts"},
    "papers": {"runtime", "documents"},
}
CLIENT_TASK_ROOMS = {room: {"core", "errors"} for room in TASK_ROOMS} | {
    "documents": {"core", "errors", "filters", "texts", "client", "load"},
    "papers": {"core", "errors", "filters", "texts", "documents", "client", "load"},
}
_CLIENT_FRONT = {
    "",
    "client",
    "methods",
    "cli",
    "adapters",
}  # the two clients, the commands and the adapters are made of all rooms

# Who may touch protobuf: names of modules in server rooms, modules of the runtime, rooms and modules of the client.
_PROTOBUF_ROOTS = ("facets_proto", "google.protobuf", "google.rpc", "grpc_health.v1.health_pb2")
SERVER_MESSAGE_MODULES = ("service", "requests", "replies")
SERVER_RUNTIME_MESSAGE_MODULES = {
    *("calls", "errors", "health", "messages", "records", "services"),
}
# The gateway turns messages into JSON: modules of it that do.
SERVER_GATEWAY_MESSAGE_MODULES = {
    *("app", "embedding_routes", "failures", "openapi", "rpc_routes", "transcoding"),
}
CLIENT_MESSAGE_MODULES = {"operations", "streams", "generate"}

# Modules that may import by a string: the tables of loaders, of sentence encoders, of rooms.
STRING_IMPORTERS = {
    "facets.model.loading",
    "facets.model.network",
    "facets_server.runtime.rooms",
    "facets_server.gateway.transcoding",  # as many modules as proto files
    "facets_server.gateway.process",  # runs a module
    "facets_client.cli.main",
    "facets_lab.documents.beir",  # modules whose docstrings are read, as they are named on the command line
}

# Standard library and NumPy only: cheap to import, free of side effects.
LIGHT_MODULES = {"errors": set(), "extras": set()}


def of_package(package: str) -> Iterator[tuple[Module, Import]]:
    """Every import of a package's modules."""
    for module in modules().values():
        if module.package == package:
            yield from ((module, found) for found in module.imports)


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_only_what_the_table_allows(package: str) -> None:
    wrong = []
    for module, found in of_package(package):
        root = found.name.partition(".")[0]
        if (root in PACKAGES and root not in ALLOWED_PACKAGES[package]) or root in FORBIDDEN_ROOTS[package]:
            wrong.append(f"{module.place(found.line)}: {package} must not import {root}")
    assert not wrong


def test_rooms_of_the_library_import_only_what_the_table_allows() -> None:
    wrong = []
    for module, found in of_package("facets"):
        target = module_of(found.name)
        if target.startswith("facets."):
            room, imported = module.room, room_of(target)
            if imported not in LIBRARY_ROOMS[room] | {room} and not is_loader(module, found):
                wrong.append(f"{module.place(found.line)}: {room or 'facets'} must not import {imported}")
    assert not wrong


def is_loader(module: Module, found: Import) -> bool:
    return found.by_string and module.name == "facets.model.loading"


def test_rooms_of_the_laboratory_import_only_what_the_table_allows() -> None:
    wrong = []
    for module, found in of_package("facets_lab"):
        target = module_of(found.name)
        if target.startswith("facets_lab.") and module.name not in _LAB_FRONT:
            imported = room_of(target)
            if imported not in LAB_ROOMS[module.room] | {module.room}:
                wrong.append(f"{module.place(found.line)}: {module.room} must not import {imported}")
    assert not wrong


def test_every_room_is_in_the_table() -> None:
    for package, table in (("facets", LIBRARY_ROOMS), ("facets_lab", LAB_ROOMS)):
        assert {module.room for module in modules().values() if module.package == package} == set(table)
    for package, table in (("facets_server", SERVER_TASK_ROOMS), ("facets_client", CLIENT_TASK_ROOMS)):
        assert set(TASK_ROOMS) == set(table) <= {module.room for module in modules().values() if package in module.name}


@pytest.mark.parametrize(
    ("package", "table", "front"),
    [
        ("facets_server", SERVER_TASK_ROOMS, {"", "__main__"}),
        ("facets_client", CLIENT_TASK_ROOMS, _CLIENT_FRONT),
    ],
    ids=["server", "client"],
)
def test_task_rooms_of_server_and_client_import_only_what_the_table_allows(
    package: str, table: dict[str, set[str]], front: set[str]
) -> None:
    wrong = []
    for module, found in of_package(package):
        target = module_of(found.name)
        if not target.startswith(f"{package}.") or module.room in front:
            continue
        imported = room_of(target)
        allowed = table.get(module.room)
        if imported != module.room and (imported in TASK_ROOMS if allowed is None else imported not in allowed):
            wrong.append(f"{module.place(found.line)}: {module.room} must not import {imported}")
    assert not wrong


def test_modules_do_not_import_each_other_in_circles() -> None:
    """Counted is what an import runs: the module, and each package on the way to it."""
    imports = {name: _runs(module) - {name} for name, module in modules().items()}
    circles = strongly_connected(imports)
    assert not circles, "modules import each other in a circle:\n" + "\n".join(map(str, circles))


def _runs(module: Module) -> set[str]:
    reached = set()
    for found in module.imports:
        target = module_of(found.name)
        while target and not found.by_string and not f"{module.name}.".startswith(f"{target}."):
            reached.add(target)
            target = target.rpartition(".")[0]
    return reached


def strongly_connected(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of two or more modules, each of which reaches each other of its group."""
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


def test_circles_are_seen() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set()}
    assert strongly_connected(graph) == [["a", "b", "c"]]


def test_only_the_tables_import_by_string() -> None:
    wrong = []
    for module in modules().values():
        if module.name in STRING_IMPORTERS:
            continue
        wrong += [f"{module.place(line)}: imports by a string" for line in module.calls_by_string()]
        wrong += [
            f"{module.place(i.line)}: names the module {i.name} in a string" for i in module.imports if i.by_string
        ]
    assert not wrong


@pytest.mark.parametrize("package", ["facets_server", "facets_client"])
def test_protobuf_is_touched_only_where_messages_are_read_and_written(package: str) -> None:
    wrong = [
        f"{module.place(found.line)}: {found.name}"
        for module, found in of_package(package)
        if found.name.startswith(_PROTOBUF_ROOTS) and not touches_messages(module)
    ]
    assert not wrong


def touches_messages(module: Module) -> bool:
    last = module.name.rpartition(".")[2]
    if module.package == "facets_client":
        return module.room == "core" or last in CLIENT_MESSAGE_MODULES
    if module.room == "runtime":
        return last in SERVER_RUNTIME_MESSAGE_MODULES
    if module.room == "gateway":
        return last in SERVER_GATEWAY_MESSAGE_MODULES
    return last.split("_")[-1] in SERVER_MESSAGE_MODULES


@pytest.mark.parametrize("folder", ["proto", "server", "clients", "tests"])
def test_outer_folders_are_not_packages(folder: str) -> None:
    assert not (ROOT / folder / "__init__.py").exists()


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_say_that_they_are_typed(package: str) -> None:
    assert (PACKAGES[package] / "py.typed").is_file()


@pytest.mark.parametrize("module", LIGHT_MODULES)
def test_light_modules_import_the_standard_library_only(module: str) -> None:
    allowed = sys.stdlib_module_names | LIGHT_MODULES[module]
    assert not [found for found in modules()[f"facets.{module}"].imports if found.name.partition(".")[0] not in allowed]
