"""How many writes of a store were acknowledged, in a file beside it: tells when the end of its log is gone.

SQLite reads its log up to the first frame that is not whole and forgets the rest without a word, because after a power
cut that rest was never acknowledged. A cut or damaged log looks the same, except to somebody who has counted.
"""

import logging
import os
import struct
import zlib
from pathlib import Path

from facets.errors import DamagedError, DiskFullError
from facets.storage.files import clear_errors, write_whole

logger = logging.getLogger(__name__)

_LINE = struct.Struct("<8sQI")  # magic, count, CRC-32 of both
_MAGIC = b"FACETSHW"
_LOOKS = 3


class HighWaterMark:
    """The count of acknowledged writes of one store.

    It is written in place after each write, without waiting for the disk: that takes microseconds. A kill of the
    process leaves it exact; after a power cut it may be behind, never ahead.

    Args:
        store: The file of the store; the mark is ``NAME-mark`` beside it.
    """

    def __init__(self, store: Path) -> None:
        self.path = store.with_name(f"{store.name}-mark")
        self._file: int | None = None

    def read(self) -> int | None:
        """The count; None when there is no file.

        Raises:
            DamagedError: It is not what was written; looked at again, as its server may just write it.
            StorageError: It cannot be read.
        """
        for _ in range(_LOOKS):
            with clear_errors(f"cannot read {self.path}"):
                try:
                    line = self.path.read_bytes()
                except FileNotFoundError:
                    return None
            if len(line) == _LINE.size:
                magic, count, checksum = _LINE.unpack(line)
                if magic == _MAGIC and zlib.crc32(line[:-4]) == checksum:
                    return int(count)
        raise DamagedError(
            f"{self.path} is damaged: whether the store has lost its last writes cannot be told; restore a backup, or "
            "delete this file to go on with what the store holds"
        )

    def compare(self, title: str, store: Path, count: int, known: int | None) -> None:
        """Compares the store with a count that :meth:`read` gave: a store that is in use goes on meanwhile.

        Raises:
            DamagedError: The store holds fewer writes than were acknowledged.
        """
        if known is not None and known > count:
            raise DamagedError(
                f"{title} {store} has lost its last {known - count} writes: it holds {count}, {known} were "
                "acknowledged; its log was cut, damaged or deleted, or an older copy was put in its place. Restore a "
                f"backup, or delete {self.path} to go on without them"
            )

    def advance(self, count: int) -> None:
        """Notes the count; a mark that cannot be made, on a full disk, is made by a later call."""
        head = struct.pack("<8sQ", _MAGIC, count)
        line = head + struct.pack("<I", zlib.crc32(head))
        try:
            if self._file is None:
                write_whole(self.path, line, durable=True, private=True)
                with clear_errors(f"cannot open {self.path}"):
                    self._file = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
            else:
                with clear_errors(f"cannot write {self.path}"):
                    os.pwrite(self._file, line, 0)
        except DiskFullError as error:
            logger.warning("%s: until there is room, a damaged log would not be noticed", error)

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
