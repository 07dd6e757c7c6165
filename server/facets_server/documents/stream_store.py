"""Durable positions of ingest streams.

A position is written after its batch is durable in the document store and before the batch is acknowledged. After a
crash between the two writes one batch is stored twice under the same ids, which changes nothing.
"""

import logging
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from facets.errors import ConflictError, DamagedError, InvalidInputError, NotFoundError
from facets.storage.checksums import tables_with_checksums
from facets.storage.database import Database, Schema
from facets.storage.files import clear_errors
from facets.storage.sql import SqlDatabase

logger = logging.getLogger(__name__)

FILE = "ingest-streams.sqlite3"
_TABLE = """
CREATE TABLE streams (
    token TEXT PRIMARY KEY,
    collection TEXT NOT NULL,
    collection_created TEXT NOT NULL,
    last_sequence INTEGER NOT NULL,
    -- How often it was opened: the last connection to open it continues it.
    generation INTEGER NOT NULL,
    updated REAL NOT NULL
) WITHOUT ROWID
"""


SCHEMA = Schema(
    title="file of ingest streams",
    application_id=0x46415354,  # "FAST"
    create=tables_with_checksums(_TABLE, "streams"),
    checked=("streams",),
)
_KEEP_S = 30 * 24 * 3600.0  # older tokens are deleted when the server starts


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenStream:
    """A stream opened by one connection."""

    token: str  # opens it again
    last_sequence: int  # last batch stored; 0: none
    generation: int  # tells this connection from a later one with the same token


class StreamStore:
    """Positions of ingest streams in a small SQLite file, or in the database of the documents; thread-safe."""

    def __init__(self, place: Path | SqlDatabase) -> None:
        """Opens or creates the file, or uses the database that several servers share."""
        self._owned = isinstance(place, Path)
        self._database = _opened(place) if isinstance(place, Path) else place
        self._write("DELETE FROM streams WHERE updated < ?", (time.time() - _KEEP_S,))

    def close(self) -> None:
        """Closes the file; a shared database stays open."""
        if self._owned:
            self._database.close()

    def begin(self, *, collection: str, collection_created: str) -> OpenStream:
        """Starts a new stream into a collection."""
        token = uuid.uuid4().hex
        self._write(
            "INSERT INTO streams (token, collection, collection_created, last_sequence, generation, updated) "
            "VALUES (?, ?, ?, 0, 1, ?)",
            (token, collection, collection_created, time.time()),
        )
        return OpenStream(token=token, last_sequence=0, generation=1)

    def resume(self, token: str, *, collection: str, collection_created: str) -> OpenStream:
        """Opens a stream again; an earlier connection with the same token can store nothing more."""
        with self._database.write() as connection:
            columns = "collection, collection_created, last_sequence, generation"
            row = connection.execute(f"SELECT {columns} FROM streams WHERE token = ?", (token,)).fetchone()
            if row is not None and row[0] != collection:
                raise InvalidInputError(
                    f"belongs to collection {row[0]!r}, got collection {collection!r}", path=("open", "resume_token")
                )
            if row is None or row[1] != collection_created:
                raise NotFoundError(
                    "open.resume_token is not known: start a new stream", resource_type="stream", resource_name=token
                )
            connection.execute("UPDATE streams SET generation = ? WHERE token = ?", (row[3] + 1, token))
        return OpenStream(token=token, last_sequence=row[2], generation=row[3] + 1)

    def check(self, stream: OpenStream) -> None:
        """Raises ConflictError when another connection has opened the stream again."""
        with self._database.read() as connection:
            row = connection.execute("SELECT generation FROM streams WHERE token = ?", (stream.token,)).fetchone()
        if row is None or row[0] != stream.generation:
            raise _opened_again()

    def advance(self, stream: OpenStream, sequence: int) -> None:
        """Records durably that the batches up to ``sequence`` are stored; raises as ``check``."""
        num_written = self._write(
            "UPDATE streams SET last_sequence = ?, updated = ? WHERE token = ? AND generation = ?",
            (sequence, time.time(), stream.token, stream.generation),
        )
        if not num_written:
            raise _opened_again()

    def _write(self, statement: str, values: tuple[object, ...]) -> int:
        with self._database.write() as connection:
            return connection.execute(statement, values).rowcount


def _opened_again() -> ConflictError:
    return ConflictError("the stream was opened again by another connection, which continues it")


def _opened(path: Path) -> Database:
    """Sets a damaged file aside: its tokens are then unknown, and their streams start again; no data is lost."""
    try:
        return Database(path, SCHEMA)
    except DamagedError as error:
        aside = path.with_name(f"{path.name}.damaged-{time.time_ns()}")
        with clear_errors(f"{path} is damaged and cannot be set aside"):
            path.rename(aside)
            for suffix in ("-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
        logger.warning("%s set aside as %s: %s", path, aside.name, error)
        return Database(path, SCHEMA)
