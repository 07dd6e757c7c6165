"""The short form of ``python -m benchmarks.faults``: in every run other kills, damaged files and full disks."""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.postgres import programs, user

ROOT = Path(__file__).resolve().parents[2]


def run_faults(*arguments: str) -> dict[str, object]:
    """The report of the command, which found nothing lost."""
    seed = random.SystemRandom().randrange(1_000_000)
    path = os.pathsep.join(str(ROOT / folder) for folder in ("", "proto", "server", "clients", "lab", "tests"))
    done = subprocess.run(  # forks, which a process with threads must not
        [sys.executable, "-m", "benchmarks.faults", *arguments, "--seed", str(seed)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"
    report = json.loads(done.stdout)
    assert isinstance(report, dict)
    return report


def test_nothing_is_lost_in_silence() -> None:
    assert run_faults("--kills", "10", "--damages", "20", "--full-disks", "2")["documents_compared"]


NOTHING = ("--kills", "0", "--damages", "0", "--full-disks", "0")


@pytest.mark.slow
def test_nothing_acknowledged_by_a_killed_server_is_lost_and_calls_have_one_order() -> None:
    rpcs = run_faults(*NOTHING, "--rpc-kills", "20")["rpcs"]
    assert isinstance(rpcs, dict) and rpcs["killed"] == 20 and rpcs["calls_whose_order_was_checked"] > 0


@pytest.mark.slow
@pytest.mark.skipif(programs() is None or (os.geteuid() == 0 and user() is None), reason="no PostgreSQL here")
def test_nothing_acknowledged_is_lost_with_a_primary_or_with_one_of_two_servers() -> None:
    failovers = run_faults(*NOTHING, "--failovers", "6")["failovers"]
    assert isinstance(failovers, dict) and failovers["calls_whose_order_was_checked"] > 0


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_nothing_acknowledged_is_lost_with_the_power() -> None:
    assert run_faults(*NOTHING, "--power-losses", "20")["documents_compared"]
