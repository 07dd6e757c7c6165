"""Texts that are slow to tokenize."""

import time

import grpc
import numpy as np
import pytest
from facets_proto.v1 import texts_pb2, texts_pb2_grpc
from server_failures import failure
from server_fakes import served_passages
from toys import toy_passage_model


def texts(count):
    """The slowest texts there are."""
    return [f"{'(' * 32_000}{i}" for i in range(count)]


def test_a_request_of_slow_texts_does_not_hold_up_others(running):
    slow = running.embedding.Embed.future(texts_pb2.EmbedRequest(texts=texts(40)), timeout=60)
    started = time.monotonic()
    other = running.embedding.Embed(texts_pb2.EmbedRequest(texts=["cat unheardof"]), timeout=60)
    assert other.token_stats[0].num_tokens == 2
    assert time.monotonic() - started < 5  # 17 s when the whole texts were tokenized
    stats = slow.result().token_stats
    assert all(one.truncated for one in stats)


def test_work_on_texts_ends_with_the_deadline_of_the_call(running):
    request = texts_pb2.ExplainRequest(texts=texts(100))  # their tokens are listed: minutes
    with pytest.raises(grpc.RpcError) as raised:
        running.embedding.Explain(request, timeout=1)
    assert raised.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    until = time.monotonic() + 10
    while running.metric("facets_running_requests"):
        assert time.monotonic() < until


PAIRS = [("the dog plays", "a dog plays music"), ("a man", "the garage"), ("music", "music")]


@pytest.fixture(scope="module")
def toy():
    model = toy_passage_model()
    model.score_curves["cross_encoder"] = np.array([[0.0, 1.0], [0.0, 1.0]])
    return model


@pytest.fixture(scope="module")
def passages(toy):
    return served_passages(toy)


@pytest.fixture(scope="module")
def both(make_module_server, passages):
    return make_module_server(others=[passages])


def scored(running, **request):
    pairs = [texts_pb2.TextPair(first=first, second=second) for first, second in PAIRS]
    stub = texts_pb2_grpc.SimilarityServiceStub(running.channel)
    return stub.Score(texts_pb2.ScoreRequest(pairs=pairs, **request), timeout=60)


@pytest.mark.parametrize(
    ("request_of", "model", "method"),
    [
        ({}, "toy-passages", "CROSS_ENCODER"),
        ({"method": texts_pb2.SIMILARITY_METHOD_ENCODER}, "toy-passages", "ENCODER"),
        ({"method": texts_pb2.SIMILARITY_METHOD_AVERAGE}, "fake", "AVERAGE"),
        ({"model": "fake"}, "fake", "CODEBOOK"),
        ({"model": "toy-passages", "method": texts_pb2.SIMILARITY_METHOD_MAX_FACET}, "toy-passages", "MAX_FACET"),
    ],
)
def test_the_method_says_whose_model_answers(both, request_of, model, method):
    reply = scored(both, **request_of)
    assert (reply.model.name, reply.method) == (model, texts_pb2.SimilarityMethod.Value(f"SIMILARITY_METHOD_{method}"))


def test_without_a_model_of_passages_that_of_sentences_answers(running):
    assert scored(running, method=texts_pb2.SIMILARITY_METHOD_ENCODER).model.name == "fake"
    assert scored(running).method == texts_pb2.SIMILARITY_METHOD_CODEBOOK


def test_the_vector_of_a_passage_is_its_own(both, passages):
    texts = ["the dog plays music", "a man"]
    assert both.embedding.Embed(texts_pb2.EmbedRequest(texts=texts), timeout=60).model.name == "fake"
    vectors = both.embedding.Embed(texts_pb2.EmbedRequest(texts=texts, include_vectors=True), timeout=60).vectors
    found = np.frombuffer(vectors.data, "<f4").reshape(vectors.shape)
    np.testing.assert_allclose(found, passages.model.embed(texts), atol=2e-2)
    alone = texts_pb2.EmbedRequest(texts=texts, model="toy-passages", vectors_only=True, include_spans=True)
    reply = both.embedding.Embed(alone, timeout=60)
    assert reply.vectors == vectors and not reply.HasField("facet_embeddings") and not reply.facet_spans
    assert [stats.num_tokens for stats in reply.token_stats] == [4, 2]


def test_texts_without_words_are_refused_by_name(both):
    stub = texts_pb2_grpc.SimilarityServiceStub(both.channel)
    pairs = [texts_pb2.TextPair(first="dog", second="man"), texts_pb2.TextPair(first="dog", second="\u200b")]
    refused = failure(stub.Score, texts_pb2.ScoreRequest(pairs=pairs), grpc.StatusCode.INVALID_ARGUMENT)
    assert "pairs[1].second has no words" in refused.message
