"""Other languages: Node loads the shipped protos, and the committed TypeScript code matches them."""

import base64
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import facets_proto
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from source_tree import ROOT

PACKAGE = Path(facets_proto.__file__).resolve().parent  # the client links to it
CLIENT = ROOT / "clients" / "typescript"
GENERATED = CLIENT / "src" / "generated"
FILES = sorted(path.stem for path in (PACKAGE / "v1").glob("*.proto"))
_LOAD = """
const loader = require("@grpc/proto-loader");
const [include, ...files] = JSON.parse(process.argv[1]);
console.log(JSON.stringify(Object.keys(loader.loadSync(files, { includeDirs: include }))));
"""


def run_node(script: str, *arguments: str) -> str:
    """Runs a script; skips without Node or ``@grpc/proto-loader``, which the TypeScript client's tests install."""
    modules = CLIENT / "node_modules"
    if shutil.which("node") is None or not (modules / "@grpc" / "proto-loader").is_dir():
        pytest.skip("needs node and @grpc/proto-loader: make test-typescript installs the latter")
    environment = {**os.environ, "NODE_PATH": str(modules)}
    command = ["node", "-e", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=ROOT).stdout


def test_node_loads_every_file_from_the_package_alone(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "facets_proto", ignore=shutil.ignore_patterns("*.py", "*.pyi"))
    include = [str(tmp_path), str(tmp_path / "facets_proto")]
    files = [f"facets_proto/v1/{name}.proto" for name in FILES] + ["google/rpc/error_details.proto"]
    loaded = set(json.loads(run_node(_LOAD, json.dumps([include, *files]))))
    assert {"facets.v1.DocumentService", "facets.v1.RecommendationService", "google.rpc.BadRequest"} <= loaded


def test_the_example_of_the_readme_creates_a_client() -> None:
    readme = (PACKAGE.parent / "README.md").read_text(encoding="utf-8")
    example = readme.partition("```js\n")[2].partition("```")[0]
    check = 'console.log(Object.keys(Object.getPrototypeOf(client)).includes("Embed")); client.close();'
    assert run_node(example + check).strip() == "true"


@pytest.mark.parametrize("name", FILES)
def test_typescript_module_has_the_descriptor_of_the_proto(name: str) -> None:
    """Works without Node: a module embeds the descriptor it was generated from."""
    module = (GENERATED / "facets_proto" / "v1" / f"{name}_pb.ts").read_text(encoding="utf-8")
    embedded = re.search(r'fileDesc\("([^"]+)"', module)
    assert embedded is not None
    held = FileDescriptorProto.FromString(base64.b64decode(embedded[1] + "=" * (-len(embedded[1]) % 4)))
    expected = FileDescriptorProto()
    importlib.import_module(f"facets_proto.v1.{name}_pb2").DESCRIPTOR.CopyToProto(expected)
    for descriptor in (held, expected):
        descriptor.ClearField("dependency")  # modules in TypeScript
        descriptor.ClearField("options")
    assert held == expected


def test_typescript_code_is_current(tmp_path: Path) -> None:
    if not (CLIENT / "node_modules" / ".bin" / "protoc-gen-es").exists():
        pytest.skip("protobuf-es is not installed: make test-typescript installs it")
    pytest.importorskip("grpc_tools", reason="grpcio-tools brings protoc")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = ["npm", "--prefix", CLIENT, "run", "protoc", "--", f"--es_out={tmp_path}"]
    subprocess.run(command, check=True, env=environment)
    made = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*.ts")}
    assert made == {path.relative_to(GENERATED): path.read_bytes() for path in GENERATED.rglob("*.ts")}


def test_packages_support_all_platforms_and_node_20() -> None:
    packages = json.loads((CLIENT / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert not [name for name, package in packages.items() if {"os", "cpu", "libc"} & package.keys()]
    least = {
        name: re.findall(r">=\s*(\d+)", package.get("engines", {}).get("node", ""))
        for name, package in packages.items()
    }
    assert not [name for name, versions in least.items() if any(int(version) > 20 for version in versions)]
