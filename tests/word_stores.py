"""A small SQLite store of words that counts its writes."""

from pathlib import Path

from facets.storage.checksums import tables_with_checksums
from facets.storage.database import Database, Schema

WORDS = Schema(
    title="list of words",
    application_id=77,
    create=tables_with_checksums(
        "CREATE TABLE words (word PRIMARY KEY);\nCREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER);\n"
        "INSERT INTO meta VALUES ('writes', 0)",
        "words",
        "meta",
    ),
    checked=("words", "meta"),
    counter="SELECT value FROM meta WHERE key = 'writes'",
)


def add(database: Database, *words: str | int) -> None:
    """Adds each word by a write of its own."""
    for word in words:
        with database.write() as connection:
            connection.execute("INSERT INTO words (word) VALUES (?)", (word,))
            connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'writes'")


def words_in(path: Path) -> list[str | int]:
    database = Database(path, WORDS)
    with database.read() as connection:
        found = [word for (word,) in connection.execute("SELECT word FROM words ORDER BY rowid")]
    database.close()
    return found
