"""Importing the light packages is light, and versions agree."""

import importlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {"torch", "faiss", "spacy", "scipy", "sentence_transformers", "transformers"}


@pytest.mark.parametrize(
    "module", ["facets", "facets.errors", "facets_client", "facets_client.client", "facets_client.cli"]
)
def test_importing_leaves_heavy_packages_out(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    path = os.pathsep.join(str(ROOT / folder) for folder in ("", "proto", "server", "clients"))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path}
    )
    loaded = set(done.stdout.split())
    assert module.partition(".")[0] in loaded
    assert not loaded & HEAVY


@pytest.mark.parametrize("package", ["facets", "facets_client"])
def test_version_is_the_distribution_s(package: str) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert getattr(importlib.import_module(package), "__version__", declared) == declared
