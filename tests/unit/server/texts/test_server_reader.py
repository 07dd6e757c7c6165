"""The reader behind its queue: opened once, left at once by calls that end, closed with its models."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import BatcherConfig
from facets_server.runtime.errors import CallCancelledError, DeadlineExceededError
from facets_server.runtime.metrics import BatchMetrics
from facets_server.texts.served import CallEncoder, ServedReader
from prometheus_client import CollectorRegistry
from server_fakes import served_passages
from waiting import wait_until

from facets.documents import CollectionEngine, Collections, DocumentQuery
from facets.errors import NotReadyError

ROWS = [SimpleNamespace(ids=[1] * length) for length in (30, 20, 25)]


class SlowReader:
    """Gives each row the number of its tokens, once it may."""

    name = "slow-reader"

    def __init__(self):
        self.may_read, self.is_reading = threading.Event(), threading.Event()

    def read_rows(self, rows):
        self.is_reading.set()
        assert self.may_read.wait(20)
        return [np.full(2, len(row.ids), np.float32) for row in rows]

    def reading_by(self, read_rows):
        return SimpleNamespace(read=read_rows)


@pytest.fixture
def loaded():
    return []


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture(params=[8192, 1])
def reader(request, loaded, registry):
    def load():
        time.sleep(0.05)
        loaded.append(SlowReader())
        return loaded[-1]

    served = ServedReader(load, BatcherConfig(max_batch_tokens=request.param), BatchMetrics(registry))
    yield served
    for one in loaded:
        one.may_read.set()
    served.close()


def test_searches_at_once_open_one_reader_whose_worker_ends(reader, loaded):
    with ThreadPoolExecutor(4) as pool:
        readers = list(pool.map(lambda _: reader.for_call(CallContext(caller="a")), range(4)))
        loaded[0].may_read.set()
        for found in pool.map(lambda one: one.read(ROWS), readers):
            assert [row.tolist() for row in found] == [[30, 30], [20, 20], [25, 25]]
    assert len(loaded) == 1 and "batcher-slow-reader" in {thread.name for thread in threading.enumerate()}
    reader.close()
    assert "batcher-slow-reader" not in {thread.name for thread in threading.enumerate()}
    for late in (lambda: reader.for_call(CallContext()), lambda: readers[0].read(ROWS)):
        with pytest.raises(NotReadyError, match="shutting down"):
            late()


def test_rows_that_wait_for_the_reader_are_counted(reader, loaded, registry):
    def waiting():
        return registry.get_sample_value("facets_batch_queue_texts", {"model": "slow-reader"})

    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(reader.for_call(CallContext()).read, ROWS)
        assert loaded[0].is_reading.wait(10)
        queued = pool.submit(reader.for_call(CallContext()).read, ROWS)
        wait_until(lambda: (waiting() or 0) >= len(ROWS))
        loaded[0].may_read.set()
        assert len(running.result(10)) == len(queued.result(10)) == len(ROWS) and waiting() == 0


def test_a_search_that_is_not_read_does_not_open_the_reader(reader, loaded, tmp_path):
    with closing(served_passages(reader=reader)) as served, CollectionEngine.open(tmp_path) as engine:
        collections = Collections(engine, lambda name: CallEncoder(served, CallContext()))
        collections.create_collection("notes", language="de")
        collections.search("notes", DocumentQuery(queries=["Hund"], mode="lexical"))
    assert not loaded


def test_calls_that_end_do_not_wait_for_the_reader(reader, loaded):
    cancelled, expiring = CallContext(), CallContext(deadline=time.monotonic() + 0.2)
    with ThreadPoolExecutor(3) as pool:
        running = pool.submit(reader.for_call(CallContext()).read, ROWS)
        assert loaded[0].is_reading.wait(10)
        waiting = [pool.submit(reader.for_call(call).read, ROWS) for call in (cancelled, expiring)]
        cancelled.end()
        for call, error in zip(waiting, (CallCancelledError, DeadlineExceededError), strict=True):
            assert isinstance(call.exception(timeout=5), error)
        assert not running.done()
        loaded[0].may_read.set()
        assert len(running.result(10)) == len(ROWS)
