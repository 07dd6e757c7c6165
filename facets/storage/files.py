"""Files that appear whole or not at all, and what the operating system and SQLite say in our words."""

import errno
import logging
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from facets.errors import DamagedError, DiskFullError, StorageError, StoreInUseError

logger = logging.getLogger(__name__)
ReadT = TypeVar("ReadT")

# Numbers of errors that mean: no room.
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_ROOM_BYTES = 64 * 1024  # where no more than this can be written, a failing disk is a full one


@contextmanager
def clear_errors(what: str) -> Iterator[None]:
    """Turns an ``OSError`` of the block into a storage error.

    Args:
        what: The beginning of the message, e.g. ``cannot write models/x/config.json``.

    Raises:
        DiskFullError: The disk, the quota or the largest size of a file is reached.
        StorageError: Any other failure of the operating system.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        kind = DiskFullError if error.errno in _FULL else StorageError
        raise kind(f"{what}: {reason}") from error


def sync_directory(directory: Path) -> None:
    """Makes the names of new files in a directory survive a power loss; SQLite and rename leave that to us.

    Raises:
        StorageError: The directory cannot be opened or synced.
    """
    with clear_errors(f"directory {directory} cannot be synced"):
        handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def place_of(path: Path | int) -> tuple[int, int] | None:
    """What file stands under a name, or is open, now; None: none does."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def make_private_file(path: Path) -> None:
    """Makes an empty file that nobody but this user may read; one that is there stays as it is."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def make_private_directory(path: Path) -> None:
    """Makes a directory that nobody but this user may look into, and those above it as usual; all survive a power loss.

    One that is there stays as it is: who made it has said who may.
    """
    made = [folder for folder in path.absolute().parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    for folder in (path.absolute(), *made):  # else the first file in it is synced, and cannot be found
        sync_directory(folder.parent)


@contextmanager
def write_atomically(path: Path, *, durable: bool, private: bool = False) -> Iterator[Path]:
    """Gives a temporary path beside ``path`` to write; when the block ends it takes the place of ``path``.

    Whatever happens, ``path`` is the old file or the new one, whole. After an error the temporary file is removed. Two
    writers of the same path must take turns.

    Args:
        path: The file to make or replace.
        durable: True: the new file survives a power loss once the block has ended. False: only a crash of the
            process, which is enough for what can be made again, and takes no time.
        private: Nobody but this user may read the file, not even while it is written.

    Raises:
        DiskFullError: There is no room; the old file stays.
        StorageError: The file cannot be written; the old file stays.

    Example:
        >>> import tempfile
        >>> target = Path(tempfile.mkdtemp()) / "numbers.txt"
        >>> with write_atomically(target, durable=True) as part:
        ...     _ = part.write_text("1 2 3")
        >>> target.read_text()
        '1 2 3'
    """
    part = path.with_name(f"{path.name}.part")
    try:
        with clear_errors(f"cannot write {path}"):
            if private:
                part.unlink(missing_ok=True)
                make_private_file(part)
            yield part
            if durable:
                with part.open("rb+") as file:
                    os.fsync(file.fileno())
            os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    if durable:
        sync_directory(path.parent)


def write_whole(path: Path, content: bytes | str, *, durable: bool = False, private: bool = False) -> None:
    """Writes a file that appears whole or not at all, see :func:`write_atomically`; text as UTF-8."""
    with write_atomically(path, durable=durable, private=private) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


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
        return error.errno in _FULL
