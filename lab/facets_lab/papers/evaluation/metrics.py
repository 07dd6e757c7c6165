"""Metrics of a score matrix, column by column, averaged over columns (Chang 2022, section 3.4.3.3).

Shape letters: N papers (rows), J candidates (columns), P positives.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError

__all__ = ["ColumnMetrics", "Positives", "column_metrics", "column_metrics_by_method"]

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
    scores_of: Callable[[NDArray[np.int64]], NDArray[np.float32]], positives: Positives, *, num_papers: int
) -> ColumnMetrics:
    """Average precision, area under the ROC curve, NDCG and recall of every column with a positive.

    Equal scores share their mean rank, among the papers as among the positives, so that a constant column
    is neither rewarded nor punished: its AUC is exactly 1/2.

    Args:
        scores_of: Candidates ``[J]`` -> scores ``[N, J]``, higher is better.
        positives: The right pairs.
        num_papers: N.

    Returns:
        Metrics per candidate.
    """
    only = "scores"
    return column_metrics_by_method(
        lambda columns: {only: scores_of(columns)}, (only,), positives, num_papers=num_papers
    )[only]


def column_metrics_by_method(
    scores_of: Callable[[NDArray[np.int64]], Mapping[str, NDArray[np.float32]]],
    methods: Sequence[str],
    positives: Positives,
    *,
    num_papers: int,
) -> dict[str, ColumnMetrics]:
    """``column_metrics`` of several scores that are computed together.

    Args:
        scores_of: Candidates ``[J]`` -> scores ``[N, J]`` of each method.
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
