"""Methods of the clients about texts, and their results in a notebook and as text."""

import sys
from importlib.machinery import ModuleSpec
from operator import methodcaller
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from facets_client import Document, InvalidArgumentError, Results
from facets_client.generated.types import (
    AttendedToken,
    Difference,
    Explanation,
    FacetMatch,
    FacetWords,
    ModelVersion,
    NearestWord,
    PairExplanation,
    PairScore,
    Scores,
    Summary,
    SummarySentence,
    TextTopics,
    Timings,
    TokenAttention,
    TokenStats,
    Topic,
)
from fake_server import fake_facets

in_notebook = methodcaller("_repr_html_")  # what a notebook calls
TOKENS = (
    TokenAttention("R&D", 0, 3, 2.0, True),
    TokenAttention("<b>", 4, 7, 0.5, True),
    TokenAttention(".", 7, 8, 0.0, True),
)
WORDS = (NearestWord("labs<", 0.5),)


def test_embeddings_in_half_precision_belong_to_the_caller(client):
    assert np.allclose(client.embed_vectors(["a", "b"])[1], fake_facets("b").mean(0))
    embeddings = client.embed(["a", "b"], dtype="float16")
    assert embeddings.facet_embeddings.dtype == np.float16 and len(embeddings) == 2
    np.testing.assert_allclose(embeddings[1], fake_facets("b"), rtol=1e-3)
    embeddings.facet_embeddings[0, 0, 0] = 1.0


def test_a_stream_of_embeddings_keeps_the_order(client, world):
    texts = [f"text {i}" for i in range(50)]
    arrays = list(client.embed_stream(iter(texts), batch_size=3))
    np.testing.assert_array_equal(np.stack(arrays), np.stack([fake_facets(text) for text in texts]))
    assert world.count("Embed") == 17
    assert list(client.embed_stream([])) == []


def test_errors_of_a_stream_and_of_its_input(client):
    with pytest.raises(InvalidArgumentError, match=r"texts\[7\]"):
        list(client.embed_stream(["good"] * 7 + ["REFUSE"], batch_size=3))

    def source():
        yield "good"
        raise RuntimeError("my own")

    with pytest.raises(RuntimeError, match="my own"):
        list(client.embed_stream(source(), batch_size=1))


def test_similarity(client, world):
    def scored(request):
        match = {"first_words": [{"word": "dog"}], "cosine": 0.7}
        explanation = {"matches": [match], "first_tokens": [{"text": pair.first} for pair in request.pairs[:1]]}
        score = {"score": 0.5, "calibrated_score": 1.0 if request.calibrated else None}
        score |= {"explanation": explanation} if request.explain else {}
        return {"scores": [score] * len(request.pairs), "method": request.method, "attention": request.attention}

    world.replies["Score"] = scored
    pairs = [(f"a {i}", f"b {i}") for i in range(10)]
    scores = client.similarity(pairs, method="sif", attention=True, explain=True, calibrated=True)
    assert (len(scores), scores.method, scores.attention, world.count("Score")) == (10, "sif", True, 3)
    assert (scores[-1].score, scores[-1].calibrated_score) == (0.5, 1.0)
    explanation = scores[0].explanation
    assert explanation.matches[0].first_words[0].word == "dog" and explanation.first_tokens[0].text == "a 0"
    (plain,) = client.similarity([("a", "b")])
    assert (plain.calibrated_score, plain.explanation) == (None, None)


EXPLANATION = Explanation(TOKENS, (FacetWords(0, WORDS, (AttendedToken(1, 0.4),)),), TokenStats(3, 0, False, 3))
MATCH = FacetMatch(0, 3, 0.7, 1.0, WORDS, WORDS)
PAIR = PairScore(0.25, 0.8, PairExplanation((MATCH,), TOKENS, TOKENS), "neutral", ())
SUMMARY = Summary((SummarySentence("A < B.", 2, 10, 16, 0, 0.5),), 7, 3, has_prose=True)
TOPICS = Results([TextTopics((Topic(WORDS, 0.5, 0.25),), np.ones((1, 4))) for _ in range(2)])


@pytest.mark.parametrize(
    ("result", "lines"),
    [
        (EXPLANATION, ["R&D/9 <b>/2 ./0", "3 tokens, 0 unknown", "0 labs< (0.50) <b>"]),
        (PAIR, ["0.80 (0.2500) neutral", "R&D/9 <b>/2 ./0", "100% 1st facet 0 (labs<) matches 2nd facet 3 (labs<)"]),
        (Scores((PAIR,), "sif", True, ModelVersion("m", "r"), Timings()), ["0.80 (0.2500) neutral"]),
        (SUMMARY, ["sentence gain text", "3 0.500 A < B.", "1 of 7 sentences, 3 words"]),
        (TOPICS, ["input words likelihood novelty", "1 labs< 0.500 0.250"]),
        (Results(), ["nothing"]),
    ],
)
def test_a_result_is_the_same_text_in_a_terminal_and_a_notebook(result, lines):
    shown = " ".join(repr(result).split())
    assert all(line in shown for line in lines), shown
    assert " ".join("".join(ElementTree.fromstring(in_notebook(result)).itertext()).split()) == shown


def test_lists_of_results_are_rows():
    differences = (Difference("open", "closed", 0, 4, 0, 6, 0.5), Difference("up", "down", 9, 11, 9, 13, 0.2))
    (row,) = Results([PairScore(0.25, None, None, "contradicts", differences)]).to_dicts()
    assert row["differences"] == "open / closed, up / down"
    assert [row["input"] for row in TOPICS.to_dicts()] == [0, 1]
    assert TOPICS[0].to_dicts()[0]["words"] == "labs<"


def test_a_long_list_is_cut():
    documents = Results(Document(str(i), "<text>" * 500) for i in range(500))
    assert repr(documents).endswith("and 480 more") and len(in_notebook(documents)) < 50_000


def test_a_data_frame_has_a_row_for_each_topic(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list, __spec__=ModuleSpec("pandas", None)))
    assert TOPICS.to_pandas() == TOPICS.to_dicts()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install 'multifacet-client\\[pandas\\]'"):
        TOPICS.to_pandas()
