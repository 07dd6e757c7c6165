"""What is gone is told: files that are missing, logs that were cut, stores deleted while they are open."""

import errno
import fcntl
import os
import resource
import shutil
from pathlib import Path

import pytest
from damage import flip_bit
from word_stores import WORDS, add, words_in

from facets.errors import DamagedError, DiskFullError, StorageError, StoreGoneError, StoreInUseError
from facets.storage.database import Database
from facets.storage.directory import DirectoryLock
from facets.storage.files import make_private_directory, write_atomically
from facets.storage.mark import HighWaterMark


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The files of a process that was killed after six writes, two of them in the file and four in its log."""
    path = tmp_path / "open" / "words"
    path.parent.mkdir()
    database = Database(path, WORDS)
    add(database, "a", "b")
    database.close()
    database = Database(path, WORDS)
    add(database, "c", "d", "e", "f")
    shutil.copytree(path.parent, tmp_path / "killed")
    database.close()
    return tmp_path / "killed" / "words"


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99, "flipped"])
def test_cut_or_damaged_log_is_told_with_the_number_of_writes(killed: Path, share: float | str) -> None:
    log = killed.with_name("words-wal")
    if isinstance(share, str):
        flip_bit(log, 8 * log.stat().st_size // 3)
    else:
        log.write_bytes(log.read_bytes()[: int(share * log.stat().st_size)])
    before = log.read_bytes()
    for _ in range(2):
        with pytest.raises(DamagedError, match=r"lost its last [1-4] writes") as raised:
            Database(killed, WORDS)
        assert log.read_bytes() == before, "what is left is left for whoever can read more of it"
    killed.with_name("words-mark").unlink()
    left = words_in(killed)
    assert left == list("abcdef")[: len(left)]
    assert f"its last {6 - len(left)} writes: it holds {len(left)}, 6 were" in str(raised.value)


@pytest.mark.parametrize("size", [None, 0])
@pytest.mark.parametrize("witness", ["words-mark", "words-wal"])
def test_missing_file_is_no_empty_one(killed: Path, size: int | None, witness: str) -> None:
    others = {"words-mark", "words-wal", "words-shm"} - {witness}
    for name in (*others, "words"):
        killed.with_name(name).unlink()
    if size is not None:
        killed.touch()
    with pytest.raises(DamagedError, match=f"{'missing' if size is None else 'empty'}, but {witness}"):
        Database(killed, WORDS)
    killed.with_name(witness).unlink()
    assert words_in(killed) == []


@pytest.mark.parametrize("content", [b"", b"FACETSHW", b"x" * 20, "flipped"])
@pytest.mark.parametrize("log", ["whole", "gone"])
def test_damaged_mark_is_refused_and_lost_writes_are_never_silent(killed: Path, content: bytes | str, log: str) -> None:
    mark = killed.with_name("words-mark")
    written = mark.read_bytes()
    damaged = bytes([*written[:9], written[9] ^ 1, *written[10:]]) if content == "flipped" else content
    mark.write_bytes(damaged)
    if log == "gone":
        killed.with_name("words-wal").unlink()
    for _ in range(2):
        with pytest.raises(DamagedError, match=r"words-mark is damaged: .* restore a backup, or delete"):
            Database(killed, WORDS)
        assert mark.read_bytes() == damaged
    mark.unlink()
    assert words_in(killed) == list("abcdef" if log == "whole" else "ab")
    assert HighWaterMark(killed).read() == (6 if log == "whole" else 2)


def test_store_deleted_during_a_write_does_not_acknowledge_it(tmp_path: Path) -> None:
    database = Database(tmp_path / "words", WORDS)
    with pytest.raises(StoreGoneError), database.write() as connection:
        connection.execute("INSERT INTO words (word) VALUES ('a')")
        (tmp_path / "words").unlink()
    database.close()


def test_readers_never_make_a_file(tmp_path: Path) -> None:
    database = Database(tmp_path / "words", WORDS)
    for path in tmp_path.iterdir():
        path.unlink()
    with pytest.raises(StoreGoneError), database.read():
        pass
    assert not list(tmp_path.iterdir())
    database.close()


@pytest.mark.parametrize("durable", [True, False])
def test_file_takes_the_place_of_the_old_one_unless_its_block_fails(tmp_path: Path, durable: bool) -> None:
    target = tmp_path / "state.json"
    for content in ("old", "new"):
        with write_atomically(target, durable=durable) as part:
            part.write_text(content)
        assert target.read_text() == content
    with pytest.raises(ValueError, match="stop"), write_atomically(target, durable=durable) as part:
        part.write_text("half")
        raise ValueError("stop")
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_no_room_is_told_from_other_failures(tmp_path: Path) -> None:
    target = tmp_path / "state.json"
    target.write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(DiskFullError, match=r"state\.json"), write_atomically(target, durable=True) as part:
            part.write_bytes(bytes(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert target.read_text() == "old"
    with pytest.raises(StorageError, match="cannot write"), write_atomically(tmp_path / "no" / "x", durable=True) as p:
        p.write_text("x")


def test_new_folders_have_their_names_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    make_private_directory(tmp_path / "one" / "two" / "three")
    assert set(synced) == {str(tmp_path), str(tmp_path / "one"), str(tmp_path / "one" / "two")}


def test_disk_that_cannot_lock_is_not_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(StorageError, match="cannot be locked: No locks available") as raised:
        DirectoryLock(tmp_path)
    assert not isinstance(raised.value, StoreInUseError)
