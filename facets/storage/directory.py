"""A data directory: held by one process at a time, and what it must hold, written down in it once.

The manifest tells an empty store from one that is gone.
"""

import fcntl
import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from facets.errors import DamagedError, StorageError, StoreGoneError, StoreInUseError
from facets.storage.checksums import row_checksum
from facets.storage.files import clear_errors, place_of, write_whole

logger = logging.getLogger(__name__)

MANIFEST = "directory.json"
LOCK = "lock"
UNFINISHED_RESTORE = "restore-unfinished"  # stands in a directory while a backup is copied into it
_FORMAT = 1


class DirectoryLock:
    """Exclusive use of a data directory, held until closed or until the process dies however it dies."""

    def __init__(self, data_dir: Path) -> None:
        """Takes the lock.

        Raises:
            StoreInUseError: Another process has it, or has the directory that was deleted here.
            StorageError: The directory cannot be written.
        """
        self._path = data_dir / LOCK
        if (pid := _user_of_deleted(self._path)) is not None:
            raise StoreInUseError(
                f"data directory {data_dir} was deleted while process {pid} was using it, and that process still runs: "
                "stop it first"
            )
        with clear_errors(f"data directory {data_dir} cannot be written"):
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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
        if place_of(self._path) != place_of(self._file):
            raise StoreGoneError(
                f"data directory {self._path.parent} was deleted, moved or replaced while it was in use: nothing is "
                "written any more; stop this process, put it back or restore a backup, and start again"
            )

    def close(self) -> None:
        """Gives the directory back. The file stays: removing it would let two processes hold two locks."""
        os.close(self._file)


def _checksum(values: Mapping[str, object]) -> int:
    return row_checksum(json.dumps(values, sort_keys=True))


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


class DirectoryManifest:
    """The file ``directory.json`` of a data directory.

    Args:
        directory: The data directory.
        store: Name of the file that holds the truth.
        witnesses: Patterns of files that are there only if the store was, for directories made before there were
            manifests.
    """

    def __init__(self, directory: Path, store: str, witnesses: Sequence[str]) -> None:
        self._directory = directory
        self._path = directory / MANIFEST
        self._store = directory / store
        self._witnesses = witnesses

    def check(self) -> None:
        """Refuses a directory whose store is gone; called before the store is opened.

        Raises:
            DamagedError: The store is missing or empty although the directory says that there was one.
            StorageError: A restore was interrupted, the manifest is of a newer version, or something cannot be read.
        """
        with clear_errors(f"cannot read data directory {self._directory}"):
            if (self._directory / UNFINISHED_RESTORE).exists():
                raise StorageError(
                    f"data directory {self._directory} is half restored: expected a whole one; run the restore again"
                )
            values = self._read()
            if self._store.exists() and self._store.stat().st_size:
                return
            found = [self._path] if values is not None else self._found()
        if found:
            state = "empty" if self._store.exists() else "missing"
            witness = found[0].relative_to(self._directory)
            raise DamagedError(
                f"{self._store} is {state}, but {witness} says that data directory {self._directory} had one: restore "
                f"it from a backup, or move {witness} and the rest away to begin with an empty store"
            )

    def agree(self, store_id: str) -> None:
        """Compares the store that was opened with the manifest, which is written when there is none.

        Raises:
            DamagedError: The manifest is damaged.
            StorageError: The directory was made with another store.
        """
        with clear_errors(f"cannot read {self._path}"):
            values = self._read()
        if values is not None:
            expected = values.get("store_id")
            if expected != store_id:
                raise StorageError(
                    f"{self._store} is another store ({store_id}) than {MANIFEST} says ({expected}): put the right "
                    f"file back, or delete {self._path} to keep this one"
                )
            return
        made = datetime.now(tz=UTC).isoformat(timespec="seconds")
        content = {"format": _FORMAT, "store": self._store.name, "store_id": store_id, "made": made}
        content["checksum"] = _checksum(content)
        try:
            write_whole(self._path, json.dumps(content, indent=2) + "\n", durable=True, private=True)
        except StorageError as error:  # a full disk must not keep a server from starting
            logger.warning("%s: the next start tries again", error)

    def problems(self) -> Iterator[str]:
        """What is wrong with the manifest, a sentence; changes nothing."""
        try:
            with clear_errors(f"cannot read {self._path}"):
                self._read()
        except StorageError as error:
            yield str(error)

    def _read(self) -> dict[str, object] | None:
        """The manifest; None without one."""
        try:
            values = json.loads(self._path.read_text(encoding="utf-8"))
            number = values["format"]
            is_whole = values.pop("checksum", None) == _checksum(values)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError):
            number, is_whole = 0, False
        if isinstance(number, int) and number > _FORMAT:
            raise StorageError(
                f"{self._path} has format {number}, expected at most {_FORMAT}: use the release that wrote it, or a "
                "newer one"
            )
        if not is_whole:
            raise DamagedError(
                f"{self._path} is damaged: whether {self._store.name} is the store of this directory cannot be told; "
                "restore a backup, or delete this file to take the store as it is"
            )
        return dict(values)

    def _found(self) -> list[Path]:
        found = (path for pattern in self._witnesses for path in sorted(self._directory.glob(pattern)))
        return [path for path in found if path.stat().st_size]
