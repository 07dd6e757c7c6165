"""``facets diagnose``: a collection as a table, a file by the library's program."""

import json
import subprocess
import sys

import numpy as np
import pytest


def test_a_collection_is_described_and_with_questions_judged(facets, tmp_path):
    shown = facets("diagnose", "news").stdout
    assert "4 documents, 5 parts" in shown and "is measured with --queries only" in shown
    (tmp_path / "asked.txt").write_text("who won the cup?\n\nwhere is it warm?\n")
    judged = facets("diagnose", "news", "--queries", "asked.txt").stdout
    assert "finds 90.0%" in judged and "missed: d7" in judged
    found = json.loads(facets("--json", "diagnose", "news", "--queries", "asked.txt").stdout)
    assert found["recall"] == 0.9
    assert json.loads(facets("--json", "diagnose", "news").stdout)["recall"] is None


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["news", "--hull"], "--hull is for .npy files"),
        (["news", "--queries", "empty.txt"], "at least one line with text"),
        (["news", "--queries", "missing.txt"], "missing.txt"),
    ],
)
def test_what_cannot_be_looked_at_is_said(facets, tmp_path, arguments, says):
    (tmp_path / "empty.txt").write_text("\n \n")
    assert says in facets("diagnose", *arguments, code=2).stderr


def run_program(*arguments):
    command = [sys.executable, "-c", "from facets_client.cli import main; main()", "diagnose", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_a_file_is_looked_at_by_the_library(tmp_path):
    pytest.importorskip("scipy")
    path = tmp_path / "items.npy"
    np.save(path, np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32))
    done = run_program(str(path), "--hull", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["vectors"]["num_rows"] == 60
    assert found["hull"]["vertex"] + found["hull"]["interior"] == 60
    path.write_bytes(b"no numbers")
    refused = run_program(str(path))
    assert refused.returncode == 2 and "Traceback" not in refused.stderr and "items.npy" in refused.stderr
