"""Files that commands write: whole ones, and the list of rejected records."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from facets_client.load.rows import Rejection

_MAX_KEPT = 1000


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Yields a temporary path beside ``path`` and renames it to ``path`` at the end; deletes it after an error."""
    target = Path(path)
    partial = target.with_name(f"{target.name}.partial")
    try:
        yield partial
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


class RejectedList:
    """The first rejections of a run, in memory."""

    def __init__(self) -> None:
        self.kept: list[Rejection] = []

    def write(self, rejections: Sequence[Rejection]) -> None:
        """Keeps rejections as long as there are few."""
        self.kept += rejections[: _MAX_KEPT - len(self.kept)]

    def close(self) -> None:
        """Does nothing."""


class RejectedFile:
    """JSON lines of rejections, created with the first one; deletes the file of an earlier run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stream: BinaryIO | None = None
        if path.is_file():
            path.unlink()

    def write(self, rejections: Sequence[Rejection]) -> None:
        """Appends rejections."""
        for rejection in rejections:
            if self._stream is None:
                self._stream = self._path.open("wb")
            fields = {name: getattr(rejection, name) for name in ("line", "id", "reason", "message", "excerpt")}
            if rejection.name:
                fields = {"file": rejection.name, **fields}
            self._stream.write(json.dumps(fields).encode("ascii") + b"\n")
        if self._stream is not None:
            self._stream.flush()

    def close(self) -> None:
        """Closes the file."""
        if self._stream is not None:
            self._stream.close()
