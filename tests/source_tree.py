"""The sources as tests of structure read them, without importing: modules, their imports, and their rooms."""

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
TASK_ROOMS = ("documents", "papers", "relations", "texts")


@dataclass(frozen=True)
class Module:
    """One hand-written module.

    Attributes:
        name: Dotted name, without ``__init__``.
        path: Its file.
        tree: Its syntax tree.
    """

    name: str
    path: Path
    tree: ast.Module

    @property
    def package(self) -> str:
        return self.name.partition(".")[0]

    @property
    def room(self) -> str:
        """The folder or file right below the package; empty for the package itself."""
        return room_of(self.name)

    def imports(self) -> Iterator[tuple[str, int]]:
        """Full names of all imports with their lines: at the top, inside functions and for type checkers."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((alias.name, node.lineno) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)

    def place(self, line: int) -> str:
        return f"{self.path.relative_to(ROOT)}:{line}"


def room_of(name: str) -> str:
    """Room of a full name: ``facets_lab.papers.data`` lies in ``papers``."""
    return [*name.split("."), ""][1]


@cache
def modules() -> Mapping[str, Module]:
    """Every hand-written module by its dotted name."""
    return {
        name: Module(name, path, ast.parse(path.read_text(encoding="utf-8")))
        for name, path in _files().items()
        if not path.stem.endswith(("_pb2", "_pb2_grpc"))
    }


def module_of(name: str) -> str:
    """Our module that a full name belongs to, or an empty string: ``facets.errors.X`` -> ``facets.errors``."""
    while name and name not in _files():
        name = name.rpartition(".")[0]
    return name


@cache
def _files() -> Mapping[str, Path]:
    files = {}
    for folder in PACKAGES.values():
        for path in sorted(folder.rglob("*.py")):
            name = ".".join(path.relative_to(folder.parent).with_suffix("").parts)
            files[name.removesuffix(".__init__")] = path
    return files
