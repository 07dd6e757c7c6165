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
from benchmarks.faults.rounds import Faults
from benchmarks.faults.rpcs import RpcFaults


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the faults; 1 when something was lost in silence."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__.splitlines()[0])
    for name, default in (("kills", 100), ("rpc-kills", 0), ("damages", 100), ("full-disks", 100), ("power-losses", 0)):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"how many (default {default})")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work-dir", type=Path, help="keeps the last directories (default: a temporary folder)")
    given = parser.parse_args(argv)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        faults = Faults(given.work_dir or Path(temporary), given.seed)
        faults.kills(given.kills)
        faults.damages(given.damages, damages(given.seed))
        faults.full_disks(given.full_disks)
        faults.power_losses(given.power_losses)
        # Last: calls need threads, and a process with threads must not fork.
        rpcs = RpcFaults(Path(temporary) / "rpcs", given.seed) if given.rpc_kills else None
        if rpcs is not None:
            rpcs.kills(given.rpc_kills)
            faults.failures += rpcs.failures
    report = {
        **{"benchmark": "faults", "kills": given.kills, "damages": given.damages, "full_disks": given.full_disks},
        **{"power_losses": given.power_losses, "rpc_kills": given.rpc_kills},
        **{"seed": given.seed, "documents_compared": faults.num_documents, "failures": len(faults.failures)},
        **{"rpcs": None if rpcs is None else rpcs.report(), "outcomes": dict(sorted(faults.counts.items()))},
        **{"load": [round(one, 1) for one in os.getloadavg()], "seconds": round(time.perf_counter() - start, 1)},
    }
    print(json.dumps(report, indent=2))
    for failure in faults.failures:
        print(failure, file=sys.stderr)
    return 1 if faults.failures else 0


if __name__ == "__main__":
    sys.exit(main())
