"""Fairness between API keys: ``python -m benchmarks.tenants``; prints JSON.

A real server process with a file of keys. First, single texts of one key, alone and beside many callers of another key
that send eight texts per call; then ten keys at once, counting the answered texts per key. A caller waits for each
answer, and retries a refused call after the delay that the server states. ``--seconds`` bounds each phase.
"""

import argparse
import asyncio
import multiprocessing
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import grpc

from benchmarks.measuring import percentiles, print_report
from benchmarks.server import EMBED, embed_request, serving

_NUM_TENANTS = 10
_CHANNELS = 4  # a connection has room for 320 calls
_WARM_UP_S = 1.5  # not counted: until all callers have started


class Tenant(NamedTuple):
    """Callers of one key."""

    key: str
    callers: int
    texts: int  # per call


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="length of each phase")
    parser.add_argument("--callers", type=int, nargs="+", default=[40, 200, 400], help="callers of the other key")
    parser.add_argument("--model", help="shipped model or checkpoint folder (default: the shipped one)")
    options = parser.parse_args(arguments)
    keys = [f"key-of-tenant-{number}" for number in range(_NUM_TENANTS)]
    report: dict[str, object] = {"benchmark": "tenants", "parameters": vars(options)}
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "keys"
        file.write_text("\n".join(keys) + "\n", encoding="ascii")
        settings = {"FACETS_SERVER_SECURITY_API_KEYS_FILE": str(file)}
        with serving(options.model, Path(directory) / "data", settings) as server:
            single = Tenant(keys[0], callers=1, texts=1)
            report["single_alone_ms"] = percentiles(run(server.target, [single], options.seconds)[0][1])
            report["single_beside_ms"] = {
                f"{callers} callers": percentiles(
                    run(server.target, [single, Tenant(keys[1], min(callers, 400), 8)], options.seconds)[0][1]
                )
                for callers in options.callers
            }
            # Different loads: many callers with few texts, few callers with many.
            tenants = [Tenant(key, *((8, 32) if place % 2 else (32, 8))) for place, key in enumerate(keys)]
            answered = [texts for texts, _ in run(server.target, tenants, options.seconds)]
            mean = sum(answered) / len(answered)
            report["ten_tenants"] = {
                "texts_per_s": round(sum(answered) / options.seconds, 1),
                "share_of_mean": [round(texts / mean, 3) for texts in answered] if mean else None,  # nothing answered
            }
    print_report(report)


def run(target: str, tenants: Sequence[Tenant], seconds: float) -> list[tuple[int, list[float]]]:
    """Answered texts and latencies in milliseconds of each tenant; the first of two runs in a separate process."""
    groups = [tenants[:1], tenants[1:]] if len(tenants) == 2 else [tenants]
    begin = time.time() + 3.0
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(groups), mp_context=context) as pool:
        futures = [pool.submit(_run, target, group, begin, seconds) for group in groups]
        return [one for future in futures for one in future.result()]


def _run(target: str, tenants: Sequence[Tenant], begin: float, seconds: float) -> list[tuple[int, list[float]]]:
    return asyncio.run(_call_all(target, tenants, begin, seconds))


async def _call_all(
    target: str, tenants: Sequence[Tenant], begin: float, seconds: float
) -> list[tuple[int, list[float]]]:
    latencies: list[list[float]] = [[] for _ in tenants]
    async with AsyncExitStack() as stack:
        options = [("grpc.use_local_subchannel_pool", 1)]
        channels = [
            await stack.enter_async_context(grpc.aio.insecure_channel(target, options)) for _ in range(_CHANNELS)
        ]
        calls = [channel.unary_unary(EMBED) for channel in channels]
        await asyncio.gather(*(channel.channel_ready() for channel in channels))
        await asyncio.sleep(max(0.0, begin - time.time()))
        counted_from = time.perf_counter() + _WARM_UP_S
        until = counted_from + seconds

        async def work(place: int, number: int) -> None:
            tenant = tenants[place]
            request = embed_request(number, num_texts=tenant.texts)
            metadata = [("authorization", f"Bearer {tenant.key}")]
            await asyncio.sleep(_WARM_UP_S * number / tenant.callers)
            while (started := time.perf_counter()) < until:
                try:
                    await calls[number % _CHANNELS](request, metadata=metadata, timeout=60)
                except grpc.aio.AioRpcError as error:
                    if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
                        raise
                    await asyncio.sleep(_pause_s(error))
                    continue
                ended = time.perf_counter()
                if counted_from <= started and ended <= until:
                    latencies[place].append(1000 * (ended - started))

        await asyncio.gather(
            *(work(place, number) for place, tenant in enumerate(tenants) for number in range(tenant.callers))
        )
    return [(tenant.texts * len(found), found) for tenant, found in zip(tenants, latencies, strict=True)]


def _pause_s(error: grpc.aio.AioRpcError) -> float:
    trailers = dict(error.trailing_metadata() or ())
    return max(0.05, int(trailers.get("grpc-retry-pushback-ms", 50)) / 1000)


if __name__ == "__main__":
    main()
