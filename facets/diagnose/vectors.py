"""Describes a set of vectors: duplicates, hubs, rank.

Rows are vectors; rows of one owner, such as the facets of one document, count as one when neighbours are counted.

Shape letters: N rows, D dimensions, P rows used as queries, B of them at a time, W nearest rows.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError
from facets.language.interruption import check_interrupted
from facets.language.vectors import unit_rows

NUM_NEIGHBOURS = 10  # neighbours counted for each query
_MAX_PRODUCTS = 4e11  # single-precision multiplications for the queries: a few seconds
_SCORES_AT_A_TIME = 2**24
_RELATIVE_TIE = 1e-6  # scores that differ by less are equal
_MAX_DUPLICATES = 0.01  # a larger share is a finding
_MAX_SPECTRUM_ROWS = 20_000  # sample from which the rank is computed


@dataclass(frozen=True, kw_only=True, slots=True)
class Neighbours:
    """Results of searching with the rows themselves."""

    num_queries: int  # P; fewer than all rows are a random sample, and the next numbers are for the sample
    self_first: float  # share of rows that find themselves: no row of another owner has a higher score
    unreached: float  # share of owners that are among the 10 nearest of no other query; larger for a sample
    largest_hub: int  # number of lists of 10 nearest that contain the most frequent owner


@dataclass(frozen=True, kw_only=True, slots=True)
class VectorReport:
    """Description of a set of vectors."""

    num_rows: int  # N
    dim: int  # D
    num_duplicates: int  # rows that equal an earlier one of another owner bit by bit
    effective_rank: float  # exponential of the entropy of the centered singular values (Roy and Vetterli 2007)
    cosine: Neighbours  # by cosine
    findings: tuple[str, ...]  # what stands out, in sentences


def describe(rows_ND: NDArray[np.floating], *, owners_N: NDArray[np.integer]) -> VectorReport:
    """Describes vectors, whose norms are ignored; ``owners_N``: owner of each row.

    Raises:
        InvalidInputError: All rows are zero.

    Example:
        >>> report = describe(np.array([[1.0, 0.0], [0.6, 0.8], [0.6, 0.8]]), owners_N=np.arange(3))
        >>> report.num_duplicates, report.cosine.self_first
        (1, 1.0)
    """
    rows, owners = unit_rows(rows_ND.astype(np.float32)), np.asarray(owners_N, dtype=np.int64)
    is_used = rows.any(axis=1)
    if not is_used.any():
        raise InvalidInputError("has no facets: expected at least one document with words", path="rows")
    used, used_owners = rows[is_used], np.unique(owners[is_used], return_inverse=True)[1]
    num_duplicates, findings = _duplicates(used, used_owners), ["no problems found"]
    if (share := num_duplicates / len(used)) > _MAX_DUPLICATES:
        findings = [f"{share:.1%} of the vectors are duplicates; ties among them are broken by id"]
    return VectorReport(
        num_rows=len(rows),
        dim=rows.shape[1],
        num_duplicates=num_duplicates,
        effective_rank=_effective_rank(used),
        cosine=_neighbours(used, used_owners),
        findings=tuple(findings),
    )


def _duplicates(rows: NDArray[np.float32], owners: NDArray[np.int64]) -> int:
    """Number of rows that equal an earlier one of another owner."""
    bits = (rows + np.float32(0.0)).view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))  # -0 becomes 0
    group = np.unique(bits.ravel(), return_inverse=True)[1].ravel()
    pairs = np.unique(np.stack([group, owners], axis=1), axis=0)
    return int((np.bincount(pairs[:, 0]) - 1).sum())


def _effective_rank(rows: NDArray[np.float32]) -> float:
    if len(rows) > _MAX_SPECTRUM_ROWS:
        rows = rows[np.random.default_rng(1).choice(len(rows), _MAX_SPECTRUM_ROWS, replace=False)]
    centered = (rows - rows.mean(axis=0)).astype(np.float64)
    values = np.sqrt(np.clip(np.linalg.eigvalsh(centered.T @ centered), 0.0, None))
    if not values.any():
        return 0.0
    shares = values[values > 0] / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def _neighbours(rows: NDArray[np.float32], owners: NDArray[np.int64]) -> Neighbours:
    num_owners = int(owners.max()) + 1
    num_queries = int(min(len(rows), max(100, _MAX_PRODUCTS / rows.size)))
    queries = np.arange(len(rows))
    if num_queries < len(rows):
        queries = np.sort(np.random.default_rng(1).choice(len(rows), num_queries, replace=False))
    num_lists = np.zeros(num_owners, dtype=np.int64)
    num_self_first = 0
    block = max(1, _SCORES_AT_A_TIME // len(rows))
    for start in range(0, len(queries), block):
        check_interrupted()
        some = queries[start : start + block]
        scores_BN = rows[some] @ rows.T
        own_B = scores_BN[np.arange(len(some)), some].copy()
        scores_BN[owners[some][:, None] == owners[None]] = -np.inf
        num_self_first += int((scores_BN.max(axis=1) <= own_B + _RELATIVE_TIE * np.abs(own_B)).sum())
        num_lists += np.bincount(_nearest_owners(scores_BN, owners), minlength=num_owners)
    return Neighbours(
        num_queries=len(queries),
        self_first=num_self_first / len(queries),
        unreached=float((num_lists == 0).mean()),
        largest_hub=int(num_lists.max()),
    )


def _nearest_owners(scores_BN: NDArray[np.float32], owners_N: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first ``NUM_NEIGHBOURS`` different owners of each query, concatenated."""
    num_rows_each = 1 if len(np.unique(owners_N)) == len(owners_N) else 8
    width = min(scores_BN.shape[1], NUM_NEIGHBOURS * num_rows_each)
    best_BW = np.argpartition(-scores_BN, width - 1, axis=1)[:, :width]
    scores_BW = np.take_along_axis(scores_BN, best_BW, axis=1)
    order_BW = np.argsort(-scores_BW, axis=1, kind="stable")
    nearest = []
    for best, scores, order in zip(best_BW, scores_BW, order_BW, strict=True):
        ranked = owners_N[best[order][np.isfinite(scores[order])]]
        firsts = np.sort(np.unique(ranked, return_index=True)[1])[:NUM_NEIGHBOURS]
        nearest.append(ranked[firsts])
    return np.concatenate(nearest)
