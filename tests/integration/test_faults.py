"""The short form of ``python -m benchmarks.faults``: in every run other kills, damaged files and full disks."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_nothing_is_lost_in_silence() -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    command = [sys.executable, "-m", "benchmarks.faults", "--kills", "10", "--damages", "20", "--full-disks", "2"]
    path = os.pathsep.join(str(ROOT / folder) for folder in ("", "proto", "server", "clients"))
    done = subprocess.run(  # forks, which a process with threads must not
        [*command, "--seed", str(seed)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"
    assert json.loads(done.stdout)["documents_compared"] > 0
