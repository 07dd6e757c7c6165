"""SQLite files: opening, schema, durable transactions, and errors with their cause."""

import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from facets.errors import DamagedError, DiskFullError, StoreClosedError, StoreFormatError, StoreGoneError
from facets.storage.checksums import damaged_rows, register_checksum
from facets.storage.files import clear_errors, explain, make_private_file, place_of, sync_directory, write_whole
from facets.storage.mark import HighWaterMark

_PAGE_SIZE = 4096  # measured with facets of 10 x 256: 2 % overhead; pages of 8192 leave a third empty
_CHECKPOINT_PAGES = 4096  # moves the log into the file every 16 MB
_BUSY_TIMEOUT_S = 30.0
_RESERVE_BYTES = 2 * _CHECKPOINT_PAGES * _PAGE_SIZE  # the log may grow to twice its size before the disk is full
_FULL_CHECK_BYTES = 16 * 1024 * 1024  # smaller files are checked completely when opened: about 40 ms


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The content of a kind of SQLite file."""

    title: str  # used in messages, e.g. `document store`
    application_id: int  # in the header of the file: distinguishes it from other SQLite files
    create: Callable[[sqlite3.Connection], None]  # creates the tables in an empty file
    version: int = 1  # of these tables; in the header of the file
    checked: Sequence[str] = ()  # tables with row checksums, which are verified when the file is opened
    # Query that returns the number of writes, which every write increases; with it a `HighWaterMark` detects lost
    # writes. Empty: writes are not counted.
    counter: str = ""
    # Reads everything else that has checksums and yields descriptions of the damage.
    inspect: Callable[[sqlite3.Connection], Iterator[str]] | None = None

    def num_writes(self, connection: sqlite3.Connection) -> int:
        """The number of writes that a file has seen; 0 without tables."""
        try:
            row = connection.execute(self.counter).fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
                raise
            return 0  # no such table
        return int(row[0]) if row else 0


class SqliteConnection(sqlite3.Connection):
    """A connection inside one transaction; each ``?`` in a statement is replaced by a value."""

    def insert_rows(self, table: str, columns: str, rows: Iterable[Any]) -> None:
        """Inserts many rows; ``columns`` are their names, separated by commas."""
        marks = ", ".join("?" * (columns.count(",") + 1))
        self.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", rows)


class Database:
    """One writer connection and a pool of readers on one SQLite file (write-ahead log, full sync); thread-safe."""

    def __init__(self, path: Path, schema: Schema, *, max_bytes: int | None = None) -> None:
        """Opens the file, whose folder exists; creates it when missing. ``max_bytes``: its maximum size.

        Raises DamagedError if it is damaged or not a SQLite file, or writes are missing according to its log or mark;
        StorageError if it belongs to another program, has another version, or cannot be written.
        """
        self._path = path
        self._title = schema.title
        self._schema = schema
        self._mark = HighWaterMark(path)
        self._reserve = path.with_name(f"{path.name}-reserve")
        self._readers: list[SqliteConnection] = []
        self._readers_lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._closed = False
        with self._clear_errors("open"):
            self._check_before_opening()
            make_private_file(path)  # SQLite gives its log the same permissions
            self._writer = self._connect("rwc")
            try:
                self._place = place_of(path)
                self._prepare()
                if max_bytes is not None:
                    self._writer.execute(f"PRAGMA max_page_count = {max(1, max_bytes // _PAGE_SIZE)}")
            except BaseException:
                self._writer.close()
                raise
        sync_directory(path.parent)

    def _check_before_opening(self) -> None:
        """Rejects a file that SQLite would silently treat as empty or whose log it would truncate."""
        path, log = self._path, self._path.with_name(f"{self._path.name}-wal")
        size = path.stat().st_size if path.exists() else None
        if size:
            # A journal is left if power failed while the log was created; only a writer can roll it back.
            if not path.with_name(f"{path.name}-journal").exists():
                with closing(self._connect("ro")) as connection:
                    self._check_count(connection)
            return
        state = "missing" if size is None else "empty"
        expected_writes, log_size = self._mark.read(), log.stat().st_size if log.exists() else 0
        if expected_writes is not None or log_size:
            witness = log if expected_writes is None else self._mark.path
            writes = f" with {expected_writes} writes" if expected_writes else ""
            raise DamagedError(
                f"{self._title} {path} is {state}, but {witness.name} shows that it existed{writes}: restore it from a "
                f"backup, or delete {witness} to start with an empty one"
            )

    def _connect(self, mode: Literal["rwc", "rw", "ro"]) -> SqliteConnection:
        # Autocommit: we begin transactions ourselves. The pool gives a connection to one thread at a time.
        connection = sqlite3.connect(
            f"{self._path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=_BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
            factory=SqliteConnection,
        )
        if mode == "ro":
            return connection
        try:
            register_checksum(connection)
            connection.execute(f"PRAGMA page_size = {_PAGE_SIZE}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            connection.execute("PRAGMA cell_size_check = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self) -> None:
        """Creates the tables in an empty file; checks owner, version and integrity of any other file."""
        is_empty = not self._writer.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' LIMIT 1").fetchone()
        if not is_empty:
            self._check_content()
        self._check_count(self._writer)
        if is_empty:
            with self.write() as connection:
                self._schema.create(connection)
                connection.execute(f"PRAGMA application_id = {self._schema.application_id}")
                connection.execute(f"PRAGMA user_version = {self._schema.version}")
        self._note_count()

    def _check_content(self) -> None:
        application, version = pragma(self._writer, "application_id"), pragma(self._writer, "user_version")
        if application != self._schema.application_id:
            raise StoreFormatError(f"{self._path} is not a Facets {self._title}: expected one, or no file at all")
        expected = self._schema.version
        if version != expected:
            raise StoreFormatError(
                f"{self._title} {self._path} has version {version}, expected {expected}: use the release that wrote it"
            )
        damage = f"{self._title} {self._path} is damaged: restore it from a backup"
        if self._path.stat().st_size <= _FULL_CHECK_BYTES:
            answer = str(pragma(self._writer, "integrity_check(1)"))
            if answer != "ok":
                raise DamagedError(f"{damage} ({' '.join(answer.split())})")
        for table in self._schema.checked:
            for row in damaged_rows(self._writer, table):
                raise DamagedError(f"{damage} ({row}: its checksum differs)")

    def _check_count(self, connection: sqlite3.Connection) -> None:
        if self._schema.counter:
            self._mark.compare(self._title, self._schema.num_writes(connection), self._mark.read())

    def _note_count(self) -> None:
        if self._schema.counter:
            self._mark.advance(self._schema.num_writes(self._writer))

    @contextmanager
    def write(self, *, frees_space: bool = False) -> Iterator[SqliteConnection]:
        """One durable transaction: it is on disk when the block ends, or rolled back after an error.

        Only one write runs at a time. Raises StoreGoneError if the file was deleted or replaced while it was open.
        ``frees_space``: the write deletes data, so it may use the space that is reserved for a full disk.
        """
        with self._write_lock, self._clear_errors("write"):
            self._check_open()
            self.check_place()
            self._make_room() if frees_space else self._keep_reserve()
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            finally:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
            self.check_place()  # if the file was deleted during the write, the write is lost
            self._note_count()

    def _keep_reserve(self) -> None:
        """Reserves space beside a large store, so that deletes work when the disk is full; may raise DiskFullError."""
        if self._reserve.exists() or self._path.stat().st_size < 2 * _RESERVE_BYTES:
            return
        num_free = shutil.disk_usage(self._path.parent).free
        if num_free > 2 * _RESERVE_BYTES:
            write_whole(self._reserve, bytes(_RESERVE_BYTES), private=True)
        elif num_free + pragma(self._writer, "freelist_count") * _PAGE_SIZE < _RESERVE_BYTES // 2:
            raise DiskFullError(
                f"cannot write {self._title} {self._path}: the disk is full, its last {num_free} bytes are kept for "
                "deletes; nothing of this call was stored, earlier writes are kept"
            )

    def _make_room(self) -> None:
        """On a full disk, gives up the reserve and moves the log into the file, which empties the log."""
        if shutil.disk_usage(self._path.parent).free < _RESERVE_BYTES:
            self._reserve.unlink(missing_ok=True)
            with suppress(sqlite3.OperationalError):  # the disk is fuller than the reserve can help
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def check_place(self) -> None:
        """Raises StoreGoneError if the file is not the one that was opened: takes a few microseconds."""
        with clear_errors(f"cannot find {self._title} {self._path}"):
            place = place_of(self._path)
        if place != self._place:
            raise StoreGoneError(
                f"{self._title} {self._path} was deleted, moved or replaced while it was open: writes are refused; "
                "stop this process, put the file back or restore a backup, and start again"
            )

    @contextmanager
    def read(self) -> Iterator[SqliteConnection]:
        """One consistent state, not blocked by a writer; raises StorageError if the file cannot be read."""
        with self._clear_errors("read"):
            with self._readers_lock:
                self._check_open()
                connection = self._readers.pop() if self._readers else None
            if connection is None:
                self.check_place()  # two readers must not see two files
                connection = self._connect("rw")
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

    # No other process uses the file, so the rest of the interface is trivial; see PostgresDatabase.

    def hold_writes(self) -> AbstractContextManager[None]:
        """Does nothing."""
        return nullcontext()

    def alone(self, key: int) -> AbstractContextManager[bool]:
        """Always True."""
        return nullcontext(True)

    def writes(self, timeout_s: float) -> Iterator[None]:
        """Empty."""
        return iter(())

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
            self._mark.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError(f"{self._title} {self._path} is closed and cannot be used")

    @contextmanager
    def _clear_errors(self, action: str) -> Iterator[None]:
        what = f"cannot {action} {self._title} {self._path}"
        try:
            with clear_errors(what):
                yield
        except sqlite3.Error as error:
            kind, reason = explain(error, self._path)
            raise kind(f"{what}: {reason}") from error
        except UnicodeDecodeError as error:  # in a value, a name in the schema, or SQLite's own message
            raise DamagedError(f"{what}: the file is damaged, restore it from a backup (invalid Unicode)") from error


def pragma(connection: sqlite3.Connection, name: str) -> Any:
    """The first value of a PRAGMA."""
    return connection.execute(f"PRAGMA {name}").fetchone()[0]
