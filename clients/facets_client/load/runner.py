"""A long input, batch by batch, whatever happens on the way.

What the state file says is done is done: durable, or listed as rejected. After a broken connection, a crash of the
server, Ctrl-C or SIGKILL of this process, the run goes on from there. Batches that were under way at that moment are
sent again. Memory is bounded by the window, whatever the length of the input.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, Protocol, TypeVar

from facets_client.core.blocking import Background
from facets_client.core.requests import index_of
from facets_client.errors import (
    DeadlineExceededError,
    FacetsClientError,
    InvalidArgumentError,
    NotFoundError,
    OverloadedError,
    UnavailableError,
)
from facets_client.load.batches import Batch, Entry, Place, RejectedFile, StateFile
from facets_client.load.records import Rejection
from facets_client.load.source import BulkSource

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
_TRANSIENT = (UnavailableError, OverloadedError, DeadlineExceededError)


@dataclass(frozen=True, kw_only=True, slots=True)
class BulkSettings:
    """How to go through an input.

    Attributes:
        batch_size: Records of one batch; the server's limit if that is smaller.
        window: Batches under way at the same time; the server's limit if that is smaller.
        max_wait_s: Seconds without progress to wait for a server that is away, restarting or full.
        limit: Stop after this many records of the input; 0: all.
        strict: Stop with the first record that is rejected.
        first_pause_s: First wait for such a server; later ones are longer.
        longest_pause_s: Longest of them.
        save_every_s: The place is saved so often, and whenever the run stops.
    """

    batch_size: int = 64
    window: int = 8
    max_wait_s: float = 300.0
    limit: int = 0
    strict: bool = False
    first_pause_s: float = 0.5
    longest_pause_s: float = 10.0
    save_every_s: float = 0.5

    def __post_init__(self) -> None:
        for name in ("batch_size", "window"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.limit < 0 or self.max_wait_s < 0:
            raise ValueError(f"limit and max_wait_s must be >= 0, got {self.limit} and {self.max_wait_s}")


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a batch: what was refused, and what to count."""

    rejections: Sequence[Rejection] = ()
    totals: Mapping[str, int] = field(default_factory=dict)


class RejectedError(ValueError):
    """A record was rejected and nothing may be: everything before it, and its batch, is done."""

    def __init__(self, rejection: Rejection) -> None:
        where = f"{rejection.name}, " if rejection.name else ""
        super().__init__(f"{where}line {rejection.line}: {rejection.message}")


class _Patience:
    """How long to wait for a server that is away or full: longer each time, up to a limit without progress."""

    def __init__(self, settings: BulkSettings) -> None:
        self._settings = settings
        self.progressed()

    def progressed(self) -> None:
        """The server has answered."""
        self._last_progress = time.monotonic()
        self._pause_s = self._settings.first_pause_s

    def pause_s(self, error: FacetsClientError) -> float:
        """Seconds to wait after an error.

        Raises:
            FacetsClientError: The error itself, when the server has been away for too long.
        """
        pause_s = max(self._pause_s, min(error.retry_after_s or 0.0, self._settings.longest_pause_s))
        if time.monotonic() - self._last_progress + pause_s > self._settings.max_wait_s:
            raise error
        self._pause_s = min(2 * pause_s, self._settings.longest_pause_s)
        return pause_s


def call_patiently(call: Callable[[], ResultT], settings: BulkSettings, on_wait: Callable[[str], None]) -> ResultT:
    """The result of one call to a server that may be away or full, waited for as a run waits.

    Before each pause ``on_wait`` is told what the server said.

    Raises:
        FacetsClientError: What the call raised, when the server refuses or stays away for ``max_wait_s``.
    """
    patience = _Patience(settings)
    while True:
        try:
            return call()
        except _TRANSIENT as error:
            pause_s = patience.pause_s(error)
            on_wait(error.details)
            time.sleep(pause_s)


class BulkTask(Protocol[ItemT]):
    """What one kind of run does with its batches; all of it may fail with a ``FacetsClientError``."""

    def read(self, place: Place) -> Iterator[Batch[ItemT]]:
        """The batches after a place; called before anything else, again when the server was away."""

    @property
    def resume_token(self) -> str:
        """The server's name for an open stream; empty when there is none."""

    @property
    def max_under_way(self) -> int:
        """Most batches to send before the oldest is settled."""

    def send(self, batch: Batch[ItemT]) -> None:
        """Starts on a batch."""

    def settle(self, batch: Batch[ItemT]) -> Settled:
        """Waits for the oldest batch under way: what it asks for is durable on return."""

    def abandon(self) -> None:
        """Forgets what is under way: it will be sent again, or the run ends."""

    def finish(self) -> None:
        """Ends in good order, after the last batch."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is; ``waiting`` says why it stands still, empty while it moves."""

    place: Place
    raw_position: int  # bytes of the stored input up to the place; a few more where it is read in blocks
    waiting: str = ""


@dataclass(frozen=True, slots=True)
class BulkReport:
    """What was done, earlier parts of an interrupted run included.

    Attributes:
        place: The end.
        duration_s: Seconds of this run.
        records_per_s: Records taken by this run each second.
        num_reconnects: How often the connection was opened again.
    """

    place: Place
    duration_s: float
    records_per_s: float = 0.0
    num_reconnects: int = 0


class BulkRunner(Generic[ItemT]):
    """One run over one input.

    Args:
        task: What is done with the batches.
        source: The opened input, at its beginning.
        rejected: Where rejections go, positioned by ``place.rejected_bytes``.
        settings: How to go through the input.
        place: Where to begin.
        state_file: Where to save the place; None: nowhere, an interrupted run starts over.
        on_progress: Called after each batch and while waiting.

    Attributes:
        place: How far the run has come.
    """

    def __init__(
        self,
        task: BulkTask[ItemT],
        source: BulkSource,
        *,
        rejected: RejectedFile,
        settings: BulkSettings,
        place: Place,
        state_file: StateFile | None,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self._task = task
        self._source = source
        self._rejected = rejected
        self._settings = settings
        self.place = place
        self._state_file = state_file
        self._on_progress = on_progress
        self._pending: deque[Batch[ItemT]] = deque()  # read, not settled; those sent come first
        self._raw_settled = 0
        self._num_reconnects = 0
        self._saved_at = 0.0

    def run(self) -> BulkReport:
        """Goes to the end of the input and forgets the saved place.

        Raises:
            FacetsClientError: When the server refuses, or stays away for ``max_wait_s``. The place is saved.
            KeyboardInterrupt: On Ctrl-C. The place is saved.
            InputError, StateError, OSError: When files cannot be read or written.
            RejectedError: With ``strict``, for the first rejected record.
        """
        started = time.monotonic()
        done_before = self.place.num_done
        self._save(now=True)
        try:
            self._work()
        finally:
            self._task.abandon()
            self._rejected.close()
            self._save(now=True)
        if self._state_file:
            self._state_file.remove()
        duration_s = time.monotonic() - started
        speed = (self.place.num_done - done_before) / max(duration_s, 1e-9)
        return BulkReport(self.place, duration_s, speed, self._num_reconnects)

    def _work(self) -> None:
        """Keeps the window full until the input ends; sends again whenever the connection breaks."""
        source: Iterator[Batch[ItemT]] | None = None
        patience = _Patience(self._settings)
        while True:
            try:
                if source is None:
                    source = self._task.read(self.place)
                if not self._advance(source):
                    return
                patience.progressed()
            except _TRANSIENT as error:
                self._task.abandon()
                for batch in self._pending:
                    batch.is_sent = False
                self._num_reconnects += 1
                pause_s = patience.pause_s(error)
                self._save(now=True)
                self._report(waiting=error.details)
                time.sleep(pause_s)

    def _advance(self, source: Iterator[Batch[ItemT]]) -> bool:
        """Fills the window and settles its oldest batch; False when everything is settled."""
        self._fill(source)
        if not self._pending:
            self._task.finish()
            return False
        batch = self._pending[0]
        self._settle(batch, self._task.settle(batch) if batch.entries else Settled())
        self._pending.popleft()
        return True

    def _fill(self, source: Iterator[Batch[ItemT]]) -> None:
        """Reads and sends batches until the window is full or the input ends."""
        position = num_sent = 0
        while position < self._settings.window and num_sent < min(self._settings.window, self._task.max_under_way):
            if position == len(self._pending):
                batch_read = next(source, None)
                if batch_read is None:
                    return
                batch_read.raw_end = self._source.raw_position
                self._pending.append(batch_read)
            batch = self._pending[position]
            if batch.entries and not batch.is_sent:
                self._task.send(batch)
                batch.is_sent = True
            num_sent += batch.is_sent
            position += 1

    def _settle(self, batch: Batch[ItemT], settled: Settled) -> None:
        """A batch is done: its rejections are written, then the place says so."""
        rejections = sorted((*batch.rejections, *settled.rejections), key=lambda item: (item.file, item.line))
        self._rejected.write(rejections)
        self.place = replace(
            self.place,
            file=batch.file,
            line=batch.line,
            byte=batch.end,
            num_records=self.place.num_records + batch.num_records,
            num_rejected=self.place.num_rejected + len(rejections),
            rejected_bytes=self._rejected.num_bytes,
            totals=dict(Counter(self.place.totals) + Counter(settled.totals)),
        )
        self._raw_settled = batch.raw_end
        self._save(now=False)
        self._report()
        if rejections and self._settings.strict:
            raise RejectedError(rejections[0])

    def _save(self, *, now: bool) -> None:
        if self._state_file and (now or time.monotonic() - self._saved_at > self._settings.save_every_s):
            token = self._task.resume_token or self.place.resume_token
            self._state_file.save(replace(self.place, resume_token=token))
            self._saved_at = time.monotonic()

    def _report(self, waiting: str = "") -> None:
        self._on_progress(Progress(self.place, self._raw_settled, waiting))


def check_batches(read: Iterable[Batch[ItemT]], rejected: RejectedFile) -> BulkReport:
    """Reads an input as a run would, without a server: a dry run.

    Returns:
        What a run would do, as far as the client knows.
    """
    started = time.monotonic()
    place = Place()
    try:
        for batch in read:
            rejected.write(batch.rejections)
            place = replace(
                place,
                num_records=place.num_records + batch.num_records,
                num_rejected=place.num_rejected + len(batch.rejections),
            )
    finally:
        rejected.close()
    return BulkReport(place, time.monotonic() - started)


ReplyT = TypeVar("ReplyT")


@dataclass(slots=True)
class _Answers(Generic[ItemT, ReplyT]):
    replies: list[tuple[list[ItemT], ReplyT]] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)


class CallTask(Generic[ItemT, ReplyT]):
    """A task of the bulk runner whose batches are calls.

    Args:
        name: Of the items in a request, e.g. ``papers``.
        read: Place -> the batches after it.
        call: Asks for the items of one batch; from several threads when the window is larger than one.
        take: Keeps a reply, durable on return, and returns what to count; called in the order of the input.
        window: Calls under way at the same time.
        finish: Called after the last batch.
    """

    resume_token = ""

    def __init__(
        self,
        name: str,
        read: Callable[[Place], Iterator[Batch[ItemT]]],
        call: Callable[[list[ItemT]], ReplyT],
        take: Callable[[list[ItemT], ReplyT], Mapping[str, int]],
        *,
        window: int = 1,
        finish: Callable[[], None] = lambda: None,
    ) -> None:
        self._name = name
        self.read = read
        self._call = call
        self._take = take
        self.finish = finish
        self.max_under_way = window
        self._under_way: deque[Background[_Answers[ItemT, ReplyT]]] = deque()

    def send(self, batch: Batch[ItemT]) -> None:
        """Makes the call of a batch in a thread."""
        self._under_way.append(Background(partial(self._ask, list(batch.entries))))

    def settle(self, batch: Batch[ItemT]) -> Settled:
        """Waits for the oldest call and keeps what it returned."""
        answers = self._under_way.popleft().result()
        totals: Counter[str] = Counter()
        for items, reply in answers.replies:
            totals.update(self._take(items, reply))
        return Settled(answers.rejections, totals)

    def abandon(self) -> None:
        """Waits for no call any more; closing the client ends those that are under way."""
        self._under_way.clear()

    def _ask(self, entries: list[Entry[ItemT]]) -> _Answers[ItemT, ReplyT]:
        """The call without the items that the server refuses."""
        answers: _Answers[ItemT, ReplyT] = _Answers()
        while entries:
            items = [entry.item for entry in entries]
            try:
                answers.replies.append((items, self._call(items)))
                break
            except (InvalidArgumentError, NotFoundError) as error:
                refused = self._refused(error, len(entries))
                if refused:
                    answers.rejections += [entries[i].rejected("refused", reason) for i, reason in refused.items()]
                    entries = [entry for i, entry in enumerate(entries) if i not in refused]
                elif not (isinstance(error, NotFoundError) and error.resource_type == "paper"):
                    raise
                elif len(entries) == 1:
                    answers.rejections.append(entries[0].rejected("refused", error.details))
                    break
                else:  # one of them names a paper that is not there: each alone, to find which
                    for entry in entries:
                        alone = self._ask([entry])
                        answers.replies += alone.replies
                        answers.rejections += alone.rejections
                    break
        return answers

    def _refused(self, error: FacetsClientError, num_items: int) -> dict[int, str]:
        """Place of each item that the server refuses, with the path in the item and the rule: ``title is empty``."""
        refused: dict[int, str] = {}
        for violation in error.field_violations:
            item, _, path = violation.field.partition(".")
            place = index_of(item, self._name)
            if place is not None and place < num_items:
                refused.setdefault(place, f"{path} {violation.description}".lstrip())
        return refused
