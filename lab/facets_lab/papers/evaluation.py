"""Evaluates recommendation for unseen papers.

Cold start: which papers an author wrote or a paper cites (Chang 2022, table 3.8); metrics are computed column by
column, over candidates (section 3.4.3.3). Reviewers: authors the model has not seen, added by some of their papers and
ranked for another one. Shape suffixes: N papers of the file or held out, J authors, citing papers or reviewers, A
papers of all reviewers.
"""

import copy
import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import typer
from scipy.stats import rankdata

from facets.arrays import Bools, Doubles, Floats, Ints
from facets.errors import InvalidInputError
from facets.language.vectors import unit_rows
from facets.model.loading import TASKS, load
from facets.model.shipped import find_model
from facets.papers.engine import PaperEngine
from facets.papers.model import PaperModel
from facets.papers.records import Author, CandidateKind, NewAuthor, Paper
from facets.papers.scoring import Scorer
from facets.papers.tables import CandidateTable, CodedRows
from facets.papers.trained import change_settings
from facets_lab.documents.retrieval import bm25_scores
from facets_lab.evaluation.comparison import Report, if_installed, load_models, minilm
from facets_lab.evaluation.options import Baselines, Bootstrap, DataFile, Models
from facets_lab.evaluation.statistics import Metrics, mean_metrics
from facets_lab.papers.data import read_papers

logger = logging.getLogger(__name__)

WEIGHTS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0)
SHARES = (0.3, 0.45, 0.6, 0.75)  # weights of sentence vectors; words have the rest, up to 1
_RECALL_AT = (50, 200)
_CANDIDATES_AT_A_TIME = 500
_TUNED_CANDIDATES = 2_000
_AUTHORS = CandidateKind.AUTHORS
_MAX_PAPERS = 20  # of a reviewer, as people give them
_NEAREST = 3  # papers of a reviewer
_SEED = 1  # of the sample of reviewers

# Ids of candidates -> scores [N, J] by method, higher is better.
Score = Callable[[CandidateKind, Sequence[str]], Mapping[str, Floats]]
Positives = dict[str, list[int]]  # by id of a candidate: rows of its papers


@dataclass(frozen=True, slots=True)
class PaperData:
    """Papers for which candidates are recommended, and the known candidates with at least one of them, by kind."""

    papers: Sequence[Paper]
    positives: Mapping[CandidateKind, Positives]


def make_data(papers: Sequence[Paper], known: Mapping[CandidateKind, set[str]]) -> PaperData:
    """The papers with the candidates that all models know."""
    positives: dict[CandidateKind, Positives] = {kind: {} for kind in CandidateKind}
    for row, paper in enumerate(papers):
        authors, citing = {author.key for author in paper.authors}, set(paper.cited_by_ids)
        for kind, keys in ((CandidateKind.AUTHORS, authors), (CandidateKind.CITATIONS, citing)):
            for key in keys & known[kind]:
                positives[kind].setdefault(key, []).append(row)
    if not any(positives.values()):
        raise InvalidInputError("no paper of the data has an author or a citing paper that the model knows")
    return PaperData(papers, {kind: dict(sorted(of_kind.items())) for kind, of_kind in positives.items()})


def column_metrics(scores_NJ: Floats, positives: Sequence[Sequence[int]]) -> dict[str, Doubles]:
    """``map``, ``auc``, ``ndcg``, ``recall_50`` and ``recall_200`` of every column, ``[J]``, in ``[0, 1]``.

    ``positives`` are rows of each column, at least one. Equal scores share their mean rank, among the papers and among
    the positives, so that a constant column is neither rewarded nor punished: its AUC is 1/2.
    """
    columns = []
    for scores_N, rows in zip(scores_NJ.T, positives, strict=True):
        rank_P, num_negatives = rankdata(-scores_N)[rows], len(scores_N) - len(rows)
        place_P = rankdata(rank_P)  # among the column's positives, best is 1
        ideal = (1.0 / np.log2(np.arange(2, len(rows) + 2))).sum()
        columns.append(
            (
                (place_P / rank_P).mean(),
                # Mann-Whitney: the negatives in front of a positive are its rank minus its place.
                1.0 - (rank_P - place_P).mean() / num_negatives if num_negatives else 1.0,
                (1.0 / np.log2(1.0 + rank_P)).sum() / ideal,
                *((rank_P <= n).mean() for n in _RECALL_AT),
            )
        )
    names = ("map", "auc", "ndcg", *(f"recall_{n}" for n in _RECALL_AT))
    return dict(zip(names, np.array(columns).reshape(-1, len(names)).T, strict=True))


def model_scores(engine: PaperEngine, papers: Sequence[Paper]) -> Score:
    """``facets``, ``documents``, and both with the weights of the model."""
    settings, encoded = engine.model.settings, engine.encode(papers)

    def score(kind: CandidateKind, ids: Sequence[str]) -> Mapping[str, Floats]:
        state = engine.state
        rows_C, weight = _rows_of(state.tables[kind], ids), settings.facet_weights[kind]
        total, facets, documents = Scorer(state, kind, settings, weight).scores(encoded, rows_C)
        return {"facets": facets, "documents": documents, "facets+documents": total}

    return score


def _rows_of(table: CandidateTable, ids: Sequence[str]) -> Ints:
    return np.array([table.row_of_id[key] for key in ids], dtype=np.int64)


def minilm_systems(engine: PaperEngine, data: PaperData, train: Path | None) -> Iterator[tuple[str, Score]]:
    """Greatest cosine of MiniLM's vectors; needs the texts of the training papers."""
    if train is None:
        logger.warning("the baseline minilm is left out: it needs the texts of the training papers (--train FILE)")
        return
    state = engine.state
    tables = {kind: state.tables[kind] for kind in CandidateKind}
    of_candidates = [t.papers_of(t.row_of_id[key]) for kind, t in tables.items() for key in data.positives[kind]]
    needed = np.unique(np.concatenate(of_candidates))
    texts = {paper.id: _text(paper) for paper in read_papers(train)}
    missing = [state.bank.ids[row] for row in needed if state.bank.ids[row] not in texts]
    if missing:
        raise InvalidInputError(f"{train} must hold the papers of the model, {missing[0]!r} is missing")
    for embed in if_installed("minilm", minilm):
        unseen = unit_rows(embed([_text(paper) for paper in data.papers]))
        known = np.zeros((len(state.bank.ids), unseen.shape[1]), dtype=np.float32)
        known[needed] = unit_rows(embed([texts[state.bank.ids[row]] for row in needed]))
        bank = replace(state.bank, documents=CodedRows.of(known, exact=True))

        def score(kind: CandidateKind, ids: Sequence[str]) -> Mapping[str, Floats]:
            rows_C = _rows_of(tables[kind], ids)
            return {"documents": tables[kind].document_scores(unseen, rows_C, bank)}  # noqa: B023  # one embedder

        yield "minilm", score


def _text(paper: Paper) -> str:
    return f"{paper.title}. {paper.abstract}".strip()


def evaluate_recommendation(
    file: DataFile,
    names_or_paths: Models = None,
    *,
    baselines: Baselines = False,
    train: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Training papers with their texts, for MiniLM.")
    ] = None,
    tune: Annotated[bool, typer.Option("--tune", help="Store the mixture best on FILE in the model folders.")] = False,
) -> Report:
    """Recommend authors and citations for unseen papers: JSON lines {"id", "title", "abstract", "authors", "cited_by"}.

    Example: facets-eval recommendation dev.jsonl.xz --baselines --train train.jsonl.xz
    """
    engines = [PaperEngine(model) for model in load_models(names_or_paths, (), lambda name: load(name, PaperModel))]
    papers = read_papers(file)
    known = {kind: set.intersection(*(set(e.state.tables[kind].ids) for e in engines)) for kind in CandidateKind}
    data = make_data(papers, known)

    def systems() -> Iterator[tuple[str, Score]]:
        for name_or_path, engine in zip(names_or_paths or (TASKS["papers"].default,), engines, strict=True):
            current = engine
            if tune:
                folder = find_model(name_or_path)
                store_best_mixture(folder, engine.model, data)
                current = PaperEngine(load(folder, PaperModel))
            yield current.model.name, model_scores(current, papers)
        if baselines:
            yield from minilm_systems(engines[0], data, train)

    columns = {str(kind): len(positives) for kind, positives in data.positives.items()}
    measured = {name: measure_candidates(score, data) for name, score in systems()}
    return {"data": str(file), "rows": len(papers), "columns": columns, "models": measured}


def measure_candidates(score: Score, data: PaperData) -> dict[str, dict[str, dict[str, float]]]:
    """Method -> ``authors`` and ``citations`` -> metric; a kind without candidates is left out."""
    report: dict[str, dict[str, dict[str, float]]] = {}
    for kind, positives in data.positives.items():
        parts: dict[str, list[dict[str, Doubles]]] = {}
        ids = list(positives)
        for start in range(0, len(ids), _CANDIDATES_AT_A_TIME):
            block = ids[start : start + _CANDIDATES_AT_A_TIME]
            for method, scores_NJ in score(kind, block).items():
                parts.setdefault(method, []).append(column_metrics(scores_NJ, [positives[key] for key in block]))
        for method, metrics in parts.items():
            means = {name: float(np.concatenate([part[name] for part in metrics]).mean()) for name in metrics[0]}
            report.setdefault(method, {})[str(kind)] = means
    return report


def store_best_mixture(folder: Path, model: PaperModel, data: PaperData) -> None:
    """Stores the best share of sentences, and the best weights of facets, in the folder of a model."""
    sentences = model.settings.sentences
    variants = []
    for choice in [None] if sentences is None else [replace(sentences, share=share) for share in SHARES]:
        variant = copy.copy(model)
        variant.settings = replace(model.settings, sentences=choice)
        variants.append((*_best_mixture(variant, data), choice))
    _, weights, best = max(variants, key=lambda variant: variant[0])
    logger.warning("%s: weights of facets %s, %s", model.name, weights, best or "words alone")
    change_settings(folder, {"facet_weights": weights, "sentences": None if best is None else asdict(best)})


def _best_mixture(model: PaperModel, data: PaperData) -> tuple[float, dict[str, float]]:
    """Mean average precision, of a seeded sample of candidates, summed over the kinds; and the weights that give it."""
    score = model_scores(PaperEngine(model), data.papers)
    weights: dict[str, float] = {}
    total = 0.0
    for kind, positives in data.positives.items():
        keys, size = list(positives), min(_TUNED_CANDIDATES, len(positives))
        ids = [keys[row] for row in np.sort(np.random.default_rng(0).choice(len(keys), size, replace=False))]
        tried = [(0.0, 0.5)]
        if ids:
            scores, rows = score(kind, ids), [positives[key] for key in ids]
            for weight in WEIGHTS:
                mixed_NJ = np.float32(weight) * scores["facets"] + np.float32(1 - weight) * scores["documents"]
                tried.append((float(column_metrics(mixed_NJ, rows)["map"].mean()), weight))
        best, weights[str(kind)] = max(tried)
        total += best
    return total, weights


@dataclass(frozen=True, slots=True)
class ColdStart:
    """Reviewers with new ids and papers, and held-out papers of theirs."""

    held_out: Sequence[Paper]
    reviewers: Sequence[NewAuthor]
    wrote: Bools  # `[N, J]`; co-authors are right answers too


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


def reviewer_scores(model: PaperModel, data: ColdStart) -> Mapping[str, Floats]:
    """Scores ``[N, J]`` by method, higher is better.

    ``as_trained``: as authors of the training; ``recommended``: as the model scores them; their parts, and peers.
    ``passages``, ``bm25``: mean of the three nearest papers.
    """
    with TemporaryDirectory() as folder:
        engine = PaperEngine(model, data_dir=folder)
        engine.add_authors(data.reviewers)
        state, encoded = engine.state, engine.encode(data.held_out, passages=True)
        engine.close()
    table, bank = state.tables[_AUTHORS], state.bank
    rows_J = _rows_of(table, [reviewer.author.key for reviewer in data.reviewers])
    settings, weight = model.settings, model.settings.facet_weights[_AUTHORS]
    scores: dict[str, Floats] = {}
    for names, used in (
        (("as_trained", "facets", "documents"), replace(settings, additions=None)),
        (("recommended", "", "similarity"), settings),
    ):
        parts = Scorer(state, _AUTHORS, used, weight).scores(encoded, rows_J)
        scores |= {name: part for name, part in zip(names, parts, strict=True) if name}
    members = [table.papers_of(int(row)) - bank.num_trained for row in rows_J]
    texts = [f"{title}. {text}" for title, text in zip(bank.titles, bank.abstracts, strict=True)][bank.num_trained :]
    bm25 = bm25_scores(texts, list(map(_text, data.held_out)))
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

    def mean_precision(scores_NJ: Floats, wrote_NJ: Bools) -> Metrics:
        precisions_N = column_metrics(scores_NJ.T, [np.flatnonzero(row).tolist() for row in wrote_NJ])["map"]
        return mean_metrics({"map": precisions_N}, num_resamples=bootstrap)

    measured = {
        model.name: {
            method: {
                "papers": mean_precision(scores_NJ, data.wrote),
                "reviewers": mean_precision(scores_NJ[:, has_J].T, data.wrote[:, has_J].T),
            }
            for method, scores_NJ in reviewer_scores(model, data).items()
        }
        for model in load_models(names_or_paths, (), lambda name: load(name, PaperModel))
    }
    return {"data": str(file), "rows": len(data.held_out), "columns": len(data.reviewers), "models": measured}
