"""Which rows of a matrix can be ranked first at all, when ranking goes by the inner product.

A row inside the convex hull of the others is first for no query whatever (stolen probability, Demeter et al. 2020).
Most rows are cleared by a query that ranks them first; for the rest a linear program, grown by the rows it violates,
either finds such a query or proves that the row is a mixture of others.

Shape letters: N rows, D dimensions, P rows that are looked at, A other rows in a program.
"""

import time
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError
from facets.language.interruption import check_interrupted

_BLOCK = 512  # rows compared with all others at a time
_PERCEPTRON_STEPS = 20
_SAFE_MARGIN = 1e-5  # of single-precision products, of the length of the query times that of the longest row
_MARGIN = 1e-9  # the same of double-precision ones
_CLOSE = 1e-7  # so near to the hull of others, as a share of the longest row, a row counts as inside
_FIRST_ROWS = 64  # others in a program to begin with, for each dimension 0.25 more
_MORE_ROWS = 64  # that each round adds


class Reach(IntEnum):
    """What is known of a row."""

    UNDECIDED = 0  # the time was over before anything was proved
    VERTEX = 1  # a query is known that ranks it first, above all others
    INTERIOR = -1  # proved to lie in the hull of others: at best level with them


@dataclass(frozen=True, kw_only=True, slots=True)
class HullReport:
    """Which rows some query ranks first."""

    reach: NDArray[np.int8]  # `[N]` int8, values of `Reach`
    # `[N]`: of a vertex, by how much its query ranks it above the next one, for a query of length 1 and as a share of
    # the longest row; of an interior row its distance from a mixture of others, as such a share; else NaN.
    margins: NDArray[np.float64]
    # `[N, D]`: of a vertex its query, of length 1; else zeros. Given a bias, the query's own length matters: then it is
    # kept as found.
    queries: NDArray[np.float64]
    num_by_probe: int  # vertices found by taking the row itself as the query
    num_by_perceptron: int  # those found by correcting that query
    num_by_program: int  # rows that a linear program decided

    def num(self, reach: Reach) -> int:
        """How many rows are so."""
        return int((self.reach == reach).sum())


def certify(
    rows_ND: NDArray[np.floating],
    *,
    owners_N: NDArray[np.integer] | None = None,
    bias_N: NDArray[np.floating] | None = None,
    budget_s: float | None = None,
) -> HullReport:
    """Proves of every row whether some query ranks it first by ``x . row + bias``.

    Args:
        rows_ND: ``[N, D]``, finite.
        owners_N: ``[N]``: rows of one owner, facets of one document, do not stand in each other's way: a document can
            be first when one of its rows is a vertex. None: every row is its own.
        bias_N: ``[N]`` added to the products; None: nothing.
        budget_s: About so many seconds; what is open then stays undecided. None: as long as it takes.

    Raises:
        InvalidInputError: No rows, values that are not finite, arrays that do not belong together.

    References:
        Demeter et al. 2020, Stolen Probability.

    Example:
        >>> report = certify(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0], [0.0, 0.1]]))
        >>> report.reach.tolist()
        [1, 1, 1, -1]
    """
    problem = _Problem(*_checked(rows_ND, owners_N, bias_N))
    until = time.monotonic() + (np.inf if budget_s is None else budget_s)
    num_rows = len(problem.rows)
    left_P = np.arange(num_rows)
    hard_P = problem.probe(left_P)
    num_by_probe = num_rows - len(hard_P)
    harder_P, violators = problem.correct(hard_P, until)
    num_by_program = 0
    for row, first in zip(harder_P.tolist(), violators, strict=True):
        check_interrupted()
        if time.monotonic() > until:
            break
        num_by_program += problem.solve(row, first)
    return HullReport(
        reach=problem.reach,
        margins=problem.margins,
        queries=problem.queries,
        num_by_probe=num_by_probe,
        num_by_perceptron=len(hard_P) - len(harder_P),
        num_by_program=num_by_program,
    )


def _checked(
    rows_ND: NDArray[np.floating], owners_N: NDArray[np.integer] | None, bias_N: NDArray[np.floating] | None
) -> tuple[NDArray[np.float64], NDArray[np.int64], bool]:
    rows = np.asarray(rows_ND, dtype=np.float64)
    if rows.ndim != 2 or not rows.size:
        raise InvalidInputError(
            f"has shape {list(rows.shape)}, expected [rows, dimensions], none of them 0", path="rows"
        )
    if not np.isfinite(rows).all():
        row = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise InvalidInputError("has NaN or infinite values: expected finite ones", path=("rows", row))
    owners = np.arange(len(rows)) if owners_N is None else np.asarray(owners_N, dtype=np.int64)
    for name, given in (("owners", owners), ("bias", bias_N)):
        if given is not None and np.shape(given) != (len(rows),):
            raise InvalidInputError(f"has shape {list(np.shape(given))}, expected [{len(rows)}]", path=name)
    if bias_N is None:
        return rows, owners, False
    bias = np.asarray(bias_N, dtype=np.float64)
    if not np.isfinite(bias).all():
        raise InvalidInputError("has NaN or infinite values: expected finite ones", path="bias")
    return np.concatenate([rows, bias[:, None]], axis=1), owners, True


class _Problem:
    """The rows about their mean, the longest of length 1, and what is known of each.

    A bias is one more dimension, in which a query must not be negative: where it is 0, a little more changes no order.
    """

    def __init__(self, rows: NDArray[np.float64], owners: NDArray[np.int64], has_bias: bool) -> None:
        centred = rows - rows.mean(axis=0)  # moves all scores of a query alike
        self.rows = centred / (np.linalg.norm(centred, axis=1).max() or 1.0)
        self._single = self.rows.astype(np.float32)
        self._owners = owners
        self._has_bias = has_bias
        self.reach = np.zeros(len(rows), dtype=np.int8)
        self.margins = np.full(len(rows), np.nan)
        self._dim = rows.shape[1] - has_bias
        self.queries = np.zeros((len(rows), self._dim))

    def _allowed(self, queries: NDArray[np.float64]) -> NDArray[np.float64]:
        """Queries that a caller could ask."""
        if self._has_bias:
            queries[:, -1] = np.maximum(queries[:, -1], 0.0)
        return queries

    def _meet(self, places_P: NDArray[np.int64], queries_PD: NDArray[np.float64]) -> NDArray[np.int64]:
        """Settles the rows that are ahead of all others; returns which other is best for each query."""
        scores_PN = queries_PD.astype(np.float32) @ self._single.T
        own_P = scores_PN[np.arange(len(places_P)), places_P].astype(np.float64)
        scores_PN[self._owners[places_P][:, None] == self._owners[None]] = -np.inf
        best_P = scores_PN.argmax(axis=1)
        ahead_P = own_P - scores_PN[np.arange(len(places_P)), best_P]
        lengths_P = np.linalg.norm(queries_PD, axis=1)
        for place in np.flatnonzero(ahead_P > _SAFE_MARGIN * lengths_P).tolist():
            self._found(int(places_P[place]), queries_PD[place], float(ahead_P[place]))
        return best_P

    def _found(self, row: int, query_D: NDArray[np.float64], ahead: float) -> None:
        query_D = query_D.copy()
        if self._has_bias:
            query_D[-1] = max(query_D[-1], 1e-12)
            query_D = query_D[:-1] / query_D[-1]
            length = 1.0
        else:
            length = float(np.linalg.norm(query_D)) or 1.0
        self.reach[row] = Reach.VERTEX
        self.margins[row] = ahead / length
        self.queries[row] = query_D / length

    def probe(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Takes each row as the query for itself; returns those that are not first."""
        for start in range(0, len(places), _BLOCK):
            check_interrupted()
            some = places[start : start + _BLOCK]
            self._meet(some, self._allowed(self.rows[some].copy()))
        return places[self.reach[places] == Reach.UNDECIDED]

    def correct(self, places: NDArray[np.int64], until: float) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
        """Turns each query away from whoever is ahead (a perceptron); returns rows still behind, and who was ahead."""
        left: list[int] = []
        ahead_of: list[NDArray[np.int64]] = []
        for start in range(0, len(places), _BLOCK):
            some = places[start : start + _BLOCK]
            queries = self._allowed(self.rows[some].copy())
            seen: list[NDArray[np.int64]] = []
            for _ in range(_PERCEPTRON_STEPS):
                check_interrupted()
                best = self._meet(some, queries)
                open_ = self.reach[some] == Reach.UNDECIDED
                seen.append(best)
                if not open_.any() or time.monotonic() > until:
                    break
                turned = queries + self.rows[some] - self.rows[best]
                queries = np.where(open_[:, None], self._allowed(turned), queries)
            violators = np.stack(seen, axis=1)
            for place in np.flatnonzero(self.reach[some] == Reach.UNDECIDED).tolist():
                left.append(int(some[place]))
                ahead_of.append(np.unique(violators[place]))
        return np.array(left, dtype=np.int64), ahead_of

    def solve(self, row: int, first_A: NDArray[np.int64]) -> bool:
        """Decides a row by linear programs over some of the others, until all agree; False where they fail."""
        others = np.flatnonzero(self._owners != self._owners[row])
        if not len(others):
            self._found(row, self.rows[row] if self.rows[row].any() else np.eye(len(self.rows[row]))[0], np.inf)
            return True
        differences = self.rows[row] - self.rows[others]  # [M, D]
        near = np.argsort((differences * differences).sum(axis=1), kind="stable")
        count = _FIRST_ROWS + self.rows.shape[1] // 4
        active = np.union1d(near[:count], np.searchsorted(others, first_A[self._owners[first_A] != self._owners[row]]))
        while True:
            check_interrupted()
            query, ahead = self._program(differences[active])
            if query is None:
                return False
            if ahead <= _CLOSE:
                self.reach[row], self.margins[row] = Reach.INTERIOR, max(0.0, ahead)
                return True
            margins = differences @ query
            if margins.min() > _MARGIN * np.linalg.norm(query):
                self._found(row, query, float(margins.min()))
                return True
            worst = np.argpartition(margins, min(_MORE_ROWS, len(margins) - 1))[:_MORE_ROWS]
            more = np.union1d(active, worst[margins[worst] < ahead])
            if len(more) == len(active):
                return False  # nothing new to learn: the numbers end here
            active = more

    def _program(self, differences_AD: NDArray[np.float64]) -> tuple[NDArray[np.float64] | None, float]:
        """The query in the unit cube that is ahead of the given others by the most, and by how much.

        By duality that is the distance, in the sum of absolute differences, from the row to the hull of these others.
        """
        from scipy.optimize import linprog  # 36 MB that a server may never need

        dim = differences_AD.shape[1]
        bounds = [(-1.0, 1.0)] * dim + [(0.0, None)]
        if self._has_bias:
            bounds[dim - 1] = (0.0, 1.0)
        ahead = np.zeros(dim + 1)
        ahead[-1] = -1.0
        constraints = np.concatenate([-differences_AD, np.ones((len(differences_AD), 1))], axis=1)
        tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
        solved = linprog(
            ahead, A_ub=constraints, b_ub=np.zeros(len(constraints)), bounds=bounds, method="highs", options=tight
        )
        if solved.x is None:
            return None, np.nan
        return solved.x[:-1], float(solved.x[-1])
