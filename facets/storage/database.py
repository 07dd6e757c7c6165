"""SQLite files: opening, schema versions, durable transactions, and errors in one clear sentence."""

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from facets.errors import DamagedError, StorageError, StoreClosedError, StoreGoneError
from facets.storage.checksums import damaged_rows, register_checksum
from facets.storage.files import clear_errors, explain, make_private_file, place_of, sync_directory
from facets.storage.mark import HighWaterMark

_PAGE_SIZE = 4096  # measured with facets of 10 x 256: 2 % overhead; pages of 8192 leave a third empty
_CHECKPOINT_PAGES = 4096  # move the log into the file every 16 MB
_BUSY_TIMEOUT_S = 30.0
_WHOLE_CHECK_BYTES = 16 * 1024 * 1024  # smaller files are checked whole at opening: some 40 ms

Migration = str | Callable[[sqlite3.Connection], None]


@dataclass(frozen=True, kw_only=True)
class Schema:
    """What a kind of file holds, and how each version is made of the one before."""

    title: str  # what messages call the file, e.g. `document store`
    application_id: int  # in the header of the file: sets it apart from other SQLite files
    # Entry i makes version i + 1 of version i: SQL statements, or a function of the connection. Version 0 is an empty
    # file. Entries are only ever appended: files made by each of them exist.
    migrations: Sequence[Migration]
    checked: Sequence[str] = ()  # tables to which a migration gave checksums; all their rows are compared at opening
    # Statement that gives how many writes the file has seen, as an integer that every one of them increases; with it a
    # `HighWaterMark` tells when some are lost. Empty: nobody counts.
    counter: str = ""
    # Reads everything else that has checksums, and says what is damaged; None: there is nothing else.
    inspect: Callable[[sqlite3.Connection], Iterator[str]] | None = None

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
            DamagedError: The file is damaged or no SQLite file; it is missing or has lost writes although its log or
                its mark says otherwise.
            StorageError: It is another program's, of a newer version, or cannot be written.
        """
        self._path = path
        self._title = schema.title
        self._counter = schema.counter
        self._mark = HighWaterMark(path)
        self._readers: list[sqlite3.Connection] = []
        self._readers_lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._closed = False
        with self._clear_errors("open"):
            self._look_before_opening()
            make_private_file(path)  # SQLite gives its log the same rights
            self._writer = self._connect("rwc")
            try:
                self._place = place_of(path)
                self._prepare(schema)
                if max_bytes is not None:
                    self._writer.execute(f"PRAGMA max_page_count = {max(1, max_bytes // _PAGE_SIZE)}")
            except BaseException:
                self._writer.close()
                raise
        sync_directory(path.parent)

    def _look_before_opening(self) -> None:
        """Refuses what SQLite would take for an empty file, or cut to what it understands of its log."""
        path, log = self._path, self._path.with_name(f"{self._path.name}-wal")
        size = path.stat().st_size if path.exists() else None
        if size and path.with_name(f"{path.name}-journal").exists():
            return  # the power went while the log was begun: a reader cannot roll that back; counted after opening
        if size:
            with closing(self._connect("ro")) as connection:
                self._check_count(connection)
            return
        state = "missing" if size is None else "empty"
        known, left = self._mark.read(), log.stat().st_size if log.exists() else 0
        if known is not None or left:
            witness = log if known is None else self._mark.path
            writes = f" with {known} writes" if known else ""
            raise DamagedError(
                f"{self._title} {path} is {state}, but {witness.name} says that there was one{writes}: restore it from "
                f"a backup, or delete {witness} to begin anew"
            )

    def _connect(self, mode: Literal["rwc", "rw", "ro"]) -> sqlite3.Connection:
        # autocommit: transactions are ours to begin; the pool hands a connection to one thread at a time
        connection = sqlite3.connect(
            f"{self._path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=_BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
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

    def _prepare(self, schema: Schema) -> None:
        """Checks whose file it is and whether it is whole, and migrates it in one transaction."""
        version = self._version(schema)
        if version and self._path.stat().st_size <= _WHOLE_CHECK_BYTES:
            answer = self._writer.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if answer != "ok":
                reason = " ".join(str(answer).split())
                raise DamagedError(f"{self._title} {self._path} is damaged: restore it from a backup ({reason})")
        if version == schema.version:
            self._check_rows(schema)
        self._check_count(self._writer)
        if version < schema.version:
            with self.write() as connection:
                for migration in schema.migrations[version:]:
                    _migrate(connection, migration)
                connection.execute(f"PRAGMA application_id = {schema.application_id}")
                connection.execute(f"PRAGMA user_version = {schema.version}")
        self._note_count(self._writer)

    def _check_rows(self, schema: Schema) -> None:
        for table in schema.checked:
            for row in damaged_rows(self._writer, table):
                raise DamagedError(
                    f"{self._title} {self._path} is damaged: restore it from a backup ({row}: its checksum differs)"
                )

    def _check_count(self, connection: sqlite3.Connection) -> None:
        if self._counter:
            try:
                count = _count(connection, self._counter)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
                    raise
                count = 0  # no such table: nobody counted before this version, or the file holds nothing yet
            self._mark.compare(self._title, self._path, count, self._mark.read())

    def _note_count(self, connection: sqlite3.Connection) -> None:
        if self._counter:
            self._mark.advance(_count(connection, self._counter))

    def _version(self, schema: Schema) -> int:
        """The version of the file, 0 for an empty one."""
        tables = {name for (name,) in self._writer.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        if not tables:
            return 0
        application, version = self._pragma("application_id"), self._pragma("user_version")
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
            StoreGoneError: The file was deleted or replaced while it was open.
            StorageError: Another one of its subclasses where the reason is known; nothing was stored.
        """
        with self._write_lock, self._clear_errors("write"):
            self._check_open()
            self.check_place()
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            finally:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
            self.check_place()  # deleted meanwhile: what was written is nowhere
            self._note_count(self._writer)

    def check_place(self) -> None:
        """Looks whether the file is still where it was opened: two looks at its name, some microseconds.

        Raises:
            StoreGoneError: It is not: nobody will find what is written now.
            StorageError: The system does not tell.
        """
        with clear_errors(f"cannot find {self._title} {self._path}"):
            place = place_of(self._path)
        if place != self._place:
            raise StoreGoneError(
                f"{self._title} {self._path} was deleted, moved or replaced while it was open: nothing is written any "
                "more; stop this process, put the file back or restore a backup, and start again"
            )

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

    def hold_writes(self) -> AbstractContextManager[None]:
        """Nobody else writes: the directory is one process's."""
        return nullcontext()

    def alone(self, key: int) -> AbstractContextManager[bool]:
        """Always: the directory is one process's."""
        return nullcontext(True)

    def writes(self, timeout_s: float) -> Iterator[None]:
        """None of others."""
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
            raise StoreClosedError(f"{self._title} {self._path} is closed: expected an open one")

    @contextmanager
    def _clear_errors(self, action: str) -> Iterator[None]:
        what = f"cannot {action} {self._title} {self._path}"
        try:
            with clear_errors(what):
                yield
        except sqlite3.Error as error:
            kind, reason = explain(error, self._path)
            raise kind(f"{what}: {reason}") from error
        except UnicodeDecodeError as error:  # in a value, a name of the schema, or SQLite's own message about it
            raise DamagedError(f"{what}: the file is damaged, restore it from a backup (no valid Unicode)") from error


def _migrate(connection: sqlite3.Connection, migration: Migration) -> None:
    if callable(migration):
        migration(connection)
        return
    for statement in migration.split(";\n"):  # executescript would end the transaction
        connection.execute(statement)


def _count(connection: sqlite3.Connection, counter: str) -> int:
    found = connection.execute(counter).fetchone()
    return int(found[0]) if found else 0
