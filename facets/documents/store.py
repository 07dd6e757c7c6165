"""The document store: the truth about collections and documents.

Every write is one transaction that is on disk when the method returns, and takes the next revision of the data
directory. Shape letters: N documents, K facets, D dimensions.
"""

import time
from collections.abc import Sequence

import numpy as np

from facets.documents.encoding import EncodedBatch, document_checksum, facets_checksum
from facets.documents.filters import Filter
from facets.documents.records import CollectionRecord, StoreWrite
from facets.documents.statements import (
    COLLECTION_COLUMNS,
    changed,
    collection_from,
    delete_rows,
    meta,
    next_revision,
    rows_by_filter,
    rows_by_id,
)
from facets.documents.views import CollectionSource, StoreView
from facets.errors import ConflictError
from facets.storage import Database

__all__ = ["DocumentStore"]


class DocumentStore:
    """Collections and documents in one :class:`Database`; thread-safe, writers take turns."""

    def __init__(self, database: Database) -> None:
        self._database = database
        with database.read() as connection:
            self.store_id = str(meta(connection, "store_id"))

    def close(self) -> None:
        """Closes the database."""
        self._database.close()

    def view(self) -> "StoreView":
        """A consistent view for reading; use in a ``with`` block."""
        return StoreView(self._database)

    def source(self, record: CollectionRecord) -> CollectionSource:
        """The facets of a collection, for its index."""
        return CollectionSource(self._database, record)

    def create_collection(
        self, name: str, *, model: str, model_revision: str, num_facets: int, dim: int, config: str
    ) -> CollectionRecord:
        """Creates a collection from checked values.

        Raises:
            ConflictError: The name is taken.
        """
        created_us = time.time_ns() // 1000
        with self._database.write() as connection:
            if connection.execute("SELECT 1 FROM collections WHERE name = ?", (name,)).fetchone():
                raise ConflictError(f"collection {name!r} exists already: expected a new name")
            cursor = connection.execute(
                "INSERT INTO collections (name, model, model_revision, num_facets, dim, created_us, config, revision) "
                f"VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING {COLLECTION_COLUMNS}",
                (name, model, model_revision, num_facets, dim, created_us, config, next_revision(connection)),
            )
            return collection_from(cursor.fetchone())

    def delete_collection(self, record: CollectionRecord) -> int:
        """Deletes a collection and its documents; returns the revision."""
        with self._database.write() as connection:
            connection.execute(
                "DELETE FROM facets WHERE row IN (SELECT row FROM documents WHERE collection = ?)",
                (record.number,),
            )
            connection.execute("DELETE FROM documents WHERE collection = ?", (record.number,))
            connection.execute("DELETE FROM collections WHERE number = ?", (record.number,))
            return next_revision(connection)

    def upsert(self, record: CollectionRecord, batch: EncodedBatch) -> StoreWrite:
        """Stores an encoded batch, replacing documents of the same ids."""
        payload_rows = list(zip(batch.ids, batch.payloads, batch.texts, strict=True))
        sums = [document_checksum(*values) for values in payload_rows]
        norms = [line.tobytes() for line in batch.norms.astype("<f4", copy=False)]
        units = [block.tobytes() for block in batch.units.astype("<f2", copy=False)]
        with self._database.write() as connection:
            removed = rows_by_id(connection, record, batch.ids)
            delete_rows(connection, removed)
            revision = changed(connection, record, len(batch.ids) - len(removed))
            last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'documents'").fetchone()
            first = (last[0] if last else 0) + 1
            rows = range(first, first + len(batch.ids))
            connection.executemany(
                "INSERT INTO documents (row, collection, id, revision, checksum, payload, text) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    (row, record.number, id, revision, checksum, payload, text)
                    for row, checksum, (id, payload, text) in zip(rows, sums, payload_rows, strict=True)
                ),
            )
            connection.executemany(
                "INSERT INTO facets (row, checksum, norms, units) VALUES (?, ?, ?, ?)",
                (
                    (row, facets_checksum(norm, unit), norm, unit)
                    for row, norm, unit in zip(rows, norms, units, strict=True)
                ),
            )
        return StoreWrite(revision=revision, added=np.arange(rows.start, rows.stop), removed=removed)

    def delete(
        self, record: CollectionRecord, *, ids: Sequence[str] | None = None, filter: Filter | None = None
    ) -> StoreWrite:
        """Deletes documents by id or by filter."""
        with self._database.write() as connection:
            if filter is None:
                removed = rows_by_id(connection, record, ids or ())
            else:
                removed = rows_by_filter(connection, record, filter)
            delete_rows(connection, removed)
            revision = changed(connection, record, -len(removed))
        return StoreWrite(revision=revision, added=np.empty(0, dtype=np.int64), removed=removed)
