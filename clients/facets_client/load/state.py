"""Files that a bulk run keeps: its position, to continue after any interruption, and its rejected records."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import BinaryIO

from facets_client.load.rows import Rejection
from facets_client.load.source import InputError

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


@dataclass(frozen=True, slots=True)
class Place:
    """Position that a run has reached: every record up to it is stored, or written to the rejected file."""

    file: int = 0  # completed files
    line: int = 0  # completed lines of the next file
    num_records: int = 0  # rejected ones included
    num_rejected: int = 0
    rejected_bytes: int = 0  # length of the rejected file
    totals: Mapping[str, int] = field(default_factory=dict)  # other counts

    @property
    def num_done(self) -> int:
        """Records that were not rejected."""
        return self.num_records - self.num_rejected


class StateFile:
    """The file that holds the position of a run; ``identity`` has JSON values that identify its input and settings."""

    def __init__(self, path: Path, identity: Mapping[str, object]) -> None:
        self.path = path
        self.identity = dict(identity)

    def load(self) -> tuple[Place, bool] | None:
        """The saved position and whether it belongs to this input; None if nothing readable is saved."""
        try:
            saved = json.loads(self.path.read_bytes())
            return Place(**saved["place"]), saved["identity"] == self.identity
        except (OSError, ValueError, KeyError, TypeError):
            return None  # starting over is always safe: storing a record again changes nothing

    def save(self, place: Place) -> None:
        """Replaces the saved position."""
        text = json.dumps({"identity": self.identity, "place": asdict(place)}, indent=1)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(self.path) as partial:
                partial.write_text(text)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written: {error.strerror}") from error

    def remove(self) -> None:
        """Deletes the file: the run is complete."""
        self.path.unlink(missing_ok=True)


def default_state_path(environment: Mapping[str, str], command: str, *names: str) -> Path:
    """The state file of a command in ``XDG_STATE_HOME``: a different one for each server, input and collection."""
    home = environment.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    key = hashlib.sha256("\0".join(names).encode("utf-8", "surrogateescape"))
    return Path(home) / "facets" / command / f"{key.hexdigest()[:32]}.json"


class RejectedList:
    """The first rejections of a run, in memory."""

    num_bytes = 0

    def __init__(self) -> None:
        self.kept: list[Rejection] = []

    def write(self, rejections: Sequence[Rejection]) -> None:
        """Keeps rejections as long as there are few."""
        self.kept += rejections[: _MAX_KEPT - len(self.kept)]

    def close(self) -> None:
        """Does nothing."""


class RejectedFile:
    """JSON lines of rejections, created with the first one. ``keep_bytes`` of an earlier part of the run are kept."""

    def __init__(self, path: Path, *, keep_bytes: int = 0) -> None:
        self.path = path
        self.num_bytes = 0
        self._stream: BinaryIO | None = None
        if keep_bytes and path.is_file():
            self.num_bytes = min(keep_bytes, path.stat().st_size)
            os.truncate(path, self.num_bytes)
        elif path.is_file():
            path.unlink()

    def write(self, rejections: Iterable[Rejection]) -> None:
        """Appends rejections."""
        for rejection in rejections:
            if self._stream is None:
                self._stream = self.path.open("ab")
            fields = {name: getattr(rejection, name) for name in ("line", "id", "reason", "message", "excerpt")}
            if rejection.name:
                fields = {"file": rejection.name, **fields}
            self.num_bytes += self._stream.write(json.dumps(fields).encode("ascii") + b"\n")
        if self._stream is not None:
            self._stream.flush()

    def close(self) -> None:
        """Closes the file."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
