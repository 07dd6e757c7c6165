"""Records that are added to a model at run time, by kind and key: in a separate file or in a shared database.

The writes of each owner are numbered. A server that follows the store reads what came after the last number it knows.
"""

import logging
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from facets.errors import StorageError, StoreAwayError, StoreGoneError
from facets.storage.checksums import tables_with_checksums
from facets.storage.database import Database, Schema
from facets.storage.files import clear_errors, make_private_directory, place_of
from facets.storage.sql import SqlConnection, SqlDatabase

logger = logging.getLogger(__name__)

_TABLES = """
CREATE TABLE record_owners (
    owner TEXT PRIMARY KEY, writes INTEGER NOT NULL,
    -- A follower that has not reached this number must read everything again: some of what it has is gone.
    renewed INTEGER NOT NULL
) WITHOUT ROWID;
-- A record without a value was removed.
CREATE TABLE records (
    owner TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, written INTEGER NOT NULL, value BLOB,
    PRIMARY KEY (owner, kind, key)
)
"""
_FOLLOW_EVERY_S = 0.2
_LOCK_RETRY_S = 0.05


def record_schema(title: str, application_id: int) -> Schema:
    """The schema of a file of records."""
    return Schema(
        title=title,
        application_id=application_id,
        create=tables_with_checksums(_TABLES, "record_owners", "records"),
        checked=("record_owners", "records"),
        counter="SELECT coalesce(max(writes), 0) FROM record_owners",
    )


class Record(NamedTuple):
    """A record that was added, or removed if it has no value; keys contain no NUL."""

    kind: str
    key: str
    value: bytes | None


class News(NamedTuple):
    """Records in the order of their writes."""

    writes: int  # number of the last write
    records: Sequence[Record]
    is_all: bool  # True: all records of the owner; False: only those written after the given write


NO_NEWS = News(0, (), is_all=True)


class RecordStore:
    """The records of one owner; thread-safe."""

    def __init__(self, place: Path | SqlDatabase, owner: str, schema: Schema) -> None:
        """Opens an existing file, or uses the database that servers share.

        The first write creates a missing file and its folder, so reading needs no space on a full disk.
        """
        self._owner, self._place, self._schema = owner, place, schema
        self.is_shared = not isinstance(place, Path)  # whether other processes may write, too
        self._database = None if isinstance(place, Path) else place
        self._opening = threading.Lock()
        if isinstance(place, Path):
            self._base = next(folder for folder in place.absolute().parents if folder.exists())
            self._place_of_base = place_of(self._base)
            with clear_errors(f"cannot read the folder {place.parent} of additions"), suppress(FileNotFoundError):
                files = [path for path in place.parent.iterdir() if path.name.startswith(place.name)]
                if any(path.stat().st_size for path in files):  # a write on a full disk leaves an empty file
                    self._opened()

    def _opened(self) -> SqlDatabase:
        with self._opening:
            if self._database is None:
                assert isinstance(self._place, Path)
                if place_of(self._base) != self._place_of_base:
                    raise StoreGoneError(f"{self._base} was deleted, moved or replaced: put it back and start again")
                with clear_errors(f"cannot create the folder {self._place.parent} of additions"):
                    make_private_directory(self._place.parent)
                database = Database(self._place, self._schema)
                with database.read() as connection:
                    owners = [name for (name,) in connection.execute("SELECT owner FROM record_owners")]
                if owners not in ([], [self._owner]):
                    database.close()
                    wrong = f"expected additions to {self._owner!r}, got additions to {owners[0]!r}"
                    raise StorageError(f"{self._place}: {wrong}")
                self._database = database
            return self._database

    def close(self) -> None:
        """Closes the file; a shared database stays open."""
        if self._database is not None and not self.is_shared:
            self._database.close()

    def news(self, after: int = 0) -> News:
        """Records written after the write ``after``; all records if it is 0 or writes were lost since."""
        if self._database is None:
            return NO_NEWS
        with self._database.read() as connection:
            writes, renewed = self._numbers(connection) or (0, 0)
            after = 0 if after < renewed else after
            cursor = connection.execute(
                "SELECT kind, key, value FROM records WHERE owner = ? AND written > ? ORDER BY written, kind, key",
                (self._owner, after),
            )
            return News(writes, [Record(*row) for row in cursor], is_all=not after)

    def write(self, records: Sequence[Record], *, after: int | None = None) -> int:
        """Writes records in one durable transaction, replacing those of the same kind and key; returns its number.

        ``after``: the last write that the caller knows of; a later one raises StoreAwayError. None: no check.
        """
        values = {(record.kind, record.key): record.value for record in records}
        with self._opened().write() as connection:
            numbers = self._numbers(connection)
            writes = 0 if numbers is None else numbers[0]
            if after is not None and writes != after:
                raise StoreAwayError(f"another server added to {self._owner} at the same time: try again")
            if numbers is None:
                connection.insert_rows("record_owners", "owner, writes, renewed", [(self._owner, 0, 0)])
            for kind, key in values:
                connection.execute(
                    "DELETE FROM records WHERE owner = ? AND kind = ? AND key = ?", (self._owner, kind, key)
                )
            rows = [(self._owner, kind, key, writes + 1, value) for (kind, key), value in values.items()]
            connection.insert_rows("records", "owner, kind, key, written, value", rows)
            connection.execute("UPDATE record_owners SET writes = ? WHERE owner = ?", (writes + 1, self._owner))
        return writes + 1

    @contextmanager
    def alone(self, check: Callable[[], None]) -> Iterator[None]:
        """Excludes other servers that add to this owner until the block ends; ``check`` may end the wait by raising."""
        while True:
            check()
            with self._opened().alone(zlib.crc32(self._owner.encode())) as is_alone:
                if is_alone:
                    yield
                    return
            time.sleep(_LOCK_RETRY_S)

    def _numbers(self, connection: SqlConnection) -> tuple[int, int] | None:
        statement = "SELECT writes, renewed FROM record_owners WHERE owner = ?"
        row = connection.execute(statement, (self._owner,)).fetchone()
        return None if row is None else (int(row[0]), int(row[1]))


StoreT = TypeVar("StoreT", bound=RecordStore)


class RecordFollower(Generic[StoreT]):
    """Base class of in-memory state built from a record store. Readers never wait for writers."""

    def __init__(self, store: StoreT | None) -> None:
        """``store``: None if nothing is stored."""
        self.store = store
        self.seen = 0  # number of the last write that the state includes
        self.lock = threading.RLock()  # held by writers
        self._follow_at = 0.0

    def close(self) -> None:
        """Closes the store."""
        if self.store is not None:
            self.store.close()

    def take(self, news: News) -> None:
        """Updates the state; called with the lock held."""
        raise NotImplementedError

    def follow(self, *, now: bool = False) -> None:
        """Updates the state with what other servers wrote.

        ``now``: read the store now, waiting for writers, and raise if it does not answer; otherwise only if the last
        read is old and no one writes.
        """
        if self.store is None or not (now or (self.store.is_shared and time.monotonic() > self._follow_at)):
            return
        if not self.lock.acquire(blocking=now):
            return
        try:
            news = self.store.news(self.seen)
            if news.writes != self.seen:
                self.take(news)
                self.seen = news.writes
            self._follow_at = time.monotonic() + _FOLLOW_EVERY_S
        except StorageError as error:
            self._follow_at = time.monotonic() + 10 * _FOLLOW_EVERY_S
            if now:
                raise
            logger.warning("cannot read what other servers added: %s", error)
        finally:
            self.lock.release()
