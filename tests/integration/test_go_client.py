"""The Go client against a real server: its own tests, which lie beside it, with a server to speak to."""

import importlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from server_process import ROOT, ServerProcess

PACKAGE = ROOT / "clients" / "go"
MODEL = ROOT / "models" / "facets-passages-small-en"
LIBRARIES = Path("/usr/share/gocode/src/google.golang.org")  # of Debian
ROOMS = sorted(path.stem for path in (ROOT / "proto" / "facets_proto" / "v1").glob("*.proto"))


def test_tests_of_the_go_client_pass(tmp_path_factory: pytest.TempPathFactory) -> None:
    if shutil.which("go") is None:
        pytest.skip("go is not installed: apt install golang-go golang-google-grpc-dev golang-google-protobuf-dev")
    if not (PACKAGE / "go.sum").is_file() and not all((LIBRARIES / name).is_dir() for name in ("grpc", "protobuf")):
        pytest.skip("gRPC for Go is not installed: apt install golang-google-grpc-dev golang-google-protobuf-dev")
    folder = tmp_path_factory.mktemp("go")
    with ServerProcess(folder / "data", MODEL) as server:
        done = subprocess.run(
            [PACKAGE / "test.sh"],
            env={**os.environ, "FACETS_TARGET": server.target, "GOCACHE": str(folder / "cache")},
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert "--- SKIP" not in done.stdout and done.stdout.count("--- PASS") >= 7


@pytest.mark.parametrize("room", ROOMS)
def test_generated_go_holds_the_proto_as_it_is(room: str) -> None:
    """Without Go: a file embeds the description that it was made of."""
    source = (PACKAGE / "v1" / f"{room}.pb.go").read_text(encoding="utf-8")
    found = re.search(r"_rawDesc = \[\]byte\{(.*?)\n\}", source, re.DOTALL)
    assert found is not None
    held = FileDescriptorProto.FromString(bytes(int(number, 16) for number in re.findall(r"0x[0-9a-f]{2}", found[1])))
    wanted = FileDescriptorProto()
    importlib.import_module(f"facets_proto.v1.{room}_pb2").DESCRIPTOR.CopyToProto(wanted)
    for part in (held, wanted):
        part.ClearField("options")
        for message in walked(part.message_type):
            for field in message.field:
                field.ClearField("json_name")
    assert held == wanted, "run clients/go/generate.sh"


def walked(messages):  # type: ignore[no-untyped-def]
    """Messages and those inside them."""
    for message in messages:
        yield message
        yield from walked(message.nested_type)
