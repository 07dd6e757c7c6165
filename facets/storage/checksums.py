"""A checksum in every row of a table, written by SQLite triggers and compared when the file is opened.

SQLite has no checksums on its pages: without these, a flipped bit inside a value would go unnoticed.
"""

import sqlite3
import zlib
from collections.abc import Callable, Iterator

Value = None | int | float | str | bytes


def row_checksum(*values: Value) -> int:
    """CRC-32 of the types, lengths and bytes of the values of a row."""
    checksum = 0
    for value in values:
        kind = type(value).__name__[0]
        data = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
        checksum = zlib.crc32(data, zlib.crc32(b"%s%d:" % (kind.encode(), len(data)), checksum))
    return checksum


def register_checksum(connection: sqlite3.Connection) -> None:
    """Makes :func:`row_checksum` available to the statements and triggers of a connection."""
    connection.create_function("row_checksum", -1, row_checksum, deterministic=True)
    connection.execute("PRAGMA trusted_schema = ON")  # allows triggers to call our function


def tables_with_checksums(statements: str, *tables: str) -> Callable[[sqlite3.Connection], None]:
    r"""A function that creates tables by SQL statements, separated by ``;\n``; rows of ``tables`` get checksums.

    These tables must have a primary key, and inserts must name the columns other than ``checksum``.
    """

    def create(connection: sqlite3.Connection) -> None:
        for statement in statements.split(";\n"):  # executescript would commit the transaction
            connection.execute(statement)
        for table in tables:
            connection.execute(f"ALTER TABLE {table} ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0")
            columns, keys = _columns(connection, table)
            values, same = ", ".join(columns), " AND ".join(f"{key} = NEW.{key}" for key in keys)
            update = f"UPDATE {table} SET checksum = row_checksum({values})"
            connection.execute(update)
            for name, event in (("insert", "INSERT"), ("update", f"UPDATE OF {values}")):
                trigger = f"CREATE TRIGGER {table}_checksum_{name} AFTER {event} ON {table}"
                connection.execute(f"{trigger} BEGIN {update} WHERE {same}; END")

    return create


def damaged_rows(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    """Descriptions of the rows of a table that do not match their checksum."""
    columns, keys = _columns(connection, table)
    statement = f"SELECT {', '.join(keys)} FROM {table} WHERE checksum IS NOT row_checksum({', '.join(columns)})"
    try:
        for values in connection.execute(statement):
            yield f"{table} {', '.join(map(repr, values))}"
    except (sqlite3.OperationalError, UnicodeDecodeError):  # damaged so much that it cannot be decoded
        yield f"{table}, text that is not valid Unicode"


def _columns(connection: sqlite3.Connection, table: str) -> tuple[list[str], list[str]]:
    """The columns that the checksum covers, and the columns of the primary key."""
    table_info = connection.execute(f"PRAGMA table_info({table})").fetchall()
    columns = [name for _, name, *_ in table_info if name != "checksum"]
    return columns, [name for _, name, *_, key_position in table_info if key_position and name != "checksum"]
