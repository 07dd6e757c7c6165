"""The committed TypeScript code matches the protos."""

import base64
import importlib
import importlib.util
import json
import re
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from source_tree import ROOT

CLIENT = ROOT / "clients" / "typescript"
GENERATED = CLIENT / "src" / "generated"
ROOMS = sorted(path.stem for path in (ROOT / "proto" / "facets_proto" / "v1").glob("*.proto"))


@pytest.mark.parametrize("room", ROOMS)
def test_generated_module_has_the_descriptor_of_the_proto(room: str) -> None:
    """Works without Node: a module embeds the descriptor it was generated from."""
    module = (GENERATED / "facets_proto" / "v1" / f"{room}_pb.ts").read_text(encoding="utf-8")
    found = re.search(r'fileDesc\("([^"]+)"', module)
    assert found is not None
    encoded = found[1] + "=" * (-len(found[1]) % 4)
    held = FileDescriptorProto.FromString(base64.b64decode(encoded))
    wanted = FileDescriptorProto()
    importlib.import_module(f"facets_proto.v1.{room}_pb2").DESCRIPTOR.CopyToProto(wanted)
    for part in (held, wanted):
        part.ClearField("dependency")  # in TypeScript they are modules
        part.ClearField("options")
    assert held == wanted


def test_generated_code_is_current(tmp_path: Path) -> None:
    if not (CLIENT / "node_modules" / ".bin" / "protoc-gen-es").exists():
        pytest.skip("protobuf-es is not installed: make test-typescript installs it and runs this")
    pytest.importorskip("grpc_tools", reason="grpcio-tools brings protoc")
    spec = importlib.util.spec_from_file_location("generate_typescript", CLIENT / "generate.py")
    assert spec is not None and spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    generator.generate(tmp_path)
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
