"""``__all__`` is true, and importing the light packages is light."""

import ast
import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from facets_client.adapters import MODULES as ADAPTED

ROOT = Path(__file__).parents[2]
FOLDERS = {"facets": ROOT, "facets_server": ROOT / "server", "facets_client": ROOT / "clients"}

MODULES = [
    ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
    for package, folder in FOLDERS.items()
    for path in sorted((folder / package).rglob("*.py"))
    if path.stem != "__main__"
]
# Adapters of frameworks that are not installed here; tests/adapters imports them where they are.
_ABSENT = {
    f"facets_client.adapters.{extra.replace('-', '_')}"
    for extra, module in ADAPTED.items()
    if importlib.util.find_spec(module) is None
}
if "facets_client.adapters.parquet" in _ABSENT:  # which it writes its parts with
    _ABSENT.add("facets_client.adapters.encoded")
HEAVY = {"torch", "faiss", "spacy", "scipy", "sentence_transformers", "transformers"}
LIGHT = ["facets", "facets.errors", "facets_client", "facets_client.client", "facets_client.cli"]


def public_definitions(module: str) -> set[str]:
    """Classes and functions that a module defines under a public name."""
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")}


@pytest.mark.parametrize("module", MODULES)
def test_names_in_all_exist_and_are_sorted_without_doubles(module: str) -> None:
    if module in _ABSENT:
        with pytest.raises(ImportError, match=r"pip install '.*\["):
            importlib.import_module(module)
        return
    loaded = importlib.import_module(module)
    names = getattr(loaded, "__all__", [])
    missing = [name for name in names if not hasattr(loaded, name)]
    assert not missing, f"{module}.__all__ names {missing}, which the module has not"
    assert len(names) == len(set(names))


@pytest.mark.parametrize("module", LIGHT)
def test_importing_leaves_heavy_packages_out(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    path = os.pathsep.join(map(str, [*FOLDERS.values(), ROOT / "proto"]))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path}
    )
    loaded = set(done.stdout.split())
    assert module.partition(".")[0] in loaded
    assert not loaded & HEAVY


@pytest.mark.parametrize("package", ["facets", "facets_client"])
def test_version_is_the_distribution_s(package: str) -> None:
    import tomllib

    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert getattr(importlib.import_module(package), "__version__", declared) == declared
