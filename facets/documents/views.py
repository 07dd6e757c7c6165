"""Reading the document store: one consistent state at a time.

Shape letters: N documents, T facets of all documents, D dimensions, S places in an index, K facets of a place.
"""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

from facets.documents.facet_codes import StoredFacets, read_codes, row_of_part, starts_of
from facets.documents.filters import Filter
from facets.documents.lexical_terms import count_terms, read_terms
from facets.documents.quarantine import Quarantine
from facets.documents.records import CollectionRecord, CollectionState
from facets.documents.row_checksums import document_checksum, facets_checksum, placed
from facets.documents.statements import (
    AMONG,
    COLLECTION_COLUMNS,
    PARTS_AMONG,
    collection_from,
    condition,
    meta,
    row_list,
    rows_by_filter,
    rows_by_id,
    rows_of,
)
from facets.documents.types import StoredDocument
from facets.errors import DamagedDocumentsError, DamagedError, NotFoundError
from facets.index.lexical import TermCounts
from facets.index.pages import paged
from facets.storage import Database

__all__ = ["CollectionSource", "StoreView"]


class StoreView:
    """One consistent state of the store, in a ``with`` block; not for several threads."""

    def __init__(self, state: AbstractContextManager[sqlite3.Connection]) -> None:
        """Takes what gives a connection that sees one state, as :meth:`facets.storage.Database.read` does."""
        self._context = state

    def __enter__(self) -> "StoreView":
        """Begins the read."""
        self._connection = self._context.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """Ends the read."""
        self._context.__exit__(*error)  # type: ignore[arg-type]  # the three of the protocol, passed through

    def revision(self) -> int:
        """Revision of this state."""
        return int(meta(self._connection, "revision"))

    def collections(self) -> list[CollectionRecord]:
        """Every live collection, in the order of names."""
        return [record for record in self.all_collections() if record.state is CollectionState.LIVE]

    def all_collections(self) -> list[CollectionRecord]:
        """Every collection, those that are being built or deleted too, in the order of names."""
        cursor = self._connection.execute(f"SELECT {COLLECTION_COLUMNS} FROM collections ORDER BY name")
        return [collection_from(values) for values in cursor]

    def collection(self, name: str) -> CollectionRecord:
        """The live collection of that name.

        Raises:
            NotFoundError: There is none.
        """
        statement = f"SELECT {COLLECTION_COLUMNS} FROM collections WHERE name = ? AND state = ?"
        values = self._connection.execute(statement, (name, CollectionState.LIVE)).fetchone()
        if values is None:
            raise NotFoundError(f"collection {name!r} does not exist", resource_type="collection", resource_name=name)
        return collection_from(values)

    def collection_numbered(self, number: int) -> CollectionRecord | None:
        """The collection of that number, whatever its state; None when it is gone."""
        statement = f"SELECT {COLLECTION_COLUMNS} FROM collections WHERE number = ?"
        values = self._connection.execute(statement, (number,)).fetchone()
        return None if values is None else collection_from(values)

    def has_moved(self, record: CollectionRecord) -> bool:
        """True when another collection has the place of this one: the same one, encoded by another model."""
        statement = "SELECT number FROM collections WHERE name = ? AND created_us = ? AND state = ?"
        values = self._connection.execute(statement, (record.name, record.created_us, CollectionState.LIVE)).fetchone()
        return values is not None and values[0] != record.number

    def collection_unchanged(self, record: CollectionRecord) -> CollectionRecord:
        """The same collection as it is now.

        Raises:
            NotFoundError: It is gone, or no longer what it was.
        """
        current = self.collection_numbered(record.number)
        if current is None or current.state is not record.state:
            raise NotFoundError(
                f"collection {record.name!r} was deleted meanwhile",
                resource_type="collection",
                resource_name=record.name,
            )
        return current

    def copy_of(self, record: CollectionRecord) -> CollectionRecord | None:
        """The collection that is being built to take the place of this one."""
        statement = f"SELECT {COLLECTION_COLUMNS} FROM collections WHERE replaces = ?"
        values = self._connection.execute(statement, (record.number,)).fetchone()
        return None if values is None else collection_from(values)

    def uncopied(
        self, record: CollectionRecord, copy: CollectionRecord, *, after: int, limit: int
    ) -> tuple[NDArray[np.int64], int]:
        """Documents of a collection that its copy does not have as they are now.

        Args:
            record: The collection.
            copy: Its copy.
            after: Only rows beyond this one.
            limit: At most so many.

        Returns:
            The first of these rows, ascending; and the row up to which there is no other.
        """
        cursor = self._connection.execute(
            # "+": in the order of rows, not by the index of ids
            "SELECT row FROM documents AS original WHERE row > ? AND +collection = ? AND NOT EXISTS "
            "(SELECT 1 FROM documents AS copy WHERE copy.collection = ? AND copy.id = original.id "
            "AND copy.revision = original.revision) ORDER BY row LIMIT ?",
            (after, record.number, copy.number, limit),
        )
        rows = rows_of(cursor)
        if len(rows) == limit:
            return rows, int(rows[-1])
        last = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'documents'").fetchone()
        return rows, int(last[0]) if last else 0

    def outdated(self, record: CollectionRecord, copy: CollectionRecord) -> NDArray[np.int64]:
        """Rows of the copy whose document the collection no longer has as it was; compares every one."""
        cursor = self._connection.execute(
            "SELECT row FROM documents AS copy WHERE collection = ? AND NOT EXISTS "
            "(SELECT 1 FROM documents AS original WHERE original.collection = ? AND original.id = copy.id "
            "AND original.revision = copy.revision)",
            (copy.number, record.number),
        )
        return np.sort(rows_of(cursor))

    def count(self, record: CollectionRecord, filter: Filter) -> int:
        """Documents of the collection that match; compares every one."""
        where, parameters = condition(record, filter)
        cursor = self._connection.execute(f"SELECT count(*) FROM documents WHERE {where}", parameters)
        return int(cursor.fetchone()[0])

    def rows(self, record: CollectionRecord, filter: Filter | None = None) -> NDArray[np.int64]:
        """Rows of the documents that match, ascending int64."""
        return rows_by_filter(self._connection, record, filter)

    def rows_by_id(self, record: CollectionRecord, ids: Sequence[str]) -> NDArray[np.int64]:
        """Rows of the documents of these ids, ascending int64; ids without a document are skipped."""
        return rows_by_id(self._connection, record, ids)

    def page(self, record: CollectionRecord, *, after: str, limit: int, filter: Filter | None) -> NDArray[np.int64]:
        """Rows of the next ``limit`` documents whose id is greater than ``after``, in the order of ids."""
        where, parameters = condition(record, filter)
        cursor = self._connection.execute(
            f"SELECT row FROM documents WHERE {where} AND id > ? ORDER BY id LIMIT ?",
            [*parameters, after, limit],
        )
        return rows_of(cursor)

    def ids(self, rows: NDArray[np.int64]) -> dict[int, str]:
        """Id of every one of the rows that exists."""
        statement = f"SELECT row, CAST(id AS BLOB) FROM documents WHERE {AMONG}"
        return {row: _text(id) for row, id in self._connection.execute(statement, (row_list(rows),))}

    def existing(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the rows that exist, ascending int64."""
        cursor = self._connection.execute(f"SELECT row FROM documents WHERE {AMONG}", (row_list(rows),))
        return np.sort(rows_of(cursor))

    def documents(self, rows: NDArray[np.int64]) -> dict[int, StoredDocument]:
        """The documents at these rows, without facets; rows without a document are skipped.

        Raises:
            DamagedDocumentsError: Documents do not agree with their checksums.
        """
        cursor = self._connection.execute(
            "SELECT row, collection, revision, checksum, num_tokens, num_read, "
            f"CAST(id AS BLOB), CAST(payload AS BLOB), CAST(text AS BLOB) FROM documents WHERE {AMONG}",
            (row_list(rows),),
        )
        found, damaged = {}, {}
        for row, collection, revision, checksum, num_tokens, num_read, *texts in cursor:
            id, payload, text = map(_text, texts)
            said = document_checksum(id, payload, text, (num_tokens, num_read))
            if checksum != placed(said, row, collection, revision):
                damaged[row] = id
                continue
            found[row] = StoredDocument(
                id=id,
                text=text,
                payload=json.loads(payload),
                revision=revision,
                num_tokens=num_tokens,
                num_read=num_read,
            )
        if damaged:
            raise DamagedDocumentsError("the text or the payload", damaged)
        return found

    def terms(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[TermCounts]]:
        """Those of the rows that exist, ascending, and their terms; counted anew where they are damaged.

        Raises:
            DamagedDocumentsError: Neither the terms of a document nor its text is what was written.
        """
        cursor = self._connection.execute(
            f"SELECT row, CAST(terms AS BLOB) FROM documents LEFT JOIN terms USING (row) WHERE {AMONG} ORDER BY row",
            (row_list(rows),),
        )
        existing, found = [], []
        for row, blob in cursor.fetchall():
            existing.append(row)
            try:
                found.append(read_terms(blob or b""))
            except DamagedError:  # made of the text, so they can be made again
                found.append(count_terms(self.documents(np.array([row]))[row].text))
        return np.array(existing, dtype=np.int64), found

    def facets(self, record: CollectionRecord, rows: NDArray[np.int64]) -> StoredFacets:
        """The facets at these rows, in their order.

        Raises:
            DamagedDocumentsError: Rows have no facets, or facets that do not agree with their checksum.
            DamagedError: The collection says another shape.
        """
        cursor = self._connection.execute(
            "SELECT row, checksum, CAST(norms AS BLOB), CAST(units AS BLOB), CAST(spans AS BLOB) FROM facets "
            f"WHERE {AMONG} ORDER BY row",
            (row_list(rows),),
        )
        lines = cursor.fetchall()
        order = np.argsort(rows, kind="stable")
        expected = rows[order].tolist()
        codes = self._whole_codes([line[0] for line in lines], [line[3] or b"" for line in lines])
        damaged = sorted(set(expected) - {line[0] for line in lines})
        for (row, checksum, norms, _, spans), blob in zip(lines, codes, strict=True):
            is_long_enough = len(norms or b"") >= 4 * record.num_facets
            if not is_long_enough or checksum != placed(facets_checksum(norms, blob, spans), row):
                damaged.append(row)
        if damaged:
            ids = self.ids(np.array(damaged))
            raise DamagedDocumentsError("the facets", {row: ids.get(row, f"at row {row}") for row in damaged})
        starts = starts_of(len(line[2]) // 4 for line in lines)
        norms_T = np.frombuffer(b"".join(line[2] for line in lines), dtype="<f4").astype(np.float32)
        codes_TD = read_codes(codes, norms_T, starts, dim=record.dim, code=record.code)
        if codes_TD is None:
            raise DamagedError("facets on disk have another size than their collection says: store them again")
        spans = [None if line[4] is None else np.frombuffer(line[4], dtype="<u4").reshape(-1, 2) for line in lines]
        found = StoredFacets(codes_TD, norms_T, starts, tuple(spans))
        return found if (np.diff(order) == 1).all() else found[np.argsort(order)]

    def _whole_codes(self, rows: Sequence[int], first: Sequence[bytes]) -> list[bytes]:
        """Codes at ascending rows, put together of what stands in the table of facets and their further parts."""
        cursor = self._connection.execute(
            f"SELECT part, CAST(units AS BLOB) FROM {PARTS_AMONG}", (json.dumps(list(rows)),)
        )
        parts = {row: [blob] for row, blob in zip(rows, first, strict=True)}
        for part, units in sorted(cursor.fetchall()):
            parts[row_of_part(part)].append(units)
        return [b"".join(parts[row]) for row in rows]


class CollectionSource:
    """The facets of one collection for its index; see :class:`facets.index.protocols.FacetSource`.

    Each read has a view of its own: one long view would keep the log of the store from being emptied.
    """

    def __init__(self, database: Database, record: CollectionRecord, quarantine: Quarantine) -> None:
        """Names the collection.

        Args:
            database: The store.
            record: The collection.
            quarantine: Takes the documents that are damaged.
        """
        self._database = database
        self._record = record
        self._quarantine = quarantine
        self.num_facets = record.num_facets
        self.dim = record.dim

    def rows(self) -> NDArray[np.int64]:
        """Rows of all documents, ascending."""
        with StoreView(self._database.read()) as view:
            return view.rows(self._record)

    def read(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
        """Those of the rows that still exist whole, ascending, one for each place of theirs, and their facets.

        The facets are ``[S, K, D]``.
        """
        try:
            with StoreView(self._database.read()) as view:
                existing = view.existing(rows)
                found = view.facets(self._record, existing)
                return paged(existing, found.units, found.starts, num_facets=self.num_facets)
        except DamagedDocumentsError as error:
            self._quarantine.add(self._record, error.damaged)
            return self.read(np.setdiff1d(rows, list(error.damaged)))


def _text(stored: bytes | None) -> str:
    """Text as stored; it was read as bytes because damaged text may be none, which its checksum shall tell."""
    return (stored or b"").decode("utf-8", "replace")
