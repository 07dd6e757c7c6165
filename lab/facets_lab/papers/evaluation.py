"""Evaluates cold-start recommendation: which unseen papers an author wrote or a paper cites (Chang 2022, table 3.8).

Metrics are computed column by column, over candidates (section 3.4.3.3). Shape suffixes: N papers of the file, J
authors or citing papers, P positive pairs, W dimensions of document vectors, V words.
"""

import copy
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError
from facets.language.vectors import unit_rows
from facets.language.vocabulary import rarity_weights
from facets.model.loading import TASKS, load
from facets.model.shipped import find_model
from facets.papers.engine import PaperEngine
from facets.papers.model import PaperModel
from facets.papers.records import CandidateKind, Paper, PaperFacets
from facets.papers.scoring import hybrid_scores
from facets.papers.tables import CandidateTable, PaperBank
from facets.papers.trained import change_settings
from facets_lab.evaluation.comparison import Report, if_installed, load_models, minilm
from facets_lab.papers.data import read_papers, singular_word_vectors, word_counts

logger = logging.getLogger(__name__)

BASELINE_MODELS = ("facets-papers-en-k1", "facets-papers-en-k1-no-auto")
DOCUMENT_MODES = ("average", "max")  # how cosines with a candidate's papers are combined
WEIGHTS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0)
SHARES = (0.3, 0.45, 0.6, 0.75)  # weights of sentence vectors; words have the rest, up to 1
_RECALL_AT = (50, 200)
_MAX_COMPARISONS = 16_000_000  # scores compared at a time: positives times papers, about 80 MB
_CANDIDATES_AT_A_TIME = 1_000
_TUNED_CANDIDATES = 2_000
_PAPERS_A_CANDIDATE = 5  # papers per candidate in a sample with fewer papers

# Ids of candidates -> scores [N, J] by method, higher is better.
Score = Callable[[CandidateKind, Sequence[str]], Mapping[str, NDArray[np.float32]]]


@dataclass(frozen=True, slots=True)
class Positives:
    """Relevant pairs of a paper (``rows``, ``[P]``) and a candidate (``columns``, ``[P]``, ascending)."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]

    @classmethod
    def from_pairs(cls, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> "Positives":
        """Sorted by column; a repeated pair counts once."""
        pairs = np.unique(np.stack([columns, rows], axis=1), axis=0)
        return cls(np.ascontiguousarray(pairs[:, 1]), np.ascontiguousarray(pairs[:, 0]))

    def of_columns(self, start: int, stop: int) -> "Positives":
        """The pairs of a range of columns, counted from its start."""
        first, last = np.searchsorted(self.columns, (start, stop))
        return Positives(self.rows[first:last], self.columns[first:last] - start)


@dataclass(frozen=True, slots=True)
class PaperData:
    """Papers for which candidates are recommended."""

    papers: Sequence[Paper]  # N papers
    ids: Mapping[CandidateKind, Sequence[str]]  # by kind, the known candidates with at least one of these papers
    positives: Mapping[CandidateKind, Positives]  # by kind, pairs of papers and positions in ids

    def rows(self, model: PaperModel) -> list[NDArray[np.uint16]]:
        """Typed word rows of the papers."""
        return model.paper_rows([paper.title for paper in self.papers], [paper.abstract for paper in self.papers])


def make_data(papers: Sequence[Paper], known: Mapping[CandidateKind, set[str]]) -> PaperData:
    """The papers with the candidates that all models know."""
    ids: dict[CandidateKind, list[str]] = {}
    positives: dict[CandidateKind, Positives] = {}
    for kind in CandidateKind:
        keys_of = [_candidate_keys(paper, kind) & known[kind] for paper in papers]
        ids[kind] = sorted(set().union(*keys_of))
        column_of = {key: column for column, key in enumerate(ids[kind])}
        pairs = [(row, column_of[key]) for row, keys in enumerate(keys_of) for key in keys]
        rows, columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        positives[kind] = Positives.from_pairs(rows, columns)
    if not any(ids.values()):
        raise InvalidInputError("no paper of the data has an author or a citing paper that the model knows")
    return PaperData(papers, ids, positives)


def _candidate_keys(paper: Paper, kind: CandidateKind) -> set[str]:
    return {author.key for author in paper.authors} if kind is CandidateKind.AUTHORS else set(paper.cited_by_ids)


def sample_data(data: PaperData, num_candidates: int, *, fewer_papers: bool = False) -> PaperData:
    """A seeded sample of the candidates of each kind.

    With ``fewer_papers`` only their papers are kept and a sample of the others, five for each candidate; figures are
    then comparable within a run only.
    """
    ids: dict[CandidateKind, Sequence[str]] = {}
    positives: dict[CandidateKind, Positives] = {}
    for kind in CandidateKind:
        used = np.unique(data.positives[kind].columns)
        if len(used) > num_candidates:
            used = np.sort(np.random.default_rng(0).choice(used, num_candidates, replace=False))
        ids[kind] = [data.ids[kind][column] for column in used]
        chosen = np.isin(data.positives[kind].columns, used)
        columns = np.searchsorted(used, data.positives[kind].columns[chosen]).astype(np.int64)
        positives[kind] = Positives(data.positives[kind].rows[chosen], columns)
    if not fewer_papers:
        return PaperData(data.papers, ids, positives)
    relevant = np.unique(np.concatenate([pairs.rows for pairs in positives.values()]))
    others = np.setdiff1d(np.arange(len(data.papers)), relevant)
    num_others = max(0, min(len(others), _PAPERS_A_CANDIDATE * num_candidates - len(relevant)))
    kept = np.sort(np.concatenate([relevant, np.random.default_rng(0).choice(others, num_others, replace=False)]))
    moved = {kind: Positives(np.searchsorted(kept, pairs.rows), pairs.columns) for kind, pairs in positives.items()}
    return PaperData([data.papers[row] for row in kept.tolist()], ids, moved)


def column_metrics(scores_NJ: NDArray[np.float32], positives: Positives) -> dict[str, NDArray[np.float64]]:
    """``map``, ``auc``, ``ndcg``, ``recall_50`` and ``recall_200`` of every column with a positive, in ``[0, 1]``.

    Equal scores share their mean rank, among the papers and among the positives, so that a constant column is neither
    rewarded nor punished: its AUC is 1/2.
    """
    parts = []
    for first, last in _blocks(positives, len(scores_NJ)):
        used, column_P = np.unique(positives.columns[first:last], return_inverse=True)
        scores_JN = np.ascontiguousarray(scores_NJ[:, used].T)
        own_P = scores_JN[column_P, positives.rows[first:last]]
        all_PN = scores_JN[column_P]
        num_greater_P = np.count_nonzero(all_PN > own_P[:, None], axis=1)
        num_equal_P = np.count_nonzero(all_PN == own_P[:, None], axis=1)
        parts.append(_metrics(column_P, num_greater_P + (num_equal_P + 1) / 2, len(scores_NJ)))
    names = ("map", "auc", "ndcg", *(f"recall_{n}" for n in _RECALL_AT))
    return {name: np.concatenate([part[name] for part in parts] or [np.empty(0)]) for name in names}


def _blocks(positives: Positives, num_papers: int) -> Iterator[tuple[int, int]]:
    """Ranges of positives that hold whole columns and few enough comparisons."""
    ends = np.append(np.flatnonzero(np.diff(positives.columns)) + 1, len(positives.columns))
    limit = max(1, _MAX_COMPARISONS // max(1, num_papers))
    first = 0
    while first < len(positives.columns):
        fitting = ends[(ends > first) & (ends <= first + limit)]
        last = int(fitting[-1]) if len(fitting) else int(ends[ends > first][0])
        yield first, last
        first = last


def _metrics(
    column_P: NDArray[np.int64], rank_P: NDArray[np.float64], num_papers: int
) -> dict[str, NDArray[np.float64]]:
    """Metrics of columns from the mean ranks of their positives; ``column_P`` ascends from 0."""
    order = np.lexsort((rank_P, column_P))
    column_P, rank_P = column_P[order], rank_P[order]
    num_J = np.bincount(column_P)
    starts_J = np.cumsum(num_J) - num_J
    place_P = np.arange(len(column_P)) - starts_J[column_P] + 1.0  # among the column's positives, best is 1
    # Positives of the same column and rank share their mean place.
    tie_P = np.cumsum(np.r_[0, (np.diff(column_P) != 0) | (np.diff(rank_P) != 0)])
    place_P = (np.bincount(tie_P, place_P) / np.bincount(tie_P))[tie_P]
    # Mann-Whitney: the negatives in front of a positive are its rank minus its place.
    num_negatives_J = num_papers - num_J
    in_front_J = np.bincount(column_P, rank_P - place_P)
    auc_J = 1.0 - in_front_J / np.maximum(num_J * num_negatives_J, 1)
    ideal_J = np.cumsum(1.0 / np.log2(np.arange(2, num_J.max() + 2)))[num_J - 1]
    result = {
        "map": np.bincount(column_P, place_P / rank_P) / num_J,
        "auc": np.where(num_negatives_J > 0, auc_J, 1.0),
        "ndcg": np.bincount(column_P, 1.0 / np.log2(1.0 + rank_P)) / ideal_J,
    }
    return result | {f"recall_{n}": np.bincount(column_P, rank_P <= n) / num_J for n in _RECALL_AT}


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model, its engine, and its folder, which tuning writes to."""

    model: PaperModel
    engine: PaperEngine
    folder: Path

    @classmethod
    def load(cls, name_or_path: str | None) -> "LoadedModel":
        """Loads a model; None: the shipped one."""
        folder = find_model(TASKS["papers"].default if name_or_path is None else name_or_path)
        model = load(folder, PaperModel)
        return cls(model, PaperEngine(model), folder)

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.model.name


def encode(model: PaperModel, data: PaperData) -> PaperFacets:
    """Encodes the papers with the model."""
    sentences = model.sentence_vectors(
        [paper.title for paper in data.papers], [paper.abstract for paper in data.papers]
    )
    return model.encode_papers(data.rows(model), sentences)


def model_scores(engine: PaperEngine, encoded: PaperFacets) -> Score:
    """``facets``, ``documents``, and both with the weights of the model."""
    settings = engine.model.settings

    def score(kind: CandidateKind, ids: Sequence[str]) -> Mapping[str, NDArray[np.float32]]:
        state = engine.state
        weight, mode = settings.facet_weights[kind], settings.document_modes[kind]
        rows_C = _rows_of(state.tables[kind], ids)
        total, facets, documents = hybrid_scores(encoded, kind, state, rows_C, facet_weight=weight, document_mode=mode)
        return {"facets": facets, "documents": documents, "facets+documents": total}

    return score


def document_scores(
    vectors_NW: NDArray[np.float32], tables: Mapping[CandidateKind, CandidateTable], bank: PaperBank, mode: str
) -> Score:
    """``documents``: average or greatest cosine with a candidate's papers."""

    def score(kind: CandidateKind, ids: Sequence[str]) -> Mapping[str, NDArray[np.float32]]:
        return {"documents": tables[kind].document_scores(vectors_NW, _rows_of(tables[kind], ids), bank, mode=mode)}

    return score


def _rows_of(table: CandidateTable, ids: Sequence[str]) -> NDArray[np.int64]:
    return np.array([table.row_of_id[key] for key in ids], dtype=np.int64)


def cbow_systems(loaded: LoadedModel, data: PaperData) -> Iterator[tuple[str, Score]]:
    """CBOW Avg and Max of table 3.8: averages (eq. B.4) of word vectors made from the papers' texts alone."""
    model = loaded.model
    papers, vocabulary = model.papers, model.words.vocabulary
    counts = word_counts(papers.rows, papers.offsets, len(vocabulary))
    vectors_VW = singular_word_vectors(counts, min(model.words.dim, min(counts.shape) - 1))
    vectors_VW *= rarity_weights(vocabulary.probabilities)[:, None]
    rows = data.rows(model)
    offsets = np.cumsum([0, *map(len, rows)])
    unseen = unit_rows(np.asarray(word_counts(np.concatenate(rows), offsets, len(vocabulary)) @ vectors_VW))
    # Training papers come first in the bank; papers added later have no texts here.
    known = np.zeros((len(loaded.engine.state.bank.ids), vectors_VW.shape[1]), dtype=np.float32)
    known[: counts.shape[0]] = unit_rows(np.asarray(counts @ vectors_VW))
    yield from _document_systems("cbow", loaded, known, unseen)


def minilm_systems(loaded: LoadedModel, data: PaperData, train: Path | None) -> Iterator[tuple[str, Score]]:
    """Cosines of MiniLM's vectors; needs the texts of the training papers."""
    if train is None:
        logger.warning("the baseline minilm is left out: it needs the texts of the training papers (--train FILE)")
        return
    state = loaded.engine.state
    needed = np.unique(
        np.concatenate(
            [
                state.tables[kind].papers_of(state.tables[kind].row_of_id[key])
                for kind in CandidateKind
                for key in data.ids[kind]
            ]
        )
    )
    texts = {paper.id: _text(paper) for paper in read_papers(train)}
    missing = [state.bank.ids[row] for row in needed if state.bank.ids[row] not in texts]
    if missing:
        raise InvalidInputError(f"{train} must hold the papers of the model, {missing[0]!r} is missing")
    for embed in if_installed("minilm", minilm):
        unseen = unit_rows(embed([_text(paper) for paper in data.papers]))
        known = np.zeros((len(state.bank.ids), unseen.shape[1]), dtype=np.float32)
        known[needed] = unit_rows(embed([texts[state.bank.ids[row]] for row in needed]))
        yield from _document_systems("minilm", loaded, known, unseen)


def _text(paper: Paper) -> str:
    return f"{paper.title}. {paper.abstract}".strip()


def _document_systems(
    name: str, loaded: LoadedModel, known: NDArray[np.float32], unseen: NDArray[np.float32]
) -> Iterator[tuple[str, Score]]:
    state = loaded.engine.state
    bank = replace(state.bank, documents=known)
    for mode in DOCUMENT_MODES:
        yield f"{name}-{mode}", document_scores(unseen, state.tables, bank, mode)


def evaluate_recommendation(
    file: Path,
    names_or_paths: Sequence[str] = (),
    *,
    baselines: bool = False,
    train: Path | None = None,
    sample: int | None = None,
    tune: bool = False,
) -> Report:
    """Metrics of ``authors`` and ``citations`` by model and method, averaged over the candidates with a positive."""
    models = load_models(names_or_paths, BASELINE_MODELS if baselines else (), LoadedModel.load)
    papers = read_papers(file)
    known = {kind: set.intersection(*(set(m.engine.state.tables[kind].ids) for m in models)) for kind in CandidateKind}
    data = make_data(papers, known)
    if sample is not None:
        data = sample_data(data, sample, fewer_papers=baselines)

    def systems() -> Iterator[tuple[str, Score]]:
        for loaded in models:
            if tune:
                store_best_mixture(loaded, data)
            current = LoadedModel.load(str(loaded.folder)) if tune else loaded
            yield current.name, model_scores(current.engine, encode(current.model, data))
        if baselines:
            yield from cbow_systems(models[0], data)
            yield from minilm_systems(models[0], data, train)

    columns = {str(kind): len(np.unique(data.positives[kind].columns)) for kind in CandidateKind}
    measured = {name: measure_candidates(score, data) for name, score in systems()}
    return {"data": str(file), "rows": len(papers), "columns": columns, "models": measured}


def measure_candidates(score: Score, data: PaperData) -> dict[str, dict[str, dict[str, float]]]:
    """Method -> ``authors`` and ``citations`` -> metric; a kind without candidates is left out."""
    report: dict[str, dict[str, dict[str, float]]] = {}
    for kind in CandidateKind:
        parts: dict[str, list[dict[str, NDArray[np.float64]]]] = {}
        for start in range(0, len(data.ids[kind]), _CANDIDATES_AT_A_TIME):
            ids = data.ids[kind][start : start + _CANDIDATES_AT_A_TIME]
            positives = data.positives[kind].of_columns(start, start + len(ids))
            for method, scores_NJ in score(kind, ids).items():
                parts.setdefault(method, []).append(column_metrics(scores_NJ, positives))
        for method, metrics in parts.items():
            means = {name: float(np.concatenate([part[name] for part in metrics]).mean()) for name in metrics[0]}
            report.setdefault(method, {})[str(kind)] = means
    return report


def store_best_mixture(loaded: LoadedModel, data: PaperData) -> None:
    """Stores the best share of sentences, and the best weight and mode of document similarity, with a model."""
    sentences = loaded.model.settings.sentences
    variants = []
    for share in SHARES if sentences is not None else (None,):
        model = copy.copy(loaded.model)
        if share is not None and sentences is not None:
            model.settings = replace(model.settings, sentences=replace(sentences, share=share))
        variants.append((*_best_mixture(model, data), model.settings.sentences))
    _, weights, modes, best_sentences = max(variants, key=lambda variant: variant[0])
    logger.warning("%s: weights of facets %s, %s, %s", loaded.name, weights, modes, best_sentences or "words alone")
    changes = {"facet_weights": weights, "document_modes": modes}
    change_settings(loaded.folder, changes | ({"sentences": asdict(best_sentences)} if best_sentences else {}))


def _best_mixture(model: PaperModel, data: PaperData) -> tuple[float, dict[str, float], dict[str, str]]:
    """Mean average precision summed over the kinds, and the weights and modes that give it."""
    engine = PaperEngine(model)
    encoded = encode(model, data)
    sample = sample_data(data, _TUNED_CANDIDATES)
    weights: dict[str, float] = {}
    modes: dict[str, str] = {}
    total = 0.0
    for kind in CandidateKind:
        ids, tried = sample.ids[kind], [(0.0, 0.5, DOCUMENT_MODES[-1])]
        if ids:
            facets_NJ, state = model_scores(engine, encoded)(kind, ids)["facets"], engine.state
            for mode in DOCUMENT_MODES:
                documents = document_scores(encoded.documents, state.tables, state.bank, mode)
                documents_NJ = documents(kind, ids)["documents"]
                for weight in WEIGHTS:
                    mixed_NJ = np.float32(weight) * facets_NJ + np.float32(1 - weight) * documents_NJ
                    tried.append((float(column_metrics(mixed_NJ, sample.positives[kind])["map"].mean()), weight, mode))
        best, weights[str(kind)], modes[str(kind)] = max(tried, key=lambda choice: choice[0])
        total += best
    return total, weights, modes
