"""Cold-start author and citation prediction: which papers of a file an author wrote, which a paper cites (table 3.8).

Scores are measured column by column and averaged over columns (Chang 2022, section 3.4.3.3). Shape letters: N papers of
the file (rows), J authors or citing papers (columns), P positives, C chosen columns, W of embeddings.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError, NotFoundError
from facets.language.vectors import unit_rows
from facets.language.vocabulary import rarity_weights
from facets.model.loading import load
from facets.model.passage_model import PassageModel
from facets.papers.engine import PaperEngine
from facets.papers.model import PaperModel
from facets.papers.records import CandidateKind, Paper, PaperFacets
from facets.papers.scoring import HybridScores, hybrid_scores
from facets.papers.tables import CandidateTable, PaperBank, build_table
from facets_lab.evaluation.comparison import CachedEmbedder, Embed, minilm
from facets_lab.papers.data import bm25_weights, read_papers, singular_word_vectors, word_counts

_RECALL_AT = (50, 200)
# Scores compared at a time, positives times papers: 16 million, some 80 MB.
_COMPARISONS = 16_000_000


@dataclass(frozen=True, slots=True)
class Positives:
    """Which papers are right for which candidates; candidates without any are left out of every average.

    Attributes:
        rows: ``[P]`` int64, the papers.
        columns: ``[P]`` int64, the candidates, ascending.
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]

    @classmethod
    def of(cls, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> "Positives":
        """Sorted by column; a pair given twice counts once."""
        pairs = np.unique(np.stack([columns, rows], axis=1), axis=0)
        return cls(np.ascontiguousarray(pairs[:, 1]), np.ascontiguousarray(pairs[:, 0]))

    @property
    def used_columns(self) -> NDArray[np.int64]:
        """The candidates with a positive, ascending."""
        return np.unique(self.columns)


@dataclass(frozen=True, slots=True)
class ColumnMetrics:
    """One number a candidate that has a positive, in ascending order of candidates.

    Attributes:
        values: Metric -> ``[J']`` float64: ``map``, ``auc``, ``ndcg``, ``recall_50``, ``recall_200``.
    """

    values: dict[str, NDArray[np.float64]]

    def means(self) -> dict[str, float]:
        """The averages over candidates, as fractions.

        Raises:
            InvalidInputError: No candidate has a positive.
        """
        if not len(self.values["map"]):
            raise InvalidInputError("no known author or citing paper has a positive in the data, expected at least one")
        return {name: float(values.mean()) for name, values in self.values.items()}


def column_metrics(
    scores_of: Callable[[NDArray[np.int64]], Mapping[str, NDArray[np.float32]]],
    methods: Sequence[str],
    positives: Positives,
    *,
    num_papers: int,
) -> dict[str, ColumnMetrics]:
    """Average precision, area under the ROC curve, NDCG and recall of every column with a positive, by method.

    Equal scores share their mean rank, among the papers as among the positives, so that a constant column
    is neither rewarded nor punished: its AUC is exactly 1/2.

    Args:
        scores_of: Candidates ``[J]`` -> scores ``[N, J]`` of each method, higher is better.
        methods: The methods wanted.
        positives: The right pairs.
        num_papers: N.
    """
    parts: dict[str, list[dict[str, NDArray[np.float64]]]] = {method: [] for method in methods}
    for first, last in _blocks(positives, num_papers):
        used, inverse = np.unique(positives.columns[first:last], return_inverse=True)
        scores = scores_of(used)
        for method in methods:
            scores_JN = np.ascontiguousarray(scores[method].T)
            own_P = scores_JN[inverse, positives.rows[first:last]]
            all_PN = scores_JN[inverse]
            greater_P = np.count_nonzero(all_PN > own_P[:, None], axis=1)
            equal_P = np.count_nonzero(all_PN == own_P[:, None], axis=1)
            parts[method].append(_metrics(inverse, greater_P + (equal_P + 1) / 2, num_papers))
    names = ("map", "auc", "ndcg", *(f"recall_{n}" for n in _RECALL_AT))
    return {
        method: ColumnMetrics({name: np.concatenate([p[name] for p in own] or [np.empty(0)]) for name in names})
        for method, own in parts.items()
    }


def _blocks(positives: Positives, num_papers: int) -> Iterator[tuple[int, int]]:
    """Runs of positives that hold whole columns and few enough comparisons."""
    ends = np.append(np.flatnonzero(np.diff(positives.columns)) + 1, len(positives.columns))
    limit = max(1, _COMPARISONS // max(1, num_papers))
    first = 0
    while first < len(positives.columns):
        fitting = ends[(ends > first) & (ends <= first + limit)]
        last = int(fitting[-1]) if len(fitting) else int(ends[ends > first][0])
        yield first, last
        first = last


def _metrics(
    column_P: NDArray[np.int64], rank_P: NDArray[np.float64], num_papers: int
) -> dict[str, NDArray[np.float64]]:
    """Metrics of columns from the mean ranks of their positives, ``column_P`` ascending from 0."""
    order = np.lexsort((rank_P, column_P))
    column_P, rank_P = column_P[order], rank_P[order]
    num_J = np.bincount(column_P)
    starts_J = np.cumsum(num_J) - num_J
    place_P = np.arange(len(column_P)) - starts_J[column_P] + 1.0  # among the column's positives, best is 1
    # Positives of the same column and rank share their mean place.
    tie_P = np.cumsum(np.r_[0, (np.diff(column_P) != 0) | (np.diff(rank_P) != 0)])
    place_P = (np.bincount(tie_P, place_P) / np.bincount(tie_P))[tie_P]
    # Mann-Whitney: negatives in front of a positive are its rank less its place.
    num_negatives_J = num_papers - num_J
    in_front_J = np.bincount(column_P, rank_P - place_P)
    auc_J = 1.0 - in_front_J / np.maximum(num_J * num_negatives_J, 1)
    ideal_J = np.cumsum(1.0 / np.log2(np.arange(2, num_J.max() + 2)))[num_J - 1]
    result = {
        "map": np.bincount(column_P, place_P / rank_P) / num_J,
        "auc": np.where(num_negatives_J > 0, auc_J, 1.0),
        "ndcg": np.bincount(column_P, 1.0 / np.log2(1.0 + rank_P)) / ideal_J,
    }
    for n in _RECALL_AT:
        result[f"recall_{n}"] = np.bincount(column_P, rank_P <= n) / num_J
    return result


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


_PAPERS_OF_SAMPLE = 5  # compared with each other at most, a candidate


def sample_data(data: PaperData, num_candidates: int, *, fewer_papers: bool = False) -> PaperData:
    """Keeps a seeded sample of at most so many authors and so many citing papers.

    Args:
        data: Everything.
        num_candidates: Of each kind, at least 1.
        fewer_papers: Keep theirs and a sample of the others, five for each of ``num_candidates``: figures then compare
            within a run only.
    """
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
    if not fewer_papers:
        return PaperData(data.papers, ids, positives)
    right = np.unique(np.concatenate([of_kind.rows for of_kind in positives.values()]))
    others = np.setdiff1d(np.arange(len(data.papers)), right)
    wanted = max(0, min(len(others), _PAPERS_OF_SAMPLE * num_candidates - len(right)))
    kept = np.sort(np.concatenate([right, np.random.default_rng(0).choice(others, wanted, replace=False)]))
    moved = {kind: Positives(np.searchsorted(kept, one.rows), one.columns) for kind, one in positives.items()}
    return PaperData([data.papers[row] for row in kept.tolist()], ids, moved)


def evaluate_system(system: PaperSystem, data: PaperData) -> dict[str, dict[str, dict[str, float]]]:
    """Method -> ``authors`` and ``citations`` -> metric, averaged over the candidates with a positive.

    A kind without any such candidate is left out.
    """
    report: dict[str, dict[str, dict[str, float]]] = {method: {} for method in system.methods}
    for kind in CandidateKind:
        if not data.ids[kind]:
            continue
        metrics = column_metrics(
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
        return {"documents": table.document_scores(embeddings_NW, rows, bank, mode=mode)}

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
            found = column_metrics(partial(_columns, mixed), ("mixed",), sample, num_papers=len(data.papers))
            value = found["mixed"].means()["map"]
            if value > best[str(kind)][1]:
                best[str(kind)] = (weight, value)
    return best


def _columns(scores_NJ: NDArray[np.float32], columns: NDArray[np.int64]) -> dict[str, NDArray[np.float32]]:
    return {"mixed": scores_NJ[:, columns]}


def _scores_of(
    system: PaperSystem, data: PaperData, kind: CandidateKind, columns: NDArray[np.int64]
) -> Mapping[str, NDArray[np.float32]]:
    return system.score(kind, [data.ids[kind][column] for column in columns])


def _by_method(scores: HybridScores) -> dict[str, NDArray[np.float32]]:
    return {"facets": scores.facets, "documents": scores.documents, "facets+documents": scores.total}


def _keys(paper: Paper, kind: CandidateKind) -> set[str]:
    return {author.key for author in paper.authors} if kind is CandidateKind.AUTHORS else set(paper.cited_by_ids)


logger = logging.getLogger(__name__)


@cache
def _passages_small() -> Embed:
    return load("facets-passages-small-en", PassageModel).embed


# Name in the report -> what makes the function; the model of passages is in the space of MiniLM.
SENTENCE_ENCODERS: Mapping[str, Callable[[], Embed]] = {"minilm": minilm, "passages-small": _passages_small}


def cbow_systems(engine: PaperEngine, data: PaperData) -> Iterator[PaperSystem]:
    """CBOW Avg and Max of table 3.8: averages (eq. B.4) of word vectors that saw the papers' texts and nothing else."""
    model, state = engine.model, engine.state
    papers, vocabulary = model.papers, model.words.vocabulary
    counts = word_counts(papers.rows, papers.offsets, len(vocabulary))
    vectors_VW = singular_word_vectors(counts, min(model.words.dim, min(counts.shape) - 1))
    vectors_VW *= rarity_weights(vocabulary.probabilities)[:, None]
    # The training's papers come first in the bank; papers that were added later have no texts here.
    known = np.zeros((len(state.bank.ids), vectors_VW.shape[1]), dtype=np.float32)
    known[: counts.shape[0]] = unit_rows(np.asarray(counts @ vectors_VW))
    bank = PaperBank(state.bank.ids, state.bank.titles, state.bank.years, known)
    tables = {kind: _with_embeddings(table, bank) for kind, table in state.tables.items()}
    rows = model.paper_rows([paper.title for paper in data.papers], [paper.abstract for paper in data.papers])
    offsets = np.cumsum([0, *map(len, rows)])
    unseen = unit_rows(np.asarray(word_counts(np.concatenate(rows), offsets, len(vocabulary)) @ vectors_VW))
    for mode in DOCUMENT_MODES:
        yield document_system(f"cbow-{mode}", unseen, tables, bank=bank, mode=mode)


def words_systems(model: PaperModel, engine: PaperEngine, data: PaperData) -> Iterator[PaperSystem]:
    """Cosines of the model's own averages of trained words, without sentence vectors."""
    state, papers = engine.state, model.papers
    known = model.word_averages_of(papers.rows, papers.offsets[:-1])
    bank = PaperBank(state.bank.ids, state.bank.titles, state.bank.years, known)
    tables = {kind: _with_embeddings(table, bank) for kind, table in state.tables.items()}
    rows = model.paper_rows([paper.title for paper in data.papers], [paper.abstract for paper in data.papers])
    unseen = model.word_averages(rows)
    for mode in DOCUMENT_MODES:
        yield document_system(f"words-{mode}", unseen, tables, bank=bank, mode=mode)


def bm25_systems(model: PaperModel, engine: PaperEngine, data: PaperData) -> Iterator[PaperSystem]:
    """BM25 of the papers of a candidate for the words of a new paper: the average, the greatest."""
    vocabulary = model.words.vocabulary
    known, size = model.papers, len(vocabulary)
    weights_NV, _ = bm25_weights(word_counts(known.rows, known.offsets, size), left_out_V=vocabulary.is_stop[:size])
    rows = model.paper_rows([paper.title for paper in data.papers], [paper.abstract for paper in data.papers])
    asked_QV = word_counts(np.concatenate(rows), np.cumsum([0, *map(len, rows)]), size)
    asked_QV.data = np.minimum(asked_QV.data, 1)

    def score(
        reduce: Callable[[NDArray[np.float32]], NDArray[np.float32]], kind: CandidateKind, ids: Sequence[str]
    ) -> Mapping[str, NDArray[np.float32]]:
        table = engine.state.tables[kind]
        scores = np.zeros((len(data.papers), len(ids)), dtype=np.float32)
        for place, key in enumerate(ids):
            papers = table.papers_of(table.row_of_id[key])
            papers = papers[papers < weights_NV.shape[0]]  # papers that were added later have no texts here
            if len(papers):
                scores[:, place] = reduce((asked_QV @ weights_NV[papers].T).toarray())
        return {"documents": scores}

    reductions = lambda scores: scores.mean(axis=1), lambda scores: scores.max(axis=1)
    for mode, reduce in zip(DOCUMENT_MODES, reductions, strict=True):
        yield PaperSystem(f"bm25-{mode}", ("documents",), partial(score, reduce))


def sentence_systems(
    engine: PaperEngine, data: PaperData, name: str, *, train: Path | None, embeddings: Path | None
) -> Iterator[PaperSystem]:
    """Cosines of sentence vectors; nothing, with a warning, without texts to embed or without the encoder.

    Args:
        engine: Whose candidates are ranked.
        data: The papers to recommend for.
        name: Of ``SENTENCE_ENCODERS``.
        train: The papers of the training, with texts.
        embeddings: Folder where embeddings are kept from run to run; None: nowhere.

    Raises:
        InvalidInputError: A paper of the model is missing in ``train``.
    """
    if train is None:
        logger.warning("the baselines %s are left out: they need the texts of the training papers (--train FILE)", name)
        return
    state = engine.state
    texts = {paper.id: _text(paper) for paper in read_papers(train)}
    needed = _papers_of(state.tables, data)
    missing = [state.bank.ids[row] for row in needed if state.bank.ids[row] not in texts]
    if missing:
        raise InvalidInputError(f"{train} must hold the papers of the model, {missing[0]!r} is missing")
    embedder = CachedEmbedder(name=name, embed=lambda asked: SENTENCE_ENCODERS[name]()(asked), folder=embeddings)
    try:
        part = embedder.units([texts[state.bank.ids[row]] for row in needed])
        unseen = embedder.units([_text(paper) for paper in data.papers])
    except (ImportError, NotFoundError) as error:
        logger.warning("the baselines %s are left out: %s", name, error)
        return
    known = np.zeros((len(state.bank.ids), part.shape[1]), dtype=np.float32)
    known[needed] = part
    bank = PaperBank(state.bank.ids, state.bank.titles, state.bank.years, known)
    tables = {kind: _with_embeddings(table, bank) for kind, table in state.tables.items()}
    for mode in DOCUMENT_MODES:
        yield document_system(f"{name}-{mode}", unseen, tables, bank=bank, mode=mode)


def _papers_of(tables: Mapping[CandidateKind, CandidateTable], data: PaperData) -> NDArray[np.int64]:
    """Rows of all papers of the candidates that are evaluated, ascending."""
    rows = [tables[kind].papers_of(tables[kind].row_of_id[key]) for kind in CandidateKind for key in data.ids[kind]]
    return np.unique(np.concatenate(rows))


def _with_embeddings(table: CandidateTable, bank: PaperBank) -> CandidateTable:
    columns = np.repeat(np.arange(len(table)), np.diff(table.starts))
    return build_table(
        table.ids.tolist(),
        table.names.tolist(),
        table.vectors,
        pairs_P2=np.stack([table.papers, columns], axis=1),
        bank=bank,
    )


def _text(paper: Paper) -> str:
    return f"{paper.title}. {paper.abstract}".strip()
