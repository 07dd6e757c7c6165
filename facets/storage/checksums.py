"""A checksum in every row of a table, kept by SQLite's triggers and compared when the file is opened.

SQLite itself has none on its pages: a flipped bit inside a value is read as another value.
"""

import sqlite3
import zlib
from collections.abc import Callable, Iterator

Value = None | int | float | str | bytes


def row_checksum(*values: Value) -> int:
    """CRC-32 of the values of a row: their types, lengths and bytes.

    Example:
        >>> row_checksum("goat", 1) == row_checksum("goat", "1")
        False
    """
    checksum = 0
    for value in values:
        kind = type(value).__name__[0]
        data = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
        checksum = zlib.crc32(data, zlib.crc32(b"%s%d:" % (kind.encode(), len(data)), checksum))
    return checksum


def register_checksum(connection: sqlite3.Connection) -> None:
    """Makes :func:`row_checksum` known to the statements and triggers of a connection."""
    connection.create_function("row_checksum", -1, row_checksum, deterministic=True)
    connection.execute("PRAGMA trusted_schema = ON")  # else triggers must not call functions of ours


def add_checksums(connection: sqlite3.Connection, *tables: str) -> None:
    """Gives every row of these tables, those there and those to come, its checksum; part of a migration.

    Writers then name their columns and leave out ``checksum``. The tables have a primary key and no columns later on.
    """
    for table in tables:
        connection.execute(f"ALTER TABLE {table} ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0")
        columns, keys = _columns(connection, table)
        values = ", ".join(columns)
        connection.execute(f"UPDATE {table} SET checksum = row_checksum({values})")
        same = " AND ".join(f"{key} = NEW.{key}" for key in keys)
        for event in ("INSERT", f"UPDATE OF {values}"):
            connection.execute(
                f"CREATE TRIGGER {table}_checksum_{event.split()[0].lower()} AFTER {event} ON {table} BEGIN "
                f"UPDATE {table} SET checksum = row_checksum({values}) WHERE {same}; END"
            )


def tables_with_checksums(statements: str, *tables: str) -> Callable[[sqlite3.Connection], None]:
    """The migration that makes the tables of a new file: SQL statements, then checksums in the rows of these tables."""

    def migrate(connection: sqlite3.Connection) -> None:
        for statement in statements.split(";\n"):
            connection.execute(statement)
        add_checksums(connection, *tables)

    return migrate


def damaged_rows(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    """Keys of the rows of a table that are not what was written, in words."""
    columns, keys = _columns(connection, table)
    statement = f"SELECT {', '.join(keys)} FROM {table} WHERE checksum IS NOT row_checksum({', '.join(columns)})"
    try:
        for values in connection.execute(statement):
            yield f"{table} {', '.join(map(repr, values))}"
    except (sqlite3.OperationalError, UnicodeDecodeError):  # what stands there cannot even be read as text
        yield f"{table}, a text that is no Unicode"


def _columns(connection: sqlite3.Connection, table: str) -> tuple[list[str], list[str]]:
    """Columns under the checksum, and those of the primary key."""
    lines = connection.execute(f"PRAGMA table_info({table})").fetchall()
    columns = [name for _, name, *_ in lines if name != "checksum"]
    return columns, [name for _, name, *_, place in lines if place and name != "checksum"]
