"""Reading a store without changing it: whether everything in it is what was written."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from facets.errors import DamagedError, StorageError
from facets.storage.checksums import damaged_rows, register_checksum
from facets.storage.database import Schema
from facets.storage.files import clear_errors
from facets.storage.mark import HighWaterMark
from facets.storage.sqlite_errors import explain

__all__ = ["open_read_only", "problems_of"]

_MOST = 20  # problems of its pages that SQLite names


@contextmanager
def open_read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that sees one state of the file and changes nothing, also beside a process that writes.

    Raises:
        DamagedError: The file is damaged, empty or missing.
        StorageError: It cannot be read.
    """
    with clear_errors(f"cannot read {path}"):
        if not path.exists() or not path.stat().st_size:
            raise DamagedError(f"{path} is {'empty' if path.exists() else 'missing'}: expected a store")
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
            register_checksum(connection)
            connection.execute("BEGIN")
            yield connection
    except sqlite3.Error as error:
        kind, reason = explain(error, path)
        raise kind(f"cannot read {path}: {reason}") from error


def problems_of(path: Path, schema: Schema) -> Iterator[str]:
    """Everything in a store that is not what was written, a sentence each; reads all of it.

    Args:
        path: The file; a server may have it open.
        schema: What it holds.
    """
    known = HighWaterMark(path).read() if schema.counter else None  # before the state that is looked at
    try:
        with open_read_only(path) as connection:
            answers = [str(line) for (line,) in connection.execute(f"PRAGMA integrity_check({_MOST})")]
            yield from (f"{path}: {' '.join(line.split())}" for line in answers if line != "ok")
            application, version = (
                int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("application_id", "user_version")
            )
            if application != schema.application_id or version != schema.version:
                yield (
                    f"{path}: is a {schema.title} of version {version}, expected {schema.version}: only its pages were "
                    "compared; start a server of this release on it, then verify again"
                )
                return
            for table in schema.checked:
                yield from (f"{path}: {row}: its checksum differs" for row in damaged_rows(connection, table))
            if schema.counter:
                count = int(connection.execute(schema.counter).fetchone()[0])
                HighWaterMark(path).compare(schema.title, path, count, known)
            if schema.inspect is not None:
                yield from (f"{path}: {problem}" for problem in schema.inspect(connection))
    except StorageError as error:
        yield str(error)
