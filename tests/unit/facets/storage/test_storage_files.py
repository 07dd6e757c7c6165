"""One atomic write: whole or not at all; one process a directory."""

import errno
import fcntl
import os
import resource
from pathlib import Path

import pytest

from facets.errors import DiskFullError, StorageError, StoreInUseError
from facets.storage.directory import DirectoryLock
from facets.storage.files import make_private_directory, write_atomically


@pytest.mark.parametrize("durable", [True, False])
def test_file_takes_the_place_of_the_old_one(tmp_path: Path, durable: bool) -> None:
    target = tmp_path / "state.json"
    for content in ("old", "new"):
        with write_atomically(target, durable=durable) as part:
            part.write_text(content)
        assert target.read_text() == content
    assert list(tmp_path.iterdir()) == [target]


def test_failed_block_keeps_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "state.json"
    target.write_text("old")
    with pytest.raises(ValueError, match="stop"), write_atomically(target, durable=True) as part:
        part.write_text("half")
        raise ValueError("stop")
    assert target.read_text() == "old"
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
