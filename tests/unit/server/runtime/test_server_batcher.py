import threading
import time
from collections import Counter

import numpy as np
import pytest
import torch
from facets_server.runtime.batcher import Batcher
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import BatcherConfig
from facets_server.runtime.errors import CallCancelledError, DeadlineExceededError, ModelFailureError
from facets_server.runtime.metrics import BatchMetrics
from facets_server.runtime.models import Failures
from prometheus_client import CollectorRegistry

from facets.errors import NotReadyError, OverloadedError


def work_for(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


class Recorder:
    """Encodes a row as its length and first number; keeps every batch."""

    def __init__(self):
        self.batches = []
        self.gate = threading.Event()
        self.started = threading.Event()
        self.wrong = None
        self.most_rows = 1000  # more at once, and the device has no memory
        self.seconds_per_token = 0.0

    def __call__(self, rows):
        self.batches.append([(len(row), int(row[0])) for row in rows])
        self.started.set()
        assert self.gate.wait(20)
        work_for(self.seconds_per_token * sum(map(len, rows)))
        if len(rows) > self.most_rows:
            raise torch.OutOfMemoryError("CUDA out of memory")
        if self.wrong is not None:
            return self.wrong
        return np.array([[[len(row), row[0]]] for row in rows], np.float32), np.array([len(row) for row in rows])


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def make_batcher(recorder):
    made = []

    def make(*, pads=True, **settings):
        config = BatcherConfig(**settings)
        metrics, failures = BatchMetrics(CollectorRegistry()), Failures()
        batcher = Batcher("m", recorder, len, config, model="m", pads=pads, metrics=metrics, failures=failures)
        made.append(batcher)
        return batcher

    yield make
    recorder.gate.set()
    for batcher in made:
        batcher.close()


def row(length, number=1):
    return np.full(length, number, np.int64)


def fill_behind_a_running_batch(batcher, recorder, submissions):
    """Submits while the first batch runs, then lets the model go."""
    first = batcher.submit([row(1)], CallContext())
    assert recorder.started.wait(10)
    pending = [batcher.submit(rows, call) for rows, call in submissions]
    recorder.gate.set()
    first.columns()
    return pending


def test_batches_keep_the_token_budget_padding_counted(make_batcher, recorder):
    batcher = make_batcher(max_batch_tokens=40, max_batch_texts=8)
    lengths = [3, 17, 4, 40, 1, 9, 10, 2, 2, 2, 60]
    pending = fill_behind_a_running_batch(batcher, recorder, [([row(n) for n in lengths], CallContext())])
    facets, counts = pending[0].columns()
    assert facets[:, 0, 0].tolist() == counts.tolist() == lengths
    for batch in recorder.batches[1:]:
        longest = max(length for length, _ in batch)
        assert len(batch) == 1 or longest * len(batch) <= 40
        assert len(batch) <= 8


def test_without_padding_only_what_a_row_has_counts(make_batcher, recorder):
    batcher = make_batcher(max_batch_tokens=40, pads=False)
    pending = fill_behind_a_running_batch(batcher, recorder, [([row(n) for n in (20, 50, 9, 9, 2, 3)], CallContext())])
    assert pending[0].columns()[1].tolist() == [20, 50, 9, 9, 2, 3]
    assert [[length for length, _ in batch] for batch in recorder.batches[1:]] == [[50], [20, 9, 9], [3, 2]]


def test_a_single_text_is_not_held_up_by_a_bulk_load(make_batcher, recorder):
    batcher = make_batcher(max_batch_texts=32)
    bulk = [row(5, number=2)] * 1000
    one = [row(5, number=3)]
    pending = fill_behind_a_running_batch(batcher, recorder, [(bulk, CallContext()), (one, CallContext())])
    assert pending[1].columns()[0].shape[0] == 1
    assert pending[0].columns()[0].shape[0] == 1000
    assert recorder.batches[2] == [(5, 3)]  # after one batch of the load


def test_callers_of_a_batch_are_waited_for_until_half_are_back(make_batcher, recorder, monkeypatch):
    monkeypatch.setattr("facets_server.runtime.batcher.PATIENCE", 1e6)
    batcher = make_batcher()
    for pending in fill_behind_a_running_batch(batcher, recorder, [([row(2)], CallContext())] * 6):
        pending.columns()
    back = [batcher.submit([row(3)], CallContext()) for _ in range(3)]
    for pending in back:
        pending.columns()
    assert recorder.batches[2:] == [[(3, 1)] * 3]


def test_expired_and_cancelled_rows_are_dropped_and_their_permits_given_back(make_batcher, recorder):
    batcher = make_batcher()
    cancelled, expired, released = CallContext(), CallContext(deadline=0.0), []
    cancelled.end()
    pending = fill_behind_a_running_batch(
        batcher, recorder, [([row(2)], cancelled), ([row(3)], expired), ([row(4)], CallContext())]
    )
    for one in pending:
        one.add_done_callback(released.append)
    pending[2].columns()
    with pytest.raises(CallCancelledError):
        pending[0].columns()
    with pytest.raises(DeadlineExceededError):
        pending[1].columns()
    assert recorder.batches[1:] == [[(4, 1)]]
    assert len(released) == 3


@pytest.mark.parametrize(
    "wrong", [(np.full((1, 1, 2), np.nan),), (np.zeros((2, 1, 2)),), (np.zeros(1), np.zeros(2)), ()]
)
def test_wrong_output_of_a_model_fails_the_call_and_not_the_worker(make_batcher, recorder, wrong):
    batcher = make_batcher()
    recorder.gate.set()
    recorder.wrong = wrong
    for _ in range(3):
        with pytest.raises(ModelFailureError):
            batcher.submit([row(1)], CallContext()).columns()
    assert not batcher.is_healthy()
    recorder.wrong = None
    assert batcher.submit([row(1)], CallContext()).columns()[0].shape == (1, 1, 2)
    assert batcher.is_healthy()


def test_fewer_rows_are_encoded_at_a_time_where_memory_is_short(make_batcher, recorder):
    recorder.most_rows = 2
    recorder.gate.set()
    found = make_batcher().submit([row(n) for n in range(1, 8)], CallContext()).columns()
    assert found[1].tolist() == list(range(1, 8))


def test_one_row_that_does_not_fit_is_refused_and_the_next_call_is_answered(make_batcher, recorder):
    recorder.most_rows = 0
    recorder.gate.set()
    batcher = make_batcher()
    with pytest.raises(OverloadedError, match="no memory left for one text"):
        batcher.submit([row(1), row(2)], CallContext()).columns()
    recorder.most_rows = 1
    assert batcher.submit([row(3)], CallContext()).columns()[1].tolist() == [3]


def test_closing_fails_what_waits(make_batcher, recorder):
    batcher = make_batcher(max_batch_texts=1)
    batcher.submit([row(1)], CallContext())
    assert recorder.started.wait(10)
    waiting = batcher.submit([row(2)], CallContext())
    closing = threading.Thread(target=batcher.close)
    closing.start()
    with pytest.raises(NotReadyError):
        waiting.columns()
    with pytest.raises(NotReadyError):
        batcher.submit([row(1)], CallContext()).columns()
    recorder.gate.set()
    closing.join(10)


def test_batches_of_a_slow_model_are_smaller_if_there_are_several_callers(make_batcher, recorder, monkeypatch):
    monkeypatch.setattr("facets_server.runtime.batcher.MAX_BATCH_S", 0.02)
    batcher = make_batcher(max_batch_tokens=64)
    recorder.seconds_per_token = 0.001
    recorder.gate.set()
    batcher.submit([row(1)] * 300, CallContext(caller="a")).columns()
    assert {len(batch) for batch in recorder.batches} <= {64, 300 % 64}
    recorder.batches.clear()
    pending = [batcher.submit([row(1)] * 300, CallContext(caller=caller)) for caller in "ab"]
    for one in pending:
        one.columns()
    sizes = [len(batch) for batch in recorder.batches]
    assert len(sizes) <= 600 / 4 + 8 and max(sizes[8:]) <= 24


def test_callers_have_equal_shares_in_tokens(make_batcher, recorder):
    batcher = make_batcher(max_batch_texts=8)
    calls = [([row(4, number=caller)], CallContext(caller=f"c{caller}")) for caller in range(9) for _ in range(40)]
    calls += [([row(4, number=9)] * 8, CallContext(caller="c9")) for _ in range(5)]
    fill_behind_a_running_batch(batcher, recorder, calls)[-1].columns()
    served = Counter(number for batch in recorder.batches[1:] for _, number in batch)
    until_now = sum(served.values()) / 10
    assert all(served[caller] == pytest.approx(until_now, abs=8) for caller in range(10))
