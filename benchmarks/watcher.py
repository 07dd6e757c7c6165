"""Looks at the health and the memory of a server until its input ends: ``python -m benchmarks.watcher TARGET PID``.

A process of its own, with nothing else to do, so that what it waits for is the server; ``watching`` starts it.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from benchmarks.measuring import resident_bytes

_EVERY_S = 0.05
_TIMEOUT_S = 60.0


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
        RuntimeError: Health did not answer.
    """
    watched = Watched()
    command = [sys.executable, "-m", "benchmarks.watcher", target, str(pid)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()  # it has begun
        try:
            yield watched
        finally:
            answer, _ = process.communicate()
    if process.returncode:
        raise RuntimeError("health did not answer")
    watched.health_ms, watched.memory = json.loads(answer)


def _watch(target: str, pid: int) -> None:
    health_ms: list[float] = []
    memory: list[int] = []
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
    with grpc.insecure_channel(target) as channel:
        health = health_pb2_grpc.HealthStub(channel)  # type: ignore[no-untyped-call]
        while not stop.is_set():
            started = time.perf_counter()
            health.Check(health_pb2.HealthCheckRequest(), timeout=_TIMEOUT_S)
            health_ms.append(1000 * (time.perf_counter() - started))
            memory.append(resident_bytes(pid))
            if len(memory) == 1:
                sys.stdout.write("begun\n")
                sys.stdout.flush()
            stop.wait(_EVERY_S)
    sys.stdout.write(json.dumps([health_ms, memory]))


if __name__ == "__main__":
    _watch(sys.argv[1], int(sys.argv[2]))
