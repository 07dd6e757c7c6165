"""What is read from an input, in batches that a server takes; what was not taken; and how far a run has come.

The place of a run is kept in a small file, so that it can go on after any interruption.
"""

import hashlib
import itertools
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

from facets_client.core.requests import ENVELOPE_BYTES, ITEM_BYTES
from facets_client.load.records import Rejection

ItemT = TypeVar("ItemT")

# A batch without items ends here, so that a hopeless input moves on in bounded memory, too.
_MAX_REJECTIONS = 1_000
_ID_CHARS = 512


@dataclass(frozen=True, slots=True)
class Entry(Generic[ItemT]):
    """A good line: what it holds, and where it stands in the input."""

    item: ItemT
    id: str
    line: int  # 1-based
    end: int  # byte offset after the line, in the uncompressed stream
    excerpt: str  # first characters
    num_bytes: int = 0  # on the wire, where a limit of bytes holds
    file: int = 0  # place of the file among the inputs
    name: str = ""  # of the file, where there are several

    def rejected(self, reason: str, message: str) -> Rejection:
        """The line as one that is not taken."""
        where = {"id": self.id[:_ID_CHARS], "excerpt": self.excerpt, "name": self.name}
        return Rejection(self.line, self.end, reason, message, file=self.file, **where)


@dataclass(slots=True)
class Batch(Generic[ItemT]):
    """Consecutive records: those to send, those that cannot be sent, and where they end in the input.

    Attributes:
        entries: What is to be sent.
        rejections: Records that are not sent.
        file: Place of the file in which the batch ends.
        line: Lines up to the end of the batch.
        end: Bytes up to the end of the batch, in the uncompressed stream.
        raw_end: Bytes of the stored input that had been read when the batch was complete.
        is_sent: The batch is under way.
    """

    entries: list[Entry[ItemT]] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    file: int = 0
    line: int = 0
    end: int = 0
    raw_end: int = 0
    is_sent: bool = False

    @property
    def num_bytes(self) -> int:
        """Of the entries, on the wire."""
        return sum(entry.num_bytes for entry in self.entries)

    @property
    def items(self) -> list[ItemT]:
        """What the entries hold."""
        return [entry.item for entry in self.entries]

    @property
    def num_records(self) -> int:
        """Entries and rejections together."""
        return len(self.entries) + len(self.rejections)


def batches(
    read: Iterable[Entry[ItemT] | Rejection],
    *,
    size: int,
    max_message_bytes: Callable[[], int] = lambda: 0,
    limit: int | None = None,
) -> Iterator[Batch[ItemT]]:
    """Groups what is read, in order, by ``size`` entries at most; stops after ``limit`` records where there is one.

    ``max_message_bytes`` tells most bytes of a batch on the wire, which may change from batch to batch; 0: no limit.
    """
    batch: Batch[ItemT] = Batch()
    num_bytes = ENVELOPE_BYTES
    for record in itertools.islice(read, limit):
        added = record.num_bytes + ITEM_BYTES if isinstance(record, Entry) else 0
        if batch.entries and num_bytes + added > (max_message_bytes() or math.inf):
            yield batch
            batch, num_bytes = Batch(), ENVELOPE_BYTES
        if isinstance(record, Rejection):
            batch.rejections.append(record)
        else:
            batch.entries.append(record)
            num_bytes += added
        batch.file, batch.line, batch.end = record.file, record.line, record.end
        if len(batch.entries) == size or len(batch.rejections) == _MAX_REJECTIONS:
            yield batch
            batch, num_bytes = Batch(), ENVELOPE_BYTES
    if batch.num_records:
        yield batch


class Pace:
    """How many bytes go into a batch, so that the server is done with one about every half second.

    A batch is all or nothing, for Ctrl-C and for what is shown of the progress: a large one of long texts would keep
    both waiting for a minute.

    Attributes:
        num_bytes: Of the next batch.
    """

    _FIRST_BYTES = 16 * 1024
    _SECONDS = 0.5

    def __init__(self) -> None:
        self.num_bytes = self._FIRST_BYTES

    def settled(self, num_bytes: int, duration_s: float) -> None:
        """Learns from a batch: it came so long after the one before it."""
        if duration_s > self._SECONDS:
            self.num_bytes = max(1, int(num_bytes * self._SECONDS / duration_s))
        elif 2 * num_bytes > self.num_bytes:
            self.num_bytes = 2 * self.num_bytes


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


VERSION = 2


class StateError(ValueError):
    """The state file cannot be written."""


@dataclass(frozen=True, slots=True)
class Place:
    """Everything up to this line of this file is done: durable, or written to the rejected file.

    Attributes:
        line: Lines done, of the file.
        byte: Bytes done, in the uncompressed stream; 0 where rows are found by their number.
        num_records: Records done.
        num_rejected: Records rejected, among these.
        rejected_bytes: Length of the rejected file at this point.
        totals: What else was counted, by name.
        resume_token: The server's name for the stream, where there is one.
        file: Files done before it.
    """

    line: int = 0
    byte: int = 0
    num_records: int = 0
    num_rejected: int = 0
    rejected_bytes: int = 0
    totals: Mapping[str, int] = field(default_factory=dict)
    resume_token: str = ""
    file: int = 0

    @property
    def num_done(self) -> int:
        """Records that were taken."""
        return self.num_records - self.num_rejected


@dataclass(frozen=True, slots=True)
class Saved:
    """A place, and the identity of the input and settings it belongs to."""

    identity: Mapping[str, object]
    place: Place


class StateFile:
    """The file that holds a place; replaced as a whole, never half written.

    Args:
        path: Where it is, or will be.
        identity: Of this input with these settings; values of JSON.
    """

    def __init__(self, path: Path, identity: Mapping[str, object]) -> None:
        self.path = path
        self.identity = dict(identity)

    def load(self) -> Saved | None:
        """What was saved last; None when there is nothing, or nothing that can be trusted."""
        try:
            fields = json.loads(self.path.read_bytes())
            if fields["version"] != VERSION:
                return None
            return Saved(dict(fields["identity"]), Place(**fields["place"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None  # starting over is always safe: doing a record twice changes nothing

    def save(self, place: Place) -> None:
        """Replaces what was saved.

        Raises:
            StateError: When the file cannot be written.
        """
        text = json.dumps({"version": VERSION, "identity": self.identity, "place": asdict(place)}, indent=1)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            temporary = self.path.with_name(self.path.name + ".new")
            temporary.write_text(text)
            temporary.replace(self.path)
        except OSError as error:
            raise StateError(f"{self.path}: cannot be written: {error.strerror}") from error

    def remove(self) -> None:
        """Forgets: the run is complete."""
        self.path.unlink(missing_ok=True)


def default_state_path(environment: Mapping[str, str], command: str, *names: str) -> Path:
    """Where the state of a command's run is kept, in ``XDG_STATE_HOME``: a file for each server, input, collection."""
    home = environment.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    key = hashlib.sha256("\0".join(names).encode("utf-8", "surrogateescape"))
    return Path(home) / "facets" / command / f"{key.hexdigest()[:32]}.json"
