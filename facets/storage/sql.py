"""The contract between a store and its database: SQLite in this process, or PostgreSQL shared by several servers."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol


class SqlCursor(Protocol):
    """The result of one statement."""

    @property
    def rowcount(self) -> int:
        """Number of rows that the statement changed."""

    def fetchone(self) -> Any:
        """The next row, or None."""

    def fetchall(self) -> list[Any]:
        """All remaining rows."""

    def __iter__(self) -> Iterator[Any]:
        """The remaining rows, one at a time."""


class SqlConnection(Protocol):
    """A connection inside one transaction."""

    def execute(self, statement: str, values: Any = (), /) -> SqlCursor:
        """Runs a statement; each ``?`` in it is replaced by a value."""

    def insert_rows(self, table: str, columns: str, rows: Iterable[Any]) -> None:
        """Inserts many rows; ``columns`` are their names, separated by commas."""


class SqlDatabase(Protocol):
    """A database that holds a store; thread-safe. Only one write runs at a time."""

    def read(self) -> AbstractContextManager[SqlConnection]:
        """A read transaction: one consistent state, not blocked by writers.

        Raises:
            StorageError: The database cannot be read; the subclass gives the cause.
        """

    def write(self) -> AbstractContextManager[SqlConnection]:
        """A durable write transaction: it commits when the block ends and rolls back after an error.

        Raises:
            StorageError: The database cannot be written; the subclass gives the cause.
        """

    def hold_writes(self) -> AbstractContextManager[None]:
        """Blocks the writes of other processes until the block ends; this thread may still write."""

    def alone(self, key: int) -> AbstractContextManager[bool]:
        """Tries to take an exclusive lock for this key among all processes, without waiting; True if it was taken."""

    def writes(self, timeout_s: float) -> Iterator[None]:
        """Yields after each write of any process and at least every ``timeout_s`` seconds; for one thread."""

    def check_place(self) -> None:
        """Checks that the database is still reachable and still the one that was opened.

        Raises:
            StorageError: It is not.
        """

    def close(self) -> None:
        """Closes every connection. Idempotent."""
