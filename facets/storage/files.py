"""Atomic file writes, and errors of the operating system and SQLite explained by their cause."""

import errno
import hashlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from lzma import LZMAError
from pathlib import Path

from safetensors import SafetensorError

from facets.errors import CheckpointError, DamagedError, DiskFullError, NotAFolderError, StorageError, StoreAwayError

_FULL_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_PROBE_BYTES = 64 * 1024  # if this many bytes cannot be written, an I/O error means a full disk


@contextmanager
def clear_errors(what: str) -> Iterator[None]:
    """Turns an ``OSError`` of the block into a StorageError of the right class whose message begins with ``what``."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        kind = DiskFullError if error.errno in _FULL_ERRNOS else StorageError
        raise (NotAFolderError if isinstance(error, NotADirectoryError) else kind)(f"{what}: {reason}") from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns errors about the files of a model at ``path`` into a CheckpointError that names it."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(f"cannot read {error.filename or path}: {error.strerror or error}") from error
    except KeyError as error:
        raise CheckpointError(f"{path}: expected a value or tensor named {error}") from error
    except (SafetensorError, TypeError, ValueError, LZMAError, EOFError, RecursionError) as error:
        raise CheckpointError(f"{path}: it is damaged, or a value is wrong: {error}") from error


def sync_directory(directory: Path) -> None:
    """Makes new names in a directory survive a power loss; raises StorageError."""
    with clear_errors(f"directory {directory} cannot be synced"):
        handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def content_hash(path: Path) -> bytes:
    """SHA-256 of the content of a file, computed again when its size or modification time has changed."""
    status = path.stat()
    return _content_hash(path.resolve(), status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=256)
def _content_hash(path: Path, *_: int) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def place_of(path: Path | int) -> tuple[int, int] | None:
    """Device and inode of a path or of an open file; None if the path does not exist."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def make_private_file(path: Path) -> None:
    """Creates an empty file that only this user may read; leaves an existing file alone."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def make_private_directory(path: Path) -> None:
    """Creates a directory and its missing parents, which only this user may read; all survive a power loss.

    Leaves existing directories and their permissions alone.
    """
    path = path.absolute()
    if path.is_file():
        raise NotADirectoryError(errno.ENOTDIR, "it is a file, expected a folder", str(path))
    new_parents = [folder for folder in path.parents if not folder.exists()]
    for folder in (*reversed(new_parents), path):
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_directory(folder.parent)


@contextmanager
def write_atomically(path: Path, *, durable: bool, private: bool = False) -> Iterator[Path]:
    """Yields a temporary path to write; it replaces ``path`` when the block ends and is removed after an error.

    ``path`` is always the complete old file or the complete new one. Two writers of one path must take turns.
    ``durable``: the new file survives a power loss; else only a crash of the process, which is enough for files that
    can be made again. ``private``: only this user may read the file. Raises StorageError; the old file stays.
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
    """Writes bytes, or text as UTF-8, with :func:`write_atomically`."""
    with write_atomically(path, durable=durable, private=private) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


def explain(error: sqlite3.Error, path: Path) -> tuple[type[StorageError], str]:
    """The error class to raise for an error of SQLite on this file, and the end of its message."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return DiskFullError, "the disk or its quota is full; nothing of this call was stored, earlier writes are kept"
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return DamagedError, f"the file is damaged, restore it from a backup ({error})"
    if code == sqlite3.SQLITE_CANTOPEN:  # opening the file ourselves to find the cause would drop SQLite's locks
        reason = "the folder is missing or read-only, the user lacks permission, or too many files are open"
        return StorageError, f"the file cannot be opened: {reason} ({error})"
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return StorageError, f"the file is not writable for this user ({error})"
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreAwayError, f"another process is writing the file ({error})"
    if code == sqlite3.SQLITE_IOERR:
        kind = DiskFullError if _is_full(path) else StorageError
        return kind, f"the disk failed or is full, nothing of this call was stored ({error})"
    if "malformed JSON" in str(error):
        return DamagedError, "a document is damaged: verify the data directory, it names the document"
    return StorageError, str(error)


def _is_full(path: Path) -> bool:
    """Whether there is no space: SQLite reports a quota, a maximum file size or a full log index as an I/O error."""
    files = (path, path.with_name(f"{path.name}-wal"))
    try:
        size = max((file.stat().st_size for file in files if file.exists()), default=0)
        with tempfile.TemporaryFile(dir=path.parent) as probe:
            return os.pwrite(probe.fileno(), bytes(_PROBE_BYTES), size) < _PROBE_BYTES
    except OSError as error:
        return error.errno in _FULL_ERRNOS
