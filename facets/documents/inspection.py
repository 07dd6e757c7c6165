"""Comparing every document of a store with its checksums."""

import sqlite3
from collections.abc import Iterator
from contextlib import nullcontext

import numpy as np
from numpy.typing import NDArray

from facets.documents.records import CollectionRecord
from facets.documents.views import StoreView
from facets.errors import DamagedDocumentsError, DamagedError

__all__ = ["inspect_documents"]

_CHUNK = 256  # documents read at a time


def inspect_documents(connection: sqlite3.Connection) -> Iterator[str]:
    """What is damaged in a document store, a sentence each."""
    with StoreView(nullcontext(connection)) as view:
        for record in view.all_collections():
            rows = view.rows(record)
            if len(rows) != record.num_documents:
                yield f"collection {record.name} says {record.num_documents} documents, {len(rows)} are there"
            for start in range(0, len(rows), _CHUNK):
                yield from _inspect(view, record, rows[start : start + _CHUNK])


def _inspect(view: StoreView, record: CollectionRecord, rows: NDArray[np.int64]) -> Iterator[str]:
    for what, read in (
        ("text or payload", lambda: view.documents(rows)),
        ("facets", lambda: view.facets(record, rows)),
        ("terms", lambda: view.terms(rows)),
    ):
        try:
            read()
        except DamagedDocumentsError as error:
            for id in error.damaged.values():
                yield f"document {id!r} of collection {record.name}: {what} damaged: store it again, or delete it"
        except DamagedError as error:
            yield f"collection {record.name}: {error}"
