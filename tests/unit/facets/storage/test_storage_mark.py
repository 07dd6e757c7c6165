"""What is gone is told: files that are missing, logs that were cut, stores deleted while they are open."""

import shutil
from pathlib import Path

import pytest
from word_stores import WORDS, add, words_in

from facets.errors import DamagedError, StoreGoneError
from facets.storage.database import Database
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


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_cut_log_is_told_with_the_number_of_writes(killed: Path, share: float) -> None:
    log = killed.with_name("words-wal")
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


def test_flipped_bit_of_the_log_is_told(killed: Path) -> None:
    log = killed.with_name("words-wal")
    data = bytearray(log.read_bytes())
    data[len(data) // 3] ^= 4
    log.write_bytes(data)
    with pytest.raises(DamagedError, match=r"lost its last [1-4] writes"):
        Database(killed, WORDS)


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


@pytest.mark.parametrize("is_replaced", [True, False])
def test_deleted_or_replaced_store_takes_no_writes(tmp_path: Path, is_replaced: bool) -> None:
    database = Database(tmp_path / "words", WORDS)
    add(database, "a")
    content = (tmp_path / "words").read_bytes()
    (tmp_path / "words").rename(tmp_path / "aside")
    if is_replaced:
        (tmp_path / "words").write_bytes(content)
    with pytest.raises(StoreGoneError, match="was deleted, moved or replaced"):
        add(database, "b")
    database.close()


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
