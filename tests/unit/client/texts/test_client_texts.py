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
    FacetMatch,
    FacetWords,
    ModelVersion,
    NearestWord,
    SummarySentence,
    Timings,
    TokenAttention,
    TokenStats,
)
from facets_client.texts.results import Explanation, PairScore, Scores, Summary
from fake_world import fake_facets

in_notebook = methodcaller("_repr_html_")  # what a notebook calls
TOKENS = (
    TokenAttention("R&D", 0, 3, 2.0, True),
    TokenAttention("<b>", 4, 7, 0.5, True),
    TokenAttention(".", 7, 8, 0.0, True),
)
WORDS = (NearestWord("labs<", 0.5),)


parsed = ElementTree.fromstring


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
    pairs = [(f"a {i}", f"b {i}") for i in range(9)] + [("same", "same")]
    scores = client.similarity(pairs, method="sif", attention=True, explain=True, calibrated=True)
    assert (len(scores), scores.method, scores.attention, world.count("Score")) == (10, "sif", True, 3)
    assert scores[-1].score == scores[-1].calibrated_score == pytest.approx(1.0)
    assert scores[0].matches[0].first_words[0].word == "dog"
    assert scores[0].first_tokens[0].text == "a 0" and not scores[0].second_tokens[0].known
    (plain,) = client.similarity([("a", "b")])
    assert (plain.calibrated_score, plain.matches) == (None, ())


def test_an_explanation_shows_attention_and_nearest_words():
    shown = Explanation(TOKENS, (FacetWords(0, WORDS, (AttendedToken(1, 0.4),)),), TokenStats(3, 0, False, 3))
    tree = parsed(in_notebook(shown))
    first, second, third = (token.get("style") for token in tree.find("p").iter("span"))
    assert first.endswith("--a:0.50") and second.endswith("--a:0.12") and third.endswith("--a:0.00")
    assert first.split(";")[0] != second.split(";")[0], "a token of a facet has the colour of the facet"
    assert ["".join(cell.itertext()) for cell in tree.iter("td")] == ["0", "labs< 0.50", "<b>"]
    assert str(shown) == "R&D <b>.\n 0  labs< 0.50"


def test_a_score_shows_which_facets_matched():
    pair = PairScore(0.25, 0.8, (FacetMatch(0, 3, 0.7, 1.0, WORDS, WORDS),), TOKENS, TOKENS)
    scores = Scores((pair,), "max_facet", True, ModelVersion("m", "r"), Timings())
    text = "".join(parsed(in_notebook(scores)).itertext())
    assert "0.80 (0.2500)" in text and "3 labs<0 labs<0.70" in text
    assert str(scores) == "0.80 (0.2500)"


def test_a_summary_shows_its_sentences_with_their_place():
    summary = Summary((SummarySentence("A < B.", 2, 10, 16, 0, 0.5),), 7, 3, has_prose=True)
    assert "A < B. sentence 3 of 7, gain 0.500" in "".join(parsed(in_notebook(summary)).itertext())
    assert str(summary) == "A < B."


def test_lists_of_results_are_rows(client):
    topics = client.suggest_topics(["one", "two"])
    assert [row["input"] for row in topics.to_dicts()] == [0, 1]
    assert topics[0].to_dicts()[0]["words"] == ", ".join(word.word for word in topics[0][0].words)
    assert len(list(parsed(in_notebook(topics)).iter("tr"))) == 3
    assert len(list(parsed(in_notebook(client.explain(["one", "two"]))).iter("table"))) == 2


def test_a_long_list_is_cut(client):
    scores = client.similarity([("<a>" * 500, "b")] * 30)
    documents = Results(Document(str(i), "<text>" * 500) for i in range(500))
    assert "and 10 more" in in_notebook(scores) and str(scores).endswith("and 10 more")
    assert "and 480 more" in in_notebook(documents) and len(in_notebook(documents)) < 50_000
    assert len(str(documents).splitlines()) == 21 and len(str(Results(documents[:20])).splitlines()) == 20


def test_a_data_frame_has_a_row_for_each_pair(client, monkeypatch):
    found = client.similarity([("a", "b"), ("c", "d")], calibrated=True)
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list, __spec__=ModuleSpec("pandas", None)))
    assert found.to_pandas() == found.to_dicts() and len(found) == 2
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install 'multifacet-client\\[pandas\\]'"):
        found.to_pandas()
