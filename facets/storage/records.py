"""What is added to a model at run time, as records by kind and key: in a file of its own, or in what servers share.

A write has a number, the next one of its owner; who follows reads what was written beyond the last number that he has.
"""

import json
import logging
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from facets.errors import StorageError, StoreAwayError
from facets.storage.checksums import tables_with_checksums
from facets.storage.database import Database, Schema
from facets.storage.files import clear_errors, make_private_directory
from facets.storage.sql import SqlConnection, SqlDatabase

logger = logging.getLogger(__name__)

_TABLES = """
CREATE TABLE record_owners (
    owner TEXT PRIMARY KEY, writes INTEGER NOT NULL,
    -- Who has not followed up to here has to forget what he has: some of it is gone.
    renewed INTEGER NOT NULL
) WITHOUT ROWID;
-- Without a value: was taken away.
CREATE TABLE records (
    owner TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, written INTEGER NOT NULL, value BLOB,
    PRIMARY KEY (owner, kind, key)
)
"""
_LOOK_EVERY_S = 0.2  # for what other servers wrote
_WAIT_S = 0.05  # before another try to be alone


def record_schema(title: str, application_id: int) -> Schema:
    """A file of records."""
    return Schema(
        title=title,
        application_id=application_id,
        migrations=(tables_with_checksums(_TABLES, "record_owners", "records"),),
        checked=("record_owners", "records"),
        counter="SELECT coalesce(max(writes), 0) FROM record_owners",
    )


class Record(NamedTuple):
    """One thing that was added, or taken away: then it has no value; keys hold no NUL."""

    kind: str
    key: str
    value: bytes | None


class News(NamedTuple):
    """What was written, the oldest first, up to the number ``writes``; ``is_all``: all that there is."""

    writes: int
    records: Sequence[Record]
    is_all: bool


NO_NEWS = News(0, (), is_all=True)


class RecordStore:
    """The records of one owner; thread-safe.

    Args:
        place: The file, in a folder that is made when absent, or the database that servers share.
        owner: Whose records; a file has one owner's.
        schema: Of the file.

    Attributes:
        is_shared: Whether other processes write, too.

    Raises:
        DamagedError: The file is damaged, or is missing or empty although it was there.
        StorageError: It cannot be opened, or is another owner's.
    """

    def __init__(self, place: Path | SqlDatabase, owner: str, schema: Schema) -> None:
        self._owner = owner
        self.is_shared = not isinstance(place, Path)
        if not isinstance(place, Path):
            self._database: SqlDatabase = place
            return
        with clear_errors(f"cannot make the folder {place.parent} of additions"):
            make_private_directory(place.parent)
        self._database = Database(place, schema)
        with self._database.read() as connection:
            owners = [name for (name,) in connection.execute("SELECT owner FROM record_owners")]
        if owners not in ([], [owner]):
            self._database.close()
            raise StorageError(f"{place}: expected additions to {owner!r}, got those to {owners[0]!r}")

    def close(self) -> None:
        """Closes the file; what servers share stays open."""
        if not self.is_shared:
            self._database.close()

    def news(self, after: int = 0) -> News:
        """What was written beyond a number; everything where it is 0, or some of what was there is gone.

        Raises:
            StorageError: The store cannot be read.
        """
        with self._database.read() as connection:
            writes, renewed = self._numbers(connection) or (0, 0)
            after = 0 if after < renewed else after
            found = connection.execute(
                "SELECT kind, key, value FROM records WHERE owner = ? AND written > ? ORDER BY written, kind, key",
                (self._owner, after),
            )
            return News(writes, [Record(*line) for line in found], is_all=not after)

    def write(self, records: Sequence[Record], *, after: int | None = None) -> int:
        """Writes records, in the place of those of the same kind and key, in one durable transaction.

        Args:
            records: What is added or taken away.
            after: The last write that the caller knows of; None: that does not matter.

        Returns:
            The number of the write.

        Raises:
            StorageError: Nothing was written.
        """
        lines = {(record.kind, record.key): record.value for record in records}
        with self._database.write() as connection:
            known = self._numbers(connection)
            writes = 0 if known is None else known[0]
            if after is not None and writes != after:
                raise StoreAwayError(f"another server added to {self._owner} meanwhile: try again")
            if known is None:
                connection.executemany(
                    "INSERT INTO record_owners (owner, writes, renewed) VALUES (?, ?, ?)", [(self._owner, 0, 0)]
                )
            for kind in dict.fromkeys(kind for kind, _ in lines):
                keys = json.dumps([key for one, key in lines if one == kind], ensure_ascii=False)
                connection.execute(
                    "DELETE FROM records WHERE owner = ? AND kind = ? AND key IN (SELECT value FROM json_each(?))",
                    (self._owner, kind, keys),
                )
            connection.executemany(
                "INSERT INTO records (owner, kind, key, written, value) VALUES (?, ?, ?, ?, ?)",
                [(self._owner, kind, key, writes + 1, value) for (kind, key), value in lines.items()],
            )
            connection.execute("UPDATE record_owners SET writes = ? WHERE owner = ?", (writes + 1, self._owner))
        return writes + 1

    @contextmanager
    def alone(self, check: Callable[[], None]) -> Iterator[None]:
        """Other servers add nothing to the same owner until the block ends; ``check`` may end the wait for them."""
        while True:
            check()
            with self._database.alone(zlib.crc32(self._owner.encode())) as is_alone:
                if is_alone:
                    yield
                    return
            time.sleep(_WAIT_S)

    def _numbers(self, connection: SqlConnection) -> tuple[int, int] | None:
        statement = "SELECT writes, renewed FROM record_owners WHERE owner = ?"
        found = connection.execute(statement, (self._owner,)).fetchone()
        return None if found is None else (int(found[0]), int(found[1]))


StoreT = TypeVar("StoreT", bound=RecordStore)


class RecordFollower(Generic[StoreT]):
    """What is made of a record store in memory; others may write to it. Readers never wait for writers.

    Args:
        store: None: nothing is kept.

    Attributes:
        store: See above.
        seen: The last write that is taken in.
        lock: Of writers.
    """

    def __init__(self, store: StoreT | None) -> None:
        self.store = store
        self.seen = 0
        self.lock = threading.RLock()
        self._look_at = 0.0

    def close(self) -> None:
        """Closes the file."""
        if self.store is not None:
            self.store.close()

    def take(self, news: News) -> None:
        """Makes of what was written what it means; the lock is held."""
        raise NotImplementedError

    def follow(self, *, now: bool = False) -> None:
        """Takes in what other servers wrote: surely, or where nobody has looked for a while and the store answers.

        Raises:
            StorageError: ``now``, and it does not answer.
        """
        if self.store is None or not (now or (self.store.is_shared and time.monotonic() > self._look_at)):
            return
        if not self.lock.acquire(blocking=now):
            return
        try:
            news = self.store.news(self.seen)
            if news.writes != self.seen:
                self.take(news)
                self.seen = news.writes
            self._look_at = time.monotonic() + _LOOK_EVERY_S
        except StorageError as error:
            self._look_at = time.monotonic() + 10 * _LOOK_EVERY_S
            if now:
                raise
            logger.warning("what other servers added is not known: %s", error)
        finally:
            self.lock.release()
