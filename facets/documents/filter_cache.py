"""Which rows of a collection pass a filter, remembered between searches."""

import threading
from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from facets.documents.filters import Filter
from facets.documents.records import CollectionRecord
from facets.documents.views import StoreView

__all__ = ["FilterCache"]

_CAPACITY = 16


class FilterCache:
    """Remembers which rows pass the filters used last; thread-safe.

    What is remembered holds for one revision of the collection: writes to other collections change nothing.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[int, str], tuple[int, NDArray[np.int64]]] = OrderedDict()

    def rows(self, view: StoreView, record: CollectionRecord, filter: Filter) -> NDArray[np.int64]:
        """Rows that pass, ascending.

        Args:
            view: Where they are looked for when they are not remembered.
            record: The collection as this view sees it.
            filter: Checked.
        """
        key = (record.number, repr(filter))
        with self._lock:
            revision, rows = self._entries.get(key, (-1, np.empty(0, dtype=np.int64)))
            if revision == record.revision:
                self._entries.move_to_end(key)
                return rows
        rows = view.rows(record, filter)
        with self._lock:
            self._entries[key] = (record.revision, rows)
            self._entries.move_to_end(key)
            while len(self._entries) > _CAPACITY:
                self._entries.popitem(last=False)
        return rows
