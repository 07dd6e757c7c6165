"""Callers of a server: each waits for its answer, in one of a few processes that begin together."""

import asyncio
import math
import multiprocessing
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack
from itertools import cycle
from threading import Barrier
from typing import NamedTuple

import grpc

_START_S = 600.0  # until all processes are ready
_WARM_UP_S = 1.5  # of a phase; not counted: until all callers have started
_PATIENCE_S = 5.0  # after a phase; calls that are still running are given up, and count as so long
_CHANNELS = 4  # of a process; a connection has room for 320 calls


class Callers(NamedTuple):
    """Callers that share requests of one rpc, and the key of them all."""

    method: str
    requests: Sequence[bytes]
    number: int
    key: str = ""


class Answers(NamedTuple):
    """Latencies of answered calls in milliseconds, the number of others by status, and when the last one ended."""

    latencies_ms: list[float]
    failed: Counter[str]
    seconds: float = 0.0  # from the begin


def call(target: str, groups: Sequence[Sequence[Callers]], seconds: float | None = None) -> list[Answers]:
    """The answers to all callers; each group has a process of its own.

    ``seconds``: of a phase, in which requests are sent over and over; None: each is sent once.
    """
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(len(groups), mp_context=context) as pool:
        ready = manager.Barrier(len(groups))
        futures = [pool.submit(_call, target, group, seconds, ready) for group in groups]
        return [answers for future in futures for answers in future.result()]


def _call(target: str, group: Sequence[Callers], seconds: float | None, ready: Barrier) -> list[Answers]:
    return asyncio.run(_call_all(target, group, seconds, ready))


async def _call_all(target: str, group: Sequence[Callers], seconds: float | None, ready: Barrier) -> list[Answers]:
    answers = [Answers([], Counter()) for _ in group]
    requests = [iter(callers.requests) if seconds is None else cycle(callers.requests) for callers in group]
    async with AsyncExitStack() as stack:
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
        channels = [
            await stack.enter_async_context(grpc.aio.insecure_channel(target, options))
            for _ in range(min(_CHANNELS, sum(callers.number for callers in group)))
        ]
        await asyncio.gather(*(channel.channel_ready() for channel in channels))
        ready.wait(_START_S)
        warm_up_s = 0.0 if seconds is None else _WARM_UP_S
        counted_from = time.perf_counter() + warm_up_s
        until = math.inf if seconds is None else counted_from + seconds

        async def work(place: int, number: int) -> None:
            callers = group[place]
            call = channels[number % len(channels)].unary_unary(callers.method)
            metadata = [("authorization", f"Bearer {callers.key}")] if callers.key else []
            await asyncio.sleep(warm_up_s * number / callers.number)
            while (started := time.perf_counter()) < until and (request := next(requests[place], None)) is not None:
                try:
                    await call(request, metadata=metadata, timeout=300)
                except grpc.aio.AioRpcError as error:
                    answers[place].failed[error.code().name] += 1
                    await asyncio.sleep(_pause_s(error))
                    continue
                except asyncio.CancelledError:
                    answers[place].failed["UNANSWERED"] += 1
                    if callers.number > 1:
                        raise
                if counted_from <= (ended := time.perf_counter()):
                    answers[place].latencies_ms.append(1000 * (ended - started))

        workers = [
            asyncio.ensure_future(work(place, number))
            for place, callers in enumerate(group)
            for number in range(callers.number)
        ]
        left_s = None if seconds is None else max(0.0, until - time.perf_counter()) + _PATIENCE_S
        await asyncio.wait(workers, timeout=left_s)
        ended_s = time.perf_counter() - counted_from
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return [own._replace(seconds=ended_s) for own in answers]


def _pause_s(error: grpc.aio.AioRpcError) -> float:
    trailers = dict(error.trailing_metadata() or ())
    return max(0.05, int(trailers.get("grpc-retry-pushback-ms", 50)) / 1000)
