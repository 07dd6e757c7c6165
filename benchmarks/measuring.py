"""Shared by the benchmarks: clocks, percentiles, memory, synthetic facets, the report."""

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_NUM_CLUSTERS = 2000
_TOPIC_CLUSTERS = 40  # number of neighbouring clusters (the topic) that the facets of a document come from
_NOISE = 0.7  # relative to unit-variance centres: facets of one cluster have a cosine of about 0.67


class Spent(NamedTuple):
    """Wall-clock seconds, and processor seconds of this process."""

    wall: float
    cpu: float


def spent(work: Callable[[], object]) -> Spent:
    """Time of one run of ``work``."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Spent(time.perf_counter() - wall, time.process_time() - cpu)


def percentiles(
    values: Sequence[float], at: Sequence[int] = (50, 90, 99), *, digits: int = 1, unit: str = ""
) -> dict[str, float]:
    """Percentiles by name; empty without values.

    Example:
        >>> percentiles([1.0, 2.0, 4.0], (50, 99), digits=2, unit="_ms")
        {'p50_ms': 2.0, 'p99_ms': 3.96}
    """
    return {f"p{place}{unit}": round(float(np.percentile(values, place)), digits) for place in at if len(values)}


def resident_bytes(pid: int | None = None) -> int:
    """Resident memory of a process; None: this one."""
    pages = int(Path(f"/proc/{pid or 'self'}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def in_child(work: Callable[..., dict[str, object]], *arguments: Any) -> dict[str, object]:
    """Runs ``work`` in a new process, so that memory figures include only the work, and returns its result."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def make_facets(num: int, num_facets: int, dim: int, seed: int) -> NDArray[np.float32]:
    """Unit-norm facets in clusters, ``[num, num_facets, dim]``; the clusters are the same for every seed."""
    centers = np.random.default_rng(0).standard_normal((_NUM_CLUSTERS, dim), dtype=np.float32)
    rng = np.random.default_rng(seed)
    topics = rng.integers(0, _NUM_CLUSTERS // _TOPIC_CLUSTERS, (num, 1))
    facets = centers[topics * _TOPIC_CLUSTERS + rng.integers(0, _TOPIC_CLUSTERS, (num, num_facets))]
    facets += np.float32(_NOISE) * rng.standard_normal(facets.shape, dtype=np.float32)
    facets /= np.linalg.norm(facets, axis=2, keepdims=True)
    return facets


def print_report(report: Mapping[str, object]) -> None:
    """Prints one JSON object."""
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
