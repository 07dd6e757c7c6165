"""Every example of docs/use/adapters.md runs as printed, in at most ten lines, where its framework is installed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from facets_client import FacetsClient
from integration.server_process import ROOT

PAGE = (ROOT / "docs" / "use" / "adapters.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"^## ([^\n]+)\n\n```python\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE))
IMPORTS = {
    "LangChain": "langchain_core",
    "LlamaIndex": "llama_index",
    "Haystack": "haystack",
    "txtai": "txtai",
    "Parquet": "pyarrow",
    "sentence-transformers": "sentence_transformers",
}
SAYS = {
    "LangChain": "Bald eagle",
    "LlamaIndex": "Bald eagle",
    "Haystack": "Bald eagle",
    "txtai": "bees",
    "Parquet": "24 documents\n24 stored",
    "sentence-transformers": "(1, 384)\n0",
}


def test_every_example_is_run() -> None:
    assert set(EXAMPLES) == set(SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_example_runs_and_is_short(name: str, client: FacetsClient, tmp_path: Path) -> None:
    pytest.importorskip(IMPORTS[name])
    assert len(EXAMPLES[name].splitlines()) <= 10
    code = EXAMPLES[name].replace("localhost:50051", client.target)
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("", "clients", "proto"))
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert SAYS[name] in done.stdout
