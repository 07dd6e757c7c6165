"""Open-loop load, and callers beside a bulk index: ``python -m benchmarks.load``; JSON on standard output.

A real server process on 127.0.0.1. Its capacity is measured by callers who wait for each answer; then calls are sent
at half, one, two and ten times that, whether answers come or not: percentiles of the answered, refusals and how many
of these say when to come back, memory of the server, percentiles of health. Then single Embed and Search calls
beside a load of documents that are encoded and stored. ``--seconds`` bounds each phase.
"""

import argparse
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import numpy as np
from facets_proto.v1 import documents_pb2, documents_pb2_grpc

from benchmarks.callers import Load, Watched, call_all, watching
from benchmarks.measuring import percentiles, print_report
from benchmarks.server import EMBED, WORDS, Server, embed_request, make_untrained, serving

_FACTORS = (0.5, 1.0, 2.0, 10.0)
_CALLERS = 32
_BULK_DOCUMENTS = 64  # of one Upsert
_BULK_WORDS = 120
_REFUSED_STREAM = "RST_STREAM with error code 7"


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the flags, measures, writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each phase")
    parser.add_argument("--timeout", type=float, default=10.0, help="deadline of each call in seconds")
    parser.add_argument("--calls", type=int, default=2000, help="by which capacity is measured")
    parser.add_argument("--untrained", action="store_true", help="an untrained model of sentences alone, no bulk index")
    options = parser.parse_args(arguments)
    report: dict[str, object] = {"benchmark": "load", "parameters": vars(options)}
    with tempfile.TemporaryDirectory() as directory:
        model = str(make_untrained(Path(directory) / "model")) if options.untrained else None
        with serving(model, Path(directory) / "data") as server:
            capacity = capacity_of(server, options.calls)
            report["capacity_calls_per_s"] = round(capacity, 1)
            report["load"] = {
                f"{factor:g}x": offered(
                    server, factor * capacity, seconds=options.seconds, timeout_s=options.timeout
                ).report()
                for factor in _FACTORS
            }
            if not options.untrained:
                report["beside_bulk"] = beside_bulk(server, options.seconds)
    print_report(report)


def capacity_of(server: Server, num_calls: int) -> float:
    """Calls a second when callers wait for each answer."""
    load = Load(
        target=server.target, method=EMBED, requests=list(map(embed_request, range(num_calls))), callers=_CALLERS
    )
    call_all(load)  # words are read for the first time once
    return num_calls / call_all(load)[0].seconds


@dataclass
class Seen:
    """What became of the calls of one phase.

    Attributes:
        num_calls: That were sent.
        seconds: Until the last one was.
        codes: How many ended how.
        latencies_ms: Of those that were answered.
        num_hints: Refusals that say when to come back.
        num_refused_streams: Refusals of HTTP/2 itself: the connection has too many calls open, nothing was begun.
        watched: Health and memory meanwhile.
    """

    num_calls: int
    seconds: float = 0.0
    codes: Counter[str] = field(default_factory=Counter)
    latencies_ms: list[float] = field(default_factory=list)
    num_hints: int = 0
    num_refused_streams: int = 0
    watched: Watched = field(default_factory=Watched)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, call: grpc.Future, started: float) -> None:
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
        """The figures of the phase."""
        return {
            "calls": self.num_calls,
            "offered_per_s": round(self.num_calls / self.seconds, 1),
            "answered_per_s": round(self.codes["OK"] / self.seconds, 1),
            "codes": dict(self.codes),
            "refusals_with_retry_hint": self.num_hints,
            "refused_streams": self.num_refused_streams,
            "latency_ms": percentiles(self.latencies_ms),
            "health_ms": {**percentiles(self.watched.health_ms), "longest": round(max(self.watched.health_ms), 1)},
            "most_memory_mib": round(max(self.watched.memory) / 2**20),
        }


def offered(server: Server, rate: float, *, seconds: float, timeout_s: float, connections: int = 1) -> Seen:
    """Sends calls at a rate, whether answers come or not, then waits for what is left.

    Args:
        server: Where to.
        rate: Calls a second; those that the caller is late with are sent as fast as he can.
        seconds: For how long.
        timeout_s: Of each call.
        connections: Among which the calls are shared.
    """
    seen = Seen(num_calls=round(rate * seconds))
    requests = list(map(embed_request, range(512)))
    with ExitStack() as stack:
        seen.watched = stack.enter_context(watching(server.target, server.pid))
        calls = [stack.enter_context(_connection(server)).unary_unary(EMBED) for _ in range(connections)]
        begun = time.perf_counter()
        for number in range(seen.num_calls):
            wait = number / rate - (time.perf_counter() - begun)
            if wait > 0:
                time.sleep(wait)
            started = time.perf_counter()
            future = calls[number % connections].future(requests[number % len(requests)], timeout=timeout_s)
            future.add_done_callback(lambda done, started=started: seen.take(done, started))
        seen.seconds = time.perf_counter() - begun
        while seen.codes.total() < seen.num_calls:  # each ends, by its deadline at the latest
            time.sleep(0.01)
    return seen


def _connection(server: Server) -> grpc.Channel:
    return grpc.insecure_channel(server.target, options=[("grpc.use_local_subchannel_pool", 1)])


def beside_bulk(server: Server, seconds: float) -> dict[str, object]:
    """Single calls, one after the other, alone and beside a load of documents."""
    stub = documents_pb2_grpc.DocumentServiceStub(server.channel)  # type: ignore[no-untyped-call]
    collections = server.channel.unary_unary("/facets.v1.CollectionService/CreateCollection")
    collections(documents_pb2.CreateCollectionRequest(name="bulk").SerializeToString(), timeout=60)
    stub.Upsert(_documents(0), timeout=60)
    embed = server.channel.unary_unary(EMBED)
    search = documents_pb2.SearchRequest(collection="bulk", queries=[{"text": "who played the piano"}], top_k=3)
    calls: dict[str, Callable[[], object]] = {
        "embed": lambda: embed(embed_request(1), timeout=60),
        "search": lambda: stub.Search(search, timeout=60),
    }
    alone = {name: percentiles(_one_by_one(call, seconds)) for name, call in calls.items()}
    stop, stored = threading.Event(), [0]

    def load() -> None:
        while not stop.is_set():
            stub.Upsert(_documents(stored[0] + 1), timeout=120)
            stored[0] += 1

    loader = threading.Thread(target=load)
    loader.start()
    beside = {name: percentiles(_one_by_one(call, seconds)) for name, call in calls.items()}
    stop.set()
    loader.join()
    per_s = round(stored[0] * _BULK_DOCUMENTS / (seconds * len(calls)), 1)
    return {"alone_ms": alone, "beside_ms": beside, "documents_per_s": per_s}


def _one_by_one(call: Callable[[], object], seconds: float) -> list[float]:
    call()
    taken: list[float] = []
    begun = time.perf_counter()
    while (started := time.perf_counter()) - begun < seconds:
        call()
        taken.append(1000 * (time.perf_counter() - started))
    return taken


def _documents(number: int) -> documents_pb2.UpsertRequest:
    random = np.random.default_rng(number)
    documents = [
        documents_pb2.Document(id=f"{number}-{n}", text=" ".join(random.choice(WORDS, _BULK_WORDS)))
        for n in range(_BULK_DOCUMENTS)
    ]
    return documents_pb2.UpsertRequest(collection="bulk", documents=documents)


if __name__ == "__main__":
    main()
