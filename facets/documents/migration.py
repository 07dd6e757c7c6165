"""Moves the stores of a data directory into PostgreSQL, completely or not at all.

Rows keep their numbers, revisions and checksums, and the store keeps its id, so that indexes, page tokens and revisions
stay valid.
"""

from collections.abc import Callable, Mapping
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

from facets.documents.dialects import POSTGRES, SQLITE, postgres_schema
from facets.documents.store import SCHEMA, STORE_FILE, problems_in
from facets.documents.view import StoreView
from facets.errors import ConflictError, DamagedError, NotFoundError
from facets.storage.database import Database, Schema
from facets.storage.directory import DirectoryLock
from facets.storage.postgres import PostgresDatabase
from facets.storage.sql import SqlConnection

_ROWS_AT_A_TIME = 2000  # held in memory
_TABLES = ("collections", "documents", "document_parts", "facets", "facet_parts", "terms")
Say = Callable[[str], None]
RecordFiles = Mapping[str, Schema]
"""Path pattern of record files, ``TASK/*/NAME`` -> their schema; ``*`` is the name of the model."""


def move_to_postgres(directory: Path, url: str, record_files: RecordFiles, *, say: Say) -> None:
    """Moves the stores of an unused directory into an empty database in one transaction, then renames their files.

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
    """Copies the document store and verifies the copy."""
    source, target = StoreView(reading, SQLITE), StoreView(writing, POSTGRES)
    if target.all_collections() or target.last_row():
        raise ConflictError("the database holds a store already: expected an empty one")
    for table in _TABLES:
        say(f"{table}: {_copy_rows(reading, writing, table)} rows")
    for key in ("store_id", "revision"):
        writing.execute("UPDATE meta SET value = ? WHERE key = ?", (str(source.meta(key)), key))
    writing.execute("UPDATE row_sequence SET seq = ? WHERE name = 'documents'", (source.last_row(),))
    last = reading.execute("SELECT seq FROM sqlite_sequence WHERE name = 'collections'").fetchone()
    sequence = "pg_get_serial_sequence('collections', 'number')"
    writing.execute(f"SELECT setval({sequence}, ?::bigint, TRUE)", (max(1, last[0] if last else 0),))
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
