"""The document store: the truth about collections and documents.

Every write is one transaction that is on disk when the method returns, and takes the next revision of the data
directory. Shape letters: N documents, K facets, D dimensions.
"""

import sqlite3
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from facets.documents.encoding import EncodedBatch
from facets.documents.facet_codes import FacetCode
from facets.documents.filters import Filter
from facets.documents.quarantine import Quarantine
from facets.documents.records import CollectionRecord, CollectionState, StoreWrite
from facets.documents.statements import (
    AMONG,
    COLLECTION_COLUMNS,
    changed,
    collection_from,
    delete_collection,
    delete_rows,
    meta,
    next_revision,
    row_list,
    rows_by_filter,
    rows_by_id,
    rows_of,
)
from facets.documents.store_lines import BatchLines
from facets.documents.views import CollectionSource, StoreView
from facets.errors import ConflictError, NotFoundError
from facets.storage import Database

__all__ = ["DocumentStore"]


class DocumentStore:
    """Collections and documents in one :class:`Database`; thread-safe, writers take turns.

    Args:
        database: The file.
        code: How new collections keep directions of facets.
    """

    def __init__(self, database: Database, code: FacetCode = "int8") -> None:
        self._database = database
        self._code = code
        with database.read() as connection:
            self.store_id = str(meta(connection, "store_id"))

    def close(self) -> None:
        """Closes the database."""
        self._database.close()

    def check_place(self) -> None:
        """See :meth:`facets.storage.Database.check_place`."""
        self._database.check_place()

    def view(self) -> "StoreView":
        """A consistent view for reading; use in a ``with`` block."""
        return StoreView(self._database.read())

    def source(self, record: CollectionRecord, quarantine: Quarantine) -> CollectionSource:
        """The facets of a collection, for its index; what is damaged goes into quarantine."""
        return CollectionSource(self._database, record, quarantine)

    def create_collection(
        self, name: str, *, model: str, model_revision: str, space: str, num_facets: int, dim: int, config: str
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
                "INSERT INTO collections "
                "(name, model, model_revision, space, code, num_facets, dim, created_us, config, revision) "
                f"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING {COLLECTION_COLUMNS}",
                (
                    *(name, model, model_revision, space, self._code),
                    *(num_facets, dim, created_us, config, next_revision(connection)),
                ),
            )
            return collection_from(cursor.fetchone())

    def delete_collection(self, record: CollectionRecord) -> int:
        """Deletes a collection and its documents, and a copy that was being made; returns the revision."""
        with self._database.write() as connection:
            _delete_copy(connection, record)
            delete_collection(connection, record.number)
            return next_revision(connection)

    def upsert(self, record: CollectionRecord, batch: EncodedBatch) -> StoreWrite:
        """Stores an encoded batch, replacing documents of the same ids."""
        lines = BatchLines(batch)
        with self._database.write() as connection:
            removed = rows_by_id(connection, record, batch.ids)
            delete_rows(connection, removed)
            revision = changed(connection, record, len(batch.ids) - len(removed))
            added = lines.insert(connection, record, [revision] * len(batch.ids))
        return StoreWrite(revision=revision, added=added, removed=removed)

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

    def begin_copy(
        self, record: CollectionRecord, *, model: str, model_revision: str, space: str, num_facets: int, dim: int
    ) -> CollectionRecord:
        """Makes an empty copy of a collection for another model; there must be no other copy.

        Raises:
            NotFoundError: The collection is gone.
        """
        name = f"{record.name}#copy"  # no name that a caller may give
        with self._database.write() as connection:
            cursor = connection.execute(
                "INSERT INTO collections "
                "(name, model, model_revision, space, code, num_facets, dim, created_us, config, revision, state, "
                "replaces) "
                "SELECT ?, ?, ?, ?, ?, ?, ?, created_us, config, revision, ?, number FROM collections WHERE number = ? "
                f"RETURNING {COLLECTION_COLUMNS}",
                (
                    *(name, model, model_revision, space, self._code, num_facets, dim),
                    *(CollectionState.BUILDING, record.number),
                ),
            )
            values = cursor.fetchone()
        if values is None:
            raise NotFoundError(
                f"collection {record.name!r} was deleted meanwhile",
                resource_type="collection",
                resource_name=record.name,
            )
        return collection_from(values)

    def add_copies(
        self, copy: CollectionRecord, rows: NDArray[np.int64], batch: EncodedBatch
    ) -> tuple[StoreWrite, NDArray[np.bool_]]:
        """Adds documents to a copy, under the revisions that they have in the collection.

        Args:
            copy: The copy.
            rows: ``[N]`` rows that the documents have in the collection; those that are gone meanwhile are left out.
            batch: The documents, encoded by the model of the copy.

        Returns:
            What was done, and which of the documents were added, ``[N]``.
        """
        lines = BatchLines(batch)
        with self._database.write() as connection:
            cursor = connection.execute(f"SELECT row, revision FROM documents WHERE {AMONG}", (row_list(rows),))
            revisions = dict(cursor.fetchall())
            kept = np.isin(rows, np.fromiter(revisions, dtype=np.int64, count=len(revisions)))
            removed = rows_by_id(connection, copy, batch.ids)
            delete_rows(connection, removed)
            revision = changed(connection, copy, int(kept.sum()) - len(removed))
            added = lines.insert(connection, copy, [revisions.get(row) for row in rows.tolist()])
        return StoreWrite(revision=revision, added=added, removed=removed), kept

    def delete_rows(self, record: CollectionRecord, rows: NDArray[np.int64]) -> StoreWrite:
        """Deletes documents of a collection by row."""
        with self._database.write() as connection:
            delete_rows(connection, rows)
            revision = changed(connection, record, -len(rows))
        return StoreWrite(revision=revision, added=np.empty(0, dtype=np.int64), removed=rows)

    def replace_by_copy(self, record: CollectionRecord, copy: CollectionRecord) -> CollectionRecord:
        """Gives a copy the place and the name of its collection, which is retired; returns what the copy became."""
        with self._database.write() as connection:
            _retire(connection, record)
            connection.execute(
                "UPDATE collections SET name = ?, state = ?, replaces = NULL WHERE number = ?",
                (record.name, CollectionState.LIVE, copy.number),
            )
            changed(connection, copy, 0)
            cursor = connection.execute(
                f"SELECT {COLLECTION_COLUMNS} FROM collections WHERE number = ?", (copy.number,)
            )
            return collection_from(cursor.fetchone())

    def retire(self, record: CollectionRecord) -> None:
        """Gives a collection up: nobody sees it any more, and :meth:`delete_retired` deletes it by and by."""
        with self._database.write() as connection:
            _retire(connection, record)

    def delete_retired(self, limit: int) -> bool:
        """Deletes up to ``limit`` documents of a retired collection, at last itself; False when there is none."""
        with self._database.write() as connection:
            found = connection.execute("SELECT number FROM collections WHERE state = ?", (CollectionState.RETIRED,))
            retired = found.fetchone()
            if retired is None:
                return False
            cursor = connection.execute("SELECT row FROM documents WHERE collection = ? LIMIT ?", (retired[0], limit))
            rows = rows_of(cursor)
            delete_rows(connection, rows)
            if len(rows) < limit:
                connection.execute("DELETE FROM collections WHERE number = ?", retired)
        return True


def _retire(connection: sqlite3.Connection, record: CollectionRecord) -> None:
    connection.execute(
        "UPDATE collections SET name = ?, state = ?, replaces = NULL WHERE number = ?",
        (f"{record.name}#{record.number}", CollectionState.RETIRED, record.number),
    )


def _delete_copy(connection: sqlite3.Connection, record: CollectionRecord) -> None:
    copies = connection.execute("SELECT number FROM collections WHERE replaces = ?", (record.number,)).fetchall()
    for (number,) in copies:
        delete_collection(connection, number)
