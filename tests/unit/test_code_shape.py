"""Sizes that CONTRIBUTING.md promises: of files, functions, handlers and lists of parameters."""

import ast
import re
from functools import cache
from pathlib import Path

from proto_files import SERVICES
from source_tree import ROOT, modules

GENERATED = re.compile(r"_pb2|^methods\.py$")  # the protos' code, the clients' methods
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 50  # without its docstring
MAX_HANDLER_LINES = 10
MAX_POSITIONAL = 3  # four where all are required

# A PyTorch layer: its parameters are the tensors of the equation, and cross-attention may be left out.
MANY_POSITIONAL = {"facets/model/network.py forward"}
# Commands: their parameters are options of the command line.
COMMANDS = (
    "clients/facets_client/cli/",
    "lab/facets_lab/training/",
    "lab/facets_lab/evaluation/",
    "lab/facets_lab/heads/__main__",
    "lab/facets_lab/multicls/__main__",
    "lab/facets_lab/generation/__main__",
    "lab/facets_lab/generation/__main__",
)


@cache
def sources() -> dict[str, ast.Module]:
    """Every file that is written by hand, by its path: the packages, the tests, the benchmarks, the scripts."""
    trees = {module.path: module.tree for module in modules().values()}
    others = [path for folder in ("tests", "benchmarks", "scripts") for path in (ROOT / folder).rglob("*.py")]
    trees |= {path: ast.parse(path.read_text(encoding="utf-8")) for path in others}
    return {str(path.relative_to(ROOT)): tree for path, tree in trees.items()}


@cache
def functions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef, *, body_only: bool = False) -> int:
    """Lines without the docstring; of the body alone, or with the signature."""
    body = function.body
    documented = ast.get_docstring(function, clean=False) is not None
    docstring = _height(body[0]) if documented else 0
    if body_only:
        body = body[1:] if documented else body
        return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
    return _height(function) - docstring


def _height(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_no_file_is_too_long() -> None:
    suffixes = (".py", ".sh", ".proto", ".md")
    paths = [path for path in tracked_files() if path.suffix in suffixes or path.name in ("Makefile", "run")]
    lengths = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in paths}
    assert {path: length for path, length in lengths.items() if length > MAX_FILE_LINES} == {}


def tracked_files() -> list[Path]:
    """Files of the checkout, generated ones and build leftovers aside."""
    folders = ("facets", "lab", "proto", "server", "clients", "tests", "benchmarks", "scripts", "docs", ".ci")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    found += [path for path in ROOT.iterdir() if path.is_file()]
    left_out = {"__pycache__", "node_modules"}
    return [path for path in found if not GENERATED.search(path.name) and not left_out & set(path.parts)]


def test_functions_fit_a_screen() -> None:
    found = {
        f"{path} {function.name}"
        for path, tree in sources().items()
        for function in functions(tree)
        if lines_of(function) > MAX_FUNCTION_LINES
    }
    assert found == set()


def test_handlers_are_short() -> None:
    rpcs = {method.name for service in SERVICES for method in service.methods}
    handlers = {
        function.name: lines_of(function, body_only=True)
        for path, tree in sources().items()
        if path.startswith("server/")
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for function in node.body
        if isinstance(function, ast.FunctionDef) and function.name in rpcs
    }
    assert set(handlers) == rpcs
    assert {name for name, lines in handlers.items() if lines > MAX_HANDLER_LINES} == set()


def test_public_functions_take_few_positional_parameters() -> None:
    found = {
        f"{module.path.relative_to(ROOT)} {function.name}"
        for module in modules().values()
        for function in functions(module.tree)
        if is_public(function) and not str(module.path.relative_to(ROOT)).startswith(COMMANDS) and takes_many(function)
    }
    assert found == MANY_POSITIONAL


def is_public(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return function.name == "__init__" or not function.name.startswith("_")


def takes_many(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = [argument.arg for argument in function.args.posonlyargs + function.args.args]
    names = names[1:] if names[:1] in (["self"], ["cls"]) else names
    return len(names) > MAX_POSITIONAL + (not function.args.defaults)
