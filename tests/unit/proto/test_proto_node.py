"""A Node program loads the shipped protos with ``@grpc/proto-loader``."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import facets_proto
import pytest

PACKAGE = Path(facets_proto.__file__).resolve().parent  # the client links to it
MODULES = PACKAGE.parents[1] / "clients" / "typescript" / "node_modules"
ENVIRONMENT = {**os.environ, "NODE_PATH": str(MODULES)}
ROOMS = sorted(path.stem for path in (PACKAGE / "v1").glob("*.proto"))

_SCRIPT = """
const loader = require("@grpc/proto-loader");
const [include, ...files] = JSON.parse(process.argv[1]);
const loaded = loader.loadSync(files, { includeDirs: include });
console.log(JSON.stringify(Object.keys(loaded)));
"""


@pytest.fixture(scope="module")
def node() -> str:
    """Path of Node; skips without ``@grpc/proto-loader``, which the TypeScript client's tests install."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("node is not installed")
    if not (MODULES / "@grpc" / "proto-loader").is_dir():
        pytest.skip("@grpc/proto-loader is not installed: make test-typescript installs it and runs this")
    return program


def test_every_import_is_shipped_or_part_of_protobuf() -> None:
    imports = {
        line.split('"')[1]
        for path in PACKAGE.rglob("*.proto")
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("import ")
    }
    folders = (PACKAGE.parent, PACKAGE)
    missing = {name for name in imports if not any((folder / name).is_file() for folder in folders)}
    assert {name for name in missing if not name.startswith("google/protobuf/")} == set()


def test_node_loads_every_service(node: str, tmp_path: Path) -> None:
    shipped = tmp_path / "site"
    shutil.copytree(PACKAGE, shipped / "facets_proto", ignore=shutil.ignore_patterns("*.py", "*.pyi"))
    include = [str(shipped), str(shipped / "facets_proto")]
    files = [f"facets_proto/v1/{room}.proto" for room in ROOMS] + ["google/rpc/error_details.proto"]
    done = subprocess.run(
        [node, "-e", _SCRIPT, json.dumps([include, *files])],
        capture_output=True,
        text=True,
        check=True,
        env=ENVIRONMENT,
    )
    loaded = set(json.loads(done.stdout))
    assert {"facets.v1.DocumentService", "facets.v1.EmbeddingService", "facets.v1.RecommendationService"} <= loaded
    assert {"google.rpc.Status", "google.rpc.BadRequest"} <= loaded


def test_the_example_of_the_readme_creates_a_client(node: str) -> None:
    page = (PACKAGE.parent / "README.md").read_text(encoding="utf-8")
    example = page.partition("```js\n")[2].partition("```")[0]
    assert "EmbeddingService" in example
    script = example + 'console.log(Object.keys(Object.getPrototypeOf(client)).includes("Embed")); client.close();'
    done = subprocess.run(
        [node, "-e", script], capture_output=True, text=True, check=True, env=ENVIRONMENT, cwd=PACKAGE.parents[1]
    )
    assert done.stdout.strip() == "true"
