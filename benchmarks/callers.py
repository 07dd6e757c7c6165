"""Callers and watchers of a server in processes of their own, so that what they cost is not the server's.

Callers are closed loops: messages are made once, before the clock starts; a caller only sends and receives bytes, over
a channel a process. A watcher looks at health and memory, and has nothing else to do: what it waits for is the server.
"""

import contextlib
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event, Semaphore

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from benchmarks.measuring import resident_bytes

_TIMEOUT_S = 120.0
_LOOK_EVERY_S = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """What is called.

    Attributes:
        target: Host and port.
        method: Full name, ``/facets.v1.EmbeddingService/Embed``.
        requests: Serialized; each is sent once.
        callers: How many wait for an answer at any time.
        processes: Among which the callers are shared.
    """

    target: str
    method: str
    requests: Sequence[bytes]
    callers: int
    processes: int = 1


@dataclass(frozen=True, slots=True)
class Taken:
    """How long it took.

    Attributes:
        seconds: From the first call to the last answer.
        latencies_ms: Of each call.
        client_cpu_s: Processor time of the callers.
    """

    seconds: float
    latencies_ms: tuple[float, ...]
    client_cpu_s: float


def call_all(load: Load, *, cpu_seconds: Callable[[], float] = time.process_time) -> tuple[Taken, float]:
    """Sends every request once; the processes are started before the clock.

    Args:
        load: What is called.
        cpu_seconds: Read at the beginning and at the end.

    Returns:
        How long it took, and by how much ``cpu_seconds`` has grown.

    Raises:
        RuntimeError: A call failed.
    """
    context = multiprocessing.get_context("spawn")
    ready, go = context.Semaphore(0), context.Event()
    pool = []
    for place in range(load.processes):
        ours, theirs = context.Pipe()
        share = Load(
            target=load.target,
            method=load.method,
            requests=load.requests[place :: load.processes],
            callers=load.callers // load.processes + (place < load.callers % load.processes),
        )
        process = context.Process(target=_run, args=(share, ready, go, theirs), daemon=True)
        process.start()
        pool.append((process, ours))
    for _ in pool:
        ready.acquire()
    start, cpu = time.perf_counter(), cpu_seconds()
    go.set()
    taken = [ours.recv() for _, ours in pool]
    seconds, cpu = time.perf_counter() - start, cpu_seconds() - cpu
    for process, _ in pool:
        process.join()
    latencies = tuple(latency for one in taken for latency in one.latencies_ms)
    if len(latencies) != len(load.requests):
        raise RuntimeError(f"{len(load.requests) - len(latencies)} of {len(load.requests)} calls failed")
    return Taken(seconds, latencies, sum(one.client_cpu_s for one in taken)), cpu


def _run(load: Load, ready: Semaphore, go: Event, answer: Connection) -> None:
    times: list[float] = []
    with grpc.insecure_channel(load.target, options=[("grpc.max_receive_message_length", -1)]) as channel:
        call = channel.unary_unary(load.method)
        grpc.channel_ready_future(channel).result(_TIMEOUT_S)
        left = iter(load.requests)  # next() of an iterator over a sequence is one step: threads may share it

        def work() -> None:
            for request in left:
                start = time.perf_counter()
                call(request, timeout=_TIMEOUT_S)
                times.append(1000 * (time.perf_counter() - start))

        threads = [threading.Thread(target=work) for _ in range(load.callers)]
        ready.release()
        go.wait()
        start, cpu = time.perf_counter(), time.process_time()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        answer.send(Taken(time.perf_counter() - start, tuple(times), time.process_time() - cpu))


@dataclass(slots=True)
class Watched:
    """What was seen, filled when the watching ends.

    Attributes:
        health_ms: Of each look at health.
        memory: Bytes, at each look.
    """

    health_ms: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)


@contextlib.contextmanager
def watching(target: str, pid: int) -> Iterator[Watched]:
    """Watches a server until the end of a ``with`` block.

    Raises:
        EOFError: Health did not answer.
    """
    watched, context = Watched(), multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_watch, args=(theirs, target, pid), daemon=True)
    process.start()
    theirs.close()
    ours.recv()  # it has begun
    try:
        yield watched
    finally:
        ours.send(None)
        watched.health_ms, watched.memory = ours.recv()
        process.join()


def _watch(pipe: Connection, target: str, pid: int) -> None:
    health_ms: list[float] = []
    memory: list[int] = []
    with grpc.insecure_channel(target) as channel:
        health = health_pb2_grpc.HealthStub(channel)  # type: ignore[no-untyped-call]
        while not memory or not pipe.poll(_LOOK_EVERY_S):
            started = time.perf_counter()
            health.Check(health_pb2.HealthCheckRequest(), timeout=_TIMEOUT_S)
            health_ms.append(1000 * (time.perf_counter() - started))
            memory.append(resident_bytes(pid))
            if len(memory) == 1:
                pipe.send(None)
    pipe.send((health_ms, memory))
