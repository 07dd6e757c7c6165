"""The Go example is built from the protos and searches a real server; skipped where Go or its gRPC is not installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from facets_client import Document, FacetsClient
from server_process import ROOT, ServerProcess

NEEDS = ("go", "protoc-gen-go", "protoc-gen-go-grpc")
LIBRARY = Path("/usr/share/gocode/src/google.golang.org/grpc")


@pytest.mark.slow
def test_the_example_searches_and_names_what_is_wrong(tmp_path: Path, toy_model: Path) -> None:
    missing = [name for name in NEEDS if shutil.which(name) is None]
    if missing or not LIBRARY.is_dir():
        pytest.skip("apt install golang golang-google-grpc-dev protoc-gen-go-1-5 protoc-gen-go-grpc brings Go's gRPC")
    environment = {**os.environ, "PROTOC": f"{sys.executable} -m grpc_tools.protoc"}
    subprocess.run(["sh", ROOT / "examples" / "go" / "build.sh", tmp_path / "go"], check=True, env=environment)
    program = tmp_path / "go" / "search"
    with ServerProcess(tmp_path / "data", toy_model) as server, FacetsClient(server.target) as client:
        client.create_collection("wiki")
        client.upsert("wiki", [Document("dog", "Ünd the dog and the cat."), Document("boat", "A boat on the river.")])
        command = [program, "-target", server.target]
        found = subprocess.run([*command, "the dog"], capture_output=True, text=True, check=False)
        wrong = subprocess.run([*command, " "], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines()[0].startswith("dog\t") and "dog" in found.stdout.splitlines()[0].split("\t")[2]
    assert wrong.returncode == 1 and "InvalidArgument" in wrong.stderr and "queries[0]" in wrong.stderr
