"""Exclusive use of a directory by one process."""

import fcntl
import os
from pathlib import Path

from facets.errors import StoreInUseError
from facets.storage.files import clear_errors

__all__ = ["DirectoryLock"]


class DirectoryLock:
    """Exclusive use of a data directory, held until closed or until the process dies however it dies."""

    def __init__(self, data_dir: Path) -> None:
        """Takes the lock.

        Raises:
            StoreInUseError: Another process has it.
            StorageError: The directory cannot be written.
        """
        with clear_errors(f"data directory {data_dir} cannot be written"):
            self._file = os.open(data_dir / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
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

    def close(self) -> None:
        """Gives the directory back. The file stays: removing it would let two processes hold two locks."""
        os.close(self._file)
