"""Kills servers and databases in the middle of calls, and checks that nothing acknowledged is lost.

``python -m benchmarks.faults --kills 100 --failovers 20 --seed 0``

``--kills``: a server on SQLite is killed under six concurrent callers. Each caller knows what the server must hold
(a shadow model): documents, streams and their tokens, collections created, moved and deleted, added papers, authors and
relations. ``--failovers``: two servers share a PostgreSQL primary with a synchronous standby; servers and primaries are
killed, and writes must continue within 10 seconds. In both, the calls of three callers on shared documents must be
linearizable.

Prints JSON; for failures, exits with code 1 and prints a line for each on standard error.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.faults.kills import Cluster, Directory, FaultRun


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the faults; returns 1 if something was lost."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="kills of a server on SQLite (default 100)")
    parser.add_argument("--failovers", type=int, default=0, help="kills with two servers on PostgreSQL (default 0)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work-dir", type=Path, help="folder that keeps data of failures (default: temporary)")
    options = parser.parse_args(argv)
    start = time.perf_counter()
    report: dict[str, object] = {"benchmark": "faults", "seed": options.seed}
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.work_dir or Path(temporary)
        for name, kind, count in (("kills", Directory, options.kills), ("failovers", Cluster, options.failovers)):
            if count:
                run = FaultRun(folder / name, options.seed, kind)
                run.kill(count)
                report[name] = run.report()
                failures += run.failures
    report |= {"failures": len(failures), "load": [round(load, 1) for load in os.getloadavg()]}
    report["seconds"] = round(time.perf_counter() - start, 1)
    print(json.dumps(report, indent=2))
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
