"""What the stores need of a database, whichever it is.

Statements are written once, in the words of SQLite; :mod:`facets.storage.postgres` says the few of them that PostgreSQL
has others for.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Values = Sequence[Any]


class SqlCursor(Protocol):
    """What a statement found, line by line, or how many lines it changed."""

    @property
    def rowcount(self) -> int:
        """Lines that it changed."""

    def fetchone(self) -> Any:
        """The next line; None: there is no other."""

    def fetchall(self) -> list[Any]:
        """All further lines."""

    def __iter__(self) -> Iterator[Any]:
        """Line by line."""


class SqlConnection(Protocol):
    """One state of a database to read, or one transaction to write."""

    def execute(self, statement: str, values: Any = (), /) -> SqlCursor:
        """Runs one statement; its ``?`` stand for the values."""

    def executemany(self, statement: str, lines: Iterable[Any], /) -> object:
        """Runs an ``INSERT INTO table (columns) VALUES (...)`` for every line."""


class SqlDatabase(Protocol):
    """A database that holds a store; thread-safe, writers take turns."""

    def read(self) -> AbstractContextManager[SqlConnection]:
        """One consistent state, beside any writer.

        Raises:
            StorageError: It cannot be read; its subclasses say why.
        """

    def write(self) -> AbstractContextManager[SqlConnection]:
        """One durable transaction: all of it when the block ends, or nothing after an error.

        Raises:
            StorageError: It cannot be written; its subclasses say why.
        """

    def hold_writes(self) -> AbstractContextManager[None]:
        """Lets the writes of other processes wait; those of this thread go on."""

    def alone(self, key: int) -> AbstractContextManager[bool]:
        """Whether this process has what the key stands for to itself until the block ends; it never waits."""

    def writes(self, timeout_s: float) -> Iterator[None]:
        """Word of writes, of whichever process: after each one, and at least so often; for one thread, for ever."""

    def check_place(self) -> None:
        """Looks whether it is still there, and the same.

        Raises:
            StorageError: It is not.
        """

    def close(self) -> None:
        """Closes every connection. Idempotent."""
