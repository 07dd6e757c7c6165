"""What people use today: BM25, one vector a passage, vectors of its sentences, and their fusions with BM25.

They rank all documents exactly, without an index. Shape letters: N documents or texts, C candidates of one query,
S sentences of a document, D dimensions.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.language.tokenizer import Tokenizer
from facets.language.vectors import unit_rows
from facets_lab.documents.beir import DEPTH, Ranking, RetrievalData
from facets_lab.documents.systems import (
    Bm25Scorer,
    FacetScorer,
    Ranked,
    RetrievalSystem,
    Scorer,
    SummedScorer,
    VectorScorer,
    best_rows,
)
from facets_lab.evaluation.comparison import CachedEmbedder, if_installed, minilm, model2vec

Fuse = Callable[[NDArray[np.floating], NDArray[np.floating]], NDArray[np.float64]]
"""Scores of vectors ``[C]``, lexical scores ``[C]`` -> fused scores ``[C]``."""

_RANK_OFFSET = 60  # Cormack, Clarke and Buettcher 2009


def z_scores(scores_C: NDArray[np.floating]) -> NDArray[np.float64]:
    """Scores less their mean over their standard deviation; zeros when all are the same.

    Example:
        >>> z_scores(np.array([1.0, 3.0])).tolist()
        [-1.0, 1.0]
    """
    values_C = scores_C.astype(np.float64)
    deviation = values_C.std()
    return (values_C - values_C.mean()) / deviation if deviation > 0 else np.zeros_like(values_C)


def convex_sum(
    vector_C: NDArray[np.floating], lexical_C: NDArray[np.floating], *, lexical_weight: float
) -> NDArray[np.float64]:
    """``(1 - w) z(vector) + w z(lexical)`` over the candidates.

    References:
        Bruch, Gai and Ingber 2023, "An analysis of fusion functions for hybrid retrieval".
    """
    return (1 - lexical_weight) * z_scores(vector_C) + lexical_weight * z_scores(lexical_C)


def reciprocal_ranks(vector_C: NDArray[np.floating], lexical_C: NDArray[np.floating]) -> NDArray[np.float64]:
    """``1 / (60 + rank)`` of either signal among the candidates, summed.

    Example:
        >>> reciprocal_ranks(np.array([0.9, 0.1]), np.array([5.0, 7.0])).round(4).tolist()
        [0.0325, 0.0325]

    References:
        Cormack, Clarke and Buettcher 2009.
    """
    total_C = np.zeros(len(vector_C))
    for scores_C in (vector_C, lexical_C):
        total_C[np.argsort(-scores_C, kind="stable")] += 1 / (_RANK_OFFSET + 1 + np.arange(len(scores_C)))
    return total_C


def _convex(lexical_weight: float) -> Fuse:
    return lambda vector_C, lexical_C: convex_sum(vector_C, lexical_C, lexical_weight=lexical_weight)


_WEIGHTS = tuple(tenth / 10 for tenth in range(1, 10))
DEFAULT_FUSION = "z_scores_0.5"
FUSIONS: dict[str, Fuse] = {
    **{f"z_scores_{weight}": _convex(weight) for weight in _WEIGHTS},
    "reciprocal_ranks": reciprocal_ranks,
}


FUSION_PREFIX = "fusion:"
"""Before the name of a fusion of ``FUSIONS`` that is reported apart from the method ``hybrid``."""

_QUERY_BLOCK = 16

MakeScorer = Callable[[RetrievalData], Scorer]


@dataclass(frozen=True, slots=True)
class OneSignalBaseline:
    """Ranks by one scorer; documents that share no term with the query are never found by BM25.

    Attributes:
        name: Its key in the report.
        method: Of ``METHODS``.
        make: Makes the scorer of a folder.
    """

    name: str
    method: str
    make: MakeScorer

    def rank(self, data: RetrievalData) -> Ranked:
        """See ``RetrievalSystem``."""
        scorer = self.make(data)
        found = [
            [data.document_ids[row] for row in _candidates(scores_N, lexical=self.method == "lexical")]
            for (scores_N,) in _rows_of([scorer], len(data.queries))
        ]
        return Ranked({self.method: found}, {self.method: scorer.num_vectors})


@dataclass(frozen=True, slots=True)
class FusedBaseline:
    """Candidates of vectors and of BM25, both scores exact for all of them, in every way of ``FUSIONS``.

    Attributes:
        name: Its key in the report.
        make_vectors: Makes the scorer by vectors.
        make_lexical: Makes BM25.
    """

    name: str
    make_vectors: MakeScorer
    make_lexical: MakeScorer

    def rank(self, data: RetrievalData) -> Ranked:
        """See ``RetrievalSystem``: ``hybrid`` is the default fusion, the others have ``FUSION_PREFIX``."""
        found: dict[str, list[Ranking]] = {name: [] for name in FUSIONS}
        scorers = [self.make_vectors(data), self.make_lexical(data)]
        for vector_N, lexical_N in _rows_of(scorers, len(data.queries)):
            rows_C = np.union1d(_candidates(vector_N), _candidates(lexical_N, lexical=True))
            for name, fuse in FUSIONS.items():
                best = rows_C[best_rows(fuse(vector_N[rows_C], lexical_N[rows_C]), DEPTH + 1)]
                found[name].append([data.document_ids[row] for row in best])
        rankings = {"hybrid": found[DEFAULT_FUSION], **{f"{FUSION_PREFIX}{name}": found[name] for name in found}}
        return Ranked(rankings, {"hybrid": scorers[0].num_vectors})


def baseline_systems(cache: Path, *, num_facets: int, seed: int) -> Iterator[RetrievalSystem]:
    """The baselines that are installed; what is missing is left out, with a warning.

    Args:
        cache: Folder where embeddings are kept.
        num_facets: Clusters of a document's sentences.
        seed: Of the clustering.
    """
    yield OneSignalBaseline("bm25", "lexical", _bm25)
    for embed in if_installed("minilm", partial(minilm, half=_multiplies_halves())):
        embedder = CachedEmbedder(name="minilm", embed=embed, folder=cache)
        vector, sentences = partial(_vectors, embedder), _SentenceScorers(embedder, num_facets, seed)
        yield OneSignalBaseline("minilm", "vector", vector)
        yield FusedBaseline("minilm+bm25", vector, _bm25)
        yield OneSignalBaseline("sentence-kmeans", "facets", sentences)
        yield FusedBaseline("sentence-kmeans+bm25", sentences, _bm25)
    for embed in if_installed("model2vec", model2vec):
        embedder = CachedEmbedder(name="model2vec", embed=embed, folder=cache)
        yield OneSignalBaseline("model2vec", "vector", partial(_vectors, embedder))


def sentence_facets(units_SD: NDArray[np.float32], num_facets: int, *, seed: int) -> NDArray[np.float32]:
    """Facets of a document without training: centres of its sentences by k-means, at unit length.

    Args:
        units_SD: Unit embeddings of its sentences, one or more.
        num_facets: K; no more different sentences than that stay as they are.
        seed: Of the first centres.
    """
    different = np.unique(units_SD, axis=0)
    if len(different) <= num_facets:
        return different
    from sklearn.cluster import KMeans

    clusters = KMeans(num_facets, n_init=1, random_state=seed).fit(units_SD)
    return unit_rows(clusters.cluster_centers_)


@dataclass(slots=True)
class _SentenceScorers:
    """Makes scorers by sentences; that of the last folder is kept, as two baselines share it."""

    embedder: CachedEmbedder
    num_facets: int
    seed: int
    _last: tuple[RetrievalData, Scorer] | None = None

    def __call__(self, data: RetrievalData) -> Scorer:
        if self._last is None or self._last[0] is not data:
            self._last = (data, self._make(data))
        return self._last[1]

    def _make(self, data: RetrievalData) -> Scorer:
        tokenizer = Tokenizer()
        parts = [[sentence.text for sentence in tokenizer.sentences(text)] or [text] for text in data.documents]
        rows = {part: row for row, part in enumerate(dict.fromkeys(part for of_one in parts for part in of_one))}
        units_SD = self.embedder.units(list(rows))
        facets = [
            sentence_facets(units_SD[[rows[part] for part in of_one]], self.num_facets, seed=self.seed)
            for of_one in parts
        ]
        queries_QD = self.embedder.units(data.queries)
        own = VectorScorer(self.embedder.units(data.documents), queries_QD)
        return SummedScorer(own, FacetScorer(facets, queries_QD))


def _bm25(data: RetrievalData) -> Scorer:
    return Bm25Scorer(data.documents, data.queries)


def _vectors(embedder: CachedEmbedder, data: RetrievalData) -> Scorer:
    return VectorScorer(embedder.units(data.documents), embedder.units(data.queries))


def _rows_of(scorers: Sequence[Scorer], num_queries: int) -> Iterator[tuple[NDArray[np.float32], ...]]:
    """For each query, the scores ``[N]`` of every scorer."""
    for start in range(0, num_queries, _QUERY_BLOCK):
        yield from zip(*(scorer.scores(slice(start, start + _QUERY_BLOCK)) for scorer in scorers), strict=True)


def _candidates(scores_N: NDArray[np.float32], *, lexical: bool = False) -> NDArray[np.int64]:
    rows = best_rows(scores_N, DEPTH + 1)
    return rows[scores_N[rows] > 0] if lexical else rows


def _multiplies_halves() -> bool:
    """Whether bfloat16 is faster here; where it is emulated it takes several times as long as float32."""
    import torch

    from facets.model.precision import fastest_precision

    return fastest_precision(torch.device("cpu")) == torch.bfloat16
