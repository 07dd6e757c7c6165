"""The file that lists what was not stored, and why: one JSON object a line."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from facets_client.core.records import Rejection

__all__ = ["RejectedFile"]


class RejectedFile:
    """Appends rejections in the order of their lines; made with the first one.

    Attributes:
        path: Where it is, or will be.
        num_bytes: Its length.
    """

    def __init__(self, path: Path, *, keep_bytes: int = 0) -> None:
        """Goes on after ``keep_bytes`` of an earlier part of the same load; 0 starts anew.

        Raises:
            OSError: When an old file is in the way and cannot be cut.
        """
        self.path = path
        self.num_bytes = 0
        self._stream: BinaryIO | None = None
        if path.is_file():
            if keep_bytes:
                self.num_bytes = min(keep_bytes, path.stat().st_size)
                with path.open("r+b") as stream:
                    stream.truncate(self.num_bytes)
            else:
                path.unlink()

    def write(self, rejections: Iterable[Rejection]) -> None:
        """Appends and flushes.

        Raises:
            OSError: When the file cannot be written.
        """
        for rejection in rejections:
            if self._stream is None:
                self._stream = self.path.open("ab")
            entry = {
                **({"file": rejection.name} if rejection.name else {}),
                "line": rejection.line,
                "id": rejection.id,
                "reason": rejection.reason,
                "message": rejection.message,
                "excerpt": rejection.excerpt,
            }
            line = json.dumps(entry).encode("ascii") + b"\n"
            self._stream.write(line)
            self.num_bytes += len(line)
        if self._stream is not None:
            self._stream.flush()

    def close(self) -> None:
        """Closes the file."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
