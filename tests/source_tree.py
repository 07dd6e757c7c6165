"""The sources as tests of structure see them: modules, what they import and how, the rooms they lie in.

Standard library only: nothing is imported, everything is read.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "facets": ROOT / "facets",
    "facets_lab": ROOT / "lab" / "facets_lab",
    "facets_proto": ROOT / "proto" / "facets_proto",
    "facets_server": ROOT / "server" / "facets_server",
    "facets_client": ROOT / "clients" / "facets_client",
}
_SHARED_PROTOS = {"common", "diagnosis", "filters", "models", "results"}
# A room a task: each has a file of messages.
TASK_ROOMS = tuple(sorted({path.stem for path in (PACKAGES["facets_proto"] / "v1").glob("*.proto")} - _SHARED_PROTOS))
_GENERATED = ("_pb2", "_pb2_grpc")
_BY_STRING = {"import_module", "__import__"}


@dataclass(frozen=True)
class Import:
    """One name that a module imports.

    Attributes:
        line: Where.
        name: Full name, ``facets.errors.InvalidInputError``.
        by_string: The module's name stands in a string, for ``import_module`` or a table of entry points.
    """

    line: int
    name: str
    by_string: bool = False


@dataclass(frozen=True)
class Module:
    """One source file of ours.

    Attributes:
        name: Dotted, without ``__init__``.
        path: The file.
        tree: Its syntax.
        imports: All of them: at the top, inside functions, for type checkers, by string.
    """

    name: str
    path: Path
    tree: ast.Module
    imports: tuple[Import, ...]

    @property
    def package(self) -> str:
        return self.name.partition(".")[0]

    @property
    def room(self) -> str:
        """Name of the folder or file right below the package; empty for the package itself."""
        return room_of(self.name)

    def place(self, line: int) -> str:
        """``path:line`` for a message."""
        return f"{self.path.relative_to(ROOT)}:{line}"

    def calls_by_string(self) -> list[int]:
        """Lines that import by a string, whatever the string holds."""
        found = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name in _BY_STRING:
                    found.append(node.lineno)
        return found


def room_of(name: str) -> str:
    """``facets_lab.papers.data`` lies in the room ``papers``."""
    return [*name.split("."), ""][1]


@cache
def modules() -> Mapping[str, Module]:
    """Every module that is written by hand, by its dotted name."""
    return {name: _read(name, path) for name, path in _files().items() if not path.stem.endswith(_GENERATED)}


def module_of(name: str) -> str:
    """The module of ours that a full name belongs to, or an empty string: ``facets.errors.X`` -> ``facets.errors``."""
    while name and name not in _files():
        name = name.rpartition(".")[0]
    return name


@cache
def _files() -> Mapping[str, Path]:
    found = {}
    for folder in PACKAGES.values():
        for path in sorted(folder.rglob("*.py")):
            name = ".".join(path.relative_to(folder.parent).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


def _read(name: str, path: Path) -> Module:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return Module(name, path, tree, tuple(_imports(tree, f"{path.relative_to(ROOT)}")))


def _imports(tree: ast.Module, place: str) -> Iterator[Import]:
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{place}:{node.lineno}: relative import, expected the full name"
            # `from facets import scoring` names a room, `from facets.errors import X` does so in the module.
            yield from (Import(node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            name = node.value.partition(":")[0]
            if "." in name and name in _files():
                yield Import(node.lineno, name, by_string=True)
