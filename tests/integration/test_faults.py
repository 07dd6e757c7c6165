"""A short run of ``python -m benchmarks.faults``, with a new seed each time."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from postgres_server import programs, user

ROOT = Path(__file__).resolve().parents[2]


def run_faults(*arguments: str) -> dict[str, dict[str, int]]:
    """Runs the command and returns its report; it must find nothing lost."""
    seed = random.SystemRandom().randrange(1_000_000)
    path = os.pathsep.join(str(ROOT / folder) for folder in ("", "proto", "server", "clients", "lab", "tests"))
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.faults", *arguments, "--seed", str(seed)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"
    return json.loads(done.stdout)


@pytest.mark.slow
def test_kills_of_a_server_lose_nothing_acknowledged_and_calls_are_linearizable() -> None:
    kills = run_faults("--kills", "12")["kills"]
    assert kills["killed"] == 12 and kills["linearizability_checked_calls"] > 0


@pytest.mark.slow
@pytest.mark.skipif(programs() is None or (os.geteuid() == 0 and user() is None), reason="PostgreSQL is not installed")
def test_failovers_of_two_servers_on_postgresql_lose_nothing_acknowledged() -> None:
    failovers = run_faults("--kills", "0", "--failovers", "5")["failovers"]
    assert failovers["linearizability_checked_calls"] > 0
