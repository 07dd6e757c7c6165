"""Files that appear whole or not at all, and what the operating system says in our words."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from facets.errors import DiskFullError, StorageError

__all__ = ["FULL", "clear_errors", "sync_directory", "write_atomically"]

# Numbers of errors that mean: no room.
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


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
        kind = DiskFullError if error.errno in FULL else StorageError
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


@contextmanager
def write_atomically(path: Path, *, durable: bool) -> Iterator[Path]:
    """Gives a temporary path beside ``path`` to write; when the block ends it takes the place of ``path``.

    Whatever happens, ``path`` is the old file or the new one, whole. After an error the temporary file is removed. Two
    writers of the same path must take turns.

    Args:
        path: The file to make or replace.
        durable: True: the new file survives a power loss once the block has ended. False: only a crash of the
            process, which is enough for what can be made again, and takes no time.

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
