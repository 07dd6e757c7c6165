"""Evaluates reviewers the model has not seen: added by some of their papers, ranked for another of their papers.

Shape suffixes: N held-out papers, J reviewers, A papers of all reviewers.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from facets.errors import InvalidInputError
from facets.papers.engine import PaperEngine
from facets.papers.model import PaperModel
from facets.papers.records import Author, CandidateKind, NewAuthor, Paper
from facets.papers.scoring import hybrid_scores
from facets_lab.documents.retrieval import Bm25
from facets_lab.evaluation.comparison import Report, load_models
from facets_lab.evaluation.options import Bootstrap, DataFile, Models
from facets_lab.evaluation.statistics import Metrics, with_intervals
from facets_lab.papers.data import read_papers
from facets_lab.papers.evaluation import LoadedModel, column_metrics

_AUTHORS = CandidateKind.AUTHORS
_MAX_PAPERS = 20  # of a reviewer, as people give them
_NEAREST = 3  # papers of a reviewer
_SEED = 1

Scores = Mapping[str, NDArray[np.float32]]  # by method, `[N, J]`, higher is better


@dataclass(frozen=True, slots=True)
class ColdStart:
    """Reviewers with new ids and papers, and held-out papers of theirs."""

    held_out: Sequence[Paper]
    reviewers: Sequence[NewAuthor]
    wrote: NDArray[np.bool_]  # `[N, J]`; co-authors are right answers too


def cold_start(papers: Sequence[Paper], *, min_papers: int, num_reviewers: int) -> ColdStart:
    """A seeded sample of authors with enough papers with abstracts; one paper of each is held out from all of them."""
    drawing = random.Random(_SEED)
    papers_of: dict[str, list[Paper]] = {}
    for paper in papers:
        for key in dict.fromkeys(author.key for author in paper.authors if paper.abstract):
            papers_of.setdefault(key, []).append(paper)
    able = sorted(key for key, own in papers_of.items() if len(own) >= min_papers)
    chosen = drawing.sample(able, min(num_reviewers, len(able)))
    held_out = {paper.id: paper for paper in (drawing.choice(papers_of[key]) for key in chosen)}
    given = {key: [paper for paper in papers_of[key] if paper.id not in held_out] for key in chosen}
    given = {key: drawing.sample(own, min(_MAX_PAPERS, len(own))) for key, own in given.items() if len(own) > 1}
    if not given:
        raise InvalidInputError(f"expected authors of {min_papers} papers with abstract, got none")
    # New ids, so that nothing that the model knows of a paper or an author is used.
    reviewers = [
        NewAuthor(Author(key, f"new:{key}"), tuple(Paper(p.title, p.abstract, f"new:{p.id}") for p in own))
        for key, own in given.items()
    ]
    wrote_NJ = np.array([[key in {a.key for a in paper.authors} for key in given] for paper in held_out.values()])
    asked = [Paper(paper.title, paper.abstract) for paper in held_out.values()]
    rows = np.flatnonzero(wrote_NJ.any(axis=1))
    return ColdStart([asked[row] for row in rows], reviewers, wrote_NJ[rows])


def reviewer_scores(model: PaperModel, data: ColdStart) -> Scores:
    """``as_trained``: as authors of the training; ``recommended``: as the model scores them; their parts, and peers.

    ``passages``, ``bm25``: mean of the three nearest papers.
    """
    with TemporaryDirectory() as folder:
        engine = PaperEngine(model, data_dir=folder)
        engine.add_authors(data.reviewers)
        state, encoded = engine.state, engine.encode(data.held_out, passages=True)
        engine.close()
    table, bank = state.tables[_AUTHORS], state.bank
    rows_J = np.array([table.row_of_id[reviewer.author.key] for reviewer in data.reviewers])
    settings = model.settings
    weight = settings.facet_weights[_AUTHORS]
    scores: dict[str, NDArray[np.float32]] = {}
    as_trained = replace(settings, additions=None)
    for names, used in (
        (("as_trained", "facets", "documents"), as_trained),
        (("recommended", "", "similarity"), settings),
    ):
        parts = hybrid_scores(encoded, _AUTHORS, state, rows_J, facet_weight=weight, settings=used)
        scores |= {name: part for name, part in zip(names, parts, strict=True) if name}
    members = [table.papers_of(int(row)) - bank.num_trained for row in rows_J]
    texts = [f"{title}. {text}" for title, text in zip(bank.titles, bank.abstracts, strict=True)][bank.num_trained :]
    bm25 = Bm25(texts).scores([f"{paper.title}. {paper.abstract}" for paper in data.held_out])
    for name, similar_NA in (("passages", encoded.passages @ bank.passages.T), ("bm25", bm25)):
        nearest = [np.sort(similar_NA[:, own], axis=1)[:, -_NEAREST:].mean(axis=1) for own in members]
        scores[name] = np.stack(nearest, axis=1)
    return scores


def evaluate_reviewers(
    file: DataFile,
    names_or_paths: Models = None,
    *,
    min_papers: Annotated[int, typer.Option(min=2, help="Fewest papers with abstract of a reviewer.")] = 5,
    num_reviewers: Annotated[int, typer.Option("--sample", min=1, metavar="N", help="Sample N reviewers.")] = 400,
    bootstrap: Bootstrap = 0,
) -> Report:
    """Rank authors that are added by their papers, for papers of theirs that are held out.

    FILE has papers as for the command recommendation. "papers": reviewers for each paper; "reviewers": papers for each
    reviewer. Papers and authors that the model was trained on flatter as_trained and facets.

    Example: facets-eval reviewers dev.jsonl.xz --min-papers 4 --bootstrap 1000
    """
    data = cold_start(read_papers(file), min_papers=min_papers, num_reviewers=num_reviewers)
    has_J = data.wrote.any(axis=0)

    def mean_precision(scores_NJ: NDArray[np.float32], wrote_NJ: NDArray[np.bool_]) -> Metrics:
        precisions_N = column_metrics(scores_NJ.T, [np.flatnonzero(row).tolist() for row in wrote_NJ])["map"]
        return with_intervals(lambda rows: {"map": float(rows.mean())}, precisions_N, num_resamples=bootstrap)

    measured = {
        model.name: {
            method: {
                "papers": mean_precision(scores_NJ, data.wrote),
                "reviewers": mean_precision(scores_NJ[:, has_J].T, data.wrote[:, has_J].T),
            }
            for method, scores_NJ in reviewer_scores(model, data).items()
        }
        for model in (loaded.model for loaded in load_models(names_or_paths, (), LoadedModel))
    }
    return {"data": str(file), "rows": len(data.held_out), "columns": len(data.reviewers), "models": measured}
