"""Relations added at run time by example patterns: one SQLite file, written before the caller hears of it."""

import json
import sqlite3
from dataclasses import asdict, dataclass
from pathlib import Path

from facets.errors import DamagedError
from facets.storage import Database, Schema, add_checksums, clear_errors

__all__ = ["SCHEMA", "AddedRelation", "AddedRelationStore"]

_FILE = "relations.sqlite3"
_OLD_FILE = "relations.jsonl"  # what releases without checksums wrote


def _version_1(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
    connection.execute(
        "CREATE TABLE relations "
        "(place INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, record TEXT NOT NULL)"
    )
    connection.execute("INSERT INTO meta (key, value) VALUES ('writes', '0')")
    add_checksums(connection, "meta", "relations")


SCHEMA = Schema(
    title="file of added relations",
    application_id=0x46415245,  # "FARE"
    migrations=(_version_1,),
    checked=("meta", "relations"),
    counter="SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'writes'",
)


@dataclass(frozen=True, slots=True)
class AddedRelation:
    """A relation and the patterns it was added by.

    Attributes:
        name: Distinct from all others.
        examples: Normalised patterns.
        threshold: Scores from here on are accepted.
    """

    name: str
    examples: tuple[str, ...]
    threshold: float


class AddedRelationStore:
    """The relations added to one model, in one folder; the folder is made with the first of them.

    Raises:
        DamagedError: The file is damaged, or is missing or empty although it was there.
        StorageError: It cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._database: Database | None = None
        with clear_errors(f"cannot read the folder {folder} of added relations"):
            is_there = any(folder.glob("relations.*"))
        if is_there:
            self._open()

    def read(self) -> list[AddedRelation]:
        """All added relations, in the order they were added.

        Raises:
            StorageError: The file cannot be read.
        """
        if self._database is None:
            return []
        with self._database.read() as connection:
            return [_decoded(record) for (record,) in connection.execute("SELECT record FROM relations ORDER BY place")]

    def add(self, relation: AddedRelation) -> None:
        """Adds a relation; it is on disk when this returns.

        Raises:
            StorageError: It could not be written; nothing was stored.
        """
        with self._open().write() as connection:
            _insert(connection, relation)

    def remove(self, name: str) -> None:
        """Takes a relation away for good.

        Raises:
            StorageError: As :meth:`add`.
        """
        with self._open().write() as connection:
            connection.execute("DELETE FROM relations WHERE name = ?", (name,))
            _count_write(connection)

    def close(self) -> None:
        """Closes the file."""
        if self._database is not None:
            self._database.close()

    def _open(self) -> Database:
        if self._database is None:
            with clear_errors(f"cannot make the folder {self._folder} of added relations"):
                self._folder.mkdir(parents=True, exist_ok=True)
            database = Database(self._folder / _FILE, SCHEMA)
            try:
                _take_over(self._folder / _OLD_FILE, database)
            except BaseException:
                database.close()
                raise
            self._database = database
        return self._database


def _insert(connection: sqlite3.Connection, relation: AddedRelation) -> None:
    record = json.dumps(asdict(relation))
    connection.execute("INSERT INTO relations (name, record) VALUES (?, ?)", (relation.name, record))
    _count_write(connection)


def _count_write(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'writes'")


def _decoded(line: str) -> AddedRelation:
    values = json.loads(line)
    return AddedRelation(str(values["name"]), tuple(map(str, values["examples"])), float(values["threshold"]))


def _take_over(old: Path, database: Database) -> None:
    """Moves the relations of an older release into the database, all or none, and sets their file aside."""
    with clear_errors(f"cannot read {old}"):
        if not old.exists():
            return
        content = old.read_bytes()
    relations = _read_old(old, content)
    with database.write() as connection:
        known = {name for (name,) in connection.execute("SELECT name FROM relations")}
        if not connection.execute("SELECT 1 FROM meta WHERE key = 'taken over'").fetchone():
            for relation in relations:
                if relation.name not in known:
                    _insert(connection, relation)
            connection.execute("INSERT INTO meta (key, value) VALUES ('taken over', 'yes')")
    with clear_errors(f"cannot set {old} aside"):
        old.rename(old.with_name(f"{old.name}.old"))


def _read_old(path: Path, content: bytes) -> list[AddedRelation]:
    if not content:
        raise DamagedError(
            f"{path} is empty: restore it from a backup, or delete it if every added relation had been taken away"
        )
    number, relations = 0, []
    try:
        for number, line in enumerate(content.decode().splitlines(), start=1):  # noqa: B007
            relations.append(_decoded(line))
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedError(f"{path}, line {number}: expected a relation added earlier, got a damaged line") from error
    return relations
