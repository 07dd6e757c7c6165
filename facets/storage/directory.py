"""A data directory: locked by one process at a time, with a manifest that names its store.

The manifest distinguishes a new, empty store from one that was lost.
"""

import fcntl
import json
import logging
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from facets.errors import DamagedError, StorageError, StoreFormatError, StoreGoneError, StoreInUseError
from facets.storage.checksums import row_checksum
from facets.storage.files import clear_errors, place_of, write_whole

logger = logging.getLogger(__name__)

MANIFEST = "directory.json"
LOCK = "lock"
BACKGROUND_SOCKET = "server.sock"  # of the server that the facets command runs in the background
UNFINISHED_RESTORE = "restore-unfinished"  # file that exists in a directory while a backup is copied into it
_FORMAT = 1


class DirectoryLock:
    """Exclusive use of a data directory until it is closed or the process dies."""

    def __init__(self, data_dir: Path) -> None:
        """Takes the lock; raises StoreInUseError if another process has it."""
        self._path = data_dir / LOCK
        with clear_errors(f"data directory {data_dir} cannot be written"):
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            with clear_errors(f"data directory {data_dir} cannot be locked"):
                try:
                    fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError as error:
                    pid = os.pread(self._file, 32, 0).decode("ascii", "replace").strip() or "unknown"
                    user, how = f"process {pid}", "stop that process"
                    if pid == str(os.getpid()):
                        user, how = "this process", "close it first"
                    elif (data_dir / BACKGROUND_SOCKET).exists():
                        how = "facets stop ends it"
                    reason = f"is in use by {user}: {how}, or choose another directory"
                    raise StoreInUseError(f"data directory {data_dir} {reason}") from error
                os.ftruncate(self._file, 0)
                os.pwrite(self._file, f"{os.getpid()}\n".encode("ascii"), 0)
        except BaseException:
            os.close(self._file)
            raise

    def check(self) -> None:
        """Raises StoreGoneError if the directory was deleted, moved or replaced: another one is not locked."""
        if place_of(self._path) != place_of(self._file):
            raise StoreGoneError(
                f"data directory {self._path.parent} was deleted, moved or replaced while it was in use: writes are "
                "refused; stop this process, put it back or restore a backup, and start again"
            )

    def close(self) -> None:
        """Releases the lock. The file stays: if it were removed, two processes could hold two locks."""
        os.close(self._file)


class DirectoryManifest:
    """The file ``directory.json`` of a data directory; ``store`` names the file that holds the documents."""

    def __init__(self, directory: Path, store: str) -> None:
        self._directory = directory
        self._path = directory / MANIFEST
        self._store = directory / store

    def check(self) -> None:
        """Rejects a directory that is partly restored or has lost its store; called before the store is opened."""
        with clear_errors(f"cannot read data directory {self._directory}"):
            if (self._directory / UNFINISHED_RESTORE).exists():
                raise StorageError(f"data directory {self._directory} is only partly restored: run the restore again")
            if (self._store.exists() and self._store.stat().st_size) or self._read() is None:
                return
            state = "empty" if self._store.exists() else "missing"
        raise DamagedError(
            f"{self._store} is {state}, but {MANIFEST} shows that data directory {self._directory} had one: restore "
            f"it from a backup, or move {MANIFEST} and the rest away to start with an empty store"
        )

    def agree(self, store_id: str) -> None:
        """Writes the manifest if there is none; raises StorageError if it is damaged or names another store."""
        with clear_errors(f"cannot read {self._path}"):
            values = self._read()
        if values is not None:
            expected = values.get("store_id")
            if expected != store_id:
                raise StorageError(
                    f"{self._store} is store {store_id}, but {MANIFEST} names store {expected}: put the right file "
                    f"back, or delete {self._path} to keep this one"
                )
            return
        made = datetime.now(tz=UTC).isoformat(timespec="seconds")
        content = {"format": _FORMAT, "store": self._store.name, "store_id": store_id, "made": made}
        content["checksum"] = row_checksum(json.dumps(content, sort_keys=True))
        try:
            write_whole(self._path, json.dumps(content, indent=2) + "\n", durable=True, private=True)
        except StorageError as error:  # a full disk must not keep a server from starting
            logger.warning("%s: the next start tries again", error)

    def problems(self) -> Iterator[str]:
        """Yields what is wrong with the manifest; changes nothing."""
        try:
            with clear_errors(f"cannot read {self._path}"):
                self._read()
        except StorageError as error:
            yield str(error)

    def _read(self) -> dict[str, object] | None:
        """The manifest; None if there is none."""
        try:
            values = json.loads(self._path.read_text(encoding="utf-8"))
            format_number = values["format"]
            is_intact = values.pop("checksum", None) == row_checksum(json.dumps(values, sort_keys=True))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            format_number, is_intact = 0, False
        if isinstance(format_number, int) and format_number > _FORMAT:
            raise StoreFormatError(
                f"{self._path} has format {format_number}, expected {_FORMAT}: use the release that wrote it"
            )
        if not is_intact:
            raise DamagedError(
                f"{self._path} is damaged: cannot tell whether {self._store.name} is the store of this directory; "
                "restore a backup, or delete this file to accept the store as it is"
            )
        return dict(values)
