"""Whether facets pay here, and how many: what can be told from queries without knowing what is right.

Shape letters: Q queries, N documents, T facets of all of them, K facets kept of each, D dimensions.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError
from facets.language.interruption import check_interrupted

_FIRST_RANK, _LAST_RANK = 10, 60  # documents by chance: behind those that may be right, before those that are far away
_SCORES = 2**24  # in memory at a time
_NUM_FACETS = (1, 2, 4, 8, 16)


@dataclass(frozen=True, kw_only=True, slots=True)
class FacetChoice:
    """What K facets a document would give."""

    num_facets: int  # K
    # By how many deviations the best document stands above those of the ranks 11 to 60, mean of the queries: the
    # higher, the better it is told from the rest.
    contrast: float
    facets_per_document: float  # facets that documents have then: short ones have fewer
    same_first: float  # share of queries that find the same document first as with all facets


@dataclass(frozen=True, kw_only=True, slots=True)
class Payoff:
    """Whether facets pay."""

    num_queries: int  # Q
    # By how much the best facet of the document found is closer to the query than the document's own vector; mean of
    # the queries.
    delta: float
    choices: tuple[FacetChoice, ...]  # by K, rising
    best: int  # K of the highest contrast


def payoff(
    queries_QD: NDArray[np.floating],
    chunks: Iterable[tuple[NDArray[np.floating], NDArray[np.integer]]],
    own_vectors: Callable[[NDArray[np.int64]], NDArray[np.floating]],
    *,
    num_facets: Sequence[int] = _NUM_FACETS,
) -> Payoff:
    """Judges facets by what queries find.

    The queries must be such as people ask: sentences of the documents themselves find their own facet and promise too
    much.

    Args:
        queries_QD: ``[Q, D]``.
        chunks: Some documents at a time: their facets ``[T, D]``, one document after another, in the order of the text;
            and where those of each begin, and T: ``[N + 1]``. Gone through once.
        own_vectors: Numbers of documents, counted through all chunks -> the vector of each as a whole, ``[., D]``.
        num_facets: Values of K to compare.

    Raises:
        InvalidInputError: No queries, no documents, shapes that do not belong together.
    """
    queries = _units("queries", queries_QD)
    every = _Found(len(queries))
    by_count = {count: _Found(len(queries)) for count in sorted(set(num_facets))}
    for given, starts_N1 in chunks:
        facets, starts = _units("facets", given), np.asarray(starts_N1, dtype=np.int64)
        if facets.shape[1] != queries.shape[1]:
            raise InvalidInputError(
                f"has {facets.shape[1]} dimensions, the queries have {queries.shape[1]}", path="facets"
            )
        if starts[0] or starts[-1] != len(facets) or (np.diff(starts) < 1).any():
            raise InvalidInputError("must give every document a facet, from 0 to their number", path="starts")
        most = int(np.diff(starts).max())
        every.add(queries, facets, starts, others=[found for count, found in by_count.items() if count >= most])
        for count in (count for count in by_count if count < most):
            by_count[count].add(queries, *fewer_facets(facets, starts, count))
    if not every.num_documents:
        raise InvalidInputError("has no documents: expected at least one", path="chunks")
    documents, places = np.unique(every.first, return_inverse=True)
    own = _units("own_vectors", own_vectors(documents))[places]
    choices = [
        FacetChoice(
            num_facets=count,
            contrast=float(found.contrasts().mean()),
            facets_per_document=found.num_facets / found.num_documents,
            same_first=float((found.first == every.first).mean()),
        )
        for count, found in by_count.items()
    ]
    return Payoff(
        num_queries=len(queries),
        delta=float((every.best[:, 0] - np.einsum("qd,qd->q", queries, own)).mean()),
        choices=tuple(choices),
        best=max(choices, key=lambda choice: (choice.contrast, -choice.num_facets)).num_facets,
    )


def _units(name: str, array: NDArray[np.floating]) -> NDArray[np.float32]:
    found = np.asarray(array, dtype=np.float32)
    if found.ndim != 2 or not found.size:
        raise InvalidInputError(
            f"has shape {list(found.shape)}, expected [rows, dimensions], none of them 0", path=name
        )
    if not np.isfinite(found).all():
        raise InvalidInputError("has NaN or infinite values: expected finite ones", path=name)
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    return (found / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)


def fewer_facets(
    facets_TD: NDArray[np.float32], starts_N1: NDArray[np.int64], num_facets: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """At most K facets a document: neighbours in the text are joined, as a model with fewer of them would divide it.

    Example:
        >>> fewer, starts = fewer_facets(np.eye(4, dtype=np.float32), np.array([0, 3, 4]), 2)
        >>> (fewer > 0).astype(int).tolist(), starts.tolist()
        ([[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], [0, 2, 3])
    """
    counts = np.diff(starts_N1)
    kept = np.minimum(counts, num_facets)
    place = np.arange(len(facets_TD)) - np.repeat(starts_N1[:-1], counts)
    starts = np.concatenate([[0], np.cumsum(kept)])
    group = np.repeat(starts[:-1], counts) + place * np.repeat(kept, counts) // np.repeat(counts, counts)
    firsts = np.flatnonzero(np.diff(group, prepend=-1))
    return _units("facets", np.add.reduceat(facets_TD, firsts, axis=0)), starts


class _Found:
    """What queries find, document by document.

    Attributes:
        first: Number of the document found first, ``[Q]``.
        best: The highest scores so far, highest first, ``[Q, 60]``; ``-inf`` where there are fewer documents.
        num_documents: Seen so far.
        num_facets: Theirs.
    """

    def __init__(self, num_queries: int) -> None:
        self.first = np.zeros(num_queries, dtype=np.int64)
        self.best = np.full((num_queries, _LAST_RANK), -np.inf, dtype=np.float32)
        self.num_documents = self.num_facets = 0
        self._sums = np.zeros((2, num_queries))

    def add(
        self,
        queries: NDArray[np.float32],
        facets: NDArray[np.float32],
        starts: NDArray[np.int64],
        *,
        others: Sequence["_Found"] = (),
    ) -> None:
        """Scores some documents more, of which ``others`` keep the same facets."""
        block = max(1, _SCORES // len(facets))
        for begin in range(0, len(queries), block):
            check_interrupted()
            some = slice(begin, begin + block)
            # Facets first: the greatest of each document's rows are taken side by side, several times as fast.
            scores_QN = np.ascontiguousarray(np.maximum.reduceat(facets @ queries[some].T, starts[:-1]).T)
            for found in (self, *others):
                found._take(some, scores_QN)
        for found in (self, *others):
            found.num_documents += len(starts) - 1
            found.num_facets += len(facets)

    def _take(self, some: slice, scores_QN: NDArray[np.float32]) -> None:
        squares = np.einsum("qn,qn->q", scores_QN, scores_QN)
        self._sums[:, some] += [scores_QN.sum(axis=1), squares]
        before = self.best[some]
        nearest = scores_QN.argmax(axis=1)
        leads = scores_QN[np.arange(len(nearest)), nearest] > before[:, 0]
        self.first[some] = np.where(leads, self.num_documents + nearest, self.first[some])
        together = np.concatenate([before, scores_QN], axis=1)
        self.best[some] = -np.sort(np.partition(-together, _LAST_RANK - 1, axis=1)[:, :_LAST_RANK], axis=1)

    def contrasts(self) -> NDArray[np.float64]:
        """Of each query, by how many deviations of all scores the first stands above ranks 11 to 60."""
        means = self._sums[0] / self.num_documents
        deviations = np.sqrt(np.clip(self._sums[1] / self.num_documents - means**2, 0.0, None))
        chance = self.best[:, min(_FIRST_RANK, self.num_documents - 1) : self.num_documents].mean(axis=1)
        return (self.best[:, 0] - chance) / np.where(deviations > 1e-9, deviations, 1.0)
