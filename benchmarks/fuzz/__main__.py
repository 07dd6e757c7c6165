"""Mutated calls of every rpc, as many as you like.

``python -m benchmarks.fuzz --calls 20000 --seed 0``

Starts a server on this machine with the shipped models (``--model`` names others) and sends valid calls, some fields
of which were changed to anything that the wire can carry: other lengths, NaN, huge numbers, deep messages, bytes
that are no message. No answer may be INTERNAL, UNKNOWN or none at all; the process must live, its memory stay within
bounds, and nothing may be under way when the last call has ended. JSON on standard output: codes by rpc, fields of the
requests that were sent and accepted, memory; exit code 1 and a line each for whatever was wrong.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.fuzz.run import Fuzzer
from benchmarks.server import serving

_MOST_GROWTH_BYTES = 2 * 2**30


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the fuzzer; 1 when something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=2_000, help="how many")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so many seconds all the same")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout-s", type=float, default=120.0, help="a call that takes longer counts as hanging")
    parser.add_argument("--model", action="append", default=[], help="name or folder; repeat for more")
    given = parser.parse_args(argv)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(given.model, Path(folder) / "data", {"FACETS_SERVER_LOG_LEVEL": "ERROR"}) as server,
    ):
        fuzzer = Fuzzer(server.target, seed=given.seed, timeout_s=given.timeout_s, pid=server.pid)
        started = time.perf_counter()
        num_calls = fuzzer.run(given.calls, seconds=given.seconds)
        seconds = time.perf_counter() - started
        fuzzer.close()
    grown = fuzzer.most_rss_bytes - fuzzer.first_rss_bytes
    if grown > _MOST_GROWTH_BYTES:
        fuzzer.failures.append(f"memory grew by {grown} bytes, expected at most {_MOST_GROWTH_BYTES}")
    report = {
        **{"benchmark": "fuzz", "calls": num_calls, "seed": given.seed, "failures": len(fuzzer.failures)},
        **{"coverage": fuzzer.coverage(), "codes": {name: dict(codes) for name, codes in fuzzer.codes.items()}},
        **{"slowest_s": round(fuzzer.slowest_s, 2), "seconds": round(seconds, 1)},
        **{"first_rss_mb": fuzzer.first_rss_bytes >> 20, "most_rss_mb": fuzzer.most_rss_bytes >> 20},
    }
    print(json.dumps(report, indent=2))
    for failure in fuzzer.failures:
        print(failure, file=sys.stderr)
    return 1 if fuzzer.failures else 0


if __name__ == "__main__":
    sys.exit(main())
