"""Processes a long input batch by batch.

After a broken connection or a crash of the server, the batches in flight are sent again. A run that was interrupted is
run again from the beginning: tasks do nothing about records that are stored already.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from facets_client.core.asynchronous import in_thread
from facets_client.load import runner
from facets_client.load.rows import Rejection
from facets_client.load.runner import TRANSIENT, Batch, BulkReport, BulkSettings, Settled
from facets_client.load.source import BulkSource

ItemT = TypeVar("ItemT")


class AsyncBulkTask(Protocol[ItemT]):
    """Processes the batches of a run. All methods may raise a ``FacetsClientError``."""

    @property
    def max_under_way(self) -> int:
        """Maximum number of batches to send before the oldest is settled."""

    async def read(self) -> Iterator[Batch[ItemT]]:
        """The batches of the input; called again if there was no connection."""

    async def send(self, batch: Batch[ItemT]) -> None:
        """Starts processing a batch."""

    async def settle(self, batch: Batch[ItemT]) -> Settled:
        """Waits until the oldest batch is durable; one without records was not sent."""

    async def abandon(self) -> None:
        """Drops the batches in flight: they will be sent again, or the run ends."""

    async def finish(self) -> None:
        """Called after the last batch."""


@dataclass(eq=False)
class AsyncBulkRunner(Generic[ItemT]):
    """One run over one input; ``report`` says what it has done so far.

    ``on_rejected`` gets the rejections of each batch. ``on_progress`` is called after each batch, and before each pause
    with the server's message.
    """

    task: AsyncBulkTask[ItemT]
    source: BulkSource
    settings: BulkSettings
    on_rejected: Callable[[Sequence[Rejection]], object]
    on_progress: Callable[[BulkReport, str], object]
    report: BulkReport = field(default_factory=BulkReport, init=False)
    _pending: deque[Batch[ItemT]] = field(default_factory=deque, init=False)  # read, not settled; sent ones come first

    async def run(self) -> BulkReport:
        """Processes the input to its end."""
        started = time.monotonic()
        try:
            await self._work()
        finally:
            await self.task.abandon()
        self.report.duration_s = time.monotonic() - started
        return self.report

    async def _work(self) -> None:
        source: Iterator[Batch[ItemT]] | None = None
        last_progress, pause_s = time.monotonic(), runner.FIRST_PAUSE_S
        while True:
            try:
                if source is None:
                    source = await self.task.read()
                await self._fill_window(source)
                if not self._pending:
                    await self.task.finish()
                    return
                batch = self._pending[0]
                self._take(batch, await self.task.settle(batch))
                self._pending.popleft()
                last_progress, pause_s = time.monotonic(), runner.FIRST_PAUSE_S
            except TRANSIENT as error:
                await self.task.abandon()
                for batch in self._pending:
                    batch.is_sent = False
                self.report.num_reconnects += 1
                pause_s = max(pause_s, min(error.retry_after_s or 0.0, runner.LONGEST_PAUSE_S))
                if time.monotonic() - last_progress + pause_s > self.settings.max_wait_s:
                    raise
                self.on_progress(self.report, error.details)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, runner.LONGEST_PAUSE_S)

    async def _fill_window(self, source: Iterator[Batch[ItemT]]) -> None:
        index = num_sent = 0
        while index < self.settings.window and num_sent < min(self.settings.window, self.task.max_under_way):
            if index == len(self._pending):
                next_batch = await in_thread(next, source, None)
                if next_batch is None:
                    return
                next_batch.position = self.source.position
                self._pending.append(next_batch)
            batch = self._pending[index]
            if batch.records and not batch.is_sent:
                await self.task.send(batch)
                batch.is_sent = True
            num_sent += batch.is_sent
            index += 1

    def _take(self, batch: Batch[ItemT], settled: Settled) -> None:
        rejections = sorted((*batch.rejections, *settled.rejections), key=lambda item: (item.file, item.line))
        self.on_rejected(rejections)
        self.report.num_records += len(batch.records) + len(batch.rejections)
        self.report.num_rejected += len(rejections)
        self.report.totals.update(settled.totals)
        self.report.position = batch.position
        self.on_progress(self.report, "")
