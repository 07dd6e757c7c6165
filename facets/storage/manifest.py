"""What a directory must hold, written down in it once: an empty store is told from one that is gone."""

import json
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from facets.errors import DamagedError, StorageError
from facets.storage.files import clear_errors, write_atomically

__all__ = ["MANIFEST", "UNFINISHED_RESTORE", "DirectoryManifest"]

logger = logging.getLogger(__name__)

MANIFEST = "directory.json"
UNFINISHED_RESTORE = "restore-unfinished"  # stands in a directory while a backup is copied into it
_FORMAT = 1


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
            StorageError: The directory was made with another store.
        """
        with clear_errors(f"cannot read {self._path}"):
            values = self._read()
        if values:
            expected = values.get("store_id")
            if expected != store_id:
                raise StorageError(
                    f"{self._store} is another store ({store_id}) than {MANIFEST} says ({expected}): put the right "
                    f"file back, or delete {self._path} to keep this one"
                )
            return
        made = datetime.now(tz=UTC).isoformat(timespec="seconds")
        content = {"format": _FORMAT, "store": self._store.name, "store_id": store_id, "made": made}
        try:
            with write_atomically(self._path, durable=True) as part:
                part.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        except StorageError as error:  # a full disk must not keep a server from starting
            logger.warning("%s: the next start tries again", error)

    def _read(self) -> dict[str, object] | None:
        """The manifest; None without one, empty when it is damaged."""
        try:
            values = json.loads(self._path.read_text(encoding="utf-8"))
            number = values["format"]
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            logger.warning("%s is damaged and will be written again", self._path)
            return {}
        if not isinstance(number, int) or number > _FORMAT:
            raise StorageError(
                f"{self._path} has format {number}, expected at most {_FORMAT}: use the release that wrote it, or a "
                "newer one"
            )
        return dict(values)

    def _found(self) -> list[Path]:
        found = (path for pattern in self._witnesses for path in sorted(self._directory.glob(pattern)))
        return [path for path in found if path.stat().st_size]
