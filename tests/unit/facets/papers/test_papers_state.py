"""States extended by additions, compared with states built from the store."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy_papers import SUBJECTS

from facets.errors import StorageError
from facets.papers.engine import PaperEngine
from facets.papers.model import PaperModel
from facets.papers.records import Author, CandidateKind, NewAuthor, Paper, PaperOptions

AUTHORS, CITATIONS = CandidateKind.AUTHORS, CandidateKind.CITATIONS
QUERIES = [Paper("voice of a speaker", "microphone prosody"), Paper("parser of trees"), Paper("camera depth")]


def everything(engine: PaperEngine, kind: CandidateKind, **settings: Any) -> dict[tuple[object, ...], float]:
    """Scores of all candidates for all queries, by query, id, name and sort of score."""
    rankings = engine.recommend(kind, QUERIES, PaperOptions(top_k=1_000, **settings))
    return {
        (query, hit.id, hit.name, sort): getattr(hit, sort)
        for query, ranking in enumerate(rankings)
        for hit in ranking
        for sort in ("score", "facet_score", "document_score")
    }


def assert_same_answers(engine: PaperEngine, other: PaperEngine) -> None:
    for kind in CandidateKind:
        assert engine.size(kind) == other.size(kind)
        for settings in ({}, {"from_year": 2005}, {"facet_weight": 0.0}, {"excluded_ids": ["parsing A", "new 1"]}):
            assert everything(engine, kind, **settings) == pytest.approx(everything(other, kind, **settings), abs=2e-5)
        for text in ("new 1", "parsing B", "renamed", "title of"):
            assert sorted(engine.find(kind, text, top_k=200)) == sorted(other.find(kind, text, top_k=200))


class Changes:
    """Additions at random: new and known papers, authors and citing papers, new versions, new names."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._words = [word for words in SUBJECTS.values() for word in words]

    def _some(self, values: Sequence[str], most: int) -> list[str]:
        return [str(value) for value in self._rng.choice(values, self._rng.integers(0, most + 1), replace=False)]

    def paper(self) -> Paper:
        ids = [*(f"n{number}" for number in range(12)), "P06-1057", "P100", "P201", "cites 1", "speech-citing-1"]
        people = ["new 1", "new 2", "new 3", "a new one", "parsing A", "speech B", "vision C", "z"]
        names = self._some(people, 3)
        return Paper(
            " ".join(self._rng.choice(self._words, 4)),
            id=str(self._rng.choice(ids)),
            authors=tuple(Author(f"renamed {key}" if self._rng.random() < 0.2 else key, key) for key in names),
            cited_by_ids=tuple(self._some(["cites 1", "cites 2", "speech-citing-1", "n1", "P100"], 2)),
            year=int(self._rng.integers(1990, 2030)) if self._rng.random() < 0.7 else None,
        )

    def apply(self, engine: PaperEngine) -> None:
        papers = list({paper.id: paper for paper in (self.paper() for _ in range(self._rng.integers(1, 5)))}.values())
        if self._rng.random() < 0.7:
            engine.add_papers(papers)
        else:
            known = tuple(self._some(["P06-1057", "P100", "P101"], 2))
            key = str(self._rng.choice(["new 1", "parsing A", "by himself"]))
            engine.add_authors([NewAuthor(Author(key), tuple(papers), known)])


@pytest.mark.parametrize("seed", range(2))
def test_adding_equals_opening_again_and_readers_keep_their_state(model: PaperModel, tmp_path: Path, seed: int) -> None:
    engine = PaperEngine(model, data_dir=tmp_path)
    changes = Changes(seed)
    changes.apply(engine)
    table = engine.state.tables[AUTHORS]
    before = list(table.ids), table.vectors[:].copy(), table.papers.copy(), engine.state.bank.documents.codes.copy()
    bank = engine.state.bank
    for _ in range(15):
        changes.apply(engine)
    np.testing.assert_equal((list(table.ids), table.vectors[:], table.papers, bank.documents.codes), before)
    engine.close()
    again = PaperEngine(model, data_dir=tmp_path)
    assert_same_answers(engine, again)
    again.close()


def test_an_addition_that_cannot_be_stored_changes_nothing(
    model: PaperModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = PaperEngine(model, data_dir=tmp_path)
    engine.add_papers([Paper("voice prosody", id="n1", authors=(Author("new 1"),))])
    before = everything(engine, AUTHORS)

    def refuse(*_: Any, **__: Any) -> None:
        raise StorageError("no space")

    with monkeypatch.context() as patched:
        patched.setattr("facets.papers.store.AdditionStore.add", refuse)
        with pytest.raises(StorageError):
            engine.add_papers([Paper("camera", id="n1", authors=(Author("new 2"), Author("new 1")))])
    assert everything(engine, AUTHORS) == before
    engine.add_papers([Paper("tone", id="n2", authors=(Author("new 2"),))])
    engine.close()
    again = PaperEngine(model, data_dir=tmp_path)
    assert_same_answers(engine, again)
    again.close()
