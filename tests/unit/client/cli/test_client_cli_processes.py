"""The ``facets`` command as a process: exit codes, signals, pipes, terminals."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from facets_client.cli.main import interrupt_again
from waiting import wait_until

COMMAND = [sys.executable, "-c", "from facets_client.cli import main; main()"]

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


def rows(number):
    return [json.dumps({"id": f"d{i:04}", "text": f"text {i}"}) + "\n" for i in range(number)]


@pytest.fixture
def start(server, environment, tmp_path):
    """Starts the command and kills it at the end if it is still there."""
    started = []

    def begin(*args, stdin=subprocess.DEVNULL, **changes):
        process = subprocess.Popen(
            [*COMMAND, "--target", server.target, *args],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment, **changes},
            cwd=tmp_path,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def finish(process, data=None):
    out, err = process.communicate(data, timeout=60)
    assert b"Traceback" not in err, err.decode()
    return process.returncode, out.decode(), err.decode()


def test_an_interrupt_that_hits_a_finalizer_is_not_lost(monkeypatch):
    class Dropped:
        def __del__(self):
            raise KeyboardInterrupt  # as the handler of Ctrl-C does, wherever Python is; nobody can catch it here

    monkeypatch.setattr(sys, "unraisablehook", interrupt_again)
    with pytest.raises(KeyboardInterrupt):
        Dropped()
        threading.Event().wait(10)


def test_an_encoding_that_is_interrupted_leaves_no_worker(start, environment, tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "facets").mkdir()
    (tmp_path / "facets" / "__init__.py").touch()
    (tmp_path / "facets" / "__main__.py").write_text(WORKER)
    (tmp_path / "in.jsonl").write_text("".join(rows(4_000)))
    arguments = ("encode", "in.jsonl", "--out", "encoded", "--workers", "2", "--part-size", "8")
    process = start(*arguments, PYTHONPATH=os.pathsep.join([str(tmp_path), environment["PYTHONPATH"]]))
    wait_until(lambda: len(list(tmp_path.glob("workers/*"))) == 2 and list(tmp_path.glob("encoded/*.parquet")))
    process.send_signal(signal.SIGINT)
    code, _, said = finish(process)
    assert code == 130 and "interrupted after" in said
    wait_until(lambda: not any(is_running(path.name) for path in tmp_path.glob("workers/*")))


def is_running(process):
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:1]
    except OSError:
        return False


def test_a_call_that_nobody_answers_can_be_interrupted(start):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        process = start("search", "boats", "--target", f"127.0.0.1:{silent.getsockname()[1]}")
        silent.accept()
        process.send_signal(signal.SIGINT)
        assert finish(process)[0] == 130


def test_output_that_nobody_reads(server, environment, world):
    from facets_proto.v1 import documents_pb2

    world.store("news", [documents_pb2.Document(id=f"d{i:05}", text="x" * 500) for i in range(2_000)])
    command = f"{sys.executable} -c 'from facets_client.cli import main; main()' --target {server.target}"
    done = subprocess.run(
        f"{command} --json documents list -c news --limit 0 | head -n 1",
        shell=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    assert json.loads(done.stdout)["id"] == "d00000"
    assert done.stderr == ""


def test_a_closed_standard_output_is_reported(server, environment, tmp_path):
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, "--target", server.target, "health"]
    done = subprocess.run(shell, stderr=subprocess.PIPE, env=environment, cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr == b"facets: standard output is closed, expected somewhere to write to\n"
