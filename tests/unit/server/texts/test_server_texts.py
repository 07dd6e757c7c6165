import grpc
import numpy as np
import pytest
from facets_proto.v1 import texts_pb2, texts_pb2_grpc
from facets_proto.values import array_from_message
from server_failures import failure
from server_fakes import limited

from facets.texts.similarity import WORD_METHODS, SimilarityMethod, score_pairs
from facets.texts.summarization import summarize
from facets.texts.topics import suggest_topics

DOCUMENT = "The cat is in the house. A boat and a ship. The king and the queen. Cheese and wine on the table."
METHODS = {texts_pb2.SimilarityMethod.Value(f"SIMILARITY_METHOD_{method.name}"): method for method in SimilarityMethod}
PAIRS = (("the cat and the dog", "a kitten"), ("a boat", "a boat"), ("zzz", "the of"))


@pytest.fixture(scope="module")
def score(shared):
    return texts_pb2_grpc.SimilarityServiceStub(shared.channel).Score


@pytest.fixture(scope="module")
def summarize_call(shared):
    return texts_pb2_grpc.SummarizationServiceStub(shared.channel).Summarize


def pairs_of(*pairs):
    return [texts_pb2.TextPair(first=first, second=second) for first, second in pairs]


@pytest.mark.parametrize("attention", [False, True])
@pytest.mark.parametrize("number", METHODS)
def test_every_method_equals_the_library(shared, score, number, attention):
    is_word_method = METHODS[number] in WORD_METHODS
    request = texts_pb2.ScoreRequest(pairs=pairs_of(*PAIRS), method=number, attention=attention)
    if attention and not is_word_method:
        failure(score, request, grpc.StatusCode.INVALID_ARGUMENT)
        return
    reply = score(request, timeout=60)
    expected = score_pairs(shared.model, PAIRS, METHODS[number], attention=attention).scores
    np.testing.assert_allclose([pair.score for pair in reply.scores], expected, atol=1e-6)
    assert (reply.method, reply.attention) == (number, attention)


def test_calibration_without_a_curve_is_refused(score):
    request = texts_pb2.ScoreRequest(pairs=pairs_of(*PAIRS), calibrated=True)
    failure(score, request, grpc.StatusCode.FAILED_PRECONDITION)


@pytest.mark.parametrize("budget", [{"num_sentences": 2}, {"max_words": 9}, {}])
def test_summaries_equal_the_library(shared, summarize_call, budget):
    sentences = ["A song for the piano.", "The road and the car."]
    request = texts_pb2.SummarizeRequest(
        documents=[
            texts_pb2.SummaryDocument(text=DOCUMENT),
            texts_pb2.SummaryDocument(sentences=texts_pb2.SentenceList(sentences=sentences)),
        ],
        query="a boat",
        **budget,
    )
    reply = summarize_call(request, timeout=60)
    expected = summarize(shared.model, [DOCUMENT, sentences], query="a boat", **budget)
    for got, want in zip(reply.summaries, expected, strict=True):
        assert [s.text for s in got.sentences] == [s.text for s in want.sentences]
        assert [s.selection for s in got.sentences] == [s.selection for s in want.sentences]
        assert got.num_sentences_in_document == want.num_sentences_in_document
        assert got.num_words == want.num_words
    for sentence in reply.summaries[0].sentences:
        assert DOCUMENT[sentence.start : sentence.end] == sentence.text


def test_bad_summary_requests_are_refused(summarize_call):
    sentences = texts_pb2.SentenceList(sentences=["a", ""])
    for settings, field in (
        ({}, "documents"),
        ({"documents": [texts_pb2.SummaryDocument()]}, "documents[0]"),
        ({"documents": [texts_pb2.SummaryDocument(sentences=sentences)]}, "documents[0].sentences.sentences[1]"),
        ({"documents": [texts_pb2.SummaryDocument(text=DOCUMENT)], "max_words": 0}, "max_words"),
    ):
        request = texts_pb2.SummarizeRequest(**settings)
        assert field in failure(summarize_call, request, grpc.StatusCode.INVALID_ARGUMENT).message


def test_documents_of_too_many_sentences_are_refused_raw_or_split(make_server):
    running = make_server(limits=limited(max_sentences_per_document=3))
    call = texts_pb2_grpc.SummarizationServiceStub(running.channel).Summarize
    sentences = ["The cat.", "A boat.", "The king.", "Cheese."]
    for document, where in (
        (texts_pb2.SummaryDocument(text=" ".join(sentences)), "documents[0].text"),
        (texts_pb2.SummaryDocument(sentences=texts_pb2.SentenceList(sentences=sentences)), "documents[0].sentences"),
    ):
        refused = failure(call, texts_pb2.SummarizeRequest(documents=[document]), grpc.StatusCode.INVALID_ARGUMENT)
        assert where in refused.message and "limit is 3" in refused.message
    few = texts_pb2.SummaryDocument(text=" ".join(sentences[:3]))
    reply = call(texts_pb2.SummarizeRequest(documents=[few]), timeout=60)
    assert reply.summaries[0].num_sentences_in_document == 3


def test_explain_shows_tokens_with_offsets_and_facets_in_words(shared):
    text = "The cat, zzz \u00e9t\u00e9"
    reply = shared.embedding.Explain(texts_pb2.ExplainRequest(texts=[text, "boat"], num_words=4), timeout=60)
    tokens = reply.explanations[0].tokens
    assert [text[token.start : token.end] for token in tokens] == [token.text for token in tokens]
    assert [token.known for token in tokens] == [True, True, True, False, False]
    assert all(token.attention >= 0 for token in tokens)
    facets = reply.explanations[1].facets
    assert [facet.facet for facet in facets] == [0, 1, 2]
    nearest = shared.model.words.nearest(shared.model.encode(["boat"])[0], 4)
    assert [[word.word for word in facet.words] for facet in facets] == [[w for w, _ in words] for words in nearest]
    assert reply.explanations[0].token_stats.num_unknown_tokens == 2


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


def test_bad_topic_requests_are_refused(suggest):
    for settings, field in (
        ({}, "texts"),
        ({"texts": ["a cat"], "num_words": 0}, "num_words"),
        ({"texts": ["a cat"], "keep": ["dog"] * 17}, "keep"),
        ({"texts": ["a cat"], "keep": ["dog"], "avoid": ["dog"]}, "avoid[0]"),
    ):
        request = texts_pb2.SuggestTopicsRequest(**settings)
        assert field in failure(suggest, request, grpc.StatusCode.INVALID_ARGUMENT).message
