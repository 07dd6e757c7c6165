"""The document store: the truth about collections and documents.

Every write is one transaction that is on disk when the method returns, and takes the next revision of the data
directory. Shape letters: N documents, K facets, D dimensions.
"""

import json
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext

import numpy as np
from numpy.typing import NDArray

from facets.documents.codes import (
    FacetCode,
    document_checksum,
    facets_checksum,
    numbered_parts,
    part_checksum,
    placed,
    write_codes,
    write_terms,
)
from facets.documents.dialects import KEPT_WRITES, SQLITE, SQLITE_TABLES, Dialect
from facets.documents.encoding import EncodedBatch
from facets.documents.filters import Filter
from facets.documents.records import (
    COLLECTION_COLUMNS,
    CollectionModel,
    CollectionRecord,
    CollectionState,
    DocumentRows,
    StoreWrite,
    collection_from,
    deleted_meanwhile,
)
from facets.documents.types import DocumentPart
from facets.documents.views import (
    AMONG,
    StoreView,
    changed,
    delete_collection,
    delete_rows,
    document_rows,
    meta,
    next_revision,
    row_list,
    rows_by_filter,
    rows_by_id,
)
from facets.errors import ConflictError, DamagedDocumentsError, DamagedError
from facets.storage import Schema, SqlConnection, SqlDatabase, add_checksums

_CHUNK = 256  # documents read at a time


def _version_1(connection: sqlite3.Connection) -> None:
    for statement in SQLITE_TABLES.split(";\n"):
        connection.execute(statement)
    connection.execute("INSERT INTO meta VALUES ('store_id', ?)", (uuid.uuid4().hex,))
    add_checksums(connection, "meta", "collections")  # documents and facets have checksums of their own


def _problems_of(connection: sqlite3.Connection) -> Iterator[str]:
    with StoreView(nullcontext(connection)) as view:
        yield from problems_in(view)


def problems_in(view: StoreView) -> Iterator[str]:
    """What is damaged in a document store, a sentence each."""
    for record in view.all_collections():
        found = view.document_rows(record)
        for what, said, there in (
            ("documents", record.num_documents, len(found.firsts)),
            ("parts", record.num_parts, len(view.existing(found.parts))),
        ):
            if said != there:
                yield f"collection {record.name} says {said} {what}, {there} are there"
        for start in range(0, len(found.parts), _CHUNK):
            yield from _inspect(view, record, found.parts[start : start + _CHUNK])


def _inspect(view: StoreView, record: CollectionRecord, rows: NDArray[np.int64]) -> Iterator[str]:
    for what, read in (
        ("text or payload", lambda: view.passages(rows)),
        ("facets", lambda: view.facets(record, rows)),
        ("terms", lambda: view.terms(record, rows)),
    ):
        try:
            read()
        except DamagedDocumentsError as error:
            for id in dict.fromkeys(error.damaged.values()):
                yield f"document {id!r} of collection {record.name}: {what} damaged: store it again, or delete it"
        except DamagedError as error:
            yield f"collection {record.name}: {error}"


SCHEMA = Schema(
    title="document store",
    application_id=0x46414345,  # "FACE"
    migrations=(_version_1,),
    checked=("meta", "collections"),
    counter="SELECT value FROM meta WHERE key = 'revision'",
    inspect=_problems_of,
)


class _BatchLines:
    """An encoded batch as lines, made before the transaction begins."""

    def __init__(self, batch: EncodedBatch, dialect: Dialect) -> None:
        self._dialect = dialect
        counts = batch.num_parts.tolist()
        texts = [text if count == 1 else "" for text, count in zip(batch.texts, counts, strict=True)]
        documents = list(zip(batch.ids, batch.payloads, texts, batch.readings, counts, strict=True))
        norms = [line.tobytes() for line in np.split(batch.norms.astype("<f4", copy=False), batch.starts[1:-1])]
        codes = write_codes(batch.codes, batch.norms, batch.starts)
        spans = [None if one is None else one.astype("<u4").tobytes() for one in batch.spans]
        self._checksums = [
            document_checksum(text, id=id, payload=payload, reading=reading, num_parts=count)
            for id, payload, text, reading, count in documents
        ]
        self._documents = [
            (id, payload, text, *reading, count, *dialect.derive(payload))
            for id, payload, text, reading, count in documents
        ]
        self._num_parts, self._first_parts = batch.num_parts, batch.first_parts[:-1]
        self._parts = [_part_lines(text, parts) for text, parts in zip(batch.texts, batch.parts, strict=True)]
        self._terms = [write_terms(counted) for counted in batch.terms]
        lines = zip(norms, codes, spans, strict=True)
        self._facets = [_facet_lines(*line, split=dialect.split) for line in lines]

    def insert(
        self, connection: SqlConnection, record: CollectionRecord, revisions: Sequence[int | None]
    ) -> NDArray[np.int64]:
        """Inserts document i under ``revisions[i]``, or leaves it out where that is None; returns the new rows."""
        last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'documents'").fetchone()
        first = (last[0] if last else 0) + 1
        chosen = np.array([place for place, revision in enumerate(revisions) if revision is not None], dtype=np.int64)
        counts = self._num_parts[chosen]
        rows = DocumentRows(first + np.cumsum(counts) - counts, counts)
        parts = DocumentRows(self._first_parts[chosen], counts)
        places = list(zip(rows.parts.tolist(), parts.parts.tolist(), strict=True))
        located = [
            (place, (row, record.number, revisions[place]))
            for row, place in zip(rows.firsts.tolist(), chosen.tolist(), strict=True)
        ]
        further = self._dialect.derived
        connection.executemany(
            "INSERT INTO documents "
            f"(checksum, row, collection, revision, id, payload, text, num_tokens, num_read, num_parts{further}) "
            f"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?{', ?' if further else ''})",
            ((placed(self._checksums[place], *where), *where, *self._documents[place]) for place, where in located),
        )
        connection.executemany(
            "INSERT INTO document_parts (checksum, row, document, start, page, headings, text) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                (placed(checksum, first + further, first), first + further, first, *line)
                for place, (first, *_) in located
                for further, (checksum, *line) in enumerate(self._parts[place])
            ),
        )
        if places and (
            self._dialect.is_shared or len(places) > len(located)
        ):  # SQLite itself knows the rows of documents alone
            connection.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'documents'", (places[-1][0],))
        connection.executemany(
            "INSERT INTO facets (checksum, row, norms, units, spans) VALUES (?, ?, ?, ?, ?)",
            ((placed(self._facets[place][0][0], row), row, *self._facets[place][0][1:]) for row, place in places),
        )
        connection.executemany(
            "INSERT INTO facet_parts (part, units) VALUES (?, ?)",
            (line for row, place in places for line in numbered_parts(row, self._facets[place][1])),
        )
        connection.executemany(
            "INSERT INTO terms (row, terms) VALUES (?, ?)", ((row, self._terms[place]) for row, place in places)
        )
        return rows.parts


def _part_lines(text: str, parts: Sequence[DocumentPart]) -> list[tuple[int, int, int, str, str]]:
    """The parts of a document as lines: checksum, start, page, headings, text; none where it is one part."""
    lines = []
    for part in parts:
        own, headings = text[part.start : part.end], json.dumps(part.headings, ensure_ascii=False)
        checksum = part_checksum(own, start=part.start, headings=headings, page=part.page)
        lines.append((checksum, part.start, part.page, headings, own))
    return lines


def _facet_lines(
    norms: bytes, codes: bytes, spans: bytes | None, *, split: Callable[[bytes, int], tuple[bytes, list[bytes]]]
) -> tuple[tuple[int, bytes, bytes, bytes | None], list[bytes]]:
    """The line of a part in the table of facets, and what goes on elsewhere."""
    first, parts = split(codes, len(norms) + len(spans or b""))
    return (facets_checksum(norms, codes, spans), norms, first, spans), parts


class DocumentStore:
    """Collections and documents in one :class:`facets.storage.SqlDatabase`; thread-safe, writers take turns.

    ``database``: where they are. ``code``: how new collections keep directions of facets.

    Attributes:
        store_id: Stays with the store for ever.
        database: See above.
        is_shared: Whether other processes write, too.
    """

    def __init__(self, database: SqlDatabase, code: FacetCode = "int8", dialect: Dialect = SQLITE) -> None:
        self.database = database
        self._code = code
        self._dialect = dialect
        self.is_shared = dialect.is_shared
        self.check_place, self.close = database.check_place, database.close
        self.hold_writes, self.alone, self.writes = database.hold_writes, database.alone, database.writes
        with database.read() as connection:
            self.store_id = str(meta(connection, "store_id"))

    def view(self) -> "StoreView":
        """A consistent view for reading; use in a ``with`` block."""
        return StoreView(self.database.read(), self._dialect)

    def create_collection(self, name: str, by: CollectionModel, *, config: str) -> CollectionRecord:
        """Creates a collection from checked values.

        Raises:
            ConflictError: The name is taken.
        """
        created_us = time.time_ns() // 1000
        with self.database.write() as connection:
            if connection.execute("SELECT 1 FROM collections WHERE name = ?", (name,)).fetchone():
                raise ConflictError(f"collection {name!r} exists already: expected a new name")
            cursor = connection.execute(
                "INSERT INTO collections "
                "(name, model, model_revision, space, code, num_facets, dim, created_us, config, search_fields, "
                f"revision) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING {COLLECTION_COLUMNS}",
                (
                    *(name, *by.columns(self._code), created_us, config),
                    *(_json(by.search_fields), next_revision(connection)),
                ),
            )
            return collection_from(cursor.fetchone())

    def delete_collection(self, record: CollectionRecord) -> int:
        """Deletes a collection and its documents, and a copy that was being made; returns the revision."""
        with self.database.write() as connection:
            revision = changed(connection, record)
            _delete_copy(connection, record)
            delete_collection(connection, record.number)
            return revision

    def upsert(
        self, record: CollectionRecord, batch: EncodedBatch, *, check: Callable[[], None] | None = None
    ) -> StoreWrite:
        """Stores an encoded batch, replacing documents of the same ids.

        ``check``: called when no other write can come before this one; what it raises ends the call.
        """
        lines = _BatchLines(batch, self._dialect)
        with self.database.write() as connection:
            if check is not None:
                check()
            gone = rows_by_id(connection, record, batch.ids)
            delete_rows(connection, gone.parts)
            revision = changed(connection, record, added=batch.num_parts, removed=gone)
            added = lines.insert(connection, record, [revision] * len(batch.ids))
            return self._logged(connection, record, _write(revision, gone, added, len(batch.ids)))

    def delete(
        self, record: CollectionRecord, *, ids: Sequence[str] | None = None, where: Filter | None = None
    ) -> StoreWrite:
        """Deletes documents by id or by filter."""
        with self.database.write() as connection:
            if where is None:
                gone = rows_by_id(connection, record, ids or ())
            else:
                gone = rows_by_filter(connection, record, where, self._dialect)
            return self._deleted(connection, record, gone)

    def begin_copy(self, record: CollectionRecord, by: CollectionModel) -> CollectionRecord:
        """Makes an empty copy of a collection for another model or other fields; there must be no other copy.

        Raises:
            NotFoundError: The collection is gone.
        """
        name = f"{record.name}#copy"  # no name that a caller may give
        with self.database.write() as connection:
            cursor = connection.execute(
                "INSERT INTO collections "
                "(name, model, model_revision, space, code, num_facets, dim, created_us, config, search_fields, "
                "revision, state, replaces) "
                "SELECT ?, ?, ?, ?, ?, ?, ?, created_us, config, ?, revision, ?, number "
                "FROM collections WHERE number = ? "
                f"RETURNING {COLLECTION_COLUMNS}",
                (name, *by.columns(self._code), _json(by.search_fields), CollectionState.BUILDING, record.number),
            )
            values = cursor.fetchone()
        if values is None:
            raise deleted_meanwhile(record)
        return collection_from(values)

    def add_copies(
        self, copy: CollectionRecord, rows: NDArray[np.int64], batch: EncodedBatch
    ) -> tuple[StoreWrite, NDArray[np.bool_]]:
        """Adds documents to a copy, under the revisions that they have in the collection.

        ``rows``: ``[N]`` first rows that the documents have in the collection; those gone meanwhile are left out.
        ``batch``: the documents, encoded by the model of the copy. Returns what was done, and which of the documents
        were added, ``[N]``.
        """
        lines = _BatchLines(batch, self._dialect)
        with self.database.write() as connection:
            cursor = connection.execute(f"SELECT row, revision FROM documents WHERE {AMONG}", (row_list(rows),))
            revisions = dict(cursor.fetchall())
            kept = np.isin(rows, np.fromiter(revisions, dtype=np.int64, count=len(revisions)))
            gone = rows_by_id(connection, copy, batch.ids)
            delete_rows(connection, gone.parts)
            revision = changed(connection, copy, added=batch.num_parts[kept], removed=gone)
            added = lines.insert(connection, copy, [revisions.get(row) for row in rows.tolist()])
            write = _write(revision, gone, added, int(kept.sum()))
            return self._logged(connection, copy, write), kept

    def delete_rows(self, record: CollectionRecord, rows: DocumentRows) -> StoreWrite:
        """Deletes documents of a collection by row."""
        with self.database.write() as connection:
            return self._deleted(connection, record, rows)

    def replace_by_copy(self, record: CollectionRecord, copy: CollectionRecord) -> CollectionRecord:
        """Gives a copy the place and the name of its collection, which is retired; returns what the copy became."""
        with self.database.write() as connection:
            _retire(connection, record)
            changed(connection, copy)
            connection.execute(
                "UPDATE collections SET name = ?, state = ?, replaces = NULL WHERE number = ?",
                (record.name, CollectionState.LIVE, copy.number),
            )
            cursor = connection.execute(
                f"SELECT {COLLECTION_COLUMNS} FROM collections WHERE number = ?", (copy.number,)
            )
            return collection_from(cursor.fetchone())

    def retire(self, record: CollectionRecord) -> None:
        """Gives a collection up: nobody sees it any more, and :meth:`delete_retired` deletes it by and by."""
        with self.database.write() as connection:
            _retire(connection, record)

    def delete_retired(self, limit: int) -> bool:
        """Deletes up to ``limit`` documents of a retired collection, at last itself; False when there is none."""
        with self.database.write() as connection:
            found = connection.execute("SELECT number FROM collections WHERE state = ?", (CollectionState.RETIRED,))
            retired = found.fetchone()
            if retired is None:
                return False
            cursor = connection.execute(
                "SELECT row, num_parts FROM documents WHERE collection = ? LIMIT ?", (retired[0], limit)
            )
            gone = document_rows(cursor)
            delete_rows(connection, gone.parts)
            if len(gone.firsts) < limit:
                connection.execute("DELETE FROM collections WHERE number = ?", retired)
        return True

    def _deleted(self, connection: SqlConnection, record: CollectionRecord, gone: DocumentRows) -> StoreWrite:
        delete_rows(connection, gone.parts)
        revision = changed(connection, record, removed=gone)
        return self._logged(connection, record, _write(revision, gone, np.empty(0, dtype=np.int64), 0))

    def _logged(self, connection: SqlConnection, record: CollectionRecord, write: StoreWrite) -> StoreWrite:
        """Notes a write for the indexes of the other servers."""
        if self.is_shared:
            blobs = [rows.astype("<i8").tobytes() for rows in (write.added, write.removed)]
            connection.executemany(
                "INSERT INTO writes (revision, collection, added, removed) VALUES (?, ?, ?, ?)",
                [(write.revision, record.number, *blobs)],
            )
            connection.execute("DELETE FROM writes WHERE revision <= ?", (write.revision - KEPT_WRITES,))
        return write


def _write(revision: int, gone: DocumentRows, added: NDArray[np.int64], num_added: int) -> StoreWrite:
    return StoreWrite(
        revision=revision, added=added, removed=gone.parts, num_added=num_added, num_removed=len(gone.firsts)
    )


def _json(search_fields: Mapping[str, float]) -> str:
    return json.dumps(dict(search_fields), ensure_ascii=False)


def _retire(connection: SqlConnection, record: CollectionRecord) -> None:
    connection.execute(
        "UPDATE collections SET name = ?, state = ?, replaces = NULL WHERE number = ?",
        (f"{record.name}#{record.number}", CollectionState.RETIRED, record.number),
    )


def _delete_copy(connection: SqlConnection, record: CollectionRecord) -> None:
    copies = connection.execute("SELECT number FROM collections WHERE replaces = ?", (record.number,)).fetchall()
    for (number,) in copies:
        delete_collection(connection, number)
