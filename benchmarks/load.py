"""Overload: ``python -m benchmarks.load``; prints JSON.

Measures the capacity of a real server process with callers that wait for each answer. Then sends calls at half, one,
two and ten times that rate, whether answers arrive or not: latencies of answered calls, refusals and how many of them
state a retry delay, memory of the server, latency of health checks.
"""

import argparse
import contextlib
import multiprocessing
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from benchmarks.measuring import percentiles, print_report, resident_bytes
from benchmarks.server import EMBED, Server, call_all, embed_request, serving

_FACTORS = (0.5, 1.0, 2.0, 10.0)
_NUM_CALLERS = 32
_WATCH_EVERY_S = 0.05
_REFUSED_STREAM = "RST_STREAM with error code 7"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="length of each phase")
    parser.add_argument("--timeout", type=float, default=10.0, help="deadline of each call in seconds")
    parser.add_argument("--calls", type=int, default=2000, help="number of calls that measure the capacity")
    options = parser.parse_args(arguments)
    report: dict[str, object] = {"benchmark": "load", "parameters": vars(options)}
    with tempfile.TemporaryDirectory() as directory, serving(None, Path(directory) / "data") as server:
        requests = list(map(embed_request, range(options.calls)))
        call_all(server.target, EMBED, requests, _NUM_CALLERS)  # so that the tokenizer has seen every word
        capacity = options.calls / call_all(server.target, EMBED, requests, _NUM_CALLERS).seconds
        report["capacity_calls_per_s"] = round(capacity, 1)
        phase = partial(offer, server, seconds=options.seconds, timeout_s=options.timeout)
        report["load"] = {f"{factor:g}x": phase(factor * capacity).report() for factor in _FACTORS}
    print_report(report)


@dataclass
class Outcome:
    """Outcome of the calls of one phase."""

    num_calls: int
    seconds: float = 0.0  # until the last call was sent
    codes: Counter[str] = field(default_factory=Counter)
    latencies_ms: list[float] = field(default_factory=list)  # of the answered calls
    num_hints: int = 0  # refusals that state a retry delay
    num_refused_streams: int = 0  # refusals by HTTP/2: the connection had too many open calls, nothing was started
    health_ms: list[float] = field(default_factory=list)  # of health checks during the phase
    memory: list[int] = field(default_factory=list)  # resident bytes of the server at each health check
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, call: grpc.Future, started: float) -> None:
        """Counts a call that has ended."""
        code = call.code()
        with self.lock:
            self.codes[code.name] += 1
            if code is grpc.StatusCode.OK:
                self.latencies_ms.append(1000 * (time.perf_counter() - started))
            details = dict(call.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
            self.num_hints += code is grpc.StatusCode.RESOURCE_EXHAUSTED and b"google.rpc.RetryInfo" in details
            self.num_refused_streams += code is grpc.StatusCode.UNAVAILABLE and _REFUSED_STREAM in call.details()

    def report(self) -> dict[str, object]:
        """Figures of the phase."""
        return {
            "calls": self.num_calls,
            "offered_per_s": round(self.num_calls / self.seconds, 1),
            "answered_per_s": round(self.codes["OK"] / self.seconds, 1),
            "codes": dict(self.codes),
            "refusals_with_retry_hint": self.num_hints,
            "refused_streams": self.num_refused_streams,
            "latency_ms": percentiles(self.latencies_ms),
            "health_ms": {**percentiles(self.health_ms), "longest": round(max(self.health_ms), 1)},
            "max_memory_mib": round(max(self.memory) / 2**20),
        }


def offer(server: Server, rate: float, *, seconds: float, timeout_s: float, connections: int = 1) -> Outcome:
    """Sends ``rate`` calls per second, whether answers arrive or not, then waits until each has ended."""
    outcome = Outcome(num_calls=round(rate * seconds))
    requests = list(map(embed_request, range(512)))
    with ExitStack() as stack:
        stack.enter_context(watching(server, outcome))
        channels = [
            stack.enter_context(grpc.insecure_channel(server.target, [("grpc.use_local_subchannel_pool", 1)]))
            for _ in range(connections)
        ]
        calls = [channel.unary_unary(EMBED) for channel in channels]
        start = time.perf_counter()
        for number in range(outcome.num_calls):
            wait = number / rate - (time.perf_counter() - start)
            if wait > 0:
                time.sleep(wait)
            started = time.perf_counter()
            future = calls[number % connections].future(requests[number % len(requests)], timeout=timeout_s)
            future.add_done_callback(lambda done, started=started: outcome.count(done, started))
        outcome.seconds = time.perf_counter() - start
        while outcome.codes.total() < outcome.num_calls:  # each ends at the latest by its deadline
            time.sleep(0.01)
    return outcome


@contextlib.contextmanager
def watching(server: Server, outcome: Outcome) -> Iterator[None]:
    """Checks health and memory of a server from a separate process until the block ends."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_watch, args=(theirs, server.target, server.pid), daemon=True)
    process.start()
    theirs.close()
    ours.recv()  # the first check is done
    try:
        yield
    finally:
        ours.send(None)
        outcome.health_ms, outcome.memory = ours.recv()
        process.join()


def _watch(pipe: Connection, target: str, pid: int) -> None:
    health_ms: list[float] = []
    memory: list[int] = []
    with grpc.insecure_channel(target) as channel:
        health = health_pb2_grpc.HealthStub(channel)  # type: ignore[no-untyped-call]
        while not memory or not pipe.poll(_WATCH_EVERY_S):
            started = time.perf_counter()
            health.Check(health_pb2.HealthCheckRequest(), timeout=120)
            health_ms.append(1000 * (time.perf_counter() - started))
            memory.append(resident_bytes(pid))
            if len(memory) == 1:
                pipe.send(None)
    pipe.send((health_ms, memory))


if __name__ == "__main__":
    main()
