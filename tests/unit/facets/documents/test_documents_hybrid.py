"""Search by words, and by words and facets together."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from leaving import looks_until_gone
from numpy.typing import NDArray

from facets.documents import CollectionEngine, Document, Equals, SearchMode, SearchRequest
from facets.documents.ranking import signal_weights
from facets.errors import InvalidInputError

OpenEngine = Callable[..., CollectionEngine]
TEXTS = {
    "pump": "The pump failed with error code AB-1234 after two hours.",
    "valve": "The valve failed with code AB-1235; error unknown.",
    "hamlet": "To be, or not to be, that is the question.",
    "noise": "The question is not whether to be there or to be late.",
    "cat": "Cats sleep all day.",
    "empty": "",
}


def document(id: str, text: str, facet: int = 0) -> Document:
    return Document(id=id, text=text, facet_embeddings=np.eye(2, 32, k=facet) + 0.01, payload={"size": len(text)})


@pytest.fixture
def engine(open_engine: OpenEngine) -> CollectionEngine:
    made = open_engine([document(id, text, facet) for facet, (id, text) in enumerate(TEXTS.items())])
    return made


def query_facets(facet: int) -> NDArray[np.float32]:
    return np.eye(1, 32, k=facet, dtype=np.float32)[None]


def found(engine: CollectionEngine, text: str, mode: SearchMode = "lexical", **options: object) -> list[str]:
    facets = None if mode == "lexical" else query_facets(4)
    request = SearchRequest(facets=facets, texts=[text], mode=mode, top_k=10, **options)  # type: ignore[arg-type]
    return [hit.id for hit in engine.search("docs", request).hits[0]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("AB-1234", "pump"),
        ("ab-1235", "valve"),
        ("sleeping cat", "cat"),
        ('"to be or not to be"', "hamlet"),
        ('"the question is"', "noise"),
    ],
)
@pytest.mark.parametrize("mode", ["lexical", "hybrid"])
def test_identifiers_phrases_and_forms_are_found(
    engine: CollectionEngine, text: str, expected: str, mode: SearchMode
) -> None:
    assert found(engine, text, mode)[0] == expected


@pytest.mark.parametrize("text", ["\U0001f600", "", "unheard", '""', '"', "\u4f60\u597d"])
def test_query_without_known_words_is_answered_by_facets_alone(engine: CollectionEngine, text: str) -> None:
    assert found(engine, text) == []
    assert found(engine, text, "hybrid")[0] in ("cat", "noise"), "these have the facet of the query"
    assert len(found(engine, text, "hybrid")) == len(TEXTS)


def test_thousands_of_phrases_are_bounded_work(engine: CollectionEngine) -> None:
    """Of a query within the limits, 3,000 phrases times 1,000 documents would be read for minutes."""
    engine.upsert("docs", [document(f"same{n}", "the cat and the dog " * 20) for n in range(1000)])
    phrases = " ".join(f'"the cat{" and" * (n % 2)}" "dog the {n}"' for n in range(1500))
    assert found(engine, phrases + ' "to be or not to be"')[0] == "same0"
    assert found(engine, '"to be or not to be" ' + phrases)[0] == "hamlet"


@pytest.mark.parametrize(
    ("text", "options"), [('"to be or not to be"', {}), ("question", {"diversify": 0.5}), ("question", {})]
)
def test_searching_ends_with_its_call(engine: CollectionEngine, text: str, options: dict[str, float]) -> None:
    assert looks_until_gone(0, lambda: found(engine, text, **options)) == 1


def test_hit_says_which_words_matched_and_what_each_side_said(engine: CollectionEngine) -> None:
    result = engine.search("docs", SearchRequest(facets=query_facets(0), texts=["failing of the pump, code"], top_k=2))
    hit = result.hits[0][0]
    assert (hit.id, hit.matched_words) == ("pump", ("failing", "pump", "code"))
    assert hit.lexical_score > 0 and 0.9 < hit.facets_score <= 1 and 0 <= hit.score <= 1
    assert len(hit.evidence) == 1
    by_words = engine.search("docs", SearchRequest(texts=["pump"], mode="lexical", top_k=1)).hits[0][0]
    assert (by_words.score, by_words.facets_score, by_words.evidence) == (by_words.lexical_score, 0.0, ())


def test_both_signals_are_exact_whichever_side_found_the_document(engine: CollectionEngine) -> None:
    hybrid = engine.search("docs", SearchRequest(facets=query_facets(4), texts=["pump question"], top_k=6)).hits[0]
    by_facets = engine.search("docs", SearchRequest(facets=query_facets(4), top_k=6)).hits[0]
    facets = {hit.id: hit.facets_score for hit in by_facets}
    words = engine.search("docs", SearchRequest(texts=["pump question"], mode="lexical", top_k=6)).hits[0]
    lexical = {hit.id: hit.lexical_score for hit in words}
    assert {hit.id: hit.facets_score for hit in hybrid} == facets
    assert {hit.id: hit.lexical_score for hit in hybrid} == {id: lexical.get(id, 0.0) for id in facets}
    weights = signal_weights("")
    assert weights.whole == 0 and sum(weights) == pytest.approx(1.0), "the space of this collection is not of sentences"
    by_words = np.array([hit.score - weights.facets * hit.facets_score for hit in hybrid]) / weights.words
    scores = np.array([hit.lexical_score for hit in hybrid])
    upper_bound = scores.max() / by_words[scores.argmax()]
    assert upper_bound > scores.max() > 0
    np.testing.assert_allclose(by_words, scores / upper_bound, atol=1e-6)


def test_mode_without_what_it_needs_is_refused(engine: CollectionEngine) -> None:
    facets = query_facets(0)
    for field, options in (
        ("texts", {"facets": facets, "mode": "hybrid"}),
        ("facets", {"texts": ["a"]}),
        ("texts", {"facets": facets, "texts": ["a", "b"]}),
    ):
        with pytest.raises(InvalidInputError, match=f"^{field}"):
            engine.search("docs", SearchRequest(**options))  # type: ignore[arg-type]


def test_scores_of_sentence_spaces_are_absolute(open_engine: OpenEngine) -> None:
    """What a document scores does not depend on which other candidates there are."""
    engine = open_engine()
    engine.create_collection("docs", model="m", model_revision="1", space="all-MiniLM-L6-v2", num_facets=2, dim=32)
    engine.upsert("docs", [document(id, text, facet) for facet, (id, text) in enumerate(TEXTS.items())])
    few = Equals("size", len(TEXTS["pump"]))
    request = SearchRequest(facets=query_facets(4), texts=["pump question"], top_k=6)
    everything = engine.search("docs", request).hits[0]
    [alone] = engine.search("docs", replace(request, where=few)).hits[0]
    [same] = [hit for hit in everything if hit.id == "pump"]
    assert alone.score == pytest.approx(same.score, abs=1e-6)


@pytest.mark.parametrize(("space", "is_first"), [("all-MiniLM-L6-v2", True), ("words", False)])
def test_of_equal_closest_facets_a_text_all_about_it_comes_first_among_sentences(
    open_engine: OpenEngine, space: str, is_first: bool
) -> None:
    engine = open_engine()
    engine.create_collection("docs", model="m", model_revision="1", space=space, num_facets=2, dim=32)
    about, part = np.eye(2, 32), np.eye(2, 32)
    about[1, :2] = 0.8, 0.6
    documents = [
        Document(id="z-about", text="", facet_embeddings=about),
        Document(id="part", text="", facet_embeddings=part),
    ]
    engine.upsert("docs", documents)
    request = SearchRequest(facets=query_facets(0), texts=["pump"])
    hits = engine.search("docs", request).hits[0]
    assert {hit.facets_score for hit in hits} == {1.0} and len(hits[0].evidence) == 1
    assert (hits[0].id == "z-about") == is_first, "ties go by id"
    assert (hits[0].score > hits[1].score) == is_first


@pytest.mark.parametrize("options", [{}, {"diversify": 0.5}])
def test_hits_without_reasons_are_the_same_but_for_these(engine: CollectionEngine, options: dict[str, float]) -> None:
    request = SearchRequest(facets=query_facets(4), texts=["pump question"], top_k=4, **options)  # type: ignore[arg-type]
    with_reasons = engine.search("docs", request).hits
    bare = tuple(replace(hit, evidence=(), answer=None, matched_words=()) for hit in with_reasons[0])
    assert with_reasons[0][0].evidence and with_reasons[0][0].matched_words
    assert engine.search("docs", replace(request, reasons=False)).hits == (bare,)
