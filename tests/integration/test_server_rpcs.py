"""Every service of a real server, from another process."""

import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
import pytest
from facets_proto.v1 import texts_pb2, texts_pb2_grpc

TEXTS = [
    "The boat sailed on the river to the sea.",
    "A song for guitar and piano.",
    "The king and the queen of the city.",
    "Bread, cheese and wine on the table.",
    "The student was at school with the teacher of physics.",
]


def array_of(message):
    return np.frombuffer(message.data, "<f4").reshape(message.shape)


@pytest.fixture
def embedding(channel):
    return texts_pb2_grpc.EmbeddingServiceStub(channel)


def test_64_concurrent_callers_get_what_they_asked_for(embedding):
    texts = [f"{TEXTS[i % 5]} {TEXTS[(i * 7 + i // 5) % 5]}" for i in range(64)]
    expected = array_of(embedding.Embed(texts_pb2.EmbedRequest(texts=texts), timeout=60).facet_embeddings)
    with ThreadPoolExecutor(64) as pool:
        replies = list(pool.map(lambda text: embedding.Embed(texts_pb2.EmbedRequest(texts=[text]), timeout=60), texts))
    for reply, facets in zip(replies, expected, strict=True):
        np.testing.assert_allclose(array_of(reply.facet_embeddings)[0], facets, rtol=1e-3, atol=1e-4)


def test_cancelled_streams_leave_no_trace(embedding, channel):
    for _ in range(40):
        call = embedding.EmbedStream(iter(threading.Event().wait, None), timeout=30)
        call.cancel()
    reply = embedding.Embed(texts_pb2.EmbedRequest(texts=["a"]), timeout=30)
    assert reply.timings.total_ms > 0
    requests = [texts_pb2.EmbedStreamRequest(sequence=1, request=texts_pb2.EmbedRequest(texts=["a"]))]
    deadline_error = None
    for _ in range(100):  # places of cancelled streams are free again as soon as the server has noticed
        try:
            assert len(list(embedding.EmbedStream(iter(requests), timeout=30))) == 1
            return
        except grpc.RpcError as error:
            deadline_error = error
            assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            threading.Event().wait(0.1)
    raise AssertionError(f"streams stay taken: {deadline_error}")
