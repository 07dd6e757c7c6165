"""The document store: the source of truth for collections and documents, in SQLite or PostgreSQL.

Every write is one transaction that is on disk when the method returns, and gets the next revision of the data
directory.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from facets.arrays import Ints
from facets.documents.dialects import (
    KEPT_WRITES,
    POSTGRES,
    SQLITE,
    VERSION,
    Dialect,
    create_sqlite_tables,
    postgres_schema,
)
from facets.documents.encoding import EncodedBatch
from facets.documents.fields import terms_to_bytes
from facets.documents.records import (
    COLLECTION_COLUMNS,
    NO_ROWS,
    CollectionModel,
    CollectionRecord,
    CollectionState,
    DocumentRows,
    StoreWrite,
    collection_from,
)
from facets.documents.types import DocumentPart
from facets.documents.view import StoreView
from facets.errors import ConflictError, DamagedDocumentsError, DamagedError, NotFoundError
from facets.index.config import EngineConfig
from facets.storage.checksums import row_checksum
from facets.storage.database import Database, Schema
from facets.storage.directory import MANIFEST, DirectoryLock, DirectoryManifest
from facets.storage.postgres import PostgresDatabase
from facets.storage.sql import SqlConnection, SqlDatabase

STORE_FILE = "documents.sqlite3"
_NO_DOCUMENTS = DocumentRows(NO_ROWS, NO_ROWS)
_VERIFIED_AT_A_TIME = 256  # parts
_Row = tuple[object, ...]
_ROWS_AT_A_TIME = 2000  # held in memory
_MOVED_TABLES = ("collections", "documents", "parts")
Say = Callable[[str], None]
RecordFiles = Mapping[str, Schema]
"""Path pattern of record files, ``TASK/*/NAME`` -> their schema; ``*`` is the name of the model."""


def _insert(writer: "_Writer", record: CollectionRecord, batch: EncodedBatch, revisions: Sequence[int]) -> DocumentRows:
    """Inserts document i of a batch under ``revisions[i]``."""
    sql, counts = writer.sql, batch.num_parts
    num_rows = int(counts.sum())
    last_row_before = writer.advance("last_row", num_rows) - num_rows
    added = DocumentRows(last_row_before + 1 + np.cumsum(counts) - counts, counts)
    documents, parts = list[_Row](), list[_Row]()
    facets = zip(batch.spans, batch.terms, pairwise(batch.starts.tolist()), strict=True)
    for document, payload, num_parts, first_row, revision in zip(
        batch.documents, batch.payloads, counts.tolist(), added.firsts.tolist(), revisions, strict=True
    ):
        key = (first_row, record.number, revision)
        stats = document.token_stats
        num_tokens, num_read = (None, None) if stats is None else (stats.num_tokens_in_text, stats.num_tokens)
        values = (num_tokens, num_read, num_parts, document.source)
        checksum = row_checksum(*key, document.id, payload, *values)
        documents.append((*key, checksum, document.id, *sql.payload_values(payload), *values))
        whole = DocumentPart(start=0, end=len(document.text))
        for row, part in enumerate(document.parts if num_parts > 1 else (whole,), first_row):
            headings = json.dumps(part.headings, ensure_ascii=False)
            content = (first_row, part.start, part.page, headings, document.text[part.start : part.end])
            spans, terms, (start, end) = next(facets)
            codes = batch.codes[start:end].tobytes().rstrip(b"\0")  # a short text has zero facets at the end
            norms = batch.norms[start:end].astype("<f4").tobytes()
            span_bytes = None if spans is None else spans.astype("<u4").tobytes()
            checksums = (row_checksum(row, *content), row_checksum(row, norms, codes, span_bytes))
            parts.append((row, *content, *checksums, terms_to_bytes(terms), norms, span_bytes, codes))
    document_columns = f"id, {sql.payload_columns}, num_tokens, num_read, num_parts, source"
    part_columns = "document, start, page, headings, text, checksum, facets_checksum, terms, norms, spans, units"
    writer.connection.insert_rows("documents", f"row, collection, revision, checksum, {document_columns}", documents)
    writer.connection.insert_rows("parts", f"row, {part_columns}", parts)
    return added


class _Writer(StoreView):
    def advance(self, key: str, number: int = 1) -> int:
        """Adds a number to a counter; returns its new value."""
        statement = "UPDATE meta SET value = CAST(CAST(value AS bigint) + ? AS text) WHERE key = ?"
        self.connection.execute(statement, (number, key))
        return int(self.meta(key))

    def count_write(
        self,
        record: CollectionRecord,
        revision: int,
        *,
        added: DocumentRows = _NO_DOCUMENTS,
        removed: DocumentRows = _NO_DOCUMENTS,
    ) -> StoreWrite:
        """Updates revision and counts of a collection, and logs the write for the indexes of other servers.

        Raises as :meth:`collection_unchanged`.
        """
        num_added, num_removed = len(added.firsts), len(removed.firsts)
        new, old = added.parts, removed.parts
        cursor = self.connection.execute(
            "UPDATE collections SET revision = ?, num_documents = num_documents + ?, num_parts = num_parts + ? "
            "WHERE number = ? AND state = ?",
            (revision, num_added - num_removed, len(new) - len(old), record.number, record.state),
        )
        if not cursor.rowcount:  # another server deleted or moved it
            raise self._changed_meanwhile(record)
        if self.sql.is_shared:
            row = (revision, record.number, *(rows.astype("<i8").tobytes() for rows in (new, old)))
            self.connection.insert_rows("writes", "revision, collection, added, removed", [row])
            self.connection.execute("DELETE FROM writes WHERE revision <= ?", (revision - KEPT_WRITES,))
        return StoreWrite(revision=revision, added=new, removed=old, num_added=num_added, num_removed=num_removed)

    def insert_collection(self, values: Mapping[str, object]) -> CollectionRecord:
        values = {**values, "number": self.advance("last_collection")}
        marks = ", ".join("?" * len(values))
        cursor = self.connection.execute(
            f"INSERT INTO collections ({', '.join(values)}) VALUES ({marks}) RETURNING {COLLECTION_COLUMNS}",
            tuple(values.values()),
        )
        return collection_from(cursor.fetchone())

    def delete_documents(self, documents: DocumentRows) -> None:
        if not len(documents.firsts):
            return
        row_list = json.dumps(documents.parts.tolist())
        for table in ("parts", "documents"):
            self.connection.execute(f"DELETE FROM {table} WHERE {self.sql.row_in}", (row_list,))

    def rename(self, record: CollectionRecord, name: str, state: CollectionState) -> CollectionRecord:
        cursor = self.connection.execute(
            "UPDATE collections SET name = ?, state = ?, replaces = NULL WHERE number = ? "
            f"RETURNING {COLLECTION_COLUMNS}",
            (name, state, record.number),
        )
        row = cursor.fetchone()
        if row is None:
            raise self._changed_meanwhile(record)
        return collection_from(row)


class DocumentStore:
    """Collections and documents in one database; thread-safe, writes run one at a time."""

    def __init__(self, database: SqlDatabase, dialect: Dialect = SQLITE) -> None:
        self.database = database
        self._dialect = dialect
        self.is_shared = dialect.is_shared
        self.check_place, self.close = database.check_place, database.close
        self.hold_writes, self.alone, self.writes = database.hold_writes, database.alone, database.writes
        with self.view() as view:
            self.store_id = view.meta("store_id")

    @contextmanager
    def view(self) -> Iterator[StoreView]:
        """A consistent view for reading."""
        with self.database.read() as connection:
            yield StoreView(connection, self._dialect)

    @contextmanager
    def _write(self, *, frees_space: bool = False) -> Iterator[_Writer]:
        with self.database.write(frees_space=frees_space) as connection:
            yield _Writer(connection, self._dialect)

    def create_collection(self, name: str, model: CollectionModel) -> CollectionRecord:
        """Creates a collection; raises ConflictError if the name is taken."""
        values = {"name": name, "created_us": time.time_ns() // 1000}
        with self._write() as writer:
            if writer.connection.execute("SELECT 1 FROM collections WHERE name = ?", (name,)).fetchone():
                raise ConflictError(f"collection {name!r} exists already: expected a new name")
            return writer.insert_collection({**values, "revision": writer.advance("revision"), **model.columns()})

    def delete_collection(self, record: CollectionRecord) -> tuple[int, list[CollectionRecord]]:
        """Deletes a collection with its documents, and a copy being built; returns the revision, and both."""
        with self._write(frees_space=True) as writer:
            revision = writer.advance("revision")
            writer.count_write(record, revision)
            copy = writer.copy_of(record)
            deleted = [record] if copy is None else [copy, record]
            for one in deleted:
                writer.delete_documents(writer.document_rows(one))
                writer.connection.execute("DELETE FROM collections WHERE number = ?", (one.number,))
            return revision, deleted

    def upsert(
        self,
        record: CollectionRecord,
        batch: EncodedBatch,
        *,
        revisions: Sequence[int] | None = None,
        check: Callable[[], None] | None = None,
    ) -> StoreWrite:
        """Stores an encoded batch, replacing documents of the same ids; its language becomes that of a new collection.

        ``revisions``: of the documents; None: that of the write. ``check``: called in the transaction first; may raise.
        """
        with self._write() as writer:
            if check is not None:
                check()
            replaced = writer.documents_by_id(record, [document.id for document in batch.documents])
            writer.delete_documents(replaced)
            revision = writer.advance("revision")
            added = _insert(writer, record, batch, revisions or [revision] * len(batch.documents))
            write = writer.count_write(record, revision, added=added, removed=replaced)
            if record.language:
                return write
            statement = "UPDATE collections SET language = ? WHERE number = ?"
            writer.connection.execute(statement, (batch.language, record.number))
            return replace(write, language=batch.language)

    def delete(self, record: CollectionRecord, find: Callable[[StoreView], DocumentRows]) -> StoreWrite:
        """Deletes the documents that ``find`` finds in the transaction."""
        with self._write(frees_space=True) as writer:
            documents = find(writer)
            writer.delete_documents(documents)
            return writer.count_write(record, writer.advance("revision"), removed=documents)

    def begin_copy(self, record: CollectionRecord, model: CollectionModel) -> CollectionRecord:
        """Creates an empty copy of a collection for another model or other fields; it must be the only copy."""
        with self._write() as writer:
            current = writer.collection_unchanged(record)
            values = {"name": f"{record.name}#copy", "state": CollectionState.BUILDING, "replaces": record.number}
            values |= {"created_us": current.created_us, "revision": current.revision}
            return writer.insert_collection({**values, **model.columns()})

    def replace_by_copy(self, record: CollectionRecord, copy: CollectionRecord) -> CollectionRecord:
        """Gives a copy the name of its collection, which is retired; returns the new record of the copy."""
        with self._write() as writer:
            writer.rename(record, f"{record.name}#{record.number}", CollectionState.RETIRED)
            writer.count_write(copy, writer.advance("revision"))
            return writer.rename(copy, record.name, CollectionState.LIVE)

    def retire(self, record: CollectionRecord) -> None:
        """Hides a collection; :meth:`delete_retired` deletes it in small steps."""
        with self._write() as writer:
            writer.rename(record, f"{record.name}#{record.number}", CollectionState.RETIRED)

    def delete_retired(self, limit: int) -> bool:
        """Deletes up to ``limit`` documents of a retired collection, then the collection; False if there is none."""
        with self._write(frees_space=True) as writer:
            retired = next((one for one in writer.all_collections() if one.state is CollectionState.RETIRED), None)
            if retired is None:
                return False
            documents = writer.documents_where("collection = ? LIMIT ?", retired.number, limit)
            writer.delete_documents(documents)
            if len(documents.firsts) < limit:
                writer.connection.execute("DELETE FROM collections WHERE number = ?", (retired.number,))
        return True


def problems_in(view: StoreView) -> Iterator[str]:
    """Reads a whole document store and yields a description of each problem."""
    for record in view.all_collections():
        documents = view.document_rows(record)
        for what, expected, found in (
            ("documents", record.num_documents, len(documents.firsts)),
            ("parts", record.num_parts, len(view.existing(documents.parts))),
        ):
            if expected != found:
                yield f"collection {record.name} should have {expected} {what}, found {found}"
        for start in range(0, len(documents.parts), _VERIFIED_AT_A_TIME):
            yield from _damage(view, record, documents.parts[start : start + _VERIFIED_AT_A_TIME])


def _damage(view: StoreView, record: CollectionRecord, rows: Ints) -> Iterator[str]:
    for what, read in (("text or payload", view.passages), ("facets", partial(view.facets, record))):
        try:
            read(rows)
        except DamagedDocumentsError as error:
            for id in dict.fromkeys(error.damaged.values()):
                yield f"document {id!r} of collection {record.name}: {what} damaged: store it again, or delete it"


SCHEMA = Schema(
    title="document store",
    application_id=0x46414345,  # "FACE"
    version=VERSION,
    create=create_sqlite_tables,
    checked=("meta", "collections"),
    counter="SELECT value FROM meta WHERE key = 'revision'",
    inspect=lambda connection: problems_in(StoreView(connection)),  # type: ignore[arg-type]  # needs no insert_rows
)


def open_store(directory: Path, config: EngineConfig) -> DocumentStore:
    """Opens the store that the settings name; the caller has locked the directory.

    Raises ConflictError if the directory contains a store, but the settings name PostgreSQL; StorageError if the store
    cannot be opened, or the directory was created with another one.
    """
    url = config.store.get_secret_value()
    if url == "sqlite":
        manifest = DirectoryManifest(directory, STORE_FILE)
        manifest.check()
        store = DocumentStore(Database(directory / STORE_FILE, SCHEMA, max_bytes=config.max_database_bytes))
    else:
        manifest = DirectoryManifest(directory, "PostgreSQL")
        if (directory / STORE_FILE).exists():
            raise ConflictError(
                f"data directory {directory} contains {STORE_FILE}, and the settings name PostgreSQL as the store: "
                "expected one of the two; move its documents (facets-server migrate), or name another directory"
            )
        store = DocumentStore(PostgresDatabase(url, postgres_schema()), POSTGRES)
    try:
        manifest.agree(store.store_id)
    except BaseException:
        store.close()
        raise
    return store


def examine_postgres(url: str, directory: Path) -> Iterator[str]:
    """Yields lines that describe a PostgreSQL store; raises StorageError if a server could not use it."""
    with closing(PostgresDatabase(url, postgres_schema(), create=False)) as database:
        database.check_place()
        with database.read() as connection:
            store_id = StoreView(connection, POSTGRES).meta("store_id")
            [(standbys, commit, max_connections, promotions)] = connection.execute(
                "SELECT current_setting('synchronous_standby_names'), current_setting('synchronous_commit'), "
                "current_setting('max_connections'), (SELECT count(*) FROM promotions)"
            ).fetchall()
        yield f"{database.address} accepts writes; store {store_id}, promoted or restored {promotions} times"
        durability = (
            f"a write waits for standbys {standbys!r} ({commit})"
            if standbys
            else "no synchronous standby: losing the primary loses writes"
        )
        yield f"{durability}; max_connections {max_connections}, of which a server takes 18"
        if (directory / MANIFEST).exists():
            DirectoryManifest(directory, "PostgreSQL").agree(store_id)


def move_to_postgres(directory: Path, url: str, record_files: RecordFiles, *, say: Say) -> None:
    """Moves the stores of an unused directory into an empty database in one transaction, then renames their files.

    Rows keep their numbers, revisions and checksums, and the store keeps its id, so that indexes, page tokens and
    revisions stay valid.

    Raises ConflictError if the database holds a store, DamagedError if the copy differs from its source, NotFoundError
    if the directory has no store; then nothing was moved.
    """
    store_path = directory / STORE_FILE
    if not store_path.exists():
        raise NotFoundError(f"{store_path} is missing: expected a data directory with a store")
    files = [(path, schema) for pattern, schema in record_files.items() for path in directory.glob(pattern)]
    with closing(DirectoryLock(directory)), closing(PostgresDatabase(url, postgres_schema())) as target:
        with target.write() as writing:
            with closing(Database(store_path, SCHEMA)) as store, store.read() as reading:
                _copy_store(reading, writing, say)
            for path, schema in sorted(files, key=lambda file: file[0]):
                with closing(Database(path, schema)) as records, records.read() as reading:
                    _copy_rows(reading, writing, "record_owners")
                    say(f"{path.parent.name}: {_copy_rows(reading, writing, 'records')} records")
        for path in (store_path, *(path for path, _ in files)):
            path.rename(path.with_name(f"{path.name}.moved"))
    say(f"{store_path} is in PostgreSQL {target.address} now, and was renamed to {STORE_FILE}.moved")


def _copy_store(reading: SqlConnection, writing: SqlConnection, say: Say) -> None:
    source, target = StoreView(reading, SQLITE), StoreView(writing, POSTGRES)
    if target.all_collections() or target.last_row():
        raise ConflictError("the database holds a store already: expected an empty one")
    for table in _MOVED_TABLES:
        say(f"{table}: {_copy_rows(reading, writing, table)} rows")
    for key in ("store_id", "revision", "last_row", "last_collection"):
        writing.execute("UPDATE meta SET value = ? WHERE key = ?", (source.meta(key), key))
    problems = list(problems_in(target))
    for problem in problems:
        say(problem)
    if problems:
        raise DamagedError(f"{len(problems)} items of the copy are damaged: nothing was moved")
    records = target.all_collections()
    say(f"{len(records)} collections, {sum(record.num_documents for record in records)} documents: verified")


def _copy_rows(reading: SqlConnection, writing: SqlConnection, table: str) -> int:
    """Copies the rows of a table; returns their number."""
    cursors = [connection.execute(f"SELECT * FROM {table} LIMIT 0") for connection in (reading, writing)]
    names, known = ([column[0] for column in cursor.description] for cursor in cursors)
    names = [name for name in names if name in known]  # a checksum of a row stays behind
    selected = ", ".join(SQLITE.blob("text") if name == "text" else name for name in names)
    inserted = ", ".join(POSTGRES.payload_columns if name == "payload" else name for name in names)
    num_rows, cursor = 0, reading.execute(f"SELECT {selected} FROM {table} ORDER BY {names[0]}")
    while rows := cursor.fetchmany(_ROWS_AT_A_TIME):
        writing.insert_rows(table, inserted, [tuple(chain(*map(_converted, names, row))) for row in rows])
        num_rows += len(rows)
    return num_rows


def _converted(name: str, value: Any) -> tuple[Any, ...]:
    """The values of a column in PostgreSQL, which has the payload in two columns."""
    if name == "payload":
        return POSTGRES.payload_values(value)
    return (value.decode() if name == "text" else value,)
