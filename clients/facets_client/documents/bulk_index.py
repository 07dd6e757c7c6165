"""Bulk loading of JSONL into a collection: a window of batches on a stream, each settled by its durable ack.

What the state file says is done is done: stored durably or listed as rejected. After a broken connection, a
crash of the server, Ctrl-C or SIGKILL of this process, loading goes on from there. Batches that were under
way at that moment are sent again; storing a document again under its id changes nothing. Memory is bounded by
the window, whatever the length of the input.
"""

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import grpc

from facets_client.client import FacetsClient
from facets_client.core.records import RecordFormat, RecordSource, Rejection, read_records
from facets_client.core.rejected import RejectedFile
from facets_client.documents.index_state import IndexState, StateFile
from facets_client.documents.record_batches import Batch, batches, reject
from facets_client.documents.results import RejectedDocument, StreamAck
from facets_client.documents.upsert_session import UpsertSession
from facets_client.errors import (
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OverloadedError,
    ServerError,
    UnavailableError,
)

__all__ = ["BulkIndexer", "IndexReport", "IndexSettings", "Progress", "check_records"]

_TRANSIENT = (UnavailableError, OverloadedError, DeadlineExceededError)
_TOKEN_REFUSED = (NotFoundError, InvalidArgumentError, FailedPreconditionError)
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 10.0
_SAVE_EVERY_S = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexSettings:
    """How to load.

    Attributes:
        batch_size: Documents of one batch; the server's limit if that is smaller.
        window: Batches under way at the same time; the server's limit if that is smaller.
        max_wait_s: Seconds without progress to wait for a server that is away, restarting or full.
        limit: Stop after this many records of the input; 0: all.
        record_format: Names of the fields, limits of a line.
    """

    batch_size: int = 64
    window: int = 8
    max_wait_s: float = 300.0
    limit: int = 0
    record_format: RecordFormat = field(default_factory=RecordFormat)

    def __post_init__(self) -> None:
        for name in ("batch_size", "window"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.limit < 0 or self.max_wait_s < 0:
            raise ValueError(f"limit and max_wait_s must be >= 0, got {self.limit} and {self.max_wait_s}")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the load is; ``waiting`` says why it stands still, empty while it moves."""

    num_indexed: int
    num_rejected: int
    line: int
    raw_position: int
    waiting: str = ""


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What a load did, earlier parts of an interrupted one included.

    Attributes:
        num_records: Records of the input that are done.
        num_indexed: Documents stored.
        num_rejected: Records rejected.
        duration_s: Seconds of this run.
        documents_per_s: Documents stored by this run each second.
        num_reconnects: How often the connection was opened again.
        index_revision: Revision that holds everything stored; give it as min_revision to search it.
    """

    num_records: int
    num_indexed: int
    num_rejected: int
    duration_s: float
    documents_per_s: float
    num_reconnects: int
    index_revision: int


class BulkIndexer:
    """One load of one input into one collection.

    Args:
        client: Connected to the server.
        source: The opened input, at its beginning.
        state: Where to begin: a fresh state, or a saved one of this very input.
        state_file: Where to save; None: nowhere, the load starts over after an interruption.
        rejected: Where rejections go, positioned by ``state.rejected_bytes``.
        settings: How to load.
        on_progress: Called after each batch and while waiting.
    """

    def __init__(
        self,
        client: FacetsClient,
        source: RecordSource,
        *,
        state: IndexState,
        state_file: StateFile | None,
        rejected: RejectedFile,
        settings: IndexSettings,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self._client = client
        self._source = source
        self.state = state
        self._state_file = state_file
        self._rejected = rejected
        self._settings = settings
        self._on_progress = on_progress
        self._pending: deque[Batch] = deque()  # read, not settled; those sent come first
        self._session: UpsertSession | None = None
        self._num_reconnects = 0
        self._index_revision = 0
        self._saved_at = 0.0

    def run(self) -> IndexReport:
        """Loads to the end of the input and forgets the saved state.

        Raises:
            FacetsClientError: When the server refuses, or stays away for ``max_wait_s``. The state is saved.
            KeyboardInterrupt: On Ctrl-C. The state is saved.
            InputError, StateError, OSError: When files cannot be read or written.
        """
        started = time.monotonic()
        indexed_before = self.state.num_indexed
        self._save(now=True)
        try:
            self._load(self._batches())
        finally:
            self._close_session()
            self._rejected.close()
            self._save(now=True)
        if self._state_file:
            self._state_file.remove()
        duration_s = time.monotonic() - started
        return IndexReport(
            num_records=self.state.num_records,
            num_indexed=self.state.num_indexed,
            num_rejected=self.state.num_rejected,
            duration_s=duration_s,
            documents_per_s=(self.state.num_indexed - indexed_before) / max(duration_s, 1e-9),
            num_reconnects=self._num_reconnects,
            index_revision=self._index_revision,
        )

    def _batches(self) -> Iterator[Batch]:
        limits = self._client.model().limits
        record_format = replace(self._settings.record_format, max_text_bytes=limits.max_text_bytes)
        return _read_batches(
            self._source,
            self.state,
            replace(self._settings, record_format=record_format),
            max_documents=limits.max_documents_per_upsert,
            max_message_bytes=limits.max_message_bytes,
        )

    def _load(self, source: Iterator[Batch]) -> None:
        """Keeps the window full until the input ends; opens the stream again whenever it breaks."""
        last_progress = time.monotonic()
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                if not self._advance(source):
                    return
                last_progress = time.monotonic()
                pause_s = _FIRST_PAUSE_S
            except _TRANSIENT as error:
                self._close_session()
                self._num_reconnects += 1
                waited = time.monotonic() - last_progress
                pause_s = max(pause_s, min(error.retry_after_s or 0.0, _LONGEST_PAUSE_S))
                if waited + pause_s > self._settings.max_wait_s:
                    raise
                self._save(now=True)
                self._report(waiting=error.details)
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _advance(self, source: Iterator[Batch]) -> bool:
        """Fills the window and settles its oldest batch; False when everything is settled."""
        self._fill(source)
        if not self._pending:
            if self._session:
                self._session.finish()
            return False
        batch = self._pending[0]
        ack = self._open_session().receive_ack() if batch.documents else None
        if ack and ack.sequence != batch.sequence:
            text = f"the server acknowledged batch {ack.sequence}, expected {batch.sequence}"
            raise ServerError(grpc.StatusCode.INTERNAL, text)
        self._settle(batch, ack)
        self._pending.popleft()
        return True

    def _fill(self, source: Iterator[Batch]) -> None:
        """Reads and sends batches until the window is full or the input ends."""
        position = num_sent = 0
        while position < self._settings.window and num_sent < self._window():
            if position == len(self._pending):
                batch_read = next(source, None)
                if batch_read is None:
                    return
                self._pending.append(batch_read)
            batch = self._pending[position]
            if batch.documents and not batch.sequence:
                batch.sequence = self._open_session().send(batch.documents)
            num_sent += bool(batch.sequence)
            position += 1

    def _window(self) -> int:
        allowed = self._session.max_unacked_batches if self._session else 1
        return min(self._settings.window, allowed)

    def _settle(self, batch: Batch, ack: StreamAck | None) -> None:
        """A batch is done: its rejections are written, then the state says so."""
        rejections = list(batch.rejections)
        if ack:
            rejections += [_rejection(batch, item) for item in ack.rejected]
            self._index_revision = ack.index_revision
        rejections.sort(key=lambda rejection: rejection.line)
        self._rejected.write(rejections)
        self.state = replace(
            self.state,
            line=batch.line,
            byte=batch.end,
            num_records=self.state.num_records + batch.num_records,
            num_indexed=self.state.num_indexed + batch.num_records - len(rejections),
            num_rejected=self.state.num_rejected + len(rejections),
            rejected_bytes=self._rejected.num_bytes,
            resume_token=ack.resume_token if ack else self.state.resume_token,
        )
        self._save(now=False)
        self._report()

    def _open_session(self) -> UpsertSession:
        """The open stream; opens it, on the same token as before, when there is none."""
        if self._session is None:
            token = self.state.resume_token
            collection = self.state.identity.collection
            try:
                self._session = self._client.open_upsert_session(collection, resume_token=token)
            except _TOKEN_REFUSED:
                if not token:
                    raise
                # The server has forgotten the stream; what is acknowledged stays stored.
                self._session = self._client.open_upsert_session(collection)
            self.state = replace(self.state, resume_token=self._session.resume_token)
        return self._session

    def _close_session(self) -> None:
        if self._session:
            self._session.close()
            self._session = None
        for batch in self._pending:
            batch.sequence = 0

    def _save(self, *, now: bool) -> None:
        if self._state_file and (now or time.monotonic() - self._saved_at > _SAVE_EVERY_S):
            self._state_file.save(self.state)
            self._saved_at = time.monotonic()

    def _report(self, waiting: str = "") -> None:
        state = self.state
        self._on_progress(
            Progress(state.num_indexed, state.num_rejected, state.line, self._source.raw_position, waiting)
        )


def check_records(
    source: RecordSource, state: IndexState, *, rejected: RejectedFile, settings: IndexSettings
) -> IndexReport:
    """Reads the input as a load would, without a server: a dry run.

    Returns:
        What a load would do, as far as the client can tell.
    """
    started = time.monotonic()
    num_records = num_rejected = 0
    try:
        for batch in _read_batches(source, state, settings, max_documents=0, max_message_bytes=0):
            rejected.write(batch.rejections)
            num_records += batch.num_records
            num_rejected += len(batch.rejections)
    finally:
        rejected.close()
    duration_s = time.monotonic() - started
    return IndexReport(num_records, num_records - num_rejected, num_rejected, duration_s, 0.0, 0, 0)


def _read_batches(
    source: RecordSource,
    state: IndexState,
    settings: IndexSettings,
    *,
    max_documents: int,
    max_message_bytes: int,
) -> Iterator[Batch]:
    """The batches after what the state says is done."""
    items = read_records(source, settings.record_format, line=state.line, end=state.byte)
    if settings.limit:
        left = max(0, settings.limit - state.num_records)
        items = itertools.islice(items, left)
    batch_size = min(settings.batch_size, max_documents or settings.batch_size)
    return batches(items, batch_size=batch_size, max_message_bytes=max_message_bytes)


def _rejection(batch: Batch, item: RejectedDocument) -> Rejection:
    """A document that the server refused, with its line."""
    if item.position >= len(batch.records):
        text = f"the server rejected document {item.position} of a batch of {len(batch.records)}"
        raise ServerError(grpc.StatusCode.INTERNAL, text)
    return reject(batch.records[item.position], item.reason.lower() or item.code.lower(), item.message)
