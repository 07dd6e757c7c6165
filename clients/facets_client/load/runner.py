"""Parts of a bulk run over a long input: settings, batches, the report, and tasks that make calls."""

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeAlias, TypeVar

from facets_client import errors
from facets_client.core.blocking import Background
from facets_client.core.requests import ENVELOPE_BYTES, ITEM_BYTES
from facets_client.load.rows import FileEnd, Record, Rejection

ItemT = TypeVar("ItemT")
ReplyT = TypeVar("ReplyT")

FIRST_PAUSE_S = 0.5  # before the first retry if the server is unreachable or full; doubled each time
LONGEST_PAUSE_S = 10.0
_MAX_REJECTIONS = 1_000  # ends a batch, so that memory is bounded even if every record is rejected
TRANSIENT = (errors.UnavailableError, errors.OverloadedError, errors.DeadlineExceededError)


@dataclass(frozen=True, kw_only=True, slots=True)
class BulkSettings:
    """Settings of a bulk run; lower limits of the server take precedence."""

    batch_size: int = 64
    window: int = 8  # batches in flight
    max_wait_s: float = 300.0  # without progress, for an unreachable or full server
    limit: int = 0  # records; 0: all


@dataclass(slots=True)
class Batch(Generic[ItemT]):
    """Consecutive records: those to send, and those that cannot be sent."""

    records: list[Record[ItemT]] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    ends: list[FileEnd] = field(default_factory=list)  # files that end with the batch or within it
    position: int = 0  # bytes of the input that had been read
    is_sent: bool = False


def batches(
    records: Iterable[Record[ItemT] | Rejection | FileEnd],
    settings: BulkSettings,
    *,
    max_records: int = 0,
    max_bytes: int = 0,
) -> Iterator[Batch[ItemT]]:
    """Groups records into batches of at most ``max_records`` and ``max_bytes``, in order; 0: no limit."""
    size = min(settings.batch_size, max_records or settings.batch_size)
    num_left = settings.limit or math.inf
    batch: Batch[ItemT] = Batch()
    num_bytes = ENVELOPE_BYTES
    for record in records:
        if isinstance(record, FileEnd):
            batch.ends.append(record)
            continue
        if isinstance(record, Record):
            num_added = record.num_bytes + ITEM_BYTES
            if batch.records and max_bytes and num_bytes + num_added > max_bytes:
                yield batch
                batch, num_bytes = Batch(), ENVELOPE_BYTES
            batch.records.append(record)
            num_bytes += num_added
        else:
            batch.rejections.append(record)
        num_left -= 1
        if num_left <= 0:
            break
        if len(batch.records) == size or len(batch.rejections) == _MAX_REJECTIONS:
            yield batch
            batch, num_bytes = Batch(), ENVELOPE_BYTES
    if batch.records or batch.rejections or batch.ends:
        yield batch


@dataclass(frozen=True, slots=True)
class Settled:
    """Result of a batch: the records that the server refused, and the counts to add."""

    rejections: Sequence[Rejection] = ()
    totals: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class BulkReport:
    """What a run has done."""

    num_records: int = 0  # rejected ones included
    num_rejected: int = 0
    totals: Counter[str] = field(default_factory=Counter)  # other counts
    position: int = 0  # bytes of the input that are done
    duration_s: float = 0.0
    num_reconnects: int = 0

    @property
    def num_done(self) -> int:
        """Records that were not rejected."""
        return self.num_records - self.num_rejected


@dataclass(eq=False)
class CallTask(Generic[ItemT, ReplyT]):
    """A task that makes one call per batch, each in its own thread; ``take`` stores the replies in input order."""

    items_name: str
    read: Callable[[], Iterator[Batch[ItemT]]]
    call: Callable[[list[ItemT]], ReplyT]
    take: Callable[[list[Record[ItemT]], ReplyT], Settled]
    max_under_way: int = 1
    finish: Callable[[], None] = lambda: None
    _under_way: "deque[Background[_Answers[ItemT, ReplyT]]]" = field(default_factory=deque, init=False)

    def send(self, batch: Batch[ItemT]) -> None:
        """Starts the call for a batch."""
        self._under_way.append(Background(partial(self._ask, list(batch.records))))

    def settle(self, batch: Batch[ItemT]) -> Settled:
        """Waits for the oldest call and stores its reply."""
        if not batch.records:
            return Settled()
        replies, rejections = self._under_way.popleft().result()
        totals: Counter[str] = Counter()
        for records, reply in replies:
            settled = self.take(records, reply)
            rejections += settled.rejections
            totals.update(settled.totals)
        return Settled(rejections, totals)

    def abandon(self) -> None:
        """Drops the running calls; closing the client ends them."""
        self._under_way.clear()

    def _ask(self, records: list[Record[ItemT]]) -> "_Answers[ItemT, ReplyT]":
        """Makes the call; if the server refuses an item, in halves until it is alone."""
        replies: list[tuple[list[Record[ItemT]], ReplyT]] = []
        rejections: list[Rejection] = []
        waiting = [records]
        while waiting:
            part = waiting.pop(0)
            try:
                replies.append((part, self.call([record.item for record in part])))
            except (errors.InvalidArgumentError, errors.NotFoundError) as error:
                of_items = [rule for rule in error.field_violations if rule.field.startswith(f"{self.items_name}[")]
                if not of_items and error.resource_type != "paper":
                    raise
                if len(part) > 1:
                    waiting[:0] = [part[: len(part) // 2], part[len(part) // 2 :]]
                    continue
                rules = [f"{rule.field.partition('.')[2]} {rule.description}".lstrip() for rule in of_items]
                rejections.append(part[0].rejected("refused", [*rules, error.details][0]))
        return replies, rejections


_Answers: TypeAlias = tuple[list[tuple[list[Record[ItemT]], ReplyT]], list[Rejection]]
