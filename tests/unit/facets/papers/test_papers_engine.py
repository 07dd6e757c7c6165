"""Recommending, ranking, filters and evidence, on a tiny trained model."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from facets.errors import InvalidInputError, NotFoundError
from facets.papers.additions import fit_vector
from facets.papers.engine import PaperEngine
from facets.papers.records import CandidateKind, Paper, PaperOptions
from facets.papers.tables import CodedRows

AUTHORS, CITATIONS = CandidateKind.AUTHORS, CandidateKind.CITATIONS
PARSER = Paper("dependency parser of a treebank")
VOICE = Paper("voice of a speaker", "microphone prosody and tone")


def ids(results: list[list[object]]) -> list[list[str]]:
    return [[hit.id for hit in hits] for hits in results]  # type: ignore[attr-defined]


def test_authors_of_the_subject_come_first(engine: PaperEngine) -> None:
    parsing, speech = ids(engine.recommend(AUTHORS, [PARSER, VOICE], PaperOptions(top_k=4)))
    assert all(name.startswith("parsing") for name in parsing)
    assert all(name.startswith("speech") for name in speech)


def test_latex_changes_nothing(engine: PaperEngine) -> None:
    abstract = (
        r"\textbf{microphone} prosody~\citep[p. 3]{tone} and $pitch_t = 1$ \begin{equation*} b \end{equation*} tone"
    )
    written = Paper(r"\emph{voic\'e} of a {speaker}", abstract)
    plain, found = engine.recommend(AUTHORS, [VOICE, written])
    assert [(hit.id, hit.score) for hit in found] == [(hit.id, hit.score) for hit in plain]


@pytest.mark.parametrize("kind", CandidateKind)
@pytest.mark.parametrize("options", [PaperOptions(top_k=2), PaperOptions(top_k=1, facet_weight=1.0, from_year=2000)])
def test_bounds_leave_out_none_of_the_best(
    engine: PaperEngine, kind: CandidateKind, options: PaperOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("facets.papers.scoring.FEW_CANDIDATES", 0)
    bulk = engine.recommend_bulk(kind, [PARSER, VOICE], options)  # scores every candidate
    found = engine.recommend(kind, [PARSER, VOICE], options)
    for hits, rows, scores in zip(found, bulk.rows, bulk.scores, strict=True):
        assert [hit.id for hit in hits] == [bulk.candidate_ids[row] for row in rows]
        assert_allclose([hit.score for hit in hits], scores, atol=1e-5)


def test_bounds_are_just_above_the_largest_product() -> None:
    rng = np.random.default_rng(4)
    rows, vectors = (3 * rng.standard_normal((num, 96)).astype(np.float32) for num in (5000, 3))
    rows[7] = 0
    coded = CodedRows.of(rows, exact=True)
    products = coded.products(np.arange(4000, 5000), vectors)
    np.testing.assert_allclose(products, rows[4000:] @ vectors.T, atol=1e-4 * products.max())
    above = coded.bounds(vectors) - (rows @ vectors.T).max(axis=1)
    norms = np.linalg.norm(rows, axis=1) * np.linalg.norm(vectors, axis=1).max()
    assert above.min() > 0 and (above <= 0.08 * norms + 1e-4).all()


def test_excluding_everyone_gives_empty_answers(engine: PaperEngine) -> None:
    everyone = list(engine.state.tables[AUTHORS].ids)
    assert engine.recommend(AUTHORS, [PARSER], PaperOptions(excluded_ids=everyone)) == [[]]
    assert engine.recommend(AUTHORS, [PARSER], PaperOptions(candidates=[])) == [[]]
    bulk = engine.recommend_bulk(AUTHORS, [PARSER], PaperOptions(excluded_ids=everyone))
    assert bulk.rows.shape == (1, 0)
    own = Paper(PARSER.title, excluded_ids=tuple(everyone))
    assert engine.recommend(AUTHORS, [own]) == [[]]
    assert (engine.recommend_bulk(AUTHORS, [own]).rows == -1).all()


def test_years_bound_the_candidates(engine: PaperEngine) -> None:
    assert engine.recommend(AUTHORS, [PARSER], PaperOptions(from_year=2050)) == [[]]
    assert engine.recommend(AUTHORS, [PARSER], PaperOptions(to_year=1990)) == [[]]
    everyone = engine.recommend(AUTHORS, [PARSER], PaperOptions(from_year=2000, to_year=2009, top_k=50))
    assert len(everyone[0]) == engine.size(AUTHORS)


def test_papers_are_ranked_for_an_author_and_for_a_citing_paper(engine: PaperEngine) -> None:
    papers = [Paper(VOICE.title, id="v"), Paper(PARSER.title, id="p")]
    assert ids(engine.rank_papers(AUTHORS, ["parsing A", "speech A"], papers)) == [["p", "v"], ["v", "p"]]
    assert ids(engine.rank_papers(CITATIONS, ["speech-citing-1"], papers)) == [["v", "p"]]
    encoded = engine.rank_papers(AUTHORS, ["parsing A"], engine.encode(papers))
    assert [hit.position for hit in encoded[0]] == [1, 0]


def test_ranking_obeys_exclusions_and_years(engine: PaperEngine) -> None:
    papers = [Paper(VOICE.title, id="v", year=2000), Paper(PARSER.title, id="p", year=2010), Paper("image", id="i")]
    rank = engine.rank_papers
    assert ids(rank(AUTHORS, ["parsing A"], papers, options=PaperOptions(excluded_ids=["p", "i"]))) == [["v"]]
    assert ids(rank(AUTHORS, ["parsing A"], papers, options=PaperOptions(from_year=2005))) == [["p"]]


def test_unknown_author_is_reported_with_near_names(engine: PaperEngine) -> None:
    with pytest.raises(NotFoundError, match="parsing A") as caught:
        engine.rank_papers(AUTHORS, ["parsing Q"], [PARSER])
    assert caught.value.resource_type == "author"
    assert engine.find(AUTHORS, "B, parsing")[0] == ("parsing B", "parsing B")
    assert engine.find(CITATIONS, "vision citing 1")[0][0] == "vision-citing-1"
    assert len(engine.find(CITATIONS, "citing", top_k=4)) == 4
    assert engine.find(AUTHORS, "@#!") == []


def test_bad_papers_are_refused(engine: PaperEngine) -> None:
    with pytest.raises(InvalidInputError, match="no words") as caught:
        engine.recommend(AUTHORS, [PARSER, Paper("  ")])
    assert caught.value.field == "papers[1].title"
    with pytest.raises(InvalidInputError, match="distinct"):
        engine.rank_papers(AUTHORS, ["parsing A"], [Paper("a", id="x"), Paper("b", id="x")])
    with pytest.raises(TypeError, match="sequence"):
        engine.recommend(AUTHORS, "a title")  # type: ignore[arg-type]


def test_strange_texts_give_finite_scores(engine: PaperEngine) -> None:
    papers = [Paper("!?"), Paper("zzz qqq"), Paper("\ud800 \x00"), Paper("tree", "word " * 100_000)]
    for hits in engine.recommend(AUTHORS, papers, PaperOptions(top_k=20)):
        assert len(hits) == engine.size(AUTHORS)
        assert np.isfinite([hit.score for hit in hits]).all()


@pytest.mark.parametrize("num_papers", [1, 2, 9])
def test_fitted_vector_points_along_the_best_facets(num_papers: int) -> None:
    papers = np.random.default_rng(0).standard_normal((num_papers, 3, 8)).astype(np.float32)
    vector = fit_vector(papers, length=1.5, spread_DD=np.eye(8, dtype=np.float32))
    assert np.linalg.norm(vector) == pytest.approx(1.5, rel=1e-5)
    best = papers[np.arange(num_papers), (papers @ vector).argmax(axis=1)].sum(axis=0)
    assert_allclose(vector, 1.5 * best / np.linalg.norm(best), rtol=1e-4)
