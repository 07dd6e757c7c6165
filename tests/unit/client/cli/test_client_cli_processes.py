"""The ``facets`` command as a process: exit codes, signals, pipes, terminals."""

import json
import signal
import subprocess
import sys
import threading

import pytest
from facets_client.cli.main import interrupt_again
from fake_world import Pace
from waiting import wait_until

COMMAND = [sys.executable, "-c", "from facets_client.cli import main; main()"]


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


def test_standard_input_goes_on_when_fed_again(start, world):
    data = "".join(rows(400)).encode()
    world.pace = Pace(5)
    args = ("index", "-", "-c", "news", "--batch-size", "4")
    process = start(*args, stdin=subprocess.PIPE)
    process.stdin.write(data)
    process.stdin.flush()
    wait_until(lambda: len(world.documents["news"]) >= 20)
    process.send_signal(signal.SIGINT)
    assert finish(process)[0] == 130
    world.pace.release(10_000)
    code, out, _ = finish(start(*args, stdin=subprocess.PIPE), data)
    assert code == 0
    assert out.startswith("400 documents: ") and "0 changed" in out
    assert len(world.documents["news"]) == 400


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
