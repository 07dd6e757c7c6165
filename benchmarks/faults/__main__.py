"""Kills, damage and full disks, as many as you like.

``python -m benchmarks.faults --kills 1000 --damages 1000 --full-disks 50 --seed 0``

A forked process writes to every kind of store, from documents to added relations, folds and saves indexes, moves
collections to other models, takes backups, closes and opens again; each write is told before and after. It is killed
at a random moment, and what is read afterwards must be what was acknowledged, with or without the write it was in. Then
files are damaged one at a time: everything must be there, or the damage told. JSON on standard output; exit code 1 and
a line each for whatever was lost in silence.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.faults.damage import damages
from benchmarks.faults.rounds import Faults


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the faults; 1 when something was lost in silence."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__.splitlines()[0])
    for name in ("kills", "damages", "full-disks"):
        parser.add_argument(f"--{name}", type=int, default=100, help="how many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work-dir", type=Path, help="keeps the last directories (default: a temporary folder)")
    given = parser.parse_args(argv)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        faults = Faults(given.work_dir or Path(temporary), given.seed)
        faults.kills(given.kills)
        faults.damages(given.damages, damages(given.seed))
        faults.full_disks(given.full_disks)
    report = {
        **{"benchmark": "faults", "kills": given.kills, "damages": given.damages, "full_disks": given.full_disks},
        **{"seed": given.seed, "documents_compared": faults.num_documents, "failures": len(faults.failures)},
        **{"outcomes": dict(sorted(faults.counts.items())), "seconds": round(time.perf_counter() - start, 1)},
    }
    print(json.dumps(report, indent=2))
    for failure in faults.failures:
        print(failure, file=sys.stderr)
    return 1 if faults.failures else 0


if __name__ == "__main__":
    sys.exit(main())
