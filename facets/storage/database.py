"""SQLite files: opening, schema versions, durable transactions, and errors in one clear sentence."""

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from facets.errors import DamagedError, DiskFullError, StorageError, StoreClosedError, StoreInUseError
from facets.storage.files import clear_errors, sync_directory

__all__ = ["Database", "Migration", "Schema"]

_PAGE_SIZE = 4096  # measured with facets of 10 x 256: 2 % overhead; pages of 8192 leave a third empty
_CHECKPOINT_PAGES = 4096  # move the log into the file every 16 MB
_BUSY_TIMEOUT_S = 30.0
_QUICK_CHECK_BYTES = 16 * 1024 * 1024  # smaller files are checked whole at opening: some 20 ms

Migration = str | Callable[[sqlite3.Connection], None]


@dataclass(frozen=True, kw_only=True)
class Schema:
    """What a kind of file holds, and how each version is made of the one before.

    Attributes:
        title: What messages call the file, e.g. ``document store``.
        application_id: In the header of the file: sets it apart from other SQLite files.
        migrations: Entry i makes version i + 1 of version i: SQL statements, or a function of the connection. Version
            0 is an empty file. Entries are only ever appended: files made by each of them exist.
        unmarked_tables: Tables of files of version 1 that were made without an application id; empty when there
            are none of these.
    """

    title: str
    application_id: int
    migrations: Sequence[Migration]
    unmarked_tables: frozenset[str] = frozenset()

    @property
    def version(self) -> int:
        """The version that is written."""
        return len(self.migrations)


class Database:
    """One writer connection and a pool of readers on one SQLite file (write-ahead log, full sync); thread-safe."""

    def __init__(self, path: Path, schema: Schema, *, max_bytes: int | None = None) -> None:
        """Opens the file, creating it when absent and bringing an older version up to date.

        Args:
            path: The file; its folder exists.
            schema: What it holds.
            max_bytes: The file never grows beyond this; None leaves it to the disk.

        Raises:
            DamagedError: The file is damaged or no SQLite file.
            StorageError: It is another program's, of a newer version, or cannot be written.
        """
        self._path = path
        self._title = schema.title
        self._readers: list[sqlite3.Connection] = []
        self._readers_lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._closed = False
        with self._clear_errors("open"):
            self._writer = self._connect()
            try:
                self._prepare(schema)
                if max_bytes is not None:
                    self._writer.execute(f"PRAGMA max_page_count = {max(1, max_bytes // _PAGE_SIZE)}")
            except BaseException:
                self._writer.close()
                raise
        sync_directory(path.parent)

    def _connect(self) -> sqlite3.Connection:
        # autocommit: transactions are ours to begin; the pool hands a connection to one thread at a time
        connection = sqlite3.connect(self._path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        try:
            connection.execute(f"PRAGMA page_size = {_PAGE_SIZE}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            connection.execute("PRAGMA cell_size_check = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, schema: Schema) -> None:
        """Checks whose file it is and whether it is whole, and migrates it in one transaction."""
        version = self._version(schema)
        if version and self._path.stat().st_size <= _QUICK_CHECK_BYTES:
            answer = self._writer.execute("PRAGMA quick_check(1)").fetchone()[0]
            if answer != "ok":
                reason = " ".join(str(answer).split())
                raise DamagedError(f"{self._title} {self._path} is damaged: restore it from a backup ({reason})")
        if version < schema.version or not self._pragma("application_id"):
            with self.write() as connection:
                for migration in schema.migrations[version:]:
                    _migrate(connection, migration)
                connection.execute(f"PRAGMA application_id = {schema.application_id}")
                connection.execute(f"PRAGMA user_version = {schema.version}")

    def _version(self, schema: Schema) -> int:
        """The version of the file, 0 for an empty one."""
        tables = {name for (name,) in self._writer.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        if not tables:
            return 0
        application, version = self._pragma("application_id"), self._pragma("user_version")
        if application == 0 and version <= 1 and tables == schema.unmarked_tables:
            return 1
        if application != schema.application_id:
            raise StorageError(f"{self._path} is not a Facets {self._title}: expected one, or no file at all")
        if not 1 <= version <= schema.version:
            raise StorageError(
                f"{self._title} {self._path} has version {version}, expected at most {schema.version}: "
                "use the release that wrote it, or a newer one"
            )
        return version

    def _pragma(self, name: str) -> int:
        return int(self._writer.execute(f"PRAGMA {name}").fetchone()[0])

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One durable transaction: all of it is on disk when the block ends, or none of it after an error.

        Raises:
            StorageError: One of its subclasses where the reason is known; nothing was stored.
        """
        with self._write_lock, self._clear_errors("write"):
            self._check_open()
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            finally:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """One consistent view of the file, beside any writer.

        Raises:
            StorageError: One of its subclasses where the reason is known.
        """
        with self._clear_errors("read"):
            with self._readers_lock:
                self._check_open()
                connection = self._readers.pop() if self._readers else None
            if connection is None:
                connection = self._connect()
                connection.execute("PRAGMA query_only = ON")
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                with self._readers_lock:
                    if self._closed:
                        connection.close()
                    else:
                        self._readers.append(connection)

    def close(self) -> None:
        """Closes every connection; the log moves into the file. Idempotent."""
        with self._write_lock, self._readers_lock:
            if self._closed:
                return
            self._closed = True
            for connection in self._readers:
                connection.close()
            self._readers.clear()
            with self._clear_errors("close"):
                self._writer.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError(f"{self._title} {self._path} is closed: expected an open one")

    @contextmanager
    def _clear_errors(self, action: str) -> Iterator[None]:
        what = f"cannot {action} {self._title} {self._path}"
        try:
            with clear_errors(what):
                yield
        except sqlite3.Error as error:
            kind, reason = _explain(error)
            raise kind(f"{what}: {reason}") from error


def _migrate(connection: sqlite3.Connection, migration: Migration) -> None:
    if callable(migration):
        migration(connection)
        return
    for statement in migration.split(";\n"):  # executescript would end the transaction
        connection.execute(statement)


def _explain(error: sqlite3.Error) -> tuple[type[StorageError], str]:
    """What happened and what became of the data, in words."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return DiskFullError, "the disk or its quota is full; nothing of this call was stored, earlier writes are kept"
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return DamagedError, f"the file is damaged, restore it from a backup ({error})"
    if code == sqlite3.SQLITE_CANTOPEN:  # SQLite keeps the cause to itself; opening the file to look drops its locks
        reason = "the folder is missing, the user has no right to it, or too many files are open"
        return StorageError, f"the file cannot be opened: {reason} ({error})"
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return StorageError, f"the file is not writable for this user ({error})"
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreInUseError, f"another process has the file open and is writing it ({error})"
    if code == sqlite3.SQLITE_IOERR:
        return StorageError, f"the disk failed or is full, nothing of this call was stored ({error})"
    return StorageError, str(error)
