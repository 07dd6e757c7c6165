"""The number of acknowledged writes of a store, in a file beside it: detects when the end of the SQLite log is lost.

SQLite reads its log up to the first incomplete frame and ignores the rest, because after a power cut that rest was
never acknowledged. A truncated or damaged log looks the same unless the writes are counted elsewhere.
"""

import logging
import os
import struct
import zlib
from pathlib import Path

from facets.errors import DamagedError, DiskFullError
from facets.storage.files import clear_errors, write_whole

logger = logging.getLogger(__name__)

_MAGIC = b"FACETSHW"
_READ_ATTEMPTS = 3  # a server may be writing the file


def _content(count: int) -> bytes:
    """Magic, count and the CRC-32 of both."""
    head = struct.pack("<8sQ", _MAGIC, count)
    return head + struct.pack("<I", zlib.crc32(head))


class HighWaterMark:
    """The number of acknowledged writes of one store, in the file ``NAME-mark`` beside it.

    It is written in place after each write without syncing, which takes microseconds. It is exact after the process
    is killed; after a power cut it may be too low, never too high.
    """

    def __init__(self, store: Path) -> None:
        self.path = store.with_name(f"{store.name}-mark")
        self._store = store
        self._file: int | None = None

    def read(self) -> int | None:
        """The count; None when there is no file; raises DamagedError if it is invalid in several attempts."""
        for _ in range(_READ_ATTEMPTS):
            with clear_errors(f"cannot read {self.path}"):
                try:
                    content = self.path.read_bytes()
                except FileNotFoundError:
                    return None
            count = int.from_bytes(content[8:16], "little")
            if content == _content(count):
                return count
        raise DamagedError(
            f"{self.path} is damaged: cannot tell whether the store has lost its last writes; restore a backup, or "
            "delete this file to continue with what the store holds"
        )

    def compare(self, title: str, count: int, expected: int | None) -> None:
        """Raises DamagedError if a store holds fewer writes than ``expected``, which :meth:`read` returned earlier."""
        if expected is not None and expected > count:
            raise DamagedError(
                f"{title} {self._store} has lost its last {expected - count} writes: it holds {count}, {expected} were "
                "acknowledged; its log was cut, damaged or deleted, or an older copy was put in its place. Restore a "
                f"backup, or delete {self.path} to continue without them"
            )

    def advance(self, count: int) -> None:
        """Writes the count; if the disk is full, a later call does it."""
        try:
            if self._file is None:
                write_whole(self.path, _content(count), durable=True, private=True)
                with clear_errors(f"cannot open {self.path}"):
                    self._file = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
            else:
                with clear_errors(f"cannot write {self.path}"):
                    os.pwrite(self._file, _content(count), 0)
        except DiskFullError as error:
            logger.warning("%s: a damaged log cannot be detected until there is space", error)

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
