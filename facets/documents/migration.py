"""Moving a document store from a data directory into PostgreSQL, and back: line by line, whole, or not at all.

Lines keep their numbers, revisions and checksums, and the store its name, so that indexes, page tokens and revisions of
callers stay good. Interrupted, the same call goes on where it ended; no server opens a store that is half there.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from facets.documents.dialects import POSTGRES, postgres_schema
from facets.documents.records import CollectionRecord
from facets.documents.store import SCHEMA, DocumentStore, problems_in
from facets.errors import ConflictError, DamagedError, NotFoundError
from facets.storage import Database, DirectoryLock, PostgresDatabase, SqlConnection, SqlDatabase

_STORE, _PART, _MOVED = "documents.sqlite3", "documents.sqlite3.part", "documents.sqlite3.moved"
_LINES = 2000  # copied in one transaction
# Table -> its key, and its other columns; "text" is bytes in one of the two.
_TABLES = {
    "collections": (
        "number",
        "name, model, model_revision, space, code, num_facets, dim, created_us, config, search_fields, revision, "
        "num_documents, num_parts, state, replaces",
    ),
    "documents": ("row", "collection, id, revision, checksum, payload, num_tokens, num_read, num_parts, text"),
    "document_parts": ("row", "document, checksum, start, page, headings, text"),
    "facets": ("row", "checksum, norms, units, spans"),
    "facet_parts": ("part", "units"),
    "terms": ("row", "terms"),
}
Say = Callable[[str], None]


def move_to_postgres(directory: Path, url: str, say: Say) -> None:
    """Moves the store of a directory that no server uses into an empty database; then sets its file aside.

    Raises:
        ConflictError: The database holds another store, or more than an earlier call of this kind brought.
        DamagedError: What arrived is not what was there; nothing was set aside.
        NotFoundError: The directory has no store.
        StorageError: One of the two cannot be read or written: the same call again goes on.
    """
    lock = DirectoryLock(_existing(directory / _STORE).parent)
    try:
        source, target = Database(directory / _STORE, SCHEMA), PostgresDatabase(url, postgres_schema(), filling=True)
        try:
            _copy(source, target, DocumentStore(source), say)
            _check(DocumentStore(target, dialect=POSTGRES), say)
            target.filled()
        finally:
            target.close()
            source.close()
        (directory / _STORE).rename(directory / _MOVED)
    finally:
        lock.close()
    say(f"{directory / _STORE} is in PostgreSQL {target.address} now, and set aside as {_MOVED}")


def move_to_directory(url: str, directory: Path, say: Say) -> None:
    """Moves a store back into a directory without one; servers refuse the database from then on.

    Raises:
        ConflictError: The directory has a store.
        DamagedError, StorageError: See :func:`move_to_postgres`.
    """
    if (directory / _STORE).exists():
        raise ConflictError(f"{directory / _STORE} exists: expected a directory without a store")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = DirectoryLock(directory)
    try:
        source, target = PostgresDatabase(url, postgres_schema()), Database(directory / _PART, SCHEMA)
        try:
            with source.hold_writes():  # of servers that still run
                _copy(source, target, DocumentStore(source, dialect=POSTGRES), say)
                _check(DocumentStore(target), say)
                source.moved()
        finally:
            target.close()
            source.close()
        for suffix in ("", "-mark"):
            part = directory / f"{_PART}{suffix}"
            if part.exists():
                part.rename(directory / f"{_STORE}{suffix}")
    finally:
        lock.close()
    say(f"PostgreSQL {source.address} is in {directory / _STORE} now; servers refuse the database from now on")


def _existing(path: Path) -> Path:
    if not path.exists():
        raise NotFoundError(f"{path} is missing: expected a data directory with a store")
    return path


def _copy(source: SqlDatabase, target: SqlDatabase, store: DocumentStore, say: Say) -> None:
    with source.read() as lines, target.write() as connection:
        _claim(lines, connection, store.store_id)
    with source.read() as lines:
        for table, (key, columns) in _TABLES.items():
            num_lines = sum(_copy_some(lines, target, table, key, columns))
            say(f"{table}: {num_lines} lines")
        with target.write() as connection:
            _finish(lines, connection, isinstance(target, PostgresDatabase))


def _claim(source: SqlConnection, target: SqlConnection, store_id: str) -> None:
    """Gives the target the name of the source, unless it is another store."""
    [(found,)] = target.execute("SELECT value FROM meta WHERE key = 'store_id'").fetchall()
    [(collections,)] = target.execute("SELECT count(*) FROM collections").fetchall()
    if collections and found != store_id:
        raise ConflictError("the target holds another store: expected an empty one")
    target.execute("UPDATE meta SET value = ? WHERE key = 'store_id'", (store_id,))
    largest = [one.execute("SELECT max(row) FROM documents").fetchone()[0] or 0 for one in (source, target)]
    if largest[0] < largest[1]:
        raise ConflictError("the target has documents that the source has not: expected an empty one")


def _copy_some(source: SqlConnection, target: SqlDatabase, table: str, key: str, columns: str) -> Iterator[int]:
    """Copies what the target has not yet, some lines at a time; yields how many."""
    names = columns.split(", ")
    read = ", ".join("CAST(text AS BLOB)" if name == "text" else name for name in names)
    derived = POSTGRES.derived if table == "documents" and isinstance(target, PostgresDatabase) else ""
    marks = ", ".join("?" * (1 + len(names) + bool(derived)))
    with target.read() as connection:
        last = connection.execute(f"SELECT max({key}) FROM {table}").fetchone()[0] or 0
    while True:
        cursor = source.execute(
            f"SELECT {key}, {read} FROM {table} WHERE {key} > ? ORDER BY {key} LIMIT ?", (last, _LINES)
        )
        lines = cursor.fetchall()
        if not lines:
            return
        last = lines[-1][0]
        if names[-1] == "text":
            lines = [(*line[:-1], line[-1].decode()) for line in lines]
        if derived:
            place = 1 + names.index("payload")
            lines = [(*line, *POSTGRES.derive(line[place])) for line in lines]
        with target.write() as connection:
            connection.executemany(f"INSERT INTO {table} ({key}, {columns}{derived}) VALUES ({marks})", lines)
        yield len(lines)


def _finish(source: SqlConnection, target: SqlConnection, is_postgres: bool) -> None:
    """The numbers that stand for no line: revision, next row, next collection."""
    [(revision,)] = source.execute("SELECT value FROM meta WHERE key = 'revision'").fetchall()
    value = str(revision) if is_postgres else int(revision)
    target.execute("UPDATE meta SET value = ? WHERE key = 'revision'", (value,))
    found = source.execute("SELECT seq FROM sqlite_sequence WHERE name = 'documents'").fetchone()
    seq = found[0] if found else 0
    target.execute("DELETE FROM sqlite_sequence WHERE name = 'documents'")
    target.execute("INSERT INTO sqlite_sequence (name, seq) SELECT 'documents', ?", (seq,))
    if is_postgres:
        last = source.execute("SELECT seq FROM sqlite_sequence WHERE name = 'collections'").fetchone()
        sequence = "pg_get_serial_sequence('collections', 'number')"
        target.execute(f"SELECT setval({sequence}, ?::bigint, TRUE)", (max(1, last[0] if last else 0),))


def _check(store: DocumentStore, say: Say) -> None:
    """Compares everything that arrived with its checksums."""
    with store.view() as view:
        problems = list(problems_in(view))
        records: list[CollectionRecord] = view.all_collections()
    for problem in problems:
        say(problem)
    if problems:
        raise DamagedError(f"{len(problems)} things did not arrive as they were: the source is as it was")
    say(f"{len(records)} collections, {sum(record.num_documents for record in records)} documents: all as they were")
