"""The document store: the truth about collections and documents.

Every write is one transaction that is on disk when the method returns, and takes the next revision of the data
directory. Shape letters: N documents, K facets, D dimensions.
"""

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.documents.encoding import EncodedBatch, document_checksum, facets_checksum
from facets.documents.filters import Filter, to_sql
from facets.documents.types import JsonValue, StoredDocument
from facets.errors import ConflictError, DamagedError, NotFoundError
from facets.storage import Database

__all__ = ["CollectionRecord", "DocumentStore", "StoreView", "StoreWrite"]

_CHUNK = 1024  # documents whose facets are read at a time: 5 MB at 10 x 256
_AMONG = "row IN (SELECT value FROM json_each(?))"


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectionRecord:
    """A collection as stored; ``number`` is never reused, so it also names the collection's snapshot."""

    number: int
    name: str
    model: str
    model_revision: str
    num_facets: int
    dim: int
    created_us: int
    config: dict[str, JsonValue]


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreWrite:
    """What a write did: the index follows from it.

    Attributes:
        revision: Of the data directory after the write.
        added: Rows added, ``[N]`` int64 ascending.
        removed: Rows removed, int64.
    """

    revision: int
    added: NDArray[np.int64]
    removed: NDArray[np.int64]


class DocumentStore:
    """Collections and documents in one :class:`Database`; thread-safe, writers take turns."""

    def __init__(self, database: Database) -> None:
        self._database = database
        with database.read() as connection:
            self.store_id = str(_meta(connection, "store_id"))

    def close(self) -> None:
        """Closes the database."""
        self._database.close()

    def view(self) -> "StoreView":
        """A consistent view for reading; use in a ``with`` block."""
        return StoreView(self._database)

    def create_collection(
        self, name: str, *, model: str, model_revision: str, num_facets: int, dim: int, config: str
    ) -> tuple[CollectionRecord, int]:
        """Creates a collection from checked values; returns it and the revision.

        Raises:
            ConflictError: The name is taken.
        """
        created_us = time.time_ns() // 1000
        values = (name, model, model_revision, num_facets, dim, created_us, config)
        with self._database.write() as connection:
            if connection.execute("SELECT 1 FROM collections WHERE name = ?", (name,)).fetchone():
                raise ConflictError(f"collection {name!r} exists already: expected a new name")
            cursor = connection.execute(
                "INSERT INTO collections (name, model, model_revision, num_facets, dim, created_us, config) "
                "VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING *",
                values,
            )
            record = _collection(cursor.fetchone())
            return record, _next_revision(connection)

    def delete_collection(self, record: CollectionRecord) -> int:
        """Deletes a collection and its documents; returns the revision."""
        with self._database.write() as connection:
            connection.execute(
                "DELETE FROM facets WHERE row IN (SELECT row FROM documents WHERE collection = ?)",
                (record.number,),
            )
            connection.execute("DELETE FROM documents WHERE collection = ?", (record.number,))
            connection.execute("DELETE FROM collections WHERE number = ?", (record.number,))
            return _next_revision(connection)

    def upsert(self, record: CollectionRecord, batch: EncodedBatch) -> StoreWrite:
        """Stores an encoded batch, replacing documents of the same ids."""
        payload_rows = list(zip(batch.ids, batch.payloads, batch.texts, strict=True))
        sums = [document_checksum(*values) for values in payload_rows]
        norms = [line.tobytes() for line in batch.norms.astype("<f4", copy=False)]
        units = [block.tobytes() for block in batch.units.astype("<f2", copy=False)]
        with self._database.write() as connection:
            removed = _rows_by_id(connection, record, batch.ids)
            _delete_rows(connection, removed)
            revision = _next_revision(connection)
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
                removed = _rows_by_id(connection, record, ids or ())
            else:
                removed = _rows_by_filter(connection, record, filter)
            _delete_rows(connection, removed)
            revision = _next_revision(connection)
        return StoreWrite(revision=revision, added=np.empty(0, dtype=np.int64), removed=removed)


class StoreView:
    """One consistent state of the store, in a ``with`` block; not for several threads."""

    def __init__(self, database: Database) -> None:
        self._context = database.read()

    def __enter__(self) -> "StoreView":
        """Begins the read."""
        self._connection = self._context.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """Ends the read."""
        self._context.__exit__(*error)  # type: ignore[arg-type]  # the three of the protocol, passed through

    def revision(self) -> int:
        """Revision of this state."""
        return int(_meta(self._connection, "revision"))

    def collections(self) -> list[CollectionRecord]:
        """Every collection, in the order of names."""
        cursor = self._connection.execute("SELECT * FROM collections ORDER BY name")
        return [_collection(values) for values in cursor]

    def collection(self, name: str) -> CollectionRecord:
        """The collection of that name.

        Raises:
            NotFoundError: There is none.
        """
        values = self._connection.execute("SELECT * FROM collections WHERE name = ?", (name,)).fetchone()
        if values is None:
            raise NotFoundError(f"collection {name!r} does not exist", resource_type="collection", resource_name=name)
        return _collection(values)

    def count(self, record: CollectionRecord, filter: Filter | None = None) -> int:
        """Documents of the collection that match."""
        condition, parameters = _condition(record, filter)
        cursor = self._connection.execute(f"SELECT count(*) FROM documents WHERE {condition}", parameters)
        return int(cursor.fetchone()[0])

    def rows(self, record: CollectionRecord, filter: Filter | None = None) -> NDArray[np.int64]:
        """Rows of the documents that match, ascending int64."""
        return _rows_by_filter(self._connection, record, filter)

    def rows_by_id(self, record: CollectionRecord, ids: Sequence[str]) -> NDArray[np.int64]:
        """Rows of the documents of these ids, ascending int64; ids without a document are skipped."""
        return _rows_by_id(self._connection, record, ids)

    def page(self, record: CollectionRecord, *, after: str, limit: int, filter: Filter | None) -> NDArray[np.int64]:
        """Rows of the next ``limit`` documents whose id is greater than ``after``, in the order of ids."""
        condition, parameters = _condition(record, filter)
        cursor = self._connection.execute(
            f"SELECT row FROM documents WHERE {condition} AND id > ? ORDER BY id LIMIT ?",
            [*parameters, after, limit],
        )
        return _rows_of(cursor)

    def ids(self, rows: NDArray[np.int64]) -> dict[int, str]:
        """Id of every one of the rows that exists."""
        cursor = self._connection.execute(f"SELECT row, id FROM documents WHERE {_AMONG}", (_json(rows),))
        return dict(cursor.fetchall())

    def existing(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the rows that exist, ascending int64."""
        cursor = self._connection.execute(f"SELECT row FROM documents WHERE {_AMONG}", (_json(rows),))
        return np.sort(_rows_of(cursor))

    def documents(self, rows: NDArray[np.int64]) -> dict[int, StoredDocument]:
        """The documents at these rows, without facets; rows without a document are skipped.

        Raises:
            DamagedError: A document does not agree with its checksum.
        """
        cursor = self._connection.execute(
            f"SELECT row, id, revision, checksum, payload, text FROM documents WHERE {_AMONG}", (_json(rows),)
        )
        found = {}
        for row, id, revision, checksum, payload, text in cursor:
            if document_checksum(id, payload, text) != checksum:
                raise DamagedError(f"document {id!r} is damaged on disk: its checksum differs; store it again")
            found[row] = StoredDocument(id=id, text=text, payload=json.loads(payload), revision=revision)
        return found

    def units(self, record: CollectionRecord, rows: NDArray[np.int64]) -> NDArray[np.float16]:
        """Unit-norm facets at these rows, ``[N, K, D]`` float16 in the order of ``rows``.

        Raises:
            DamagedError: A row has no facets or they do not agree with their checksum.
        """
        return self._facets(record, rows)[0]

    def facet_embeddings(self, record: CollectionRecord, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Facets with magnitudes at these rows, ``[N, K, D]`` float32 in the order of ``rows``.

        Raises:
            DamagedError: As :meth:`units`.
        """
        units, norms = self._facets(record, rows)
        return units.astype(np.float32) * norms[:, :, None]

    def chunks(
        self, record: CollectionRecord, rows: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float16]]]:
        """Rows and their unit-norm facets, some at a time."""
        for start in range(0, len(rows), _CHUNK):
            part = rows[start : start + _CHUNK]
            yield part, self.units(record, part)

    def _facets(
        self, record: CollectionRecord, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.float16], NDArray[np.float32]]:
        cursor = self._connection.execute(
            f"SELECT row, checksum, norms, units FROM facets WHERE {_AMONG} ORDER BY row", (_json(rows),)
        )
        lines = cursor.fetchall()
        order = np.argsort(rows, kind="stable")
        expected = rows[order].tolist()
        if [line[0] for line in lines] != expected:
            raise DamagedError(f"{len(expected) - len(lines)} documents have lost their facets: store them again")
        shape = (len(rows), record.num_facets, record.dim)
        unit_bytes = 2 * record.num_facets * record.dim
        for row, checksum, norms, units in lines:
            if len(units) != unit_bytes or facets_checksum(norms, units) != checksum:
                id = self.ids(np.array([row])).get(row, f"at row {row}")
                raise DamagedError(f"facets of document {id!r} are damaged on disk: store it again")
        units_NKD = np.empty(shape, dtype=np.float16)
        norms_NK = np.empty(shape[:2], dtype=np.float32)
        units_NKD[order] = np.frombuffer(b"".join(line[3] for line in lines), dtype="<f2").reshape(shape)
        norms_NK[order] = np.frombuffer(b"".join(line[2] for line in lines), dtype="<f4").reshape(shape[:2])
        return units_NKD, norms_NK


def _meta(connection: sqlite3.Connection, key: str) -> str | int:
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    if found is None:
        raise DamagedError(f"the document store is damaged: its {key} is missing; restore it from a backup")
    value: str | int = found[0]
    return value


def _next_revision(connection: sqlite3.Connection) -> int:
    connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'revision'")
    return int(_meta(connection, "revision"))


def _collection(values: Sequence[str | int]) -> CollectionRecord:
    number, name, model, model_revision, num_facets, dim, created_us, config = values
    return CollectionRecord(
        number=int(number),
        name=str(name),
        model=str(model),
        model_revision=str(model_revision),
        num_facets=int(num_facets),
        dim=int(dim),
        created_us=int(created_us),
        config=json.loads(str(config)),
    )


def _json(rows: NDArray[np.int64]) -> str:
    return json.dumps(rows.tolist())


def _rows_of(cursor: sqlite3.Cursor) -> NDArray[np.int64]:
    return np.array(cursor.fetchall(), dtype=np.int64).reshape(-1)


def _condition(record: CollectionRecord, filter: Filter | None) -> tuple[str, list[str | int]]:
    if filter is None:
        return "collection = ?", [record.number]
    expression, parameters = to_sql(filter, "payload")
    return f"collection = ? AND {expression}", [record.number, *parameters]


def _rows_by_filter(
    connection: sqlite3.Connection, record: CollectionRecord, filter: Filter | None
) -> NDArray[np.int64]:
    condition, parameters = _condition(record, filter)
    rows = _rows_of(connection.execute(f"SELECT row FROM documents WHERE {condition}", parameters))
    return np.sort(rows)


def _rows_by_id(connection: sqlite3.Connection, record: CollectionRecord, ids: Sequence[str]) -> NDArray[np.int64]:
    cursor = connection.execute(
        "SELECT row FROM documents WHERE collection = ? AND id IN (SELECT value FROM json_each(?))",
        (record.number, json.dumps(list(ids), ensure_ascii=False)),
    )
    return np.sort(_rows_of(cursor))


def _delete_rows(connection: sqlite3.Connection, rows: NDArray[np.int64]) -> None:
    if len(rows):
        connection.execute(f"DELETE FROM facets WHERE {_AMONG}", (_json(rows),))
        connection.execute(f"DELETE FROM documents WHERE {_AMONG}", (_json(rows),))
