"""The short form of ``python -m benchmarks.load``, with a model so slow that the machine's speed does not matter."""

import os
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from server_process import ROOT, free_port, server_environment

from benchmarks.load import offer
from benchmarks.server import Server, wait_until_serving

TEXT_S = 0.02
CAPACITY = 1 / TEXT_S  # calls of one text a second
TIMEOUT_S = 120.0
HEALTH_MS = 20_000  # far more than it takes; far less than the calls that it must not wait for
MEMORY_BYTES = 512 * 2**20

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(os.environ.get("FACETS_TARGET")), reason="needs a server process of its own"),
]


@pytest.fixture(scope="module")
def slow_server(tmp_path_factory):
    port, folder = free_port(), tmp_path_factory.mktemp("slow")
    environment = server_environment()
    paths = [environment["PYTHONPATH"], str(ROOT / "tests" / "unit" / "server" / "fakes")]
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("slow_server.py")), str(port), str(folder / "data"), str(TEXT_S)],
        env={**environment, "PYTHONPATH": os.pathsep.join(paths)},
    )
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            wait_until_serving(channel, process)
            yield Server(f"127.0.0.1:{port}", channel, process.pid)
    finally:
        process.terminate()
        assert process.wait(60) == 0


def load(server, rate, seconds, connections=1):
    """Offers calls; each one is answered, or refused with a hint when to retry."""
    outcome = offer(server, rate, seconds=seconds, timeout_s=TIMEOUT_S, connections=connections)
    assert outcome.codes.total() == outcome.num_calls
    assert outcome.codes["OK"] > 0
    assert outcome.codes["OK"] + outcome.num_hints + outcome.num_refused_streams == outcome.num_calls, outcome.codes
    assert max(outcome.health_ms) < HEALTH_MS
    assert max(outcome.memory) - outcome.memory[0] < MEMORY_BYTES
    return outcome


def test_half_the_capacity_is_answered(slow_server):
    outcome = load(slow_server, 0.5 * CAPACITY, 2)
    assert outcome.codes["OK"] == outcome.num_calls


@pytest.mark.parametrize("connections", [1, 4])
def test_ten_times_the_capacity_is_answered_or_refused_with_a_hint(slow_server, connections):
    load(slow_server, 10 * CAPACITY, 2, connections)


@pytest.mark.parametrize("connections", [1, 8])
def test_thousands_of_calls_at_once_are_answered_or_refused_with_a_hint(slow_server, connections):
    outcome = load(slow_server, 1e9, 4000 / 1e9, connections)
    assert outcome.codes["OK"] < outcome.num_calls
