"""Evaluates reviewers the model has not seen: added by some of their papers, ranked for another of their papers.

Shape suffixes: N held-out papers, J reviewers, A papers of all reviewers.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from facets.errors import InvalidInputError
from facets.model.loading import load
from facets.papers.engine import PaperEngine
from facets.papers.model import PaperModel
from facets.papers.records import Author, CandidateKind, NewAuthor, Paper
from facets.papers.scoring import hybrid_scores
from facets.papers.trained import change_settings
from facets_lab.documents.retrieval import Bm25
from facets_lab.evaluation.comparison import Report
from facets_lab.evaluation.options import Bootstrap, DataFile, Models, Seeds
from facets_lab.evaluation.statistics import Metrics, with_intervals
from facets_lab.papers.data import read_papers
from facets_lab.papers.evaluation import LoadedModel, column_metrics

_AUTHORS = CandidateKind.AUTHORS
_MAX_PAPERS = 20  # of a reviewer, as people give them
_SCALES = (1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)

Scores = Mapping[str, NDArray[np.float32]]  # by method, `[N, J]`, higher is better


@dataclass(frozen=True, slots=True)
class ColdStart:
    """Reviewers with new ids and papers, and held-out papers of theirs."""

    held_out: Sequence[Paper]
    reviewers: Sequence[NewAuthor]
    wrote: NDArray[np.bool_]  # `[N, J]`; co-authors are right answers too


def cold_start(papers: Sequence[Paper], *, min_papers: int, num_reviewers: int, seed: int) -> ColdStart:
    """A seeded sample of authors with enough papers with abstracts; one paper of each is held out from all of them."""
    drawing = random.Random(seed)
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
    """``as_trained``: as authors of the training; ``recommended``: as the model scores them; and their parts."""
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
        for way, combine in _WAYS.items():
            scores[f"{name}_{way}"] = np.stack([combine(similar_NA[:, own]) for own in members], axis=1)
    return scores


def _top_3(similar_NA: NDArray[np.float32]) -> NDArray[np.float32]:
    top_N3: NDArray[np.float32] = np.sort(similar_NA, axis=1)[:, -3:]
    return top_N3.mean(axis=1)


_WAYS: dict[str, Callable[[NDArray[np.float32]], NDArray[np.float32]]] = {
    "top_3": _top_3,
    "max": lambda similar_NA: similar_NA.max(axis=1),
    "mean": lambda similar_NA: similar_NA.mean(axis=1),
}


def average_precisions(scores_NJ: NDArray[np.float32], wrote_NJ: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Average precision of the ranking of reviewers for each paper, ``[N]``."""
    return column_metrics(scores_NJ.T, [np.flatnonzero(row).tolist() for row in wrote_NJ])["map"]


def evaluate_reviewers(
    file: DataFile,
    names_or_paths: Models = None,
    *,
    min_papers: Annotated[int, typer.Option(min=2, help="Fewest papers with abstract of a reviewer.")] = 5,
    num_reviewers: Annotated[int, typer.Option("--sample", min=1, metavar="N", help="Sample N reviewers.")] = 400,
    seeds: Seeds = 1,
    bootstrap: Bootstrap = 0,
    tune: Annotated[bool, typer.Option("--tune", help="Store the best scale and its offset in the folders.")] = False,
) -> Report:
    """Rank authors that are added by their papers, for papers of theirs that are held out.

    FILE has papers as for the command recommendation. "papers": reviewers for each paper; "reviewers": papers for each
    reviewer. Papers and authors that the model was trained on flatter as_trained and facets.

    Example: facets-eval reviewers dev.jsonl.xz --min-papers 4 --seeds 3 --bootstrap 1000
    """
    papers = read_papers(file)
    sizes = {"min_papers": min_papers, "num_reviewers": num_reviewers}
    sets = [cold_start(papers, **sizes, seed=seed) for seed in range(1, seeds + 1)]
    measured: dict[str, dict[str, dict[str, Metrics]]] = {}
    for loaded in [LoadedModel(name) for name in names_or_paths or (None,)]:
        model = loaded.model
        if tune:
            store_scale(loaded, sets)
            model = load(loaded.folder, PaperModel)
        scored = [reviewer_scores(model, data) for data in sets]
        measured[model.name] = {
            method: {
                "papers": _map([average_precisions(s[method], d.wrote) for s, d in pairs], bootstrap),
                "reviewers": _map([_by_reviewer(s[method], d.wrote) for s, d in pairs], bootstrap),
            }
            for pairs in [list(zip(scored, sets, strict=True))]
            for method in scored[0]
        }
    rows = sum(len(data.held_out) for data in sets)
    columns = sum(len(data.reviewers) for data in sets)
    return {"data": str(file), "rows": rows, "columns": columns, "models": measured}


def _by_reviewer(scores_NJ: NDArray[np.float32], wrote_NJ: NDArray[np.bool_]) -> NDArray[np.float64]:
    has_J = wrote_NJ.any(axis=0)
    return average_precisions(scores_NJ[:, has_J].T, wrote_NJ[:, has_J].T)


def _map(precisions: Sequence[NDArray[np.float64]], num_resamples: int) -> Metrics:
    return with_intervals(
        lambda rows: {"map": float(rows.mean())}, np.concatenate(precisions), num_resamples=num_resamples
    )


def store_scale(loaded: LoadedModel, sets: Sequence[ColdStart]) -> None:
    """Stores the scale of similarity with the best MAP, and the offset that keeps the mean score of right pairs."""
    additions = loaded.model.settings.additions
    if additions is None:
        raise InvalidInputError(f"{loaded.folder} has no additions in recommendation.json, expected an encoder there")
    scored, weight = (
        [reviewer_scores(loaded.model, data) for data in sets],
        loaded.model.settings.facet_weights[_AUTHORS],
    )

    def mean_map(scale: float) -> float:
        totals = [weight * s["facets"] + (1 - weight) * scale * s["similarity"] for s in scored]
        return float(
            np.mean(np.concatenate([average_precisions(t, d.wrote) for t, d in zip(totals, sets, strict=True)]))
        )

    best = max(_SCALES, key=mean_map)
    kept = [(s["documents"] - best * s["similarity"])[d.wrote] for s, d in zip(scored, sets, strict=True)]
    changed = replace(additions, scale=best, offset=round(float(np.concatenate(kept).mean()), 4))
    change_settings(loaded.folder, {"additions": asdict(changed)})
