"""Prometheus metrics of calls, batches, searches and the data directory; each server has its own registry."""

import collections
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import prometheus_client as prometheus
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from facets.documents import CollectionEngine, CollectionInfo
from facets.errors import StorageError
from facets.storage.backup import last_backup
from facets_server.runtime.admission import Admission
from facets_server.runtime.call_context import STAGES, Stage

_TIME_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_STAGE_BUCKETS = (0.0001, 0.00025, 0.0005, *_TIME_BUCKETS)
_SIZE_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_RECALL_BUCKETS = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 1.0)
# Part of a data directory -> pattern of its files.
_PARTS = {
    "documents": "documents.sqlite3*",
    "indexes": "indexes/*",
    "streams": "ingest-streams.sqlite3*",
    "papers": "papers/*/*",
    "relations": "relations/*/*",
}
_MAX_NAMED_COLLECTIONS = 100  # a client that creates collections must not create unlimited metrics
_OTHERS = "(others)"


class BatchMetrics:
    """Metrics of the batchers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        sizes = partial(Histogram, labelnames=["model"], buckets=_SIZE_BUCKETS, registry=registry)
        self._texts = sizes("facets_batch_texts", "Texts in one forward pass")
        self._calls = sizes("facets_batch_calls", "Calls fused in one forward pass")
        self._seconds = Histogram(
            "facets_inference_seconds", "Time of one forward pass", ["model"], buckets=_TIME_BUCKETS, registry=registry
        )
        self._tokens = Counter("facets_tokens", "Tokens read by the model", ["model"], registry=registry)
        self.dropped = Counter(
            "facets_dropped_texts", "Texts dropped before the model ran", ["model", "reason"], registry=registry
        )
        self.queue = Gauge("facets_batch_queue_texts", "Texts waiting for the model now", ["model"], registry=registry)

    def ran(self, model: str, *, texts: int, calls: int, tokens: int, seconds: float) -> None:
        """Counts one forward pass."""
        self._texts.labels(model).observe(texts)
        self._calls.labels(model).observe(calls)
        self._seconds.labels(model).observe(seconds)
        self._tokens.labels(model).inc(tokens)


class CallMetrics:
    """Metrics of calls, and of the approximate searches that were checked."""

    def __init__(self, registry: CollectorRegistry, admission: Admission) -> None:
        self._calls = Counter("facets_requests", "Calls by method and code", ["method", "code"], registry=registry)
        histogram = partial(Histogram, registry=registry)
        calls, one_stage = "Time of a call in the server", "Time of one stage of a call"
        self._seconds = histogram("facets_request_seconds", calls, ["method"], buckets=_TIME_BUCKETS)
        stages = histogram("facets_stage_seconds", one_stage, ["stage"], buckets=_STAGE_BUCKETS)
        self._stages = {name: stages.labels(name) for name in STAGES}
        self.num_by_code: collections.Counter[str] = collections.Counter()  # finished calls by name of the status code
        for name, title, lock, attribute in (
            ("facets_running_requests", "Calls worked on now", admission.permits, "num_held"),
            ("facets_queued_requests", "Calls waiting for admission now", admission.permits, "num_waiting"),
            ("facets_open_streams", "Streams open now", admission.streams, "num_held"),
        ):
            Gauge(name, title, registry=registry).set_function(partial(getattr, lock, attribute))
        checks = "Searches to be checked exactly: compared, changed (a write came between), failed"
        self._checks = Counter("facets_recall_checks", checks, ["outcome"], registry=registry)
        recall = "Share of the exact hits that a checked approximate search found"
        self._recall = histogram("facets_search_recall", recall, buckets=_RECALL_BUCKETS)

    def stage(self, stage: Stage) -> None:
        """Counts one stage."""
        self._stages[stage.name].observe(stage.seconds)

    def ended(self, method: str, code: str, seconds: float) -> None:
        """Counts one finished call; runs on the event loop."""
        self.num_by_code[code] += 1
        self._calls.labels(method, code).inc()
        self._seconds.labels(method).observe(seconds)

    def checked(self, outcome: str, recall: float | None) -> None:
        """Counts a checked search; see ``facets.documents.recall``."""
        self._checks.labels(outcome).inc()
        if recall is not None:
            self._recall.observe(recall)


def measure_process(registry: CollectorRegistry, version: str) -> None:
    """Adds metrics of the process, and the running version."""
    for collector in (prometheus.ProcessCollector, prometheus.PlatformCollector, prometheus.GCCollector):
        collector(registry=registry)
    Gauge("facets_build_info", "Always 1; which version runs", ["version"], registry=registry).labels(version).set(1)


@dataclass(frozen=True, slots=True)
class Disk:
    """The files of a data directory."""

    num_bytes: dict[str, int]  # by part: documents, indexes, streams, papers, relations
    free_bytes: int  # left on the disk for this user; 0: unknown
    last_backup: datetime | None  # None: none is known


def disk_of(data_dir: Path) -> Disk:
    """Sizes of the files of a data directory."""
    try:
        free_bytes = shutil.disk_usage(data_dir).free
    except OSError:  # the directory is gone: the health check reports it
        free_bytes = 0
    sizes = {part: sum(map(_size, data_dir.glob(pattern))) for part, pattern in _PARTS.items()}
    return Disk(sizes, free_bytes, last_backup(data_dir))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # a log or snapshot was just removed
        return 0


@dataclass(frozen=True)
class DataCollector(Collector):
    """Metrics of the collections, the disk and the last backup."""

    engine: CollectionEngine
    data_dir: Path

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The current gauges; without those of collections when the store cannot be read."""
        try:
            infos = self.engine.list_collections()
            behind = self.engine.num_writes_behind()
        except StorageError:
            infos, behind = (), None
        yield from _collection_gauges(infos)
        disk = disk_of(self.data_dir)
        parts = GaugeMetricFamily("facets_data_bytes", "Bytes on disk", labels=["part"])
        for part, num_bytes in disk.num_bytes.items():
            parts.add_metric([part], num_bytes)
        yield parts
        made = disk.last_backup.timestamp() if disk.last_backup is not None else 0.0
        for name, title, value in (
            ("facets_index_behind_writes", "Writes of the store not in the indexes", behind),
            ("facets_index_pending_documents", "Documents not yet in the index", self.engine.num_pending()),
            ("facets_data_free_bytes", "Bytes left on the disk of the data", disk.free_bytes),
            ("facets_last_backup_timestamp_seconds", "When; 0: never", made),
        ):
            if value is not None:
                yield GaugeMetricFamily(name, title, value=value)


def _collection_gauges(infos: Iterable[CollectionInfo]) -> Iterator[GaugeMetricFamily]:
    ordered = sorted(infos, key=lambda info: -info.num_documents)
    named = [(info.name, [info]) for info in ordered[:_MAX_NAMED_COLLECTIONS]]
    groups = [*named, (_OTHERS, ordered[_MAX_NAMED_COLLECTIONS:])] if len(ordered) > _MAX_NAMED_COLLECTIONS else named
    for name, title, attribute in (
        ("facets_collection_documents", "Documents", "num_documents"),
        ("facets_collection_vectors", "Facets in the index in memory", "num_vectors"),
        ("facets_collection_damaged_documents", "Documents left out, damaged on disk", "num_damaged"),
        ("facets_collection_snapshot_bytes", "Bytes of the saved index", "snapshot_bytes"),
    ):
        family = GaugeMetricFamily(name, title, labels=["collection"])
        for group, members in groups:
            family.add_metric([group], sum(getattr(info, attribute) for info in members))
        yield family
