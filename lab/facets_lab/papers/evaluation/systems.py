"""Cold-start author and citation prediction: which papers of a file an author wrote, which a paper cites (table 3.8).

Shape letters: N papers of the file, J authors or citing papers, C chosen ones, W of embeddings.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError
from facets.papers.candidates import CandidateTable, PaperBank
from facets.papers.engine import PaperEngine
from facets.papers.inputs import CandidateKind, Paper
from facets.papers.ranking import HybridScores, hybrid_scores
from facets.papers.results import PaperFacets
from facets_lab.papers.evaluation.metrics import Positives, column_metrics, column_metrics_by_method

__all__ = [
    "DOCUMENT_MODES",
    "PaperData",
    "PaperSystem",
    "document_system",
    "evaluate_system",
    "facet_system",
    "make_data",
    "mixed_system",
    "sample_data",
    "tune_weights",
]

DOCUMENT_MODES = ("average", "max")
WEIGHTS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0)

_TUNED_COLUMNS = 2_000

# Ids of candidates -> scores [N, C] by method
Score = Callable[[CandidateKind, Sequence[str]], Mapping[str, NDArray[np.float32]]]


@dataclass(frozen=True, slots=True)
class PaperData:
    """The papers to recommend for, and who wrote and who cites them.

    Attributes:
        papers: ``N`` papers.
        ids: By kind, the known authors or citing papers with at least one of these papers; others are not evaluated.
        positives: By kind, pairs of papers and places in ``ids``.
    """

    papers: Sequence[Paper]
    ids: Mapping[CandidateKind, Sequence[str]]
    positives: Mapping[CandidateKind, Positives]


@dataclass(frozen=True, slots=True)
class PaperSystem:
    """Something that scores.

    Attributes:
        name: Its name in the report.
        methods: What ``score`` returns.
        score: Kind and ids of candidates -> scores of all papers by method.
    """

    name: str
    methods: tuple[str, ...]
    score: Score


def make_data(papers: Sequence[Paper], known: Mapping[CandidateKind, set[str]]) -> PaperData:
    """Keeps the authors and citing papers that every system of the run knows.

    Raises:
        InvalidInputError: There is none of either kind.
    """
    ids: dict[CandidateKind, list[str]] = {}
    positives: dict[CandidateKind, Positives] = {}
    for kind in CandidateKind:
        keys_of = [_keys(paper, kind) & known[kind] for paper in papers]
        ids[kind] = sorted(set().union(*keys_of))
        place = {key: number for number, key in enumerate(ids[kind])}
        pairs = [(row, place[key]) for row, keys in enumerate(keys_of) for key in keys]
        rows, columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        positives[kind] = Positives.of(rows, columns)
    if not any(ids.values()):
        raise InvalidInputError("no paper of the data has an author or a citing paper that the model knows")
    return PaperData(papers, ids, positives)


def sample_data(data: PaperData, num_candidates: int) -> PaperData:
    """Keeps a seeded sample of at most so many authors and so many citing papers."""
    ids: dict[CandidateKind, Sequence[str]] = {}
    positives: dict[CandidateKind, Positives] = {}
    for kind in CandidateKind:
        used = data.positives[kind].used_columns
        if len(used) > num_candidates:
            used = np.sort(np.random.default_rng(0).choice(used, num_candidates, replace=False))
        ids[kind] = [data.ids[kind][column] for column in used]
        chosen = np.isin(data.positives[kind].columns, used)
        places = np.searchsorted(used, data.positives[kind].columns[chosen])
        positives[kind] = Positives(data.positives[kind].rows[chosen], places.astype(np.int64))
    return PaperData(data.papers, ids, positives)


def evaluate_system(system: PaperSystem, data: PaperData) -> dict[str, dict[str, dict[str, float]]]:
    """Method -> ``authors`` and ``citations`` -> metric, averaged over the candidates with a positive.

    A kind without any such candidate is left out.
    """
    report: dict[str, dict[str, dict[str, float]]] = {method: {} for method in system.methods}
    for kind in CandidateKind:
        if not data.ids[kind]:
            continue
        metrics = column_metrics_by_method(
            partial(_scores_of, system, data, kind), system.methods, data.positives[kind], num_papers=len(data.papers)
        )
        for method in system.methods:
            report[method][str(kind)] = metrics[method].means()
    return report


def facet_system(name: str, engine: PaperEngine, encoded: PaperFacets) -> PaperSystem:
    """A model of papers: its facets, its documents, and both mixed by its stored weights."""
    settings = engine.model.settings

    def score(kind: CandidateKind, ids: Sequence[str]) -> Mapping[str, NDArray[np.float32]]:
        table = engine.state.tables[kind]
        scores = hybrid_scores(
            encoded.scaled(kind),
            encoded.documents,
            table,
            engine.state.bank,
            facet_weight=settings.facet_weights[kind],
            document_mode=settings.document_modes[kind],
            rows_C=np.array([table.row_of_id[key] for key in ids], dtype=np.int64),
        )
        return _by_method(scores)

    return PaperSystem(name, ("facets", "documents", "facets+documents"), score)


def document_system(
    name: str,
    embeddings_NW: NDArray[np.float32],
    tables: Mapping[CandidateKind, CandidateTable],
    *,
    bank: PaperBank,
    mode: str,
) -> PaperSystem:
    """Average or greatest cosine with a candidate's papers, without any facets."""

    def score(kind: CandidateKind, ids: Sequence[str]) -> Mapping[str, NDArray[np.float32]]:
        table = tables[kind]
        rows = np.array([table.row_of_id[key] for key in ids], dtype=np.int64)
        if mode == "max":
            return {"documents": table.greatest_cosines(embeddings_NW, rows, bank)}
        return {"documents": embeddings_NW @ table.means[rows].T}

    return PaperSystem(name, ("documents",), score)


def mixed_system(name: str, facets: PaperSystem, documents: PaperSystem, weights: Mapping[str, float]) -> PaperSystem:
    """The facets of one system with the documents of another."""

    def score(kind: CandidateKind, ids: Sequence[str]) -> Mapping[str, NDArray[np.float32]]:
        weight = np.float32(weights[kind])
        mixed = weight * facets.score(kind, ids)["facets"] + (1 - weight) * documents.score(kind, ids)["documents"]
        return {"facets+documents": mixed}

    return PaperSystem(name, ("facets+documents",), score)


def tune_weights(facets: PaperSystem, documents: PaperSystem, data: PaperData) -> dict[str, tuple[float, float]]:
    """By kind, the weight of the facets with the greatest mean average precision, and that precision.

    Of more than 2,000 candidates a seeded sample of so many is looked at.
    """
    best: dict[str, tuple[float, float]] = {}
    sampled = sample_data(data, _TUNED_COLUMNS)
    for kind in CandidateKind:
        best[str(kind)] = (0.5, 0.0)
        sample, ids = sampled.positives[kind], sampled.ids[kind]
        if not ids:
            continue
        facet_scores, document_scores = facets.score(kind, ids)["facets"], documents.score(kind, ids)["documents"]
        for weight in WEIGHTS:
            mixed = np.float32(weight) * facet_scores + np.float32(1 - weight) * document_scores
            value = column_metrics(partial(_columns, mixed), sample, num_papers=len(data.papers)).means()["map"]
            if value > best[str(kind)][1]:
                best[str(kind)] = (weight, value)
    return best


def _columns(scores_NJ: NDArray[np.float32], columns: NDArray[np.int64]) -> NDArray[np.float32]:
    return scores_NJ[:, columns]


def _scores_of(
    system: PaperSystem, data: PaperData, kind: CandidateKind, columns: NDArray[np.int64]
) -> Mapping[str, NDArray[np.float32]]:
    return system.score(kind, [data.ids[kind][column] for column in columns])


def _by_method(scores: HybridScores) -> dict[str, NDArray[np.float32]]:
    return {"facets": scores.facets, "documents": scores.documents, "facets+documents": scores.total}


def _keys(paper: Paper, kind: CandidateKind) -> set[str]:
    return {author.key for author in paper.authors} if kind is CandidateKind.AUTHORS else set(paper.cited_by_ids)
