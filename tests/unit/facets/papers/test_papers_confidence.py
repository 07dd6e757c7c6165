"""Confidence and diversity of recommendations: features, curves and their file, groups that come apart."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from facets.errors import CheckpointError
from facets.papers.confidence import PaperConfidence, features_of
from facets.papers.engine import PaperEngine
from facets.papers.model import PaperModel
from facets.papers.records import CandidateKind, Paper, PaperOptions

WEIGHTS = {"authors": {"intercept": -3.0, "known": 6.0, "document": 1.0}}


def test_confidence_never_rises_with_the_rank() -> None:
    curve = PaperConfidence(revision="r", weights={"authors": {"document": 5.0}})
    features = features_of(np.array([0.5, 0.9, 0.1]), np.zeros(3), known=1.0, words=1.0)
    found = curve.confidence(CandidateKind.AUTHORS, features)
    assert found is not None and (np.diff(found) <= 0).all() and found[0] == found[1]
    assert curve.confidence(CandidateKind.CITATIONS, features) is None


@pytest.mark.parametrize(
    ("kinds", "match"),
    [('{"readers": {}}', "kinds"), ('{"authors": {"luck": 1}}', "luck"), ('{"authors": {"facet": NaN}}', "finite")],
)
def test_damaged_file_is_named(tmp_path: Path, kinds: str, match: str) -> None:
    (tmp_path / "relevance.json").write_text(f'{{"format": 1, "revision": "r", "kinds": {kinds}}}')
    with pytest.raises(CheckpointError, match=match):
        PaperConfidence.read(tmp_path, "r")


@pytest.fixture
def sure(model: PaperModel) -> Iterator[PaperEngine]:
    """An engine whose model has a curve for authors."""
    model.confidence = PaperConfidence(revision=model.revision, weights=WEIGHTS)
    yield PaperEngine(model)
    model.confidence = None


def test_paper_of_unknown_words_has_less_confidence(sure: PaperEngine) -> None:
    title = sure.model.papers.titles[0]
    known, strange = sure.recommend_authors([Paper(title), Paper("qwxz vbnm zxcv")])
    assert known[0].confidence is not None and strange[0].confidence is not None
    assert known[0].confidence > 0.9 > 0.3 > strange[0].confidence
    assert [item.confidence for item in known] == sorted((i.confidence or 0 for i in known), reverse=True)
    assert sure.recommend_citations([Paper(title)])[0][0].confidence is None


def test_diverse_answer_begins_with_the_best_and_has_as_many(engine: PaperEngine) -> None:
    paper = Paper(engine.model.papers.titles[0])
    (plain,) = engine.recommend_authors([paper], PaperOptions(top_k=4))
    (diverse,) = engine.recommend_authors([paper], PaperOptions(top_k=4, diversify=0.7))
    assert diverse[0].id == plain[0].id and len(diverse) == len(plain)
    assert len({item.id for item in diverse}) == len(diverse)
