"""Reading the document store: one consistent state at a time, and the SQL on its tables that writing needs, too.

Shape letters: N documents, T facets of all documents, D dimensions.
"""

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

from facets.documents.codes import FacetLine, StoredFacets, count_terms, read_codes, read_terms, row_of_part, starts_of
from facets.documents.dialects import KEPT_WRITES, SQLITE, Dialect
from facets.documents.filters import Filter, is_path
from facets.documents.passages import PASSAGE_COLUMNS, Passage, PassageLine, stored_text, whole_document
from facets.documents.records import (
    COLLECTION_COLUMNS,
    CollectionRecord,
    CollectionState,
    DocumentRows,
    LostRevisions,
    StoreWrite,
    check_revision,
    collection_from,
    deleted_meanwhile,
)
from facets.documents.types import MAX_PARTS, StoredDocument
from facets.errors import DamagedDocumentsError, DamagedError, FacetsError, NotFoundError, NotReadyError
from facets.index.lexical import TermCounts
from facets.storage import SqlConnection, SqlCursor

AMONG = "row IN (SELECT value FROM json_each(?))"
_PARTS_OF = "CROSS JOIN facet_parts ON part BETWEEN {row} * 4096 AND {row} * 4096 + 4095"  # see the schema
PARTS_AMONG = f"json_each(?) AS wanted {_PARTS_OF.format(row='wanted.value')}"
# Rows of all parts of documents, of a list and of a collection.
_EXISTING = f"SELECT row FROM documents WHERE {AMONG} UNION SELECT row FROM document_parts WHERE {AMONG}"
_ROWS_OF_COLLECTION = (
    "SELECT row FROM documents WHERE collection = ? UNION ALL SELECT document_parts.row FROM documents "
    "CROSS JOIN document_parts ON document_parts.row BETWEEN documents.row + 1 AND documents.row + num_parts - 1 "
    "WHERE collection = ? AND num_parts > 1"
)
_LOCATED = (
    "FROM json_each(?) AS wanted LEFT JOIN document_parts ON document_parts.row = wanted.value "
    "CROSS JOIN documents ON documents.row = coalesce(document_parts.document, wanted.value)"
)


class StoreView:
    """One consistent state of the store, in a ``with`` block; not for several threads."""

    def __init__(self, state: AbstractContextManager[SqlConnection], dialect: Dialect = SQLITE) -> None:
        """Takes what gives a connection that sees one state, as :meth:`facets.storage.SqlDatabase.read` does."""
        self._context = state
        self._dialect = dialect

    def __enter__(self) -> "StoreView":
        self._connection = self._context.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._context.__exit__(*error)  # type: ignore[arg-type]  # the three of the protocol, passed through

    def revision(self) -> int:
        """Revision of this state."""
        return int(meta(self._connection, "revision"))

    def lost(self) -> LostRevisions:
        """Revisions that were acknowledged, maybe, and are no part of this state."""
        if not self._dialect.is_shared:
            return ()
        return tuple(self._connection.execute("SELECT after, revision FROM promotions ORDER BY revision").fetchall())

    def check_revision(self, min_revision: int | None) -> int:
        """Revision of this state, see :func:`facets.documents.records.check_revision`."""
        return check_revision(self.revision(), min_revision, () if min_revision is None else self.lost())

    def writes_after(self, revision: int) -> dict[int, list[StoreWrite]] | None:
        """What changed documents after a revision, by number of the collection; None: nobody knows any more."""
        if self.revision() - revision > KEPT_WRITES or any(after < revision < next for after, next in self.lost()):
            return None
        found = dict[int, list[StoreWrite]]()
        lines = "SELECT collection, revision, added, removed FROM writes WHERE revision > ? ORDER BY revision"
        for number, one, added, removed in self._connection.execute(lines, (revision,)):
            write = StoreWrite(revision=one, added=np.frombuffer(added, "<i8"), removed=np.frombuffer(removed, "<i8"))
            found.setdefault(number, []).append(write)
        return found

    def collections(self) -> list[CollectionRecord]:
        """Every live one, in the order of names."""
        return [one for one in self.all_collections() if one.state is CollectionState.LIVE]

    def all_collections(self) -> list[CollectionRecord]:
        """Every collection, those that are being built or deleted too, in the order of names."""
        cursor = self._connection.execute(f"SELECT {COLLECTION_COLUMNS} FROM collections ORDER BY name")
        return [collection_from(values) for values in cursor]

    def collection(self, name: str) -> CollectionRecord:
        """The live collection of that name.

        Raises:
            NotFoundError: There is none.
        """
        found = self._collection("name = ? AND state = ?", name, CollectionState.LIVE)
        if found is None:
            raise NotFoundError(f"collection {name!r} does not exist", resource_type="collection", resource_name=name)
        return found

    def collection_numbered(self, number: int) -> CollectionRecord | None:
        """The collection of that number, whatever its state; None when it is gone."""
        return self._collection("number = ?", number)

    def _collection(self, where: str, *values: str | int) -> CollectionRecord | None:
        statement = f"SELECT {COLLECTION_COLUMNS} FROM collections WHERE {where}"
        found = self._connection.execute(statement, values).fetchone()
        return None if found is None else collection_from(found)

    def collection_unchanged(self, record: CollectionRecord) -> CollectionRecord:
        """The same collection as it is now.

        Raises:
            NotFoundError: It is gone.
            NotReadyError: It has moved to another model.
        """
        current = self.collection_numbered(record.number)
        if current is None or current.state is not record.state:
            raise gone_meanwhile(self._connection, record)
        return current

    def copy_of(self, record: CollectionRecord) -> CollectionRecord | None:
        """The collection that is being built to take the place of this one."""
        return self._collection("replaces = ?", record.number)

    def uncopied(
        self, record: CollectionRecord, copy: CollectionRecord, *, after: int, limit: int
    ) -> tuple[NDArray[np.int64], int]:
        """Documents of a collection that its copy does not have as they are now.

        ``after``: only rows beyond this one. ``limit``: at most so many. Returns the first rows of the first of these,
        ascending; and the row up to which there is no other.
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

    def outdated(self, record: CollectionRecord, copy: CollectionRecord) -> DocumentRows:
        """Documents of the copy that the collection no longer has as they were; compares every one."""
        cursor = self._connection.execute(
            "SELECT row, num_parts FROM documents AS copy WHERE collection = ? AND NOT EXISTS "
            "(SELECT 1 FROM documents AS original WHERE original.collection = ? AND original.id = copy.id "
            "AND original.revision = copy.revision)",
            (copy.number, record.number),
        )
        return document_rows(cursor)

    def count(self, record: CollectionRecord, where: Filter) -> int:
        """Documents of the collection that match; compares every one."""
        sql, parameters = condition(record, where, self._dialect)
        cursor = self._connection.execute(f"SELECT count(*) FROM documents WHERE {sql}", parameters)
        return int(cursor.fetchone()[0])

    def json_types(self, record: CollectionRecord, field: str, limit: int) -> set[str]:
        """Types, as the database names them, of the values of a field in the first ``limit`` documents."""
        expression, parameters = self._dialect.json_type(field)
        some = "(SELECT * FROM documents WHERE collection = ? LIMIT ?) AS looked_at"
        statement = f"SELECT DISTINCT {expression} FROM {some}"
        found = self._connection.execute(statement, (*parameters, record.number, limit))
        return {name for (name,) in found if name is not None}

    def field_names(self, record: CollectionRecord, limit: int) -> list[str]:
        """Paths of the fields of the first ``limit`` documents, as filters write them."""
        cursor = self._connection.execute(self._dialect.field_names, (record.number, limit))
        return [path for (fullkey,) in cursor if is_path(path := fullkey[2:].replace('"', ""))]

    def rows(self, record: CollectionRecord, where: Filter | None = None) -> NDArray[np.int64]:
        """Rows of the parts of the documents that match, ascending int64."""
        return np.sort(rows_by_filter(self._connection, record, where, self._dialect).parts)

    def document_rows(self, record: CollectionRecord) -> DocumentRows:
        """Every document, in the order of rows."""
        return rows_by_filter(self._connection, record, None, self._dialect)

    def long_documents(self, record: CollectionRecord) -> DocumentRows:
        """The documents of several parts, in the order of rows."""
        statement = "SELECT row, num_parts FROM documents WHERE collection = ? AND num_parts > 1"
        return document_rows(self._connection.execute(statement, (record.number,)))

    def rows_by_id(self, record: CollectionRecord, ids: Sequence[str]) -> NDArray[np.int64]:
        """First rows of the documents of these ids, ascending int64; ids without a document are skipped."""
        return rows_by_id(self._connection, record, ids).firsts

    def page(self, record: CollectionRecord, *, after: str, limit: int, where: Filter | None) -> NDArray[np.int64]:
        """First rows of the next ``limit`` documents whose id is greater than ``after``, in the order of ids."""
        sql, parameters = condition(record, where, self._dialect)
        cursor = self._connection.execute(
            f"SELECT row FROM documents WHERE {sql} AND id > ? ORDER BY id LIMIT ?", [*parameters, after, limit]
        )
        return rows_of(cursor)

    def num_bytes(self, rows: NDArray[np.int64], *, facets: bool, dim: int) -> NDArray[np.int64]:
        """Bytes of the documents at these first rows, ``[N]``: text and payload, and where asked for facets and spans.

        ``rows``: of documents that exist. ``facets``: whether facets count, as float32 of so many dimensions.
        """
        parts = "BETWEEN documents.row AND documents.row + num_parts - 1"
        statement = (
            "SELECT row, length(CAST(text AS BLOB)) + length(CAST(payload AS BLOB)) "
            f"+ (SELECT coalesce(sum(length(CAST(text AS BLOB))), 0) FROM document_parts WHERE row {parts}), "
            f"(SELECT coalesce(sum(length(norms) / 4), 0) FROM facets WHERE row {parts} AND ?) "
            f"FROM documents WHERE {AMONG}"
        )
        found = {
            row: said + num_facets * 4 * (dim + 2)
            for row, said, num_facets in self._connection.execute(statement, (facets, row_list(rows)))
        }
        return np.array([found[row] for row in rows.tolist()], dtype=np.int64)

    def located(self, rows: NDArray[np.int64]) -> dict[int, tuple[int, str]]:
        """First row and id of the document of every one of the rows that exists."""
        statement = f"SELECT wanted.value, documents.row, CAST(documents.id AS BLOB) {_LOCATED}"
        found = self._connection.execute(statement, (row_list(rows),))
        return {row: (document, stored_text(id)) for row, document, id in found}

    def existing(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the rows that exist, ascending int64."""
        cursor = self._connection.execute(_EXISTING, (row_list(rows), row_list(rows)))
        return np.sort(rows_of(cursor))

    def documents(self, rows: NDArray[np.int64]) -> dict[int, StoredDocument]:
        """The whole documents at these first rows, without facets; rows without a document are skipped.

        Raises:
            DamagedDocumentsError: Documents do not agree with their checksums.
        """
        statement = f"SELECT row, num_parts FROM documents WHERE {AMONG}"
        found = document_rows(self._connection.execute(statement, (row_list(rows),)))
        passages: dict[int, list[Passage]] = {row: [] for row in found.firsts.tolist()}
        for _, passage in sorted(self.passages(found.parts).items()):
            passages[passage.document].append(passage)
        missing = {row: parts[0].id for row, parts in passages.items() if len(parts) < parts[0].num_parts}
        if missing:
            raise DamagedDocumentsError("the text", missing)
        return {row: whole_document(parts) for row, parts in passages.items()}

    def passages(self, rows: NDArray[np.int64]) -> dict[int, Passage]:
        """The parts at these rows; rows without one are skipped.

        Raises:
            DamagedDocumentsError: Documents or parts do not agree with their checksums.
        """
        cursor = self._connection.execute(f"SELECT {PASSAGE_COLUMNS} {_LOCATED}", (row_list(rows),))
        found, damaged = {}, {}
        for line in map(PassageLine._make, cursor):
            if not line.is_whole_document():
                rows_of_it = self._rows_from(line.document, line.row, line.num_parts)
                damaged.update(dict.fromkeys(rows_of_it, stored_text(line.id)))
            elif not line.is_whole_part():
                damaged[line.row] = stored_text(line.id)
            else:
                found[line.row] = line.passage()
        if damaged:
            raise DamagedDocumentsError("the text or the payload", damaged)
        return found

    def _rows_from(self, document: int, row: int, num_parts: int) -> list[int]:
        """Rows of the parts of a document of which nothing is sure but that this row is one."""
        if num_parts == 1:
            return [row]
        where = "row BETWEEN ? AND ? AND document = ?"
        last = document + min(int(num_parts), MAX_PARTS)
        cursor = self._connection.execute(f"SELECT row FROM document_parts WHERE {where}", (document, last, document))
        return [row, *rows_of(cursor).tolist()]

    def terms(self, record: CollectionRecord, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[TermCounts]]:
        """Those of the rows that exist, ascending, and their terms; counted anew where they are damaged.

        Raises:
            DamagedDocumentsError: Neither the terms of a document nor its text is what was written.
        """
        cursor = self._connection.execute(
            f"SELECT row, CAST(terms AS BLOB) FROM ({_EXISTING}) AS existing LEFT JOIN terms USING (row) ORDER BY row",
            (row_list(rows), row_list(rows)),
        )
        existing, found = [], []
        for row, blob in cursor.fetchall():
            existing.append(row)
            try:
                found.append(read_terms(blob or b""))
            except DamagedError:  # made of the text, so they can be made again
                passage = self.passages(np.array([row]))[row]
                found.append(count_terms(passage.said(record.search_fields)))
        return np.array(existing, dtype=np.int64), found

    def facets(self, record: CollectionRecord, rows: NDArray[np.int64]) -> StoredFacets:
        """The facets at these rows, in their order.

        Raises:
            DamagedDocumentsError: Rows have no facets, or facets that do not agree with their checksum.
            DamagedError: The collection says another shape.
        """
        lines = self._facet_lines(rows)
        whole = [line for line in lines if line.is_whole(record.num_facets)]
        missing = set(rows.tolist()) - {line.row for line in whole}
        if missing:
            damaged = sorted(missing)
            located = self.located(np.array(damaged))
            ids = {row: located[row][1] if row in located else f"at row {row}" for row in damaged}
            raise DamagedDocumentsError("the facets", ids)
        starts = starts_of(len(line.norms) // 4 for line in lines)
        norms_T = np.frombuffer(b"".join(line.norms for line in lines), dtype="<f4").astype(np.float32)
        codes_TD = read_codes([line.codes for line in lines], norms_T, starts, dim=record.dim, code=record.code)
        if codes_TD is None:
            raise DamagedError("facets on disk have another size than their collection says: store them again")
        spans = [None if line.spans is None else np.frombuffer(line.spans, "<u4").reshape(-1, 2) for line in lines]
        found = StoredFacets(codes_TD, norms_T, starts, tuple(spans))
        order = np.argsort(rows, kind="stable")
        return found if (np.diff(order) == 1).all() else found[np.argsort(order)]

    def _facet_lines(self, rows: NDArray[np.int64]) -> list[FacetLine]:
        """The facets at those of the rows that have any, ascending; codes go on in further parts."""
        cursor = self._connection.execute(
            "SELECT row, checksum, CAST(norms AS BLOB), CAST(spans AS BLOB), CAST(units AS BLOB) FROM facets "
            f"WHERE {AMONG} ORDER BY row",
            (row_list(rows),),
        )
        lines = cursor.fetchall()
        codes = {line[0]: [line[4] or b""] for line in lines}
        cursor = self._connection.execute(
            f"SELECT part, CAST(units AS BLOB) FROM {PARTS_AMONG}", (json.dumps(list(codes)),)
        )
        for part, units in sorted(cursor.fetchall()):
            codes[row_of_part(part)].append(units)
        return [
            FacetLine(row, checksum, norms or b"", spans, b"".join(codes[row]))
            for row, checksum, norms, spans, _ in lines
        ]


def changed(
    connection: SqlConnection,
    record: CollectionRecord,
    *,
    added: NDArray[np.int64] | None = None,
    removed: DocumentRows | None = None,
) -> int:
    """Counts a write to a collection.

    ``added``: how many parts each document has that was added; None: none was. ``removed``: documents that were
    removed; None: none was. Returns the new revision.

    Raises:
        NotFoundError: It is gone.
        NotReadyError: It has moved to another model.
    """
    revision = next_revision(connection)
    num_documents = (0 if added is None else len(added)) - (0 if removed is None else len(removed.firsts))
    num_parts = (0 if added is None else int(added.sum())) - (0 if removed is None else int(removed.counts.sum()))
    cursor = connection.execute(
        "UPDATE collections SET revision = ?, num_documents = num_documents + ?, num_parts = num_parts + ? "
        "WHERE number = ? AND state = ?",
        (revision, num_documents, num_parts, record.number, record.state),
    )
    if not cursor.rowcount:  # another server deleted or moved it
        raise gone_meanwhile(connection, record)
    return revision


def gone_meanwhile(connection: SqlConnection, record: CollectionRecord) -> FacetsError:
    """The error of a call whose collection is no longer what it was when the call began."""
    where = "name = ? AND created_us = ? AND state = ?"  # the same one, encoded by another model
    values = (record.name, record.created_us, CollectionState.LIVE)
    if connection.execute(f"SELECT 1 FROM collections WHERE {where}", values).fetchone() is None:
        return deleted_meanwhile(record)
    return NotReadyError(f"collection {record.name!r} moved to another model meanwhile: send the call again")


def meta(connection: SqlConnection, key: str) -> str | int:
    """A value about the whole store.

    Raises:
        DamagedError: It is missing.
    """
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    if found is None:
        raise DamagedError(f"the document store is damaged: its {key} is missing; restore it from a backup")
    value: str | int = found[0]
    return value


def next_revision(connection: SqlConnection) -> int:
    """Counts a write to the data directory; returns its revision."""
    connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'revision'")
    return int(meta(connection, "revision"))


def row_list(rows: NDArray[np.int64]) -> str:
    """Rows as the parameter of :data:`AMONG`."""
    return json.dumps(rows.tolist())


def rows_of(cursor: SqlCursor) -> NDArray[np.int64]:
    """Rows that a statement found, in its order."""
    return np.fromiter((row for (row,) in cursor), dtype=np.int64)


def document_rows(cursor: SqlCursor) -> DocumentRows:
    """Documents that a statement found by first row and number of parts, ascending."""
    found = np.array(cursor.fetchall(), dtype=np.int64).reshape(-1, 2)
    firsts, counts = found[np.argsort(found[:, 0])].T
    return DocumentRows(firsts, counts)


def condition(record: CollectionRecord, where: Filter | None, dialect: Dialect) -> tuple[str, list[str | int]]:
    """SQL condition and parameters of the documents that match."""
    if where is None:
        return "collection = ?", [record.number]
    expression, parameters = dialect.to_sql(where)
    return f"collection = ? AND {expression}", [record.number, *parameters]


def rows_by_filter(
    connection: SqlConnection, record: CollectionRecord, where: Filter | None, dialect: Dialect
) -> DocumentRows:
    """The documents that match, ascending."""
    if where is None:  # by indexes alone, which hold their rows
        found = "FROM documents WHERE collection = ?"
        long = document_rows(connection.execute(f"SELECT row, num_parts {found} AND num_parts > 1", [record.number]))
        firsts = np.sort(rows_of(connection.execute(f"SELECT row {found}", [record.number])))
        counts = np.ones_like(firsts)
        counts[np.searchsorted(firsts, long.firsts)] = long.counts
        return DocumentRows(firsts, counts)
    sql, parameters = condition(record, where, dialect)
    return document_rows(connection.execute(f"SELECT row, num_parts FROM documents WHERE {sql}", parameters))


def rows_by_id(connection: SqlConnection, record: CollectionRecord, ids: Sequence[str]) -> DocumentRows:
    """The documents of these ids, ascending."""
    cursor = connection.execute(
        "SELECT row, num_parts FROM documents WHERE collection = ? AND id IN (SELECT value FROM json_each(?))",
        (record.number, json.dumps(list(ids), ensure_ascii=False)),
    )
    return document_rows(cursor)


def delete_collection(connection: SqlConnection, number: int) -> None:
    """Deletes a collection with its documents."""
    parts = f"SELECT part FROM ({_ROWS_OF_COLLECTION}) AS its {_PARTS_OF.format(row='its.row')}"
    connection.execute(f"DELETE FROM facet_parts WHERE part IN ({parts})", (number, number))
    for table in ("facets", "terms", "document_parts"):
        connection.execute(f"DELETE FROM {table} WHERE row IN ({_ROWS_OF_COLLECTION})", (number, number))
    connection.execute("DELETE FROM documents WHERE collection = ?", (number,))
    connection.execute("DELETE FROM collections WHERE number = ?", (number,))


def delete_rows(connection: SqlConnection, rows: NDArray[np.int64]) -> None:
    """Deletes documents with their facets.

    ``rows``: of all of their parts.
    """
    if len(rows):
        connection.execute(f"DELETE FROM facet_parts WHERE part IN (SELECT part FROM {PARTS_AMONG})", (row_list(rows),))
        for table in ("facets", "terms", "document_parts", "documents"):
            connection.execute(f"DELETE FROM {table} WHERE {AMONG}", (row_list(rows),))
