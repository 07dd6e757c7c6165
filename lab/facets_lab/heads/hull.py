"""Words that no state ranks first: rows inside the convex hull of the others (stolen probability, Demeter et al. 2020).

Shape suffixes: N rows, D dimensions, P candidate rows.
"""

import time

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

_BLOCK = 512  # rows compared with all others at a time
_CORRECTIONS = 20
_SAFE_MARGIN = 1e-9  # of products, relative to the length of the query
_CLOSE = 1e-7  # a row this close to the hull counts as inside, relative to the longest row
_FIRST, _MORE = 64, 64  # other rows in the first linear program, and those that a round adds
_TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def interior(rows_ND: NDArray[np.floating], *, budget_s: float = np.inf) -> NDArray[np.bool_]:
    """Whether a linear program proves that a row lies in the hull of the others, ``[N]``.

    After ``budget_s`` seconds the remaining rows count as outside.

    Example:
        >>> interior(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0], [0.0, 0.1]])).tolist()
        [False, False, False, True]
    """
    until = time.monotonic() + budget_s
    rows = rows_ND.astype(np.float64) - rows_ND.mean(axis=0, dtype=np.float64)
    rows /= np.linalg.norm(rows, axis=1).max() or 1.0
    result = np.zeros(len(rows), dtype=bool)
    for start in range(0, len(rows), _BLOCK):
        for row in _never_first(rows, np.arange(start, min(start + _BLOCK, len(rows)))).tolist():
            if time.monotonic() > until:
                return result
            result[row] = _is_inside(rows, row)
    return result


def _never_first(rows_ND: NDArray[np.float64], places_P: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows that rank first neither for themselves as the query nor for a perceptron's corrections of it."""
    queries_PD = rows_ND[places_P]
    for _ in range(1 + _CORRECTIONS):
        scores_PN = queries_PD @ rows_ND.T
        own_P = scores_PN[np.arange(len(places_P)), places_P].copy()
        scores_PN[np.arange(len(places_P)), places_P] = -np.inf
        best_P = scores_PN.argmax(axis=1)
        is_behind_P = own_P - scores_PN.max(axis=1) <= _SAFE_MARGIN * np.linalg.norm(queries_PD, axis=1)
        places_P, best_P = places_P[is_behind_P], best_P[is_behind_P]
        queries_PD = queries_PD[is_behind_P] + rows_ND[places_P] - rows_ND[best_P]
        if not len(places_P):
            break
    return places_P


def _is_inside(rows_ND: NDArray[np.float64], row: int) -> bool:
    """Solves linear programs over some of the other rows; each round adds the rows that its query does not beat."""
    differences = rows_ND[row] - np.delete(rows_ND, row, axis=0)
    dim = differences.shape[1]
    active = np.argsort((differences**2).sum(axis=1))[: _FIRST + dim // 4]
    while True:
        constraints = np.concatenate([-differences[active], np.ones((len(active), 1))], axis=1)
        # Maximizes the smallest lead of a query in the unit cube: 0 exactly if the row is in the hull.
        solved = linprog(
            np.append(np.zeros(dim), -1.0),
            A_ub=constraints,
            b_ub=np.zeros(len(active)),
            bounds=[(-1.0, 1.0)] * dim + [(0.0, None)],
            options=_TOLERANCES,
        )
        if solved.x is None:
            return False
        query, lead = solved.x[:-1], solved.x[-1]
        if lead <= _CLOSE:
            return True
        leads = differences @ query
        worst = np.argsort(leads)[:_MORE]
        more = np.union1d(active, worst[leads[worst] < lead])
        if len(more) == len(active) or leads.min() > _SAFE_MARGIN * np.linalg.norm(query):
            return False
        active = more
