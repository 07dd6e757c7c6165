"""Confidence of hits: features, curves, their file, and what is left out."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from facets.documents import CollectionEngine, Document, RelevanceCurve, SearchHit, SearchMode, SearchRequest
from facets.documents.confidence import FEATURES, SIGNALS, features_of
from facets.errors import CheckpointError, InvalidInputError

CURVE = RelevanceCurve(
    revision="1",
    weights={
        "hybrid": {"intercept": -5.0, "cosine": 3.0, "coverage": 5.0, "behind": -2.0},
        "facets": {"intercept": -4.0, "cosine": 8.0},
        "lexical": {"intercept": -3.0, "coverage": 4.0},
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


def search(
    engine: CollectionEngine,
    text: str,
    mode: SearchMode = "hybrid",
    *,
    curve: RelevanceCurve = CURVE,
    top_k: int = 10,
    **options: object,
) -> tuple[SearchHit, ...]:
    facets = np.eye(1, 32, k=20, dtype=np.float32)[None] + np.eye(1, 32, dtype=np.float32)[None]
    request = SearchRequest(facets=facets, texts=[text], mode=mode, top_k=top_k, **options)  # type: ignore[arg-type]
    return engine.search("docs", request, curve=curve).hits[0]


def test_signals_say_what_spoke_for_a_hit(filled: CollectionEngine) -> None:
    hits = search(filled, "leaves in hot water")
    best = hits[0]
    assert best.id == "tea" and best.signals.keys() == set(SIGNALS)
    assert best.signals["coverage"] == pytest.approx(1.0)
    assert best.signals["cosine"] == pytest.approx(np.sqrt(0.5), abs=1e-3)
    for hit in hits:  # of all but the score those of the best count
        logit = -5 + 3 * best.signals["cosine"] + 5 * best.signals["coverage"] - 2 * (best.score - hit.score)
        assert hit.confidence == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-5)
    facets = search(filled, "leaves in hot water", "facets")[0]
    assert facets.signals["coverage"] == 0 and facets.confidence is not None and facets.confidence > 0.5


@pytest.mark.parametrize("mode", ["hybrid", "facets"])
def test_scale_of_the_cosines_does_not_matter(engine: CollectionEngine, mode: SearchMode) -> None:
    found = []
    for constant in (0.0, 3.0):  # with the second, unrelated texts have a cosine of 0.9
        generator = np.random.default_rng(1)
        vectors = generator.normal(size=(len(TEXTS) + 1, 31))
        vectors[:-1] += np.array([0.2, 0.6, 1.0])[:, None] * vectors[-1]
        vectors = np.pad(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), ((0, 0), (1, 0)))
        vectors[:, 0] = constant
        vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        documents = [
            Document(id=id, text=text, facet_embeddings=vectors[[place, place]])
            for place, (id, text) in enumerate(TEXTS.items())
        ]
        engine.upsert("docs", documents)
        ends = [(constant**2 + cosine) / (constant**2 + 1) for cosine in (0.043, 0.63)]
        request = SearchRequest(facets=vectors[None, -1:], texts=["the pump of an engine"], mode=mode)
        [hits] = engine.search("docs", request, curve=replace(CURVE, scale=(ends[0], ends[1]))).hits
        assert mode == "hybrid" or [hit.score for hit in hits] == [hit.facets_score for hit in hits]
        found.append([(hit.id, hit.confidence, hit.signals["cosine"]) for hit in hits])
    assert [id for id, *_ in found[0]] == [id for id, *_ in found[1]]
    np.testing.assert_allclose([numbers for _, *numbers in found[0]], [numbers for _, *numbers in found[1]], atol=0.05)


def test_what_stands_out_leads_by_its_score_above_the_tenth() -> None:
    scores = np.array([0.2, 0.9, 0.5, *np.linspace(0.4, 0.3, 20)])
    signals = np.random.default_rng(0).random((len(scores), len(SIGNALS)))
    found = features_of(scores, signals, num_searched=50)
    tenth = np.sort(scores)[-10]
    for row, score in zip(found, scores, strict=True):
        expected = [*signals[1], np.log(50), 0.9 - tenth, 0.9 - score]
        np.testing.assert_allclose(row, expected)
    few = features_of(scores[:3], signals[:3], num_searched=3)
    assert few[:, FEATURES.index("lead")] == pytest.approx(0.9), "nine others are missing, and say nothing"
    below = features_of(np.array([-0.2]), np.zeros((1, len(SIGNALS))), num_searched=1)
    assert below[0, FEATURES.index("lead")] == 0
    many = [features_of(scores, signals, num_searched=num) for num in (1_000, 10**6)]
    np.testing.assert_array_equal(*many, "curves are fitted on no more than 1,000")
    assert features_of(scores[:0], signals[:0], num_searched=0).shape == (0, len(FEATURES))


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


def test_curves_come_back_from_their_file_for_their_revision_only(tmp_path: Path) -> None:
    assert RelevanceCurve.read(tmp_path, "1") is None
    CURVE.write(tmp_path)
    assert RelevanceCurve.read(tmp_path, "1") == CURVE
    assert RelevanceCurve.read(tmp_path, "2") is None


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        '{"format": 2, "revision": "1", "modes": {}}',
        '{"format": 1, "revision": "1", "modes": {"magic": {}}}',
        '{"format": 1, "revision": "1", "modes": {"facets": {"magic": 1}}}',
        '{"format": 1, "revision": "1", "modes": {"facets": {"cosine": NaN}}}',
        '{"format": 1, "revision": "1", "modes": {"facets": {"behind": 0.5}}}',
    ],
)
def test_damaged_files_are_refused_by_name(content: str, tmp_path: Path) -> None:
    (tmp_path / "relevance.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"relevance\.json"):
        RelevanceCurve.read(tmp_path, "1")
