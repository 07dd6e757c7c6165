"""Documents that are damaged on disk: named in the log, left out of searches, while the others are served.

One damaged document must not keep a collection of a million from being searched. It stays in the store, where reading
it is an error that names it, until it is stored again or deleted.
"""

import logging
import threading
from collections.abc import Iterable, Mapping

from facets.documents.records import CollectionRecord

__all__ = ["Quarantine"]

logger = logging.getLogger(__name__)


class Quarantine:
    """The damaged documents of a data directory that are known by now; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ids: dict[int, dict[int, str]] = {}  # of each collection: row -> id

    def add(self, record: CollectionRecord, damaged: Mapping[int, str]) -> None:
        """Takes documents in, each logged once.

        Args:
            record: The collection.
            damaged: Row -> id.
        """
        with self._lock:
            known = self._ids.setdefault(record.number, {})
            new = {row: id for row, id in damaged.items() if row not in known}
            known.update(new)
        for id in new.values():
            logger.error(
                "document %r of collection %s is damaged on disk and left out of searches: store it again or delete it",
                id, record.name,
            )  # fmt: skip

    def forget(self, record: CollectionRecord, rows: Iterable[int] | None = None) -> None:
        """Lets documents go that were stored again or deleted; None: the whole collection."""
        with self._lock:
            known = self._ids.get(record.number)
            if known and rows is not None:
                for row in rows:
                    known.pop(row, None)
            elif known is not None:
                del self._ids[record.number]

    def count(self, record: CollectionRecord) -> int:
        """How many documents of a collection are in it."""
        return len(self._ids.get(record.number, ()))
