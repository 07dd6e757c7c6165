"""The checkpoint of a model of papers: what is written is read back, and damage is reported."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import facets
from facets.errors import CheckpointError, InvalidInputError
from facets.papers.confidence import PaperConfidence, features_of
from facets.papers.engine import PaperEngine
from facets.papers.model import PaperModel
from facets.papers.records import CandidateKind, Paper, PaperOptions
from facets.papers.scoring import best_columns, relevance_score


def test_a_paper_is_encoded_the_same_alone_and_in_a_batch(model: PaperModel) -> None:
    rows = model.paper_rows(["parser", "image pixel camera", "voice"], ["tree " * 40, "", "speech audio"])
    batch = model.encode_papers(rows)
    for number, own in enumerate(rows):
        alone = model.encode_papers([own])
        assert_allclose(alone.facets[0], batch.facets[number], atol=1e-5)
        assert_allclose(alone.author_magnitudes[0], batch.author_magnitudes[number], atol=1e-5)
        assert_allclose(alone.citation_magnitudes[0], batch.citation_magnitudes[number], atol=1e-5)
        assert_allclose(alone.documents[0], batch.documents[number], atol=1e-6)


def test_a_text_without_title_is_refused(model: PaperModel) -> None:
    with pytest.raises(InvalidInputError, match="no title"):
        model.encode(["parser", "\nabstract"])
    with pytest.raises(TypeError, match="sequence"):
        model.encode("parser")


def test_saving_again_gives_the_same_model(model: PaperModel, tmp_path: Path) -> None:
    model.save(tmp_path / "again")
    again = facets.load(tmp_path / "again")
    assert_allclose(again.encode(["parser\ntree"]), model.encode(["parser\ntree"]), atol=1e-6)
    assert again.revision == model.revision


FILES = "model.safetensors recommendation.json tables.safetensors papers.safetensors.xz papers.json.xz"


@pytest.mark.parametrize("damage", ["missing", "cut"])
@pytest.mark.parametrize("name", [*FILES.split(), "sentences.safetensors.xz"])
def test_damage_is_reported_in_one_sentence(with_sentences: Path, tmp_path: Path, name: str, damage: str) -> None:
    shutil.copytree(with_sentences.parent, tmp_path / "copy")
    path = tmp_path / "copy" / "papers" / name
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    if damage == "missing":
        path.unlink()
    with pytest.raises(CheckpointError, match=name):
        facets.load(path.parent)


def test_relevance_is_that_of_the_closest_facet() -> None:
    rng = np.random.default_rng(0)
    papers, table = (rng.standard_normal(shape).astype(np.float32) for shape in ((5, 3, 8), (7, 8)))
    expected = [[max(0.0, *(float(facet @ vector) for facet in own)) for vector in table] for own in papers]
    assert_allclose(relevance_score(papers, table), expected, atol=1e-5)


@given(
    st.lists(st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0]), min_size=6, max_size=6), max_size=4),
    st.permutations(range(6)),
    st.integers(1, 8),
)
def test_best_columns_are_those_of_sorting(rows: list[list[float]], ranks: list[int], top_k: int) -> None:
    scores = np.array(rows, dtype=np.float32).reshape(-1, 6)
    columns, best = best_columns(scores, top_k, ranks=lambda: np.array(ranks))
    for row, own in enumerate(rows):
        expected = sorted((c for c in range(6) if own[c] > -np.inf), key=lambda c: (-own[c], ranks[c]))[:top_k]
        assert [column for column in columns[row] if column >= 0] == expected
        assert best[row, : len(expected)].tolist() == [own[column] for column in expected]


WEIGHTS = {"authors": {"intercept": -3.0, "known": 6.0, "document": 1.0}}


def test_confidence_never_rises_with_the_rank() -> None:
    curve = PaperConfidence(revision="r", weights={"authors": {"document": 5.0}})
    features = features_of(np.array([0.5, 0.9, 0.1]), np.zeros(3), known=1.0, words=1.0)
    found = curve.confidence(CandidateKind.AUTHORS, features)
    assert found is not None and (np.diff(found) <= 0).all() and found[0] == found[1]
    assert curve.confidence(CandidateKind.CITATIONS, features) is None


@pytest.fixture
def sure(model: PaperModel) -> Iterator[PaperEngine]:
    """An engine whose model has a curve for authors."""
    model.confidence = PaperConfidence(revision=model.revision, weights=WEIGHTS)
    yield PaperEngine(model)
    model.confidence = None


def test_paper_of_unknown_words_has_less_confidence(sure: PaperEngine) -> None:
    title = sure.model.papers.titles[0]
    known, strange = sure.recommend(CandidateKind.AUTHORS, [Paper(title), Paper("qwxz vbnm zxcv")])
    assert known[0].confidence is not None and strange[0].confidence is not None
    assert known[0].confidence > 0.9 > 0.3 > strange[0].confidence
    assert [item.confidence for item in known] == sorted((i.confidence or 0 for i in known), reverse=True)
    assert sure.recommend(CandidateKind.CITATIONS, [Paper(title)])[0][0].confidence is None


def test_diverse_answer_begins_with_the_best_and_has_as_many(engine: PaperEngine) -> None:
    paper = Paper(engine.model.papers.titles[0])
    (plain,) = engine.recommend(CandidateKind.AUTHORS, [paper], PaperOptions(top_k=4))
    (diverse,) = engine.recommend(CandidateKind.AUTHORS, [paper], PaperOptions(top_k=4, diversify=0.7))
    assert diverse[0].id == plain[0].id and len(diverse) == len(plain)
    assert len({item.id for item in diverse}) == len(diverse)
