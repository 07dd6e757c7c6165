"""What can be told of vectors by looking at them: duplicates, hubs, rank.

Rows are vectors; those of one owner, facets of one document, count as one where neighbours are counted.

Shape letters: N rows, D dimensions, P rows taken as queries, B of them at a time.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError
from facets.language.interruption import check_interrupted

NEIGHBOURS = 10  # of each query, that are counted
_PRODUCTS = 4e11  # multiplications of single precision that the queries may cost: some seconds
_SCORES = 2**24  # in memory at a time
_LEVEL = 1e-6  # so little more, as a share of the score, is no more
_SPECTRUM_ROWS = 20_000  # the rank of so many rows stands for that of all


@dataclass(frozen=True, kw_only=True, slots=True)
class Neighbours:
    """What comes of asking with the rows themselves."""

    # P rows that were asked with; fewer than all are a random sample, and then the next three are of it.
    num_queries: int
    self_first: float  # share of them that find themselves: no row of another owner has a higher score
    # Share of owners that are among the nearest 10 of nobody else's query. With a sample it is larger than with all.
    unreached: float
    largest_hub: int  # in how many of the lists of 10 the most frequent owner is
    hub: int  # which owner that is
    # Of the number of lists that an owner is in: 0 is even, above 1 a few are everywhere (Radovanovic et al. 2010).
    skewness: float


@dataclass(frozen=True, kw_only=True, slots=True)
class VectorReport:
    """A set of vectors described."""

    num_rows: int  # N
    num_owners: int  # documents
    dim: int  # D
    num_zero: int  # rows of zeros; they take no further part
    num_duplicates: int  # rows that equal an earlier one of another owner bit by bit
    largest_duplicate: int  # rows of the largest such group
    effective_rank: float  # exponential of the entropy of the singular values, about the mean (Roy and Vetterli 2007)
    epsilon_rank: int  # singular values above 1 % of the largest one
    dot: Neighbours  # neighbours by inner product
    cosine: Neighbours  # neighbours by cosine
    findings: tuple[str, ...]  # what that says, in sentences


def describe(
    rows_ND: NDArray[np.floating], *, owners_N: NDArray[np.integer] | None = None, seed: int = 1
) -> VectorReport:
    """Describes vectors.

    Args:
        rows_ND: ``[N, D]``, finite.
        owners_N: ``[N]`` which document each belongs to; None: each is its own.
        seed: Of the sample, where not all rows are asked with.

    Raises:
        InvalidInputError: No row that is not zero, values that are not finite, arrays that do not belong together.

    Example:
        >>> report = describe(np.array([[3.0, 0.0], [1.0, 0.1], [0.0, 1.0]]))
        >>> report.dot.self_first < report.cosine.self_first
        True
    """
    rows = np.ascontiguousarray(rows_ND, dtype=np.float32)
    owners = owners_of(rows, owners_N)
    norms = np.linalg.norm(rows, axis=1)
    there = norms > 0
    if not there.any():
        raise InvalidInputError("has zeros alone: nothing can be told", path="rows")
    kept, kept_owners = rows[there], np.unique(owners[there], return_inverse=True)[1]
    num_duplicates, largest = _duplicates(kept, kept_owners)
    effective_rank, epsilon_rank = _ranks(kept, seed)
    dot = _neighbours(kept, kept_owners, seed)
    is_unit = bool(np.abs(norms[there] - 1.0).max() < _LEVEL)
    cosine = dot if is_unit else _neighbours(kept / norms[there, None], kept_owners, seed)
    return VectorReport(
        num_rows=len(rows),
        num_owners=len(np.unique(owners)),
        dim=rows.shape[1],
        num_zero=int((~there).sum()),
        num_duplicates=num_duplicates,
        largest_duplicate=largest,
        effective_rank=effective_rank,
        epsilon_rank=epsilon_rank,
        dot=dot,
        cosine=cosine,
        findings=_findings(dot, cosine, num_duplicates / len(kept)),
    )


def owners_of(
    rows: NDArray[np.floating], owners_N: NDArray[np.integer] | None, *others: tuple[str, NDArray[np.floating] | None]
) -> NDArray[np.int64]:
    """The owner of each row, itself where nobody says; rows, owners and other arrays, by name, must fit each other.

    Raises:
        InvalidInputError: They do not, or rows are no matrix of finite numbers.
    """
    if rows.ndim != 2 or not rows.size:
        raise InvalidInputError(
            f"has shape {list(rows.shape)}, expected [rows, dimensions], none of them 0", path="rows"
        )
    if not np.isfinite(rows).all():
        where = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise InvalidInputError("has NaN or infinite values: expected finite ones", path=("rows", where))
    owners = np.arange(len(rows)) if owners_N is None else np.asarray(owners_N, dtype=np.int64)
    for name, given in (("owners", owners), *others):
        if given is not None and np.shape(given) != (len(rows),):
            raise InvalidInputError(f"has shape {list(np.shape(given))}, expected [{len(rows)}]", path=name)
    return owners


def _duplicates(rows: NDArray[np.float32], owners: NDArray[np.int64]) -> tuple[int, int]:
    """Rows that equal an earlier one of another owner, and the owners of the largest group of equal rows."""
    bits = (rows + np.float32(0.0)).view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))  # -0 is 0
    group = np.unique(bits.ravel(), return_inverse=True)[1].ravel()
    pairs = np.unique(np.stack([group, owners], axis=1), axis=0)
    sizes = np.bincount(pairs[:, 0])
    return int((sizes - 1).sum()), int(sizes.max()) if sizes.max() > 1 else 0


def _ranks(rows: NDArray[np.float32], seed: int) -> tuple[float, int]:
    if len(rows) > _SPECTRUM_ROWS:
        rows = rows[np.random.default_rng(seed).choice(len(rows), _SPECTRUM_ROWS, replace=False)]
    centred = (rows - rows.mean(axis=0)).astype(np.float64)
    values = np.sqrt(np.clip(np.linalg.eigvalsh(centred.T @ centred), 0.0, None))
    if not values.any():
        return 0.0, 0
    shares = values[values > 0] / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum())), int((values > 0.01 * values.max()).sum())


def _neighbours(rows: NDArray[np.float32], owners: NDArray[np.int64], seed: int) -> Neighbours:
    num_owners = int(owners.max()) + 1
    num_queries = int(min(len(rows), max(100, _PRODUCTS / rows.size)))
    queries = np.arange(len(rows))
    if num_queries < len(rows):
        queries = np.sort(np.random.default_rng(seed).choice(len(rows), num_queries, replace=False))
    lists = np.zeros(num_owners, dtype=np.int64)
    num_found = 0
    block = max(1, _SCORES // len(rows))
    for start in range(0, len(queries), block):
        check_interrupted()
        some = queries[start : start + block]
        scores_BN = rows[some] @ rows.T
        own_B = scores_BN[np.arange(len(some)), some].copy()
        scores_BN[owners[some][:, None] == owners[None]] = -np.inf
        num_found += int((scores_BN.max(axis=1) <= own_B + _LEVEL * np.abs(own_B)).sum())
        lists += np.bincount(_nearest_owners(scores_BN, owners), minlength=num_owners)
    deviation = lists.std()
    return Neighbours(
        num_queries=len(queries),
        self_first=num_found / len(queries),
        unreached=float((lists == 0).mean()),
        largest_hub=int(lists.max()),
        hub=int(lists.argmax()),
        skewness=float((((lists - lists.mean()) / deviation) ** 3).mean()) if deviation > 0 else 0.0,
    )


def _nearest_owners(scores_BN: NDArray[np.float32], owners_N: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of each query, the first ``NEIGHBOURS`` different owners, one query after another."""
    width = min(scores_BN.shape[1], NEIGHBOURS * (1 if len(np.unique(owners_N)) == len(owners_N) else 8))
    best_BW = np.argpartition(-scores_BN, width - 1, axis=1)[:, :width]
    found_BW = np.take_along_axis(scores_BN, best_BW, axis=1)
    order_BW = np.argsort(-found_BW, axis=1, kind="stable")
    lines = []
    for best, found, order in zip(best_BW, found_BW, order_BW, strict=True):
        ranked = owners_N[best[order][np.isfinite(found[order])]]
        firsts = np.sort(np.unique(ranked, return_index=True)[1])[:NEIGHBOURS]
        lines.append(ranked[firsts])
    return np.concatenate(lines)


def _findings(dot: Neighbours, cosine: Neighbours, duplicates: float) -> tuple[str, ...]:
    found = []
    if duplicates > 0.01:
        found.append(f"{duplicates:.1%} of the vectors are duplicates: ties among them are broken by id")
    if cosine.self_first - dot.self_first > 0.05:
        found.append(
            f"rank by cosine: by inner product {dot.self_first:.1%} of the vectors find themselves, by cosine "
            f"{cosine.self_first:.1%}"
        )
    if dot.unreached - cosine.unreached > 0.05:
        found.append(f"by inner product {dot.unreached:.1%} are near nobody, by cosine {cosine.unreached:.1%}")
    return tuple(found) or ("nothing stands out",)
