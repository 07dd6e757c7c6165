"""Exclusive use of a directory by one process."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from facets.errors import StoreGoneError, StoreInUseError
from facets.storage.files import clear_errors

__all__ = ["DirectoryLock"]


class DirectoryLock:
    """Exclusive use of a data directory, held until closed or until the process dies however it dies."""

    def __init__(self, data_dir: Path) -> None:
        """Takes the lock.

        Raises:
            StoreInUseError: Another process has it, or has the directory that was deleted here.
            StorageError: The directory cannot be written.
        """
        self._path = data_dir / "lock"
        if (pid := _user_of_deleted(self._path)) is not None:
            raise StoreInUseError(
                f"data directory {data_dir} was deleted while process {pid} was using it, and that process still runs: "
                "stop it first"
            )
        with clear_errors(f"data directory {data_dir} cannot be written"):
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            with clear_errors(f"data directory {data_dir} cannot be locked"):
                self._lock(data_dir)
        except BaseException:
            os.close(self._file)
            raise
        try:
            with clear_errors(f"data directory {data_dir} cannot be written"):
                os.ftruncate(self._file, 0)
                os.pwrite(self._file, f"{os.getpid()}\n".encode("ascii"), 0)
        except BaseException:
            os.close(self._file)
            raise

    def _lock(self, data_dir: Path) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            pid = os.pread(self._file, 32, 0).decode("ascii", "replace").strip() or "unknown"
            raise StoreInUseError(
                f"data directory {data_dir} is in use by process {pid}: expected it free; stop that process or "
                "choose another directory"
            ) from error

    def check(self) -> None:
        """Looks whether the directory is still where it was locked.

        Raises:
            StoreGoneError: It was deleted, moved or replaced: another process may take it without our lock.
        """
        held = os.fstat(self._file)
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != (held.st_dev, held.st_ino):
            raise StoreGoneError(
                f"data directory {self._path.parent} was deleted, moved or replaced while it was in use: nothing is "
                "written any more; stop this process, put it back or restore a backup, and start again"
            )

    def close(self) -> None:
        """Gives the directory back. The file stays: removing it would let two processes hold two locks."""
        os.close(self._file)


def _user_of_deleted(path: Path) -> int | None:
    """A process that holds open the deleted file of this name, where the system tells (Linux, processes of this user).

    A new file of that name would be another lock.
    """
    wanted = f"{path.parent.resolve() / path.name} (deleted)"
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended, or belongs to another user
            for handle in os.scandir(process / "fd"):
                if os.readlink(handle.path) == wanted:
                    return int(process.name)
    return None
