"""What the data directory holds: collections, bytes of each kind of file, the last backup; asked for when needed."""

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from facets.documents import CollectionEngine, CollectionInfo
from facets.errors import StorageError
from facets.storage import last_backup

__all__ = ["Disk", "disk_of", "watch_data"]

# Part of a data directory -> patterns of its files; what belongs to none is "other".
_PARTS = {
    "documents": ("documents.sqlite3*",),
    "indexes": ("indexes/*",),
    "streams": ("ingest-streams.sqlite3*",),
    "papers": ("papers/*/*",),
    "relations": ("relations/*/*",),
}
_MOST_COLLECTIONS = 100  # that metrics name; whoever may make collections must not make metrics without end
_OTHERS = "(others)"


@dataclass(frozen=True, slots=True)
class Disk:
    """The files of a data directory.

    Attributes:
        num_bytes: Part (documents, indexes, streams, papers, relations) -> bytes.
        free_bytes: Left on the disk for this user; 0: not known.
        last_backup: When the last backup of the directory was taken; None: never, as far as it knows.
    """

    num_bytes: dict[str, int]
    free_bytes: int
    last_backup: datetime | None


def disk_of(data_dir: Path) -> Disk:
    """Adds up the files of a data directory; some microseconds a file."""
    try:
        free_bytes = shutil.disk_usage(data_dir).free
    except OSError:  # the directory is gone: health says so
        free_bytes = 0
    sizes = {part: sum(_sizes(data_dir, patterns)) for part, patterns in _PARTS.items()}
    return Disk(sizes, free_bytes, last_backup(data_dir))


def _sizes(data_dir: Path, patterns: Iterable[str]) -> Iterator[int]:
    for pattern in patterns:
        for path in data_dir.glob(pattern):
            try:
                yield path.stat().st_size
            except OSError:  # a log or a snapshot that was just taken away
                continue


def watch_data(registry: CollectorRegistry, engine: CollectionEngine, data_dir: Path) -> None:
    """Adds collections, bytes on disk and the last backup, read whenever metrics are collected."""
    registry.register(_DataCollector(engine, data_dir))


class _DataCollector(Collector):
    def __init__(self, engine: CollectionEngine, data_dir: Path) -> None:
        self._engine = engine
        self._data_dir = data_dir

    def describe(self) -> list[GaugeMetricFamily]:
        """Nothing: what there is is only known when it is collected."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The gauges, as they are now; without those of collections when the store cannot be read."""
        try:
            infos = self._engine.list_collections()
        except StorageError:
            infos = ()
        yield from _collection_gauges(infos)
        disk = disk_of(self._data_dir)
        parts = GaugeMetricFamily("facets_data_bytes", "Bytes on disk", labels=["part"])
        for part, num_bytes in disk.num_bytes.items():
            parts.add_metric([part], num_bytes)
        yield parts
        yield GaugeMetricFamily("facets_data_free_bytes", "Bytes left on the disk of the data", value=disk.free_bytes)
        made = disk.last_backup.timestamp() if disk.last_backup is not None else 0.0
        yield GaugeMetricFamily("facets_last_backup_timestamp_seconds", "When; 0: never", value=made)


def _collection_gauges(infos: Iterable[CollectionInfo]) -> Iterator[GaugeMetricFamily]:
    ordered = sorted(infos, key=lambda info: -info.num_documents)
    named = [(info.name, [info]) for info in ordered[:_MOST_COLLECTIONS]]
    groups = [*named, (_OTHERS, ordered[_MOST_COLLECTIONS:])] if len(ordered) > _MOST_COLLECTIONS else named
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
