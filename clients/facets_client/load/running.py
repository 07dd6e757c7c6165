"""Processes a long input batch by batch and survives interruptions.

Every record up to the position in the state file is durable, or listed as rejected. After a broken connection, a server
crash, Ctrl-C or SIGKILL of this process, the run continues from there; batches in flight are sent again.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from facets_client.core.asynchronous import in_thread
from facets_client.load.runner import TRANSIENT, Batch, BulkReport, BulkSettings, Patience, Settled
from facets_client.load.source import BulkSource
from facets_client.load.state import Place, RejectedFile, RejectedList, StateFile

ItemT = TypeVar("ItemT")
SAVE_EVERY_S = 0.5


class AsyncBulkTask(Protocol[ItemT]):
    """Processes the batches of a run. All methods may raise a ``FacetsClientError``."""

    @property
    def max_under_way(self) -> int:
        """Maximum number of batches to send before the oldest is settled."""

    async def read(self, place: Place) -> Iterator[Batch[ItemT]]:
        """The batches after a position; called again after the connection was lost."""

    async def send(self, batch: Batch[ItemT]) -> None:
        """Starts processing a batch."""

    async def settle(self, batch: Batch[ItemT]) -> Settled:
        """Waits until the oldest batch is durable; one without records was not sent."""

    async def abandon(self) -> None:
        """Drops the batches in flight: they will be sent again, or the run ends."""

    async def finish(self) -> None:
        """Called after the last batch."""


class AsyncBulkRunner(Generic[ItemT]):
    """One run over one input; ``place`` is the position that it has reached.

    ``on_progress`` is called after each batch, and before each pause with the server's message, with the position and
    the bytes of input read up to it.
    """

    def __init__(
        self,
        task: AsyncBulkTask[ItemT],
        source: BulkSource,
        settings: BulkSettings,
        *,
        rejected: RejectedFile | RejectedList,
        on_progress: Callable[[Place, int, str], object],
        state_file: StateFile | None = None,
        place: Place | None = None,
    ) -> None:
        self._task = task
        self._source = source
        self._settings = settings
        self._rejected = rejected
        self._state_file = state_file
        self.place = place or Place()
        self._on_progress = on_progress
        self._pending: deque[Batch[ItemT]] = deque()  # read but not settled; sent batches come first
        self._position = 0
        self._num_reconnects = 0
        self._saved_at = 0.0

    async def run(self) -> BulkReport:
        """Processes the input to its end and deletes the saved position; after an error, the position is saved."""
        started = time.monotonic()
        num_done_before = self.place.num_done
        self._save(now=True)
        try:
            await self._work()
        finally:
            await self._task.abandon()
            self._rejected.close()
            self._save(now=True)
        if self._state_file:
            self._state_file.remove()
        duration_s = time.monotonic() - started
        speed = (self.place.num_done - num_done_before) / max(duration_s, 1e-9)
        return BulkReport(self.place, duration_s, speed, self._num_reconnects)

    async def _work(self) -> None:
        source: Iterator[Batch[ItemT]] | None = None
        patience = Patience(self._settings.max_wait_s)
        while True:
            try:
                if source is None:
                    source = await self._task.read(self.place)
                await self._fill_window(source)
                if not self._pending:
                    await self._task.finish()
                    return
                batch = self._pending[0]
                self._take(batch, await self._task.settle(batch))
                self._pending.popleft()
                patience.progressed()
            except TRANSIENT as error:
                await self._task.abandon()
                for batch in self._pending:
                    batch.is_sent = False
                self._num_reconnects += 1
                pause_s = patience.pause_s(error)
                self._save(now=True)
                self._on_progress(self.place, self._position, error.details)
                await asyncio.sleep(pause_s)

    async def _fill_window(self, source: Iterator[Batch[ItemT]]) -> None:
        index = num_sent = 0
        while index < self._settings.window and num_sent < min(self._settings.window, self._task.max_under_way):
            if index == len(self._pending):
                next_batch = await in_thread(next, source, None)
                if next_batch is None:
                    return
                next_batch.position = self._source.position
                self._pending.append(next_batch)
            batch = self._pending[index]
            if batch.records and not batch.is_sent:
                await self._task.send(batch)
                batch.is_sent = True
            num_sent += batch.is_sent
            index += 1

    def _take(self, batch: Batch[ItemT], settled: Settled) -> None:
        rejections = sorted((*batch.rejections, *settled.rejections), key=lambda item: (item.file, item.line))
        self._rejected.write(rejections)
        reached = batch if batch.records or batch.rejections else self.place
        self.place = replace(
            self.place,
            file=reached.file,
            line=reached.line,
            num_records=self.place.num_records + len(batch.records) + len(batch.rejections),
            num_rejected=self.place.num_rejected + len(rejections),
            rejected_bytes=self._rejected.num_bytes,
            totals=dict(Counter(self.place.totals) + Counter(settled.totals)),
        )
        self._position = batch.position
        self._save(now=False)
        self._on_progress(self.place, self._position, "")

    def _save(self, *, now: bool) -> None:
        if self._state_file and (now or time.monotonic() - self._saved_at > SAVE_EVERY_S):
            self._state_file.save(self.place)
            self._saved_at = time.monotonic()
