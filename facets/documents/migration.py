"""Moving the stores of a data directory into PostgreSQL, and back: line by line, whole, or not at all.

Lines keep their numbers, revisions and checksums, and the store its name, so that indexes, page tokens and revisions of
callers stay good. Interrupted, the same call goes on where it ended; no server opens a store that is half there.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from facets.documents.dialects import POSTGRES, postgres_schema
from facets.documents.records import CollectionRecord
from facets.documents.store import SCHEMA, DocumentStore, problems_in
from facets.errors import ConflictError, DamagedError, NotFoundError
from facets.storage import (
    Database,
    DirectoryLock,
    PostgresDatabase,
    Schema,
    SqlConnection,
    SqlDatabase,
    make_private_directory,
)

_STORE, _PART, _MOVED = "documents.sqlite3", ".part", ".moved"
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
_RECORDS = {"record_owners": "owner, writes, renewed", "records": "owner, kind, key, written, value"}
Say = Callable[[str], None]
Kept = Mapping[str, Schema]
"""Pattern of files of records, ``TASK/*/NAME``, -> what they hold; the folder is the name of their model."""


def move_to_postgres(directory: Path, url: str, kept: Kept, *, say: Say) -> None:
    """Moves the stores of a directory that no server uses into an empty database; then sets their files aside.

    Raises:
        ConflictError: The database holds another store, or more than an earlier call of this kind brought.
        DamagedError: What arrived is not what was there; nothing was set aside.
        NotFoundError: The directory has no store.
        StorageError: One of the two cannot be read or written: the same call again goes on.
    """
    with closing(DirectoryLock(_existing(directory / _STORE).parent)):
        with (
            closing(Database(directory / _STORE, SCHEMA)) as source,
            closing(PostgresDatabase(url, postgres_schema(), filling=True)) as target,
        ):
            _copy(source, target, DocumentStore(source), say)
            _check(DocumentStore(target, dialect=POSTGRES), say)
            files = [(path, schema) for pattern, schema in kept.items() for path in sorted(directory.glob(pattern))]
            for path, schema in files:
                _copy_records(Database(path, schema), target, [], say)
            target.filled()
        for path in (directory / _STORE, *(path for path, _ in files)):
            path.rename(path.with_name(f"{path.name}{_MOVED}"))
    say(f"{directory / _STORE} is in PostgreSQL {target.address} now, and set aside as {_STORE}{_MOVED}")


def move_to_directory(url: str, directory: Path, kept: Kept, *, say: Say) -> None:
    """Moves stores back into a directory without any; servers refuse the database from then on.

    Raises:
        ConflictError: The directory has a store.
        DamagedError, StorageError: See :func:`move_to_postgres`.
    """
    if (directory / _STORE).exists():
        raise ConflictError(f"{directory / _STORE} exists: expected a directory without a store")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with closing(DirectoryLock(directory)):
        store = directory / _STORE
        with (
            closing(PostgresDatabase(url, postgres_schema())) as source,
            closing(Database(_part_of(store), SCHEMA)) as target,
            source.hold_writes(),  # of servers that still run
        ):
            _copy(source, target, DocumentStore(source, dialect=POSTGRES), say)
            _check(DocumentStore(target), say)
            with source.read() as lines:
                owners = [name for (name,) in lines.execute("SELECT owner FROM record_owners ORDER BY owner")]
            found = [(owner, *_file_of(directory, owner, kept)) for owner in owners]
            for owner, path, schema in found:
                make_private_directory(path.parent.parent)
                make_private_directory(path.parent)
                _copy_records(source, Database(_part_of(path), schema), [owner], say)
            source.moved()
        for path in (store, *(path for _, path, _ in found)):
            for suffix in ("", "-mark"):
                part = path.with_name(f"{_part_of(path).name}{suffix}")
                if part.exists():
                    part.rename(path.with_name(f"{path.name}{suffix}"))
    say(f"PostgreSQL {source.address} is in {directory / _STORE} now; servers refuse the database from now on")


def _part_of(path: Path) -> Path:
    return path.with_name(f"{path.name}{_PART}")


def _file_of(directory: Path, owner: str, kept: Kept) -> tuple[Path, Schema]:
    """Where the records of an owner, ``TASK/MODEL``, are kept in a directory."""
    task, _, model = owner.partition("/")
    pattern = next(Path(pattern) for pattern in kept if Path(pattern).parts[0] == task)
    return directory / task / quote(model, safe="") / pattern.name, kept[str(pattern)]


def _copy_records(source: SqlDatabase, target: SqlDatabase, owners: Sequence[str], say: Say) -> None:
    """Copies the records of some owners, or of all, over those that an earlier try has left; closes the file."""
    try:
        with source.read() as lines, target.write() as connection:
            held = owners or [name for (name,) in lines.execute("SELECT owner FROM record_owners")]
            for owner in held:
                for table, columns in _RECORDS.items():
                    connection.execute(f"DELETE FROM {table} WHERE owner = ?", (owner,))
                    found = lines.execute(f"SELECT {columns} FROM {table} WHERE owner = ?", (owner,)).fetchall()
                    marks = ", ".join("?" * len(columns.split(", ")))
                    connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", found)
                say(f"{owner}: {len(found)} records")
    finally:
        (target if isinstance(source, PostgresDatabase) else source).close()


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
    with store.view() as view:
        problems = list(problems_in(view))
        records: list[CollectionRecord] = view.all_collections()
    for problem in problems:
        say(problem)
    if problems:
        raise DamagedError(f"{len(problems)} things did not arrive as they were: the source is as it was")
    say(f"{len(records)} collections, {sum(record.num_documents for record in records)} documents: all as they were")
