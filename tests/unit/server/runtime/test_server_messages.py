"""Waiting for messages, and reading streams ahead, within bounds."""

import asyncio
import gc
import itertools
import threading
import uuid

import grpc
import pytest
from facets_client import FacetsClient
from facets_proto.v1 import texts_pb2
from facets_server.runtime.admission import Admission
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import AdmissionConfig
from facets_server.runtime.errors import DeadlineExceededError
from facets_server.runtime.messages import WaitLimit, read_ahead
from server_failures import failure
from waiting import wait_until

from facets.errors import OverloadedError


class Caller:
    """Sends requests of one size without end; knows how many were read."""

    def __init__(self, size, call, memory):
        self._size, self._call, self._memory = size, call, memory

    def __iter__(self):
        for number in itertools.count():
            self._call.memory = self._memory.taken(self._call, self._size, waits=True)
            yield number


@pytest.mark.parametrize(
    ("size", "ahead"),
    [
        (10, 8),  # the window
        (400, 4),  # half of the memory
        (5000, 1),  # more than the limit, alone
    ],
)
def test_no_more_is_read_while_window_or_memory_is_full(size, ahead):
    admission, call = Admission(AdmissionConfig(max_memory_bytes=3200)), CallContext(caller="a")
    begun = []
    requests = iter(Caller(size, call, admission.memory))
    works = read_ahead(requests, lambda one: begun.append(one) or one, admission, call)
    for number in range(20):
        assert next(works) == number
        # The one that was yielded is not answered before the next is asked for.
        wait_until(lambda number=number: len(begun) == number + ahead)
    call.end()
    works.close()
    other = CallContext(caller="b")
    assert admission.memory.taken(other, 10_000, waits=True)


def test_only_some_slow_callers_may_wait():
    async def run():
        waits = WaitLimit("a message", most=2, timeout_s=None)
        tasks = [asyncio.ensure_future(waits.wait(asyncio.Event().wait())) for _ in range(6)]
        assert not (await asyncio.wait(tasks, timeout=0.05))[0], "a moment is theirs"
        while sum(task.done() for task in tasks) < 4:
            await asyncio.wait([task for task in tasks if not task.done()], return_when=asyncio.FIRST_COMPLETED)
        assert [task.done() for task in tasks] == [True] * 4 + [False] * 2, "the oldest give way"
        assert all(isinstance(task.exception(), OverloadedError) for task in tasks[:4])
        await asyncio.sleep(0.6)
        assert not any(task.done() for task in tasks[4:])
        for task in tasks[4:]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert all(task.cancelled() for task in tasks[4:])

    asyncio.run(run())


def test_a_wait_ends_after_its_time():
    async def run():
        waits = WaitLimit("a message", most=9, timeout_s=0.02)
        with pytest.raises(DeadlineExceededError, match="a message"):
            await waits.wait(asyncio.Event().wait())
        assert await waits.wait(asyncio.sleep(0, "came")) == "came"

    asyncio.run(run())


@pytest.fixture
def threads(running, monkeypatch):
    """Names of the threads that have begun calls."""
    names = []
    tokenize = running.model.tokenize

    def spied(texts):
        names.append(threading.current_thread().name.partition("_")[0])
        return tokenize(texts)

    monkeypatch.setattr(running.model, "tokenize", spied)
    return names


def embed(running, *texts, **settings):
    return running.embedding.Embed(texts_pb2.EmbedRequest(texts=texts, **settings), timeout=60)


def test_words_that_were_read_before_take_no_worker(running, threads):
    text = f"the cat {uuid.uuid4().hex}"  # models of other tests share the tokenizer
    first = embed(running, text)
    again = embed(running, text)
    assert threads == ["call", "grpc"]
    assert again.facet_embeddings == first.facet_embeddings
    assert again.token_stats == first.token_stats


def test_mistakes_are_told_there_as_elsewhere(running):
    embed(running, "cat")
    for mistake in ({"texts": [" "]}, {"texts": ["cat"], "dtype": 7}):
        failure(running.embedding.Embed, texts_pb2.EmbedRequest(**mistake), grpc.StatusCode.INVALID_ARGUMENT)
    wait_until(lambda: running.metric("facets_running_requests") == 0)


def test_cancelled_calls_leave_nothing_behind(running):
    embed(running, "cat", "dog")
    running.model.hold()
    first = running.embedding.Embed.future(texts_pb2.EmbedRequest(texts=["cat"]), timeout=60)
    assert running.model.started.wait(30)
    cancelled = running.embedding.Embed.future(texts_pb2.EmbedRequest(texts=["dog"]), timeout=60)
    wait_until(lambda: running.metric("facets_batch_queue_texts", model="fake") == 1)
    cancelled.cancel()
    with pytest.raises(grpc.RpcError) as raised:
        running.embedding.Embed(texts_pb2.EmbedRequest(texts=["dog"]), timeout=0.2)
    assert raised.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    wait_until(lambda: running.metric("facets_batch_queue_texts", model="fake") == 0)
    running.model.gate.set()
    first.result()
    wait_until(lambda: running.metric("facets_running_requests") == 0)


def test_answered_calls_leave_no_garbage(running):
    """Else it grows between two collections, and each takes longer."""
    texts, num_calls = ["cat", "dog"], 6
    gc.collect()
    gc.disable()
    try:
        with FacetsClient(f"127.0.0.1:{running.server.port}") as client:
            client.create_collection("news")
            for _ in range(num_calls):
                embed(running, *texts)
                client.add(texts, collection="news")
            wait_until(lambda: running.metric("facets_open_streams") == running.metric("facets_running_requests") == 0)
            kept = [one.method for one in gc.get_objects() if isinstance(one, CallContext)]
    finally:
        gc.enable()
    assert len(kept) <= 2  # of the last batch, which the worker holds until the next
    ended = {"method": "/facets.v1.DocumentService/UpsertStream", "code": "OK"}
    assert running.metric("facets_requests_total", **ended) == num_calls
