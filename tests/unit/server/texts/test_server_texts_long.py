"""Texts that are slow to tokenize."""

import time

import grpc
import pytest
from facets_proto.v1 import texts_pb2, texts_pb2_grpc


@pytest.fixture
def stub(running):
    return texts_pb2_grpc.EmbeddingServiceStub(running.channel)


def texts(count):
    """The slowest texts there are."""
    return [f"{'(' * 32_000}{i}" for i in range(count)]


def test_a_request_of_slow_texts_does_not_hold_up_others(stub):
    slow = stub.Embed.future(texts_pb2.EmbedRequest(texts=texts(40)), timeout=60)
    started = time.monotonic()
    assert stub.Embed(texts_pb2.EmbedRequest(texts=["cat unheardof"]), timeout=60).token_stats[0].num_tokens == 2
    assert time.monotonic() - started < 5  # 17 s when the whole texts were tokenized
    stats = slow.result().token_stats
    assert all(one.truncated for one in stats)


def test_work_on_texts_ends_with_the_deadline_of_the_call(running, stub):
    with pytest.raises(grpc.RpcError) as raised:
        stub.Explain(texts_pb2.ExplainRequest(texts=texts(100)), timeout=1)  # their tokens are listed: minutes
    assert raised.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    until = time.monotonic() + 10
    while running.metric("facets_running_requests"):
        assert time.monotonic() < until
