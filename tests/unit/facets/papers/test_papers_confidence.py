"""Confidence and diversity of recommendations: features, curves and their file, groups that come apart."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from facets.errors import CheckpointError
from facets.papers.confidence import (
    PaperConfidence,
    features_of,
)
from facets.papers.engine import PaperEngine
from facets.papers.model import PaperModel
from facets.papers.records import CandidateKind, Paper, PaperOptions
from facets.papers.scoring import shared_papers

WEIGHTS = {"authors": {"intercept": -3.0, "known": 6.0, "document": 1.0}}


def test_confidence_never_rises_with_the_rank() -> None:
    curve = PaperConfidence(revision="r", weights={"authors": {"document": 5.0}})
    features = features_of(np.array([0.5, 0.9, 0.1]), np.zeros(3), known=1.0, words=1.0)
    found = curve.confidence(CandidateKind.AUTHORS, features)
    assert found is not None and (np.diff(found) <= 0).all() and found[0] == found[1]
    assert curve.confidence(CandidateKind.CITATIONS, features) is None


def test_file_is_read_as_it_was_written_and_left_out_of_another_revision(tmp_path: Path) -> None:
    curve = PaperConfidence(revision="r", weights=WEIGHTS, source="toys")
    curve.write(tmp_path)
    assert PaperConfidence.read(tmp_path, "r") == curve
    assert PaperConfidence.read(tmp_path, "other") is None
    assert PaperConfidence.read(tmp_path / "nowhere", "r") is None


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


def test_groups_are_who_shares_papers(engine: PaperEngine) -> None:
    table = engine.state.tables[CandidateKind.AUTHORS]
    rows = table.live_rows[:6]
    found = shared_papers(table, rows)
    for i, one in enumerate(rows):
        for j, other in enumerate(rows):
            own, theirs = set(table.papers_of(int(one)).tolist()), set(table.papers_of(int(other)).tolist())
            assert found[i, j] == pytest.approx(len(own & theirs) / max(1, min(len(own), len(theirs))))


def test_diverse_answer_begins_with_the_best_and_has_as_many(engine: PaperEngine) -> None:
    paper = Paper(engine.model.papers.titles[0])
    (plain,) = engine.recommend_authors([paper], PaperOptions(top_k=4))
    (diverse,) = engine.recommend_authors([paper], PaperOptions(top_k=4, diversify=0.7))
    assert diverse[0].id == plain[0].id and len(diverse) == len(plain)
    assert len({item.id for item in diverse}) == len(diverse)


def test_words_of_facets_are_words_of_titles(engine: PaperEngine) -> None:
    (ranked,) = engine.recommend_authors([Paper(engine.model.papers.titles[0])], PaperOptions(top_k=3, evidence=True))
    for item in ranked:
        assert item.evidence is not None
        row = engine.state.tables[CandidateKind.AUTHORS].row_of_id[item.id]
        papers = engine.state.tables[CandidateKind.AUTHORS].papers_of(row)
        said = " ".join(engine.state.bank.titles[paper] for paper in papers).lower()
        assert all(word in said and word.isalpha() for word, _ in item.evidence.nearest_words)
