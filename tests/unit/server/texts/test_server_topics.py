"""SuggestTopics over a real channel."""

import grpc
import numpy as np
import pytest
from facets_proto.v1 import texts_pb2, texts_pb2_grpc
from facets_proto.values import array_from_message

from facets.texts.topics import suggest_topics


@pytest.fixture(scope="module")
def suggest(shared):
    return texts_pb2_grpc.TopicServiceStub(shared.channel).SuggestTopics


def test_topics_are_the_librarys(shared, suggest):
    texts = ["The cat and the dog.", "A boat."]
    reply = suggest(texts_pb2.SuggestTopicsRequest(texts=texts, num_topics=2, num_words=1), timeout=60)
    expected = suggest_topics(shared.model, texts, num_topics=2, num_words=1)
    assert len(reply.texts) == 2
    for found, one in zip(reply.texts, expected, strict=True):
        assert [topic.words[0].word for topic in found.topics] == [topic.words[0].word for topic in one.topics]
        np.testing.assert_allclose(array_from_message(found.vectors), one.vectors, atol=1e-6)
        assert not any(topic.HasField("likelihood") for topic in found.topics)
    assert reply.model.name == shared.model.name
    [by_default] = suggest(texts_pb2.SuggestTopicsRequest(texts=texts[:1]), timeout=60).texts
    assert {len(topic.words) for topic in by_default.topics} == {3}


@pytest.mark.parametrize(
    ("request_of", "expected"),
    [
        ({}, "texts"),
        ({"texts": [""]}, "texts[0]"),
        ({"texts": ["a cat"], "num_topics": 0}, "num_topics"),
        ({"texts": ["a cat"], "num_words": 0}, "num_words"),
        ({"texts": ["a cat"], "keep": ["dog"] * 17}, "keep"),
        ({"texts": ["a cat"], "keep": ["dog"], "avoid": ["dog"]}, "avoid[0]"),
    ],
)
def test_mistakes_are_the_callers(suggest, request_of, expected):
    with pytest.raises(grpc.RpcError) as raised:
        suggest(texts_pb2.SuggestTopicsRequest(**request_of), timeout=60)
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert expected in raised.value.details()
