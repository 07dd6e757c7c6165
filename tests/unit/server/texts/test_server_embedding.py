from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
import pytest
from facets_proto.v1 import common_pb2, texts_pb2
from waiting import wait_until


def array_of(message):
    dtype = "<f2" if message.dtype == common_pb2.DATA_TYPE_FLOAT16 else "<f4"
    return np.frombuffer(message.data, dtype).reshape(message.shape)


def test_embed_returns_the_facets_of_every_text_in_order(running):
    texts = ["the cat and the dog", "a boat", "the king of the sea"]
    reply = running.embedding.Embed(texts_pb2.EmbedRequest(texts=texts), timeout=60)
    np.testing.assert_array_equal(array_of(reply.facet_embeddings), running.model.encode(texts))
    assert (reply.model.name, reply.model.revision) == ("fake", "r1")
    assert reply.timings.total_ms > 0


def test_embed_returns_one_vector_a_text_on_request(running):
    texts = ["the cat and the dog", "a boat"]
    reply = running.embedding.Embed(texts_pb2.EmbedRequest(texts=texts, include_vectors=True), timeout=60)
    np.testing.assert_array_equal(array_of(reply.vectors), running.model.embed(texts))
    assert not running.embedding.Embed(texts_pb2.EmbedRequest(texts=texts), timeout=60).HasField("vectors")
    both = running.embedding.Embed(texts_pb2.EmbedRequest(texts=texts, vectors_only=True), timeout=60)
    assert both.vectors == reply.vectors and both.HasField("facet_embeddings"), "a model of sentences makes both"


def test_token_stats_count_unknown_words_and_show_a_cut_text(running):
    long_text = "cat " * (running.model.max_tokens + 1)
    exact_text = "cat " * running.model.max_tokens
    reply = running.embedding.Embed(
        texts_pb2.EmbedRequest(texts=["the xyzzy cat", "qqq www", "the of", long_text, exact_text]), timeout=60
    )
    stats = [(s.num_tokens, s.num_unknown_tokens, s.truncated) for s in reply.token_stats]
    most = running.model.max_tokens
    assert stats == [(3, 1, False), (2, 2, False), (2, 0, False), (most, 0, True), (most, 0, False)]


def test_stream_answers_in_order_and_goes_on_after_a_bad_request(running):
    requests = [
        texts_pb2.EmbedStreamRequest(sequence=7, request=texts_pb2.EmbedRequest(texts=["a cat", "a dog"])),
        texts_pb2.EmbedStreamRequest(sequence=8, request=texts_pb2.EmbedRequest(texts=[" "])),
        texts_pb2.EmbedStreamRequest(sequence=9, request=texts_pb2.EmbedRequest(texts=["a boat"])),
    ]
    replies = list(running.embedding.EmbedStream(iter(requests), timeout=60))
    assert [(r.sequence, r.WhichOneof("outcome")) for r in replies] == [(7, "response"), (8, "error"), (9, "response")]
    assert replies[1].error.code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert replies[0].response.facet_embeddings.shape[0] == 2


def test_a_failing_text_does_not_fail_its_neighbours(running):
    running.model.poison = "wine"
    running.model.hold()
    embed = running.embedding.Embed
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(embed, texts_pb2.EmbedRequest(texts=["a"]), timeout=30)
        assert running.model.started.wait(10)
        good = [pool.submit(embed, texts_pb2.EmbedRequest(texts=["cat"]), timeout=30) for _ in range(5)]
        bad = pool.submit(embed, texts_pb2.EmbedRequest(texts=["wine"]), timeout=30)
        wait_until(lambda: running.metric("facets_batch_queue_texts", model="fake") >= 6)
        running.model.gate.set()
        assert first.result() is not None
        assert all(call.result() for call in good)
        with pytest.raises(grpc.RpcError) as raised:
            bad.result()
    assert raised.value.code() == grpc.StatusCode.INTERNAL
    assert raised.value.details() == "internal error"


def test_embed_normalizes_on_request(running):
    reply = running.embedding.Embed(texts_pb2.EmbedRequest(texts=["a cat"], normalize=True), timeout=60)
    np.testing.assert_allclose(np.linalg.norm(array_of(reply.facet_embeddings), axis=-1), 1.0, atol=1e-6)
