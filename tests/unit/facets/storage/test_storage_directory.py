"""One process a directory; a disk that cannot lock is no other process."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from facets.errors import StorageError, StoreInUseError
from facets.storage.directory import DirectoryLock


def test_disk_that_cannot_lock_is_not_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(StorageError, match="cannot be locked: No locks available") as raised:
        DirectoryLock(tmp_path)
    assert not isinstance(raised.value, StoreInUseError)
