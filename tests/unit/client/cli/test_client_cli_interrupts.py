"""Ctrl-C at any moment: every command ends soon, with 130 and one sentence; `interrupting.py` presses it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import wait_until

PRESSER = Path(__file__).parents[1] / "fakes" / "interrupting.py"
# Answers as the library would, without a model: what `facets encode` starts.
WORKER = """
import os, pathlib, pickle, sys, threading
import numpy as np
pathlib.Path("workers").mkdir(exist_ok=True)
pathlib.Path("workers", str(os.getpid())).touch()
answer = {"facet_embeddings": np.ones((1, 4), np.float32), "facet_spans": np.array([[0, 4]]), "part_facets": []}
answer |= {"num_tokens": 2, "num_read": 2}
made_by = {"name": "m", "revision": "r", "space": "s", "num_facets": 1, "dim": 4, "search_fields": {}}
try:
    pickle.load(sys.stdin.buffer)
    pickle.dump(made_by, sys.stdout.buffer)
    while True:
        sys.stdout.buffer.flush()
        documents = pickle.load(sys.stdin.buffer)
        threading.Event().wait(0.02)
        pickle.dump([answer] * len(documents), sys.stdout.buffer)
except (EOFError, BrokenPipeError):
    pass
"""


@pytest.fixture
def press(environment, tmp_path, request):
    """Runs a command again and again and interrupts it; returns how often each exit code came."""
    (tmp_path / "facets").mkdir()
    (tmp_path / "facets" / "__init__.py").touch()
    (tmp_path / "facets" / "__main__.py").write_text(WORKER)
    paths = {"PYTHONPATH": os.pathsep.join([str(tmp_path), environment["PYTHONPATH"]])}

    def run(number, longest_s, *arguments):
        done = subprocess.run(
            [sys.executable, str(PRESSER), str(number), str(longest_s), *arguments],
            env={**environment, **paths, "TERM": "xterm"},
            cwd=tmp_path,
            capture_output=True,
            check=False,
        )
        found = json.loads(done.stdout.splitlines()[-1])
        assert not found["bad"], found["bad"][0]
        assert set(found["codes"]) <= {"130", "0"} and found["codes"]["130"], found["codes"]
        return found["codes"]

    return run


def test_encoding_can_be_interrupted_at_any_moment_and_leaves_no_worker(press, tmp_path):
    pytest.importorskip("pyarrow")
    rows = (json.dumps({"id": f"d{i}", "text": f"text {i}"}) + "\n" for i in range(4_000))
    (tmp_path / "in.jsonl").write_text("".join(rows))
    press(3, 2.0, "encode", "in.jsonl", "--out", "encoded", "--workers", "2", "--part-size", "8")
    workers = [int(path.name) for path in (tmp_path / "workers").glob("*")]
    wait_until(lambda: not any(is_running(worker) for worker in workers))


def test_a_call_that_nobody_answers_can_be_interrupted(press):
    press(2, 1.0, "--target", "127.0.0.1:1", "search", "boats", "-c", "news")


def is_running(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:1]
