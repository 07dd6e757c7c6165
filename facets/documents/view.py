"""Reads the document store, one consistent state at a time.

Every value is compared with its checksum. Shape letters: N documents, T facets of all documents, D dimensions.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from facets.arrays import Ints
from facets.documents.dialects import KEPT_WRITES, SQLITE, Dialect
from facets.documents.encoding import StoredFacets
from facets.documents.fields import SearchedText, count_terms, field_texts, searched_part, terms_from_bytes
from facets.documents.filters import Filter, filter_warnings
from facets.documents.records import (
    COLLECTION_COLUMNS,
    CollectionRecord,
    CollectionState,
    DocumentRows,
    LostRevisions,
    StoreWrite,
    check_revision,
    collection_from,
)
from facets.documents.types import Document, DocumentPart, FilterWarning, JsonValue, StoredDocument, TokenStats
from facets.errors import (
    DamagedDocumentsError,
    DamagedError,
    FacetsError,
    InvalidInputError,
    NotFoundError,
    NotReadyError,
)
from facets.index.lexical import TermCounts
from facets.storage.checksums import row_checksum
from facets.storage.sql import SqlConnection

_EXAMINED_DOCUMENTS, _EXAMINED_CHARS = 150, 2**19  # for warnings about a filter


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage(StoredDocument):
    """A part of a document with its own text; a document of one part is one passage."""

    first_row: int  # of the document
    number: int  # which part it is, from 1
    num_parts: int  # of the document
    part: DocumentPart

    def searched(self, fields: Mapping[str, float]) -> SearchedText:
        """Text of the passage and its searched fields."""
        own = field_texts(self.payload, fields)
        return searched_part(self.text, own, self.part) if self.num_parts > 1 else SearchedText(self.text, own)


class StoreView:
    """One consistent state of the store; for one thread, within a transaction."""

    def __init__(self, connection: SqlConnection, dialect: Dialect = SQLITE) -> None:
        self.connection = connection
        self.sql = dialect
        self._given_parts = (
            f"FROM {dialect.given_rows} {dialect.join} parts ON parts.row = given.value "
            f"{dialect.join} documents ON documents.row = parts.document"
        )

    def meta(self, key: str) -> str:
        """A counter or the id of the store; raises DamagedError if it is missing."""
        row = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        if row is None:
            raise DamagedError(f"the document store is damaged: its {key} is missing; restore it from a backup")
        return str(row[0])

    def revision(self) -> int:
        """Revision of this state."""
        return int(self.meta("revision"))

    def lost(self) -> LostRevisions:
        """Revisions that were lost by promotions of a standby."""
        if not self.sql.is_shared:
            return ()
        return tuple(self.connection.execute("SELECT after, revision FROM promotions ORDER BY revision").fetchall())

    def check_revision(self, min_revision: int | None) -> int:
        """Revision of this state; raises as :func:`facets.documents.records.check_revision`."""
        return check_revision(self.revision(), min_revision, () if min_revision is None else self.lost())

    def writes_after(self, revision: int) -> dict[int, list[StoreWrite]] | None:
        """The writes after a revision by collection number; None if the log does not reach back that far."""
        if self.revision() - revision > KEPT_WRITES or any(after < revision < next for after, next in self.lost()):
            return None
        writes = dict[int, list[StoreWrite]]()
        statement = "SELECT collection, revision, added, removed FROM writes WHERE revision > ? ORDER BY revision"
        for collection, write_revision, added, removed in self.connection.execute(statement, (revision,)):
            write = StoreWrite(
                revision=write_revision, added=np.frombuffer(added, "<i8"), removed=np.frombuffer(removed, "<i8")
            )
            writes.setdefault(collection, []).append(write)
        return writes

    def all_collections(self) -> list[CollectionRecord]:
        """Every collection in any state, ordered by name."""
        cursor = self.connection.execute(f"SELECT {COLLECTION_COLUMNS} FROM collections ORDER BY name")
        return [collection_from(values) for values in cursor]

    def collection(self, name: str) -> CollectionRecord:
        """The live collection of that name; raises NotFoundError if there is none."""
        record = self._collection("name = ? AND state = ?", name, CollectionState.LIVE)
        if record is None:
            raise NotFoundError(f"collection {name!r} does not exist", resource_type="collection", resource_name=name)
        return record

    def collection_unchanged(self, record: CollectionRecord) -> CollectionRecord:
        """The current record of a collection read earlier; NotFoundError if deleted, NotReadyError if moved."""
        current = self._collection("number = ?", record.number)
        if current is None or current.state is not record.state:
            raise self._changed_meanwhile(record)
        return current

    def copy_of(self, record: CollectionRecord) -> CollectionRecord | None:
        """The collection that is being built to replace this one."""
        return self._collection("replaces = ?", record.number)

    def _collection(self, where: str, *values: str | int) -> CollectionRecord | None:
        statement = f"SELECT {COLLECTION_COLUMNS} FROM collections WHERE {where}"
        row = self.connection.execute(statement, values).fetchone()
        return None if row is None else collection_from(row)

    def _changed_meanwhile(self, record: CollectionRecord) -> FacetsError:
        """The error of a call whose collection was deleted or moved while it ran."""
        where = "name = ? AND created_us = ? AND state = ?"  # a moved collection keeps its creation time
        moved = self._collection(where, record.name, record.created_us, CollectionState.LIVE)
        if moved is None:
            name = record.name.partition("#")[0]  # a copy is named after its collection
            message = f"collection {name!r} was deleted during the call"
            return NotFoundError(message, resource_type="collection", resource_name=name)
        model = f"revision {moved.model_revision} of model {moved.model}"
        return NotReadyError(f"collection {record.name!r} moved to {model} during the call: send it again")

    def uncopied(self, record: CollectionRecord, copy: CollectionRecord, *, after: int, limit: int) -> tuple[Ints, int]:
        """First rows of at most ``limit`` documents beyond row ``after`` whose current version is not in the copy.

        Returns them, ascending, and the row up to which there are no others.
        """
        rows = self._rows_from(
            # "+" keeps SQLite from using the index of ids: rows come in their order
            "SELECT row FROM documents AS original WHERE row > ? AND +collection = ? AND NOT EXISTS "
            "(SELECT 1 FROM documents AS copy WHERE copy.collection = ? AND copy.id = original.id "
            "AND copy.revision = original.revision) ORDER BY row LIMIT ?",
            *(after, record.number, copy.number, limit),
        )
        return rows, int(rows[-1]) if len(rows) == limit else self.last_row()

    def outdated(self, record: CollectionRecord, copy: CollectionRecord) -> DocumentRows:
        """Documents of the copy whose version is no longer in the collection; compares all of them."""
        condition = (
            "collection = ? AND NOT EXISTS (SELECT 1 FROM documents AS original WHERE original.collection = ? "
            "AND original.id = documents.id AND original.revision = documents.revision)"
        )
        return self.documents_where(condition, copy.number, record.number)

    def last_row(self) -> int:
        """The last row number that was given to a document."""
        return int(self.meta("last_row"))

    def count(self, record: CollectionRecord, where: Filter) -> int:
        """Number of documents that match; evaluates the filter on all of them."""
        condition, parameters = self._condition(record, where)
        cursor = self.connection.execute(f"SELECT count(*) FROM documents WHERE {condition}", parameters)
        return int(cursor.fetchone()[0])

    def filter_warnings(
        self, record: CollectionRecord, where: Filter | None, rows: Ints | None = None
    ) -> tuple[FilterWarning, ...]:
        """Likely mistakes in a filter, judged by the documents with the first and last ids, and by one that matches.

        ``rows``: of the documents that match; without them, one is searched for if there is something to warn about.
        """
        if where is None:
            return ()
        payloads = [
            *self._examined(f"collection = ? ORDER BY id LIMIT {_EXAMINED_DOCUMENTS}", record.number),
            *self._examined(f"collection = ? ORDER BY id DESC LIMIT {_EXAMINED_DOCUMENTS}", record.number),
        ]
        are_all = len(payloads) == 2 * record.num_documents
        warnings = filter_warnings(where, payloads, are_all=are_all)
        if warnings and not are_all:
            condition, values = self._condition(record, where)
            if rows is not None:
                condition, values = "row = ?", [int(rows[0]) if len(rows) else -1]
            payloads += self._examined(f"{condition} LIMIT 1", *values)
            warnings = filter_warnings(where, payloads, are_all=False)
        return warnings

    def _examined(self, condition: str, *values: str | int) -> Iterator[dict[str, JsonValue]]:
        statement, num_chars = f"SELECT {self.sql.blob('payload')} FROM documents WHERE {condition}", 0
        for (stored,) in self.connection.execute(statement, values):
            num_chars += len(payload := _decoded(stored))
            with suppress(ValueError):  # damaged: reading the document reports it
                yield json.loads(payload)
            if num_chars > _EXAMINED_CHARS:
                return

    def document_rows(self, record: CollectionRecord, where: Filter | None = None, source: str = "") -> DocumentRows:
        """The documents that match."""
        if where is not None or source:
            condition, parameters = self._condition(record, where, source)
            return self.documents_where(condition, *parameters)
        # Two queries that read indexes only.
        long_documents = self.long_documents(record)
        firsts = np.sort(self._rows_from("SELECT row FROM documents WHERE collection = ?", record.number))
        counts = np.ones_like(firsts)
        counts[np.searchsorted(firsts, long_documents.firsts)] = long_documents.counts
        return DocumentRows(firsts, counts)

    def long_documents(self, record: CollectionRecord) -> DocumentRows:
        """The documents with several parts."""
        return self.documents_where("collection = ? AND num_parts > 1", record.number)

    def documents_by_id(self, record: CollectionRecord, ids: Sequence[str]) -> DocumentRows:
        """The documents of these ids; unknown ids are skipped."""
        id_list = json.dumps(list(ids), ensure_ascii=False)
        return self.documents_where(f"collection = ? AND {self.sql.id_in}", record.number, id_list)

    def documents_where(self, condition: str, *values: str | int) -> DocumentRows:
        """The documents that match a condition in SQL."""
        cursor = self.connection.execute(f"SELECT row, num_parts FROM documents WHERE {condition}", values)
        found = np.array(cursor.fetchall(), dtype=np.int64).reshape(-1, 2)
        firsts, counts = found[np.argsort(found[:, 0])].T
        return DocumentRows(firsts, np.maximum(counts, 1))  # less is damage, which the checksum detects

    def _rows_from(self, statement: str, *values: str | int) -> Ints:
        return np.fromiter((row for (row,) in self.connection.execute(statement, values)), dtype=np.int64)

    def page(self, record: CollectionRecord, *, after: str, limit: int, where: Filter | None, source: str) -> Ints:
        """First rows of the next ``limit`` documents whose id is greater than ``after``, ordered by id."""
        condition, parameters = self._condition(record, where, source)
        statement = f"SELECT row FROM documents WHERE {condition} AND id > ? ORDER BY id LIMIT ?"
        return self._rows_from(statement, *parameters, after, limit)

    def _condition(
        self, record: CollectionRecord, where: Filter | None, source: str = ""
    ) -> tuple[str, list[str | int]]:
        condition, values = "collection = ?", list[str | int]([record.number])
        if source:
            condition, values = f"{condition} AND source = ? AND source <> ''", [*values, source]
        if where is not None:
            expression, parameters = self.sql.filter_sql(where)
            condition, values = f"{condition} AND {expression}", [*values, *parameters]
        return condition, values

    def sources(self, record: CollectionRecord, *, after: str, limit: int) -> list[tuple[str, int]]:
        """The next ``limit`` sources greater than ``after``, ordered by name, with their numbers of documents."""
        statement = (
            "SELECT source, count(*) FROM documents WHERE collection = ? AND source > ? AND source <> '' "
            "GROUP BY source ORDER BY source LIMIT ?"
        )
        return self.connection.execute(statement, (record.number, after, limit)).fetchall()

    def equal_rows(self, record: CollectionRecord, documents: Mapping[str, Document]) -> dict[str, int]:
        """For each document (by id) that is stored with equal text, parts, payload and source: its first row.

        Facets of the stored documents are not compared, but intact; if anything is damaged, none counts as stored.
        """
        found = self.documents_by_id(record, list(documents))
        try:
            stored = self.documents(found.firsts).items()
            equal = {one.id: row for row, one in stored if _compared(one) == _compared(documents[one.id])}
            is_equal = np.isin(found.firsts, list(equal.values()))
            self.facets(record, DocumentRows(found.firsts[is_equal], found.counts[is_equal]).parts)
        except DamagedDocumentsError:
            return {}
        return equal

    def num_bytes(self, rows: Ints, *, facets: bool, dim: int) -> Ints:
        """Bytes of text and payload, and of ``facets`` if asked, of the documents at these first rows, ``[N]``."""
        parts = "BETWEEN documents.row AND documents.row + num_parts - 1"
        text, payload = self.sql.num_bytes("text"), self.sql.num_bytes("payload")
        cursor = self.connection.execute(
            f"SELECT row, {payload} + (SELECT coalesce(sum({text}), 0) FROM parts WHERE row {parts}), "
            f"(SELECT coalesce(sum(length(norms) / 4), 0) FROM parts WHERE row {parts} AND ?) "
            f"FROM documents WHERE {self.sql.row_in}",
            (facets, _json_list(rows)),
        )
        sizes = {row: size + num_facets * 4 * (dim + 2) for row, size, num_facets in cursor}
        return np.array([sizes[row] for row in rows.tolist()], dtype=np.int64)

    def first_rows_and_ids(self, rows: Ints) -> dict[int, tuple[int, str]]:
        """For each of the rows that exists, the first row and id of its document."""
        statement = f"SELECT parts.row, documents.row, {self.sql.blob('documents.id')} {self._given_parts}"
        cursor = self.connection.execute(statement, (_json_list(rows),))
        return {row: (first_row, _decoded(id)) for row, first_row, id in cursor}

    def existing(self, rows: Ints) -> Ints:
        """The given rows that exist, ascending."""
        return np.sort(self._rows_from(f"SELECT row FROM parts WHERE {self.sql.row_in}", _json_list(rows)))

    def document_names(self, rows: Ints) -> tuple[StoredDocument, ...]:
        """The documents at these first rows, in their order, with ids, sources and revisions only."""
        names = f"{self.sql.blob('id')}, {self.sql.blob('source')}"
        statement = f"SELECT row, revision, {names} FROM documents WHERE {self.sql.row_in}"
        found = {
            row: StoredDocument(id=_decoded(id), text="", payload={}, revision=revision, source=_decoded(source))
            for row, revision, id, source in self.connection.execute(statement, (_json_list(rows),))
        }
        return tuple(found[row] for row in rows.tolist())

    def documents(self, rows: Ints) -> Mapping[int, StoredDocument]:
        """The documents at these first rows, without facets; missing rows are skipped.

        Raises DamagedDocumentsError if checksums differ or parts are missing.
        """
        found = self.documents_where(self.sql.row_in, _json_list(rows))
        passages: dict[int, list[Passage]] = {row: [] for row in found.firsts.tolist()}
        for _, passage in sorted(self.passages(found.parts).items()):
            passages[passage.first_row].append(passage)
        counts = found.counts.tolist()
        incomplete = [row for (row, parts), num in zip(passages.items(), counts, strict=True) if len(parts) < num]
        if incomplete:
            named = self.document_names(np.array(incomplete))
            raise DamagedDocumentsError("the text", {row: one.id for row, one in zip(incomplete, named, strict=True)})
        return {
            row: replace(
                parts[0],
                text="".join(part.text for part in parts),
                parts=tuple(passage.part for passage in parts) if len(parts) > 1 else (),
            )
            for row, parts in passages.items()
        }

    def passages(self, rows: Ints, times: Ints | None = None, *, max_bytes: int = 0) -> dict[int, Passage]:
        """The parts at these rows; missing rows are skipped; raises DamagedDocumentsError if checksums differ.

        With ``times``, InvalidInputError if texts and payloads, each that many times, exceed ``max_bytes``.
        """
        num_bytes, times_of_row = 0, {} if times is None else dict(zip(rows.tolist(), times.tolist(), strict=True))
        blob = self.sql.blob
        columns = (
            "parts.row, documents.row, collection, revision, documents.checksum, num_tokens, num_read, num_parts, "
            f"parts.checksum, start, page, {blob('documents.id')}, {blob('source')}, {blob('payload')}, "
            f"{blob('headings')}, {blob('text')}"
        )
        cursor = self.connection.execute(f"SELECT {columns} {self._given_parts}", (_json_list(rows),))
        passages, damaged = {}, dict[int, str]()
        for values in cursor:
            row, first_row, collection, revision, checksum, num_tokens, num_read, num_parts = values[:8]
            (checksum_of_part, start, page), strings = values[8:11], values[11:]
            num_bytes += times_of_row.get(row, 0) * sum(len(value or b"") for value in (strings[2], strings[4]))
            if num_bytes > max_bytes and times_of_row:
                rule = (
                    f"gives hits of more than {max_bytes} bytes of text and payload, the limit: ask for fewer at a time"
                )
                raise InvalidInputError(rule, path="top_k")
            id, source, payload, headings, text = map(_decoded, strings)
            own = (id, payload, num_tokens, num_read, num_parts, source)
            is_intact = checksum == row_checksum(first_row, collection, revision, *own)
            if not is_intact or checksum_of_part != row_checksum(row, first_row, start, page, headings, text):
                damaged[row] = id
                continue
            above = tuple(json.loads(headings))
            passages[row] = Passage(
                first_row=first_row,
                number=row - first_row + 1,
                num_parts=num_parts,
                part=DocumentPart(start=start, end=start + len(text), headings=above, page=page),
                id=id,
                text=text,
                payload=json.loads(payload),
                revision=revision,
                token_stats=None if num_tokens is None else TokenStats(num_read, num_tokens),
                source=source,
            )
        if damaged:
            raise DamagedDocumentsError("the text or the payload", damaged)
        return passages

    def terms(self, record: CollectionRecord, rows: Ints) -> tuple[Ints, list[TermCounts]]:
        """The given rows that exist, ascending, and their terms; damaged terms are counted again from the text."""
        statement = f"SELECT row, {self.sql.blob('terms')} FROM parts WHERE {self.sql.row_in} ORDER BY row"
        cursor = self.connection.execute(statement, (_json_list(rows),))
        existing, terms = [], []
        for row, blob in cursor.fetchall():
            existing.append(row)
            try:
                terms.append(terms_from_bytes(blob or b""))
            except DamagedError:
                passage = self.passages(np.array([row]))[row]
                searched = passage.searched(record.search_fields)
                terms.append(count_terms(searched, record.language, id=passage.id))
        return np.array(existing, dtype=np.int64), terms

    def facets(self, record: CollectionRecord, rows: Ints) -> StoredFacets:
        """The facets at these rows, in their order; raises DamagedDocumentsError if some are missing or damaged."""
        norms, spans, units = map(self.sql.blob, ("norms", "spans", "units"))
        statement = f"SELECT row, facets_checksum, {norms}, {spans}, {units} FROM parts WHERE {self.sql.row_in}"
        cursor = self.connection.execute(statement, (_json_list(rows),))
        found = {row: (checksum, norms or b"", spans, units or b"") for row, checksum, norms, spans, units in cursor}
        intact = {
            row
            for row, (checksum, norms, spans, codes) in found.items()
            if checksum == row_checksum(row, norms, codes, spans) and len(norms) >= 4 * record.num_facets
        }
        damaged = sorted(set(rows.tolist()) - intact)
        if damaged:
            ids = self.first_rows_and_ids(np.array(damaged))
            named = {row: ids[row][1] if row in ids else f"at row {row}" for row in damaged}
            raise DamagedDocumentsError("the facets", named)
        ordered = [found[row] for row in rows.tolist()]
        starts = np.cumsum([0, *(len(norms) // 4 for _, norms, _, _ in ordered)])
        norms_T = np.frombuffer(b"".join(norms for _, norms, _, _ in ordered), "<f4").astype(np.float32)
        codes = bytearray().join(units.ljust(len(norms) // 4 * record.dim, b"\0") for _, norms, _, units in ordered)
        codes_TD = np.frombuffer(codes, dtype=np.int8).reshape(-1, record.dim)
        read_spans = (
            None if blob is None else np.frombuffer(blob, "<u4").astype(np.int64).reshape(-1, 2)
            for _, _, blob, _ in ordered
        )
        return StoredFacets(codes_TD, norms_T, starts, tuple(read_spans))


def _compared(document: Document) -> tuple[object, ...]:
    """What makes two documents of one id equal; JSON tells 1 from True."""
    payload = json.dumps(document.payload, ensure_ascii=False, sort_keys=True)
    return document.text, tuple(document.parts), payload, document.source


def _decoded(stored: bytes | str | None) -> str:
    return stored if isinstance(stored, str) else (stored or b"").decode("utf-8", "replace")


def _json_list(rows: Ints) -> str:
    return json.dumps(rows.tolist())
