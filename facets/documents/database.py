"""The SQLite file of a data directory: opening, locking, transactions, and errors in one clear sentence."""

import fcntl
import os
import sqlite3
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from facets.errors import StorageError

__all__ = ["Database", "DirectoryLock", "sync_directory"]

_APPLICATION_ID = 0x46414345  # "FACE" in the header: tells our files from other SQLite files
_SCHEMA_VERSION = 1
_PAGE_SIZE = 4096  # measured with facets of 10 x 256: 2 % overhead; pages of 8192 leave a third empty
_CHECKPOINT_PAGES = 4096  # move the log into the file every 16 MB
_BUSY_TIMEOUT_S = 30.0
_QUICK_CHECK_BYTES = 16 * 1024 * 1024  # smaller files are checked whole at opening: some 20 ms

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE collections (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    model TEXT NOT NULL,
    model_revision TEXT NOT NULL,
    num_facets INTEGER NOT NULL,
    dim INTEGER NOT NULL,
    created_us INTEGER NOT NULL,
    config TEXT NOT NULL
);
-- A write of a document always takes a new row, so a row number stands for one unchanging set of facets.
CREATE TABLE documents (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    collection INTEGER NOT NULL,
    id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    payload TEXT NOT NULL,
    text TEXT NOT NULL
);
CREATE UNIQUE INDEX documents_by_id ON documents (collection, id);
-- Apart from the documents, so that listing and filtering never read over them.
CREATE TABLE facets (
    row INTEGER PRIMARY KEY,
    checksum INTEGER NOT NULL,
    norms BLOB NOT NULL,
    units BLOB NOT NULL
);
"""


def sync_directory(directory: Path) -> None:
    """Makes the names of new files in a directory survive a power loss, which SQLite leaves to its caller."""
    handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class DirectoryLock:
    """Exclusive use of a data directory, held until closed or until the process dies however it dies."""

    def __init__(self, data_dir: Path) -> None:
        """Takes the lock.

        Raises:
            StorageError: Another process has it, or the directory cannot be written.
        """
        path = data_dir / "lock"
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StorageError(f"data directory {data_dir} cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            pid = os.pread(self._file, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._file)
            raise StorageError(
                f"data directory {data_dir} is in use by process {pid}: expected it free; stop that process or "
                "choose another directory"
            ) from error
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()}\n".encode("ascii"), 0)
        except OSError as error:
            os.close(self._file)
            raise StorageError(f"data directory {data_dir} cannot be written: {error.strerror}") from error

    def close(self) -> None:
        """Gives the directory back. The file stays: removing it would let two processes hold two locks."""
        os.close(self._file)


class Database:
    """One writer connection and a pool of readers on one SQLite file (write-ahead log, full sync)."""

    def __init__(self, path: Path, *, max_bytes: int | None = None) -> None:
        """Opens the file, creating it when absent.

        Raises:
            StorageError: It is not ours, of a newer version, damaged, or cannot be written.
        """
        self._path = path
        self._readers: list[sqlite3.Connection] = []
        self._readers_lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._closed = False
        with self._clear_errors("open"):
            self._writer = self._connect()
            try:
                self._prepare(max_bytes)
            except BaseException:
                self._writer.close()
                raise
        sync_directory(path.parent)

    def _connect(self) -> sqlite3.Connection:
        # autocommit: transactions are ours to begin; the pool hands a connection to one thread at a time
        connection = sqlite3.connect(self._path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        connection.execute(f"PRAGMA page_size = {_PAGE_SIZE}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        connection.execute("PRAGMA cell_size_check = ON")
        return connection

    def _prepare(self, max_bytes: int | None) -> None:
        writer = self._writer
        version = int(writer.execute("PRAGMA user_version").fetchone()[0])
        application = int(writer.execute("PRAGMA application_id").fetchone()[0])
        tables = int(writer.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])
        if tables == 0:
            with self.write() as connection:
                for statement in _SCHEMA.split(";\n"):
                    connection.execute(statement)
                connection.execute("INSERT INTO meta VALUES ('store_id', ?)", (uuid.uuid4().hex,))
                connection.execute("INSERT INTO meta VALUES ('revision', 0)")
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        elif application != _APPLICATION_ID:
            raise StorageError(f"{self._path} is not a Facets document store: expected one, or no file at all")
        elif version != _SCHEMA_VERSION:
            raise StorageError(
                f"document store {self._path} has version {version}, expected {_SCHEMA_VERSION}: "
                "use the release that wrote it, or a newer one"
            )
        elif self._path.stat().st_size <= _QUICK_CHECK_BYTES:
            answer = writer.execute("PRAGMA quick_check(1)").fetchone()[0]
            if answer != "ok":
                told = " ".join(str(answer).split())
                raise StorageError(f"document store {self._path} is damaged: restore it from a backup ({told})")
        if max_bytes is not None:
            writer.execute(f"PRAGMA max_page_count = {max(1, max_bytes // _PAGE_SIZE)}")

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One durable transaction: all of it is on disk when the block ends, or none of it after an error.

        Raises:
            StorageError: Disk full, damaged page, closed, and the like; nothing was stored.
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
        """One consistent view of the store, beside any writer.

        Raises:
            StorageError: Damaged page, closed, and the like.
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
        """Closes every connection; the log moves into the file."""
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
            raise StorageError(f"document store {self._path} is closed: expected an open one")

    @contextmanager
    def _clear_errors(self, action: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StorageError(f"cannot {action} document store {self._path}: {_explain(error)}") from error


def _explain(error: sqlite3.Error) -> str:
    """What happened and what became of the data, in words."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return "the disk or its quota is full; nothing of this call was stored, earlier writes are kept"
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return f"the file is damaged, restore it from a backup ({error})"
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return f"the file is not writable for this user ({error})"
    if code == sqlite3.SQLITE_IOERR:
        return f"the disk failed or is full, nothing of this call was stored ({error})"
    return str(error)
