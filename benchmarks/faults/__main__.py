"""Kills, damage and full disks, as many as you like.

``python -m benchmarks.faults --kills 1000 --rpc-kills 1000 --damages 1000 --full-disks 50 --seed 0``

A forked process writes to every kind of store, from documents to added relations, folds and saves indexes, moves
collections to other models, takes backups, closes and opens again; each write is told before and after. It is killed
at a random moment, and what is read afterwards must be what was acknowledged, with or without the write it was in. Then
files are damaged one at a time: everything must be there, or the damage told.

``--rpc-kills`` do the same to a real server, through real calls of six callers at once, each with a shadow of his own:
documents, streams and their tokens, collections made, moved and deleted, added papers, authors and relations, with
backups beside them that are killed too, and clocks of servers that are five years ahead or behind. What three of the
callers saw of the same documents, also with ``min_revision``, must be linearizable, over all kills of a directory.

``--failovers`` do it to two servers on one PostgreSQL and to its primary, whose synchronous standby is promoted:
callers write through either server and read through both, writes go on within 10 seconds, and meanwhile calls fail
with UNAVAILABLE alone.

JSON on standard output; exit code 1 and a line each for whatever was lost in silence.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.faults.damage import damages
from benchmarks.faults.failovers import FailoverFaults
from benchmarks.faults.rounds import Faults
from benchmarks.faults.rpcs import RpcFaults


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the faults; 1 when something was lost in silence."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__.splitlines()[0])
    defaults = {"kills": 100, "damages": 100, "full_disks": 100, "power_losses": 0, "rpc_kills": 0, "failovers": 0}
    for name, default in defaults.items():
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=int, default=default, help=f"how many (default {default})"
        )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work-dir", type=Path, help="keeps the last directories (default: a temporary folder)")
    given = parser.parse_args(argv)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.work_dir or Path(temporary)
        faults = Faults(folder, given.seed)
        faults.kills(given.kills)
        faults.damages(given.damages, damages(given.seed))
        faults.full_disks(given.full_disks)
        faults.power_losses(given.power_losses)
        # Last: calls need threads, and a process with threads must not fork.
        asked = (("rpcs", RpcFaults, given.rpc_kills), ("failovers", FailoverFaults, given.failovers))
        called = {name: kind(folder / name, given.seed) for name, kind, count in asked if count}
        for name, _, count in asked:
            if count:
                called[name].kills(count)
                faults.failures += called[name].failures
    report = {
        **{"benchmark": "faults", **{name: getattr(given, name) for name in defaults}},
        **{"seed": given.seed, "documents_compared": faults.num_documents, "failures": len(faults.failures)},
        **{name: run.report() for name, run in called.items()},
        **{"outcomes": dict(sorted(faults.counts.items()))},
        **{"load": [round(one, 1) for one in os.getloadavg()], "seconds": round(time.perf_counter() - start, 1)},
    }
    print(json.dumps(report, indent=2))
    for failure in faults.failures:
        print(failure, file=sys.stderr)
    return 1 if faults.failures else 0


if __name__ == "__main__":
    sys.exit(main())
