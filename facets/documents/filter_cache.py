"""Which rows of a collection pass a filter, remembered between searches."""

import threading

import numpy as np
from numpy.typing import NDArray

from facets.documents.filters import Filter
from facets.documents.store import CollectionRecord, StoreView

__all__ = ["AllowedRows"]


class AllowedRows:
    """Remembers which rows pass the latest filters; thread-safe."""

    _CAPACITY = 16

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[tuple[int, str], tuple[int, NDArray[np.int64]]] = {}

    def get(self, view: StoreView, revision: int, record: CollectionRecord, filter: Filter) -> NDArray[np.int64]:
        """Rows that pass, ascending, at the revision of the view."""
        key = (record.number, repr(filter))
        with self._lock:
            kept_revision, rows = self._kept.get(key, (-1, np.empty(0, dtype=np.int64)))
        if kept_revision != revision:
            rows = view.rows(record, filter)
            with self._lock:
                self._kept.pop(key, None)
                while len(self._kept) >= self._CAPACITY:
                    self._kept.pop(next(iter(self._kept)))
                self._kept[key] = (revision, rows)
        return rows
