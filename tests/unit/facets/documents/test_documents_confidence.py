"""Confidence of hits: features, curves, their file, and what is left out."""

import json
from pathlib import Path

import numpy as np
import pytest

from facets.documents import CollectionEngine, Document, Hit, RelevanceCurve, SearchMode, SearchRequest, read_relevance
from facets.documents.confidence import FEATURES, features_of, write_relevance
from facets.documents.filters import Equals
from facets.errors import CheckpointError, InvalidInputError

CURVE = RelevanceCurve(
    revision="1",
    weights={
        "hybrid": {"intercept": -5.0, "cosine": 3.0, "coverage": 5.0},
        "facets": {"intercept": -4.0, "cosine": 8.0},
        "lexical": {"intercept": -3.0, "saturation": 3.0, "words_coverage": 2.0},
    },
)
TEXTS = {
    "tea": "Tea is a drink made of leaves and hot water.",
    "pump": "The pump moves water through the engine.",
    "oak": "Oaks are trees with acorns.",
}


@pytest.fixture
def filled(engine: CollectionEngine) -> CollectionEngine:
    engine.upsert(
        "docs",
        [
            Document(id=id, text=text, facet_embeddings=np.eye(2, 32, k=4 * place))
            for place, (id, text) in enumerate(TEXTS.items())
        ],
    )
    return engine


def search(engine: CollectionEngine, text: str, mode: SearchMode = "hybrid", **options: object) -> tuple[Hit, ...]:
    facets = np.eye(1, 32, k=20, dtype=np.float32)[None] + np.eye(1, 32, dtype=np.float32)[None]
    request = SearchRequest(facets=facets, texts=[text], mode=mode, top_k=10, **options)  # type: ignore[arg-type]
    return engine.search("docs", request, curve=CURVE).hits[0]


def test_signals_say_what_spoke_for_a_hit(filled: CollectionEngine) -> None:
    best = search(filled, "leaves in hot water")[0]
    assert best.id == "tea" and best.signals.keys() == set(FEATURES)
    assert best.signals["coverage"] == pytest.approx(1.0)
    assert best.signals["words"] == pytest.approx(np.log(4))
    assert best.signals["cosine"] == pytest.approx(np.sqrt(0.5), abs=1e-3)
    assert 0 < best.signals["saturation"] < 1
    assert best.signals["cosine_coverage"] == pytest.approx(best.signals["cosine"], rel=1e-4)
    logit = -5 + 3 * best.signals["cosine"] + 5 * best.signals["coverage"]
    assert best.confidence == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-5)
    facets = search(filled, "leaves in hot water", "facets")[0]
    assert facets.signals["coverage"] == 0 and facets.confidence is not None and facets.confidence > 0.5


@pytest.mark.parametrize("text", ["to be or not to be", "\U0001f600", "qwzx blorp", "", "..."])
def test_words_that_say_nothing_cover_nothing(filled: CollectionEngine, text: str) -> None:
    for hit in search(filled, text):
        assert hit.signals["coverage"] == 0 and hit.confidence is not None and hit.confidence < 0.2


def test_words_that_no_document_has_lower_the_coverage(filled: CollectionEngine) -> None:
    [known] = [hit for hit in search(filled, "pump") if hit.id == "pump"]
    [unknown] = [hit for hit in search(filled, "pump of the flux capacitor") if hit.id == "pump"]
    assert known.signals["coverage"] == pytest.approx(1.0)
    assert 0 < unknown.signals["coverage"] < 0.4


def test_the_number_of_documents_searched_speaks_too(filled: CollectionEngine) -> None:
    for mode in ("hybrid", "facets", "lexical"):
        assert search(filled, "pump", mode)[0].signals["size"] == pytest.approx(np.log(3))
    filled.upsert(
        "docs", [Document(id="last", text="A pump.", facet_embeddings=np.eye(2, 32), payload={"kind": "new"})]
    )
    [hit] = search(filled, "pump", filter=Equals("kind", "new"))
    assert hit.signals["size"] == 0, "a filter leaves one"
    one = np.ones(1)
    many = [features_of(one, one, one, num_words=1, num_searched=num) for num in (1_000, 10**6)]
    np.testing.assert_array_equal(*many, "curves are fitted on no more than 1,000")


@pytest.mark.parametrize("mode", ["hybrid", "facets", "lexical"])
def test_hits_below_the_threshold_are_left_out(filled: CollectionEngine, mode: SearchMode) -> None:
    found = search(filled, "drink of leaves", mode)
    confidences = [hit.confidence for hit in found if hit.confidence is not None]
    assert len(confidences) == len(found)
    threshold = 0.5 * (max(confidences) + 0.01)
    kept = search(filled, "drink of leaves", mode, min_confidence=threshold)
    assert [hit.id for hit in kept] == [
        hit.id for hit in found if hit.confidence is not None and hit.confidence >= threshold
    ]
    assert search(filled, "drink of leaves", mode, min_confidence=1.0) == ()


def test_without_a_curve_there_is_no_confidence(filled: CollectionEngine) -> None:
    hit = filled.search("docs", SearchRequest(texts=["pump"], mode="lexical", top_k=1)).hits[0][0]
    assert hit.confidence is None
    with pytest.raises(InvalidInputError, match="min_confidence"):
        filled.search("docs", SearchRequest(texts=["pump"], mode="lexical", top_k=1, min_confidence=0.5))
    only = RelevanceCurve(revision="1", weights={"facets": {"cosine": 1.0}})
    hits = filled.search("docs", SearchRequest(texts=["pump"], mode="lexical", top_k=1), curve=only).hits[0]
    assert hits[0].confidence is None


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan")])
def test_impossible_thresholds_are_refused(filled: CollectionEngine, threshold: float) -> None:
    with pytest.raises(InvalidInputError, match="min_confidence"):
        search(filled, "pump", min_confidence=threshold)


def test_confidence_is_the_logistic_function_of_the_weighed_features() -> None:
    rng = np.random.default_rng(0)
    cosine, coverage, saturation = rng.random((3, 20)).astype(np.float32)
    features = features_of(cosine, coverage, saturation, num_words=3, num_searched=20)
    weights = dict(zip(FEATURES, rng.standard_normal(len(FEATURES)).tolist(), strict=True))
    curve = RelevanceCurve(revision="r", weights={"hybrid": {"intercept": 0.3, **weights}})
    expected = []
    for a, b, c in zip(cosine, coverage, saturation, strict=True):
        values = dict(zip(FEATURES, (a, b, c, np.log(4), np.log(20), a * b, np.log(4) * b), strict=True))
        expected.append(1 / (1 + np.exp(-0.3 - sum(weights[name] * values[name] for name in FEATURES))))
    np.testing.assert_allclose(curve.confidence("hybrid", features), expected, rtol=1e-5)
    assert curve.confidence("facets", features) is None
    extreme = RelevanceCurve(revision="r", weights={"facets": {"cosine": 1e6}}).confidence("facets", features)
    assert extreme is not None and np.isfinite(extreme).all()


def test_curves_come_back_from_their_file_for_their_revision_only(tmp_path: Path) -> None:
    assert read_relevance(tmp_path, "1") is None
    write_relevance(tmp_path, CURVE)
    assert read_relevance(tmp_path, "1") == CURVE
    assert read_relevance(tmp_path, "2") is None


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        json.dumps({"format": 2, "revision": "1", "modes": {}}),
        json.dumps({"format": 1, "revision": "1", "modes": {"magic": {}}}),
        json.dumps({"format": 1, "revision": "1", "modes": {"facets": {"magic": 1}}}),
        json.dumps({"format": 1, "revision": "1", "modes": {"facets": {"cosine": "much"}}}),
        '{"format": 1, "revision": "1", "modes": {"facets": {"cosine": NaN}}}',
    ],
)
def test_damaged_files_are_refused_by_name(content: str, tmp_path: Path) -> None:
    (tmp_path / "relevance.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"relevance\.json"):
        read_relevance(tmp_path, "1")
