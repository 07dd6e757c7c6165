"""What is read from an input, grouped into batches that a server takes."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from facets_client.core.records import Rejection
from facets_client.core.requests import ENVELOPE_BYTES, ITEM_BYTES

__all__ = ["Batch", "Entry", "batches"]

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
        is_sent: The batch is under way.
    """

    entries: list[Entry[ItemT]] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    file: int = 0
    line: int = 0
    end: int = 0
    is_sent: bool = False

    @property
    def items(self) -> list[ItemT]:
        """What the entries hold."""
        return [entry.item for entry in self.entries]

    @property
    def num_records(self) -> int:
        """Entries and rejections together."""
        return len(self.entries) + len(self.rejections)


def batches(
    read: Iterable[Entry[ItemT] | Rejection], *, size: int, max_message_bytes: int = 0, limit: int | None = None
) -> Iterator[Batch[ItemT]]:
    """Groups what is read, in order.

    Args:
        read: Entries and rejections.
        size: Most entries of a batch.
        max_message_bytes: Most bytes of a batch on the wire; 0: no limit.
        limit: Stop after so many records; None: at the end.
    """
    batch: Batch[ItemT] = Batch()
    num_bytes = ENVELOPE_BYTES
    for record in itertools.islice(read, limit):
        added = record.num_bytes + ITEM_BYTES if isinstance(record, Entry) else 0
        if batch.entries and max_message_bytes and num_bytes + added > max_message_bytes:
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
