"""Callers in processes of their own, so that what they cost is not the server's: closed loops of calls as bytes.

Messages are made once, before the clock starts; a caller only sends and receives bytes, over a channel a process.
"""

import multiprocessing
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event, Semaphore

import grpc

_TIMEOUT_S = 120.0


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
        todo = iter(load.requests)  # next() of an iterator over a sequence is one step: threads may share it

        def work() -> None:
            for request in todo:
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
