"""Moves the stores of a data directory into PostgreSQL and back, completely or not at all.

Rows keep their numbers, revisions and checksums, and the store keeps its id, so that indexes, page tokens and revisions
stay valid. If a move is interrupted, the same call continues it; servers refuse a store that is only partly moved.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

from facets.documents.dialects import POSTGRES, SQLITE, Dialect, postgres_schema
from facets.documents.store import SCHEMA, STORE_FILE, DocumentStore, problems_in
from facets.documents.view import StoreView
from facets.errors import ConflictError, DamagedError, NotFoundError
from facets.storage.database import Database, Schema
from facets.storage.directory import DirectoryLock
from facets.storage.files import make_private_directory
from facets.storage.postgres import PostgresDatabase
from facets.storage.sql import SqlConnection, SqlDatabase

_PARTIAL, _MOVED = ".part", ".moved"  # suffixes of files
_ROWS_AT_A_TIME = 2000  # copied in one transaction
_TABLES = ("collections", "documents", "document_parts", "facets", "facet_parts", "terms")
Say = Callable[[str], None]
RecordFiles = Mapping[str, Schema]
"""Path pattern of record files, ``TASK/*/NAME`` -> their schema; ``*`` is the name of the model."""


def move_to_postgres(directory: Path, url: str, record_files: RecordFiles, *, say: Say) -> None:
    """Moves the stores of an unused directory into an empty database, then renames their files.

    Raises ConflictError if the database holds anything else, DamagedError if a copy differs from its source (no file
    was renamed), NotFoundError if the directory has no store.
    """
    store_path = directory / STORE_FILE
    if not store_path.exists():
        raise NotFoundError(f"{store_path} is missing: expected a data directory with a store")
    with closing(DirectoryLock(directory)):
        with (
            closing(Database(store_path, SCHEMA)) as source,
            closing(PostgresDatabase(url, postgres_schema(), filling=True)) as target,
        ):
            _copy_store(source, SQLITE, target, POSTGRES, say)
            files = [(path, schema) for pattern, schema in record_files.items() for path in directory.glob(pattern)]
            for path, schema in sorted(files, key=lambda file: file[0]):
                with closing(Database(path, schema)) as records:
                    _copy_records(records, target, _owners(records), say)
            target.filled()
        for path in (store_path, *(path for path, _ in files)):
            path.rename(path.with_name(f"{path.name}{_MOVED}"))
    say(f"{store_path} is in PostgreSQL {target.address} now, and was renamed to {STORE_FILE}{_MOVED}")


def move_to_directory(url: str, directory: Path, record_files: RecordFiles, *, say: Say) -> None:
    """Moves stores back into a directory that has none; servers refuse the database from then on.

    Raises ConflictError if the directory has a store, DamagedError as :func:`move_to_postgres`.
    """
    store_path = directory / STORE_FILE
    if store_path.exists():
        raise ConflictError(f"{store_path} exists: expected a directory without a store")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with closing(DirectoryLock(directory)):
        with (
            closing(PostgresDatabase(url, postgres_schema())) as source,
            closing(Database(_partial(store_path), SCHEMA)) as target,
            source.hold_writes(),  # blocks writes of servers that still run
        ):
            _copy_store(source, POSTGRES, target, SQLITE, say)
            paths = [store_path]
            for owner in _owners(source):
                path, schema = _record_file(directory, owner, record_files)
                make_private_directory(path.parent.parent)
                make_private_directory(path.parent)
                with closing(Database(_partial(path), schema)) as records:
                    _copy_records(source, records, [owner], say)
                paths.append(path)
            source.moved()
        for path in paths:
            for suffix in ("", "-mark"):
                partial = path.with_name(f"{_partial(path).name}{suffix}")
                if partial.exists():
                    partial.rename(path.with_name(f"{path.name}{suffix}"))
    say(f"PostgreSQL {source.address} is in {store_path} now; servers refuse the database from now on")


def _partial(path: Path) -> Path:
    return path.with_name(f"{path.name}{_PARTIAL}")


def _record_file(directory: Path, owner: str, record_files: RecordFiles) -> tuple[Path, Schema]:
    """The file for the records of an owner, ``TASK/MODEL``."""
    task, _, model = owner.partition("/")
    pattern = next(Path(pattern) for pattern in record_files if Path(pattern).parts[0] == task)
    return directory / task / quote(model, safe="") / pattern.name, record_files[str(pattern)]


def _owners(database: SqlDatabase) -> list[str]:
    with database.read() as connection:
        return [name for (name,) in connection.execute("SELECT owner FROM record_owners ORDER BY owner")]


def _copy_records(source: SqlDatabase, target: SqlDatabase, owners: Sequence[str], say: Say) -> None:
    """Copies the records of some owners, replacing those of an interrupted move."""
    with source.read() as reading, target.write() as writing:
        for owner in owners:
            for table in ("record_owners", "records"):
                columns = ", ".join(_shared_columns(table, reading, writing))
                writing.execute(f"DELETE FROM {table} WHERE owner = ?", (owner,))
                rows = reading.execute(f"SELECT {columns} FROM {table} WHERE owner = ?", (owner,)).fetchall()
                writing.insert_rows(table, columns, rows)
            say(f"{owner}: {len(rows)} records")


def _copy_store(source: SqlDatabase, source_sql: Dialect, target: SqlDatabase, target_sql: Dialect, say: Say) -> None:
    """Copies the document store and verifies the copy."""
    with source.read() as reading:
        source_view = StoreView(reading, source_sql)
        with target.write() as writing:
            target_view, store_id = StoreView(writing, target_sql), source_view.meta("store_id")
            if target_view.all_collections() and target_view.meta("store_id") != store_id:
                raise ConflictError("the target holds another store: expected an empty one")
            last_rows = [
                connection.execute("SELECT max(row) FROM documents").fetchone()[0] or 0
                for connection in (reading, writing)
            ]
            if last_rows[0] < last_rows[1]:
                raise ConflictError("the target has documents that the source does not have: expected an empty one")
            writing.execute("UPDATE meta SET value = ? WHERE key = 'store_id'", (store_id,))
        for table in _TABLES:
            num_rows = sum(_copy_rows(reading, source_sql, target, target_sql, table))
            say(f"{table}: {num_rows} rows")
        with target.write() as writing:
            revision = source_view.revision()
            value = str(revision) if target_sql.is_shared else revision
            writing.execute("UPDATE meta SET value = ? WHERE key = 'revision'", (value,))
            writing.execute(f"DELETE FROM {target_sql.row_sequence} WHERE name = 'documents'")
            writing.insert_rows(target_sql.row_sequence, "name, seq", [("documents", source_view.last_row())])
            if target_sql.is_shared:
                last = reading.execute("SELECT seq FROM sqlite_sequence WHERE name = 'collections'").fetchone()
                sequence = "pg_get_serial_sequence('collections', 'number')"
                writing.execute(f"SELECT setval({sequence}, ?::bigint, TRUE)", (max(1, last[0] if last else 0),))
    with DocumentStore(target, target_sql).view() as view:
        problems = list(problems_in(view))
        records = view.all_collections()
    for problem in problems:
        say(problem)
    if problems:
        raise DamagedError(f"{len(problems)} items of the copy are damaged: the source is unchanged")
    say(f"{len(records)} collections, {sum(record.num_documents for record in records)} documents: verified")


def _copy_rows(
    reading: SqlConnection, source_sql: Dialect, target: SqlDatabase, target_sql: Dialect, table: str
) -> Iterator[int]:
    """Copies the rows of a table that the target does not have yet; yields the number of rows copied in each step."""
    with target.read() as connection:
        names = _shared_columns(table, reading, connection)
        key = names[0]
        last = connection.execute(f"SELECT max({key}) FROM {table}").fetchone()[0] or 0
    selected = ", ".join(source_sql.blob("text") if name == "text" else name for name in names)
    inserted = ", ".join(names)
    if table == "documents":  # PostgreSQL has the payload in two columns
        inserted = inserted.replace("payload", target_sql.payload_columns)
    statement = f"SELECT {selected} FROM {table} WHERE {key} > ? ORDER BY {key} LIMIT ?"

    def converted(name: str, value: Any) -> tuple[Any, ...]:
        if name == "payload":
            return target_sql.payload_values(value)
        return (value.decode() if name == "text" else value,)

    while rows := reading.execute(statement, (last, _ROWS_AT_A_TIME)).fetchall():
        last = rows[-1][0]
        with target.write() as connection:
            connection.insert_rows(table, inserted, [tuple(chain(*map(converted, names, row))) for row in rows])
        yield len(rows)


def _shared_columns(table: str, *connections: SqlConnection) -> list[str]:
    """The columns of a table in both databases, its key first."""
    cursors = [connection.execute(f"SELECT * FROM {table} LIMIT 0") for connection in connections]
    names, others = ([column[0] for column in cursor.description] for cursor in cursors)
    return [name for name in names if name in others]
