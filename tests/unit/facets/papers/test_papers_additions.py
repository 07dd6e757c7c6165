"""Papers and authors added to a tiny trained model."""

import copy
import shutil
import tracemalloc
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from leaving import looks_until_gone
from numpy.testing import assert_allclose

from facets.errors import InvalidInputError, StorageError
from facets.papers.engine import PaperEngine
from facets.papers.model import PaperModel
from facets.papers.records import Author, CandidateKind, NewAuthor, Paper, PaperOptions
from facets.papers.store import Added, AdditionStore

AUTHORS = CandidateKind.AUTHORS
GOLDEN = Path(__file__).resolve().parents[3] / "golden"
VOICE = Paper("voice of a speaker", "microphone prosody and tone")


def test_added_paper_brings_authors_and_citing_papers(model: PaperModel, tmp_path: Path) -> None:
    engine = PaperEngine(model, data_dir=tmp_path)
    paper = Paper(
        "camera depth of a scene",
        id="n1",
        authors=(Author("New One"), Author("J. Doe", "doe-7"), Author("vision A")),
        cited_by_ids=("stranger", "vision-citing-1", "P06-1057"),
        year=2030,
    )
    result = engine.add_papers([paper])
    assert (result.num_papers, result.num_authors, result.num_citing_papers) == (1, 3, 3)
    assert "stranger" in result.unknown_citations
    assert "P06-1057" not in result.unknown_citations
    [recent] = engine.recommend(AUTHORS, [paper], PaperOptions(from_year=2030))
    assert {hit.id for hit in recent} == {"New One", "doe-7", "vision A"}
    [hits] = engine.recommend(AUTHORS, [paper], PaperOptions(candidates=["doe-7"], evidence=True))
    assert hits[0].name == "J. Doe"
    assert hits[0].evidence is not None
    assert hits[0].evidence.nearest_papers[0][0] == "n1"
    engine.add_papers([Paper("tone of a microphone", id="stranger", year=2031)])  # now known by title and year
    [[hit]] = engine.recommend(CandidateKind.CITATIONS, [VOICE], PaperOptions(candidates=["stranger"], from_year=2031))
    assert hit.name == "tone of a microphone"
    # A new version of the paper takes the old one's place.
    engine.add_papers([Paper("voice prosody", id="n1", authors=(Author("New One"),))])
    [hits] = engine.recommend(AUTHORS, [VOICE], PaperOptions(candidates=["New One"], evidence=True))
    assert hits[0].evidence is not None
    assert [title for _, title, _ in hits[0].evidence.nearest_papers] == ["voice prosody"]
    engine.close()


GOOD = Paper("voice", id="a", authors=(Author("New One"),))
TWICE = NewAuthor(Author("Twice"), (Paper("voice"),))


@pytest.mark.parametrize(
    ("papers", "authors", "match"),
    [
        ([GOOD, Paper("", id="b")], [], r"papers\[1\].title has no words"),
        ([GOOD, GOOD], [], "twice"),
        ([GOOD, Paper("title")], [], r"papers\[1\].id is empty"),
        ([], [NewAuthor(Author("Idle"))], r"authors\[0\].papers has no items"),
        ([], [TWICE, TWICE], "twice"),
    ],
)
def test_bad_additions_store_nothing(
    model: PaperModel, tmp_path: Path, papers: list[Paper], authors: list[NewAuthor], match: str
) -> None:
    engine = PaperEngine(model, data_dir=tmp_path)
    with pytest.raises(InvalidInputError, match=match):
        engine.add_papers(papers) if papers else engine.add_authors(authors)
    engine.close()
    store = AdditionStore(tmp_path, model.name)
    added = Added.of(store.news())
    assert added.papers == {} and added.vectors == []
    store.close()


def test_nothing_can_be_added_without_a_folder(engine: PaperEngine) -> None:
    with pytest.raises(StorageError, match="data directory"):
        engine.add_papers([GOOD])


def test_vectors_are_fitted_again_for_another_revision_of_the_model(model: PaperModel, tmp_path: Path) -> None:
    engine = PaperEngine(model, data_dir=tmp_path)
    engine.add_papers([Paper("voice prosody", id="n1", authors=(Author("New One"), Author("speech A")))])
    known = engine.state.tables[AUTHORS]
    engine.close()
    changed = copy.copy(model)
    changed.revision = "another"
    # In the new space all vectors are twice as long.
    vectors = {kind: 2 * own[:] for kind, own in model.tables.vectors.items()}
    changed.tables = replace(model.tables, vectors=vectors)
    again = PaperEngine(changed, data_dir=tmp_path)
    fitted = again.state.tables[AUTHORS]
    for name in ("New One", "speech A"):
        assert_allclose(fitted.vectors[fitted.row_of_id[name]], 2 * known.vectors[known.row_of_id[name]], rtol=1e-4)
    again.close()


def known(engine: PaperEngine) -> list[bool]:
    return [f"New {n}" in engine.state.tables[AUTHORS].row_of_id for n in range(3)]


def test_an_interrupted_addition_is_stored_and_shown_or_neither(model: PaperModel, tmp_path: Path) -> None:
    for number in range(40):
        engine = PaperEngine(model, data_dir=tmp_path / str(number))
        new = [NewAuthor(Author(f"New {n}"), (Paper("prosody of a voice"),)) for n in range(3)]
        looks = looks_until_gone(number, partial(engine.add_authors, new))
        shown = known(engine)
        engine.close()
        again = PaperEngine(model, data_dir=tmp_path / str(number))
        stored = known(again)
        again.close()
        assert shown == stored == [looks <= number] * 3
        if looks <= number:
            break
    else:
        pytest.fail("never done")
    assert number > 2


def test_the_golden_file_of_additions_is_read(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "papers_v1", tmp_path / "papers")
    store = AdditionStore(tmp_path / "papers", "toy")
    added = Added.of(store.news())
    assert added.revision == "r1" and added.given == {("ada", "p1")}
    [paper] = added.papers.values()
    assert (paper.id, paper.authors[0].id, paper.cited_by_ids, paper.year) == ("p1", "ada", ("p2",), 2001)
    assert added.vectors[0].vector.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert {key: vector.tolist() for key, vector in added.sentences.items()} == {"p1": [0.5, -1.0]}
    store.close()


def test_added_authors_are_scored_by_their_three_nearest_papers(passages: PaperModel, tmp_path: Path) -> None:
    engine = PaperEngine(passages, data_dir=tmp_path)
    options = PaperOptions(top_k=50)
    [before] = engine.recommend(AUTHORS, [VOICE], options)
    titles = [
        "microphone prosody",
        "speaker tone of a voice",
        "image texture",
        "grammar of a treebank",
        "voice prosody",
    ]
    few = NewAuthor(Author("Few"), tuple(Paper(title) for title in titles[:2]))
    engine.add_authors([NewAuthor(Author("Many"), tuple(Paper(title, id=title) for title in titles)), few])
    after = {hit.id: hit for hit in engine.recommend(AUTHORS, [VOICE], options)[0]}
    assert all(after[hit.id].score == pytest.approx(hit.score, abs=1e-6) for hit in before)
    texts = [*titles, VOICE.title], [*[""] * 5, VOICE.abstract]
    vectors, weighted = passages.passage_vectors(*texts), passages.weighted_words(passages.paper_rows(*texts))
    words = np.zeros((6, len(passages.words.vocabulary) + 1))
    for row, own in zip(words, weighted, strict=True):
        row[own["row"]] = own["weight"]
    similar = (0.4 * vectors @ vectors.T + 0.6 * words @ words.T)[5, :5]
    assert np.linalg.norm(words, axis=1) == pytest.approx(1, abs=1e-6)
    for name, some in (("Many", similar), ("Few", similar[:2])):
        nearest = np.sort(some)[-3:].mean()
        assert after[name].document_score == pytest.approx(nearest, abs=1e-5)
        rescaled = 0.25 + 0.5 * nearest
        weight = passages.settings.facet_weights[AUTHORS]
        assert after[name].score == pytest.approx(weight * after[name].facet_score + (1 - weight) * rescaled, abs=1e-5)
    bulk = engine.recommend_bulk(AUTHORS, [VOICE, Paper("image")], options)
    assert [bulk.candidate_ids[row] for row in bulk.rows[0]] == list(after)
    [[ranked]] = engine.rank_papers(AUTHORS, ["Many"], [VOICE])
    assert ranked.document_score == pytest.approx(after["Many"].document_score, abs=1e-6)
    engine.close()
    again = PaperEngine(passages, data_dir=tmp_path)
    assert {hit.id: hit for hit in again.recommend(AUTHORS, [VOICE], options)[0]} == after
    again.close()


def test_papers_that_many_added_authors_share_are_compared_once(passages: PaperModel, tmp_path: Path) -> None:
    engine = PaperEngine(passages, data_dir=tmp_path)
    ids = [f"p{number}" for number in range(200)]
    engine.add_papers([Paper(f"parser tree {id}", id=id) for id in ids])
    engine.add_authors([NewAuthor(Author(f"author {number}"), paper_ids=tuple(ids)) for number in range(200)])
    engine.recommend(AUTHORS, [Paper("parser")])
    tracemalloc.start()
    try:
        assert engine.recommend(AUTHORS, [Paper("parser")])[0]
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
        assert engine.recommend_bulk(AUTHORS, [Paper("parser")] * 128).rows[0, 0] >= 0
        assert tracemalloc.get_traced_memory()[1] < 48 * 2**20  # 128 x 200 x 200 similarities are 20 MiB
    finally:
        tracemalloc.stop()
