"""SQLite files: versions, migrations, whose file it is, and errors by their cause."""

import resource
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from facets.errors import DamagedError, DiskFullError, StorageError
from facets.storage.checksums import tables_with_checksums
from facets.storage.database import Database, Schema

CREATE = tables_with_checksums("CREATE TABLE words (word TEXT PRIMARY KEY)")
ONE = Schema(title="list of words", application_id=77, create=CREATE)


def fill(path: Path, *words: str) -> None:
    database = Database(path, ONE)
    with database.write() as connection:
        connection.insert_rows("words", "word", [(word,) for word in words])
    database.close()


def test_failed_creation_leaves_no_tables(tmp_path: Path) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        CREATE(connection)
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        Database(tmp_path / "words", Schema(title="list of words", application_id=77, create=fail))
    fill(tmp_path / "words", "goat")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("PRAGMA user_version = 2", "version 2, expected 1"),
        ("PRAGMA application_id = 78", "is not a Facets list of words"),
        ("PRAGMA application_id = 0", "is not a Facets list of words"),
    ],
)
def test_file_of_another_program_or_version_is_refused(tmp_path: Path, statement: str, message: str) -> None:
    fill(tmp_path / "words", "goat")
    with closing(sqlite3.connect(tmp_path / "words")) as connection:
        connection.execute(statement)
    with pytest.raises(StorageError, match=message):
        Database(tmp_path / "words", ONE)


def test_block_that_fails_stores_nothing(tmp_path: Path) -> None:
    database = Database(tmp_path / "words", ONE)
    with pytest.raises(ValueError, match="stop"), database.write() as connection:
        connection.execute("INSERT INTO words VALUES ('goat')")
        raise ValueError("stop")
    with database.read() as connection:
        assert connection.execute("SELECT count(*) FROM words").fetchone() == (0,)
    database.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 144 MB; skips where this user may not mount one."""
    (tmp_path / "disk").mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=144m", "tmpfs", tmp_path / "disk"], check=False).returncode:
        pytest.skip("cannot mount a file system")
    yield tmp_path / "disk"
    subprocess.run(["umount", "--lazy", tmp_path / "disk"], check=True)


def test_full_disk_takes_deletes_and_then_writes(small_disk: Path) -> None:
    def add(numbers: range) -> None:
        for number in numbers:
            with database.write() as connection:
                connection.insert_rows("words", "word", [(f"{number} {n} {'x' * 3000}",) for n in range(300)])

    def delete(number: int) -> None:
        with database.write(frees_space=True) as connection:
            connection.execute("DELETE FROM words WHERE word LIKE ?", (f"{number} %",))

    with closing(Database(small_disk / "words", ONE)) as database:
        for round_number in range(1, 3):
            with pytest.raises(DiskFullError):
                add(range(round_number * 1000, round_number * 1000 + 500))
            if round_number == 1:  # another program takes the rest
                with suppress(OSError), (small_disk / "other").open("wb", buffering=0) as other:
                    while other.write(bytes(4096)):
                        pass
            for number in range(20):
                delete(round_number * 1000 + number)
            add(range(round_number, round_number + 1))


@pytest.mark.parametrize("content", [b"hello, no database at all " * 300, b"SQLite format 3\0" + b"\xff" * 5000])
def test_what_is_no_database_is_damaged(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "words").write_bytes(content)
    with pytest.raises(DamagedError):
        Database(tmp_path / "words", ONE)
    assert (tmp_path / "words").read_bytes() == content


def test_damaged_page_is_found_at_opening(tmp_path: Path) -> None:
    fill(tmp_path / "words", *(f"{n:0400}" for n in range(200)))
    data = bytearray((tmp_path / "words").read_bytes())
    for page in range(2, len(data) // 4096):
        data[page * 4096 : page * 4096 + 300] = b"\xa5" * 300
    (tmp_path / "words").write_bytes(data)
    with pytest.raises(DamagedError, match="damaged"):
        Database(tmp_path / "words", ONE)


def test_too_many_open_files_are_no_missing_right(tmp_path: Path) -> None:
    Database(tmp_path / "words", ONE).close()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1, limits[1]))
    try:
        with pytest.raises(StorageError, match=r"cannot be opened: .*too many files are open"):
            Database(tmp_path / "words", ONE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_store_whose_log_was_begun_when_the_power_went_is_opened(tmp_path: Path) -> None:
    """As a backup that was put back is: SQLite has another kind of log then, with what the file held before."""
    fill(tmp_path / "words", "kept")
    (tmp_path / "left").mkdir()
    with closing(sqlite3.connect(tmp_path / "words", isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = DELETE")
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("BEGIN")
        writer.executemany("INSERT INTO words VALUES (?)", [(f"{number} {'x' * 2000}",) for number in range(50)])
        for name in ("words", "words-journal"):
            shutil.copy(tmp_path / name, tmp_path / "left")
        writer.execute("ROLLBACK")
    again = Database(tmp_path / "left" / "words", ONE)
    with again.read() as connection:
        assert connection.execute("SELECT word FROM words").fetchall() == [("kept",)]
    again.close()
