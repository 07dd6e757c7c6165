"""Small calls of known words are answered on the event loop; all others take a worker."""

import threading
import uuid

import grpc
import pytest
from facets_proto.v1 import texts_pb2, texts_pb2_grpc
from facets_server.runtime.calls import MAX_QUICK_BYTES
from waiting import wait_until


@pytest.fixture
def stub(running):
    return texts_pb2_grpc.EmbeddingServiceStub(running.channel)


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


def embed(stub, *texts, **settings):
    return stub.Embed(texts_pb2.EmbedRequest(texts=texts, **settings), timeout=60)


def test_words_that_were_read_before_take_no_worker(stub, threads):
    text = f"the cat {uuid.uuid4().hex}"  # models of other tests share the tokenizer
    first = embed(stub, text)
    again = embed(stub, text)
    assert threads == ["call", "grpc"]
    assert again.facet_embeddings == first.facet_embeddings
    assert again.token_stats == first.token_stats


def test_large_requests_take_a_worker(stub, threads):
    embed(stub, "cat")
    embed(stub, "cat " * MAX_QUICK_BYTES)
    assert threads[-1] == "call"


def test_mistakes_are_told_there_as_elsewhere(stub, running):
    embed(stub, "cat")
    for mistake in ({"texts": [" "]}, {"texts": ["cat"], "dtype": 7}):
        with pytest.raises(grpc.RpcError) as raised:
            stub.Embed(texts_pb2.EmbedRequest(**mistake), timeout=60)
        assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    wait_until(lambda: running.metric("facets_running_requests") == 0)


def test_cancelled_calls_leave_nothing_behind(stub, running):
    embed(stub, "cat", "dog")
    running.model.hold()
    first = stub.Embed.future(texts_pb2.EmbedRequest(texts=["cat"]), timeout=60)
    assert running.model.started.wait(30)
    cancelled = stub.Embed.future(texts_pb2.EmbedRequest(texts=["dog"]), timeout=60)
    wait_until(lambda: running.metric("facets_batch_queue_texts", model="fake") == 1)
    cancelled.cancel()
    with pytest.raises(grpc.RpcError) as raised:
        stub.Embed(texts_pb2.EmbedRequest(texts=["dog"]), timeout=0.2)
    assert raised.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    wait_until(lambda: running.metric("facets_batch_queue_texts", model="fake") == 0)
    running.model.gate.set()
    first.result()
    wait_until(lambda: running.metric("facets_running_requests") == 0)
