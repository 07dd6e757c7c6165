"""The TypeScript client against a real server: its own tests, which lie beside it, with a server to speak to."""

import json
import os
import re
import shutil
import subprocess

import pytest
from server_process import ROOT, ServerProcess

PACKAGE = ROOT / "clients" / "typescript"
MODEL = ROOT / "models" / "facets-passages-small-en"


# Further versions of Node, which make test-typescript fetches, beside the one that is installed.
NODES = ["", *filter(None, os.environ.get("FACETS_NODES", "").split(os.pathsep))]


@pytest.mark.parametrize("node", NODES)
def test_tests_of_the_typescript_client_pass(tmp_path_factory: pytest.TempPathFactory, node: str) -> None:
    node = node or shutil.which("node") or ""
    if not node:
        pytest.skip("node is not installed")
    if not (PACKAGE / "dist" / "test").is_dir():
        pytest.skip("the TypeScript client is not built: make test-typescript builds it and runs this")
    tests = sorted(str(path) for path in (PACKAGE / "dist" / "test").glob("*.test.js"))  # Node 20 takes no pattern
    with ServerProcess(tmp_path_factory.mktemp("typescript") / "data", MODEL) as server:
        done = subprocess.run(
            [node, "--test", "--test-force-exit", "--test-reporter=tap", *tests],
            cwd=PACKAGE,
            env={**os.environ, "FACETS_TARGET": server.target},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert "# skipped 0" in done.stdout and "# fail 0" in done.stdout


def test_the_lock_file_names_no_host() -> None:
    lock = (PACKAGE / "package-lock.json").read_text(encoding="utf-8")
    packages = json.loads(lock)["packages"]
    assert not any("resolved" in found for found in packages.values())
    assert all("integrity" in found for name, found in packages.items() if name)


def test_versions_are_those_of_the_project() -> None:
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert version is not None
    assert json.loads((PACKAGE / "package.json").read_text(encoding="utf-8"))["version"] == version[1]
