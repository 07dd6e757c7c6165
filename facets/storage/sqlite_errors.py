"""What SQLite says when it fails, in our words."""

import os
import sqlite3
import tempfile
from pathlib import Path

from facets.errors import DamagedError, DiskFullError, StorageError, StoreInUseError
from facets.storage.files import FULL

__all__ = ["explain"]

_ROOM_BYTES = 64 * 1024  # where no more than this can be written, a failing disk is a full one


def explain(error: sqlite3.Error, path: Path) -> tuple[type[StorageError], str]:
    """What happened and what became of the data.

    Args:
        error: Of SQLite.
        path: The file.

    Returns:
        The error to raise, and the end of its message.
    """
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return DiskFullError, "the disk or its quota is full; nothing of this call was stored, earlier writes are kept"
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return DamagedError, f"the file is damaged, restore it from a backup ({error})"
    if code == sqlite3.SQLITE_CANTOPEN:  # SQLite keeps the cause to itself; opening the file to look drops its locks
        reason = "the folder is missing, the user has no right to it, or too many files are open"
        return StorageError, f"the file cannot be opened: {reason} ({error})"
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return StorageError, f"the file is not writable for this user ({error})"
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreInUseError, f"another process has the file open and is writing it ({error})"
    if code == sqlite3.SQLITE_IOERR:
        kind = DiskFullError if _is_full(path) else StorageError
        return kind, f"the disk failed or is full, nothing of this call was stored ({error})"
    return StorageError, str(error)


def _is_full(path: Path) -> bool:
    """Whether there is no room: SQLite calls a quota, a largest size, or an index that cannot grow a failing disk."""
    files = (path, path.with_name(f"{path.name}-wal"))
    try:
        size = max((file.stat().st_size for file in files if file.exists()), default=0)
        with tempfile.TemporaryFile(dir=path.parent) as probe:
            return os.pwrite(probe.fileno(), bytes(_ROOM_BYTES), size) < _ROOM_BYTES
    except OSError as error:
        return error.errno in FULL
