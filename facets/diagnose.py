"""Diagnosis of vectors: duplicates, hubs, rank, and a layout in two dimensions.

Rows of one owner, such as the facets of one document, count as one when neighbours are counted.
Shape letters: N vectors, D dimensions, B rows at a time, O owners, W nearest owners, L landmarks, T themes.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.arrays import Floats, Ints, Vectors
from facets.errors import InvalidInputError
from facets.extras import missing_modules
from facets.language.interruption import check_interrupted
from facets.language.vectors import unit_rows

NUM_NEIGHBOURS = 10  # neighbours counted for each query
_SCORES_AT_A_TIME = 2**24
_RELATIVE_TIE = 1e-6  # scores that differ by less are equal
_MAX_DUPLICATES = 0.01  # a larger share is a finding
LANDMARKS = 3_000  # vectors laid out by t-SNE; others are placed near their nearest landmarks
_NUM_NEAREST = 5
_INNER_DIMS = 30  # principal components used by t-SNE
_MIN_VECTORS = 10  # fewer are laid out by their principal components
_MIN_SPREAD = 1e-4  # unit vectors with a smaller spread count as equal
_CALLBACK_STEPS = 25


@dataclass(frozen=True, kw_only=True, slots=True)
class Neighbours:
    """Results of searching with the rows themselves."""

    num_queries: int  # rows that are not zero
    self_first: float  # share of rows that find themselves: no row of another owner has a higher score
    unreached: float  # share of owners that are among the 10 nearest of no other query
    largest_hub: int  # number of lists of 10 nearest that contain the most frequent owner


@dataclass(frozen=True, kw_only=True, slots=True)
class VectorReport:
    """Description of a set of vectors."""

    num_rows: int  # rows that are not zero
    dim: int  # D
    num_duplicates: int  # rows that equal an earlier one of another owner bit by bit
    effective_rank: float  # exponential of the entropy of the centered singular values (Roy and Vetterli 2007)
    cosine: Neighbours  # by cosine
    findings: tuple[str, ...]  # what stands out, in sentences


def describe(rows_ND: Vectors, *, owners_N: NDArray[np.integer]) -> VectorReport:
    """Describes vectors, whose norms are ignored; ``owners_N``: owner of each row. All zero: InvalidInputError.

    Example:
        >>> report = describe(np.array([[1.0, 0.0], [0.6, 0.8], [0.6, 0.8]]), owners_N=np.arange(3))
        >>> report.num_duplicates, report.cosine.self_first
        (1, 1.0)
    """
    rows, owners = unit_rows(rows_ND.astype(np.float32)), np.asarray(owners_N, dtype=np.int64)
    is_used = rows.any(axis=1)
    if not is_used.any():
        raise InvalidInputError("has no facets: expected at least one document with words", path="rows")
    order = np.flatnonzero(is_used)[np.argsort(owners[is_used], kind="stable")]
    rows, owners = rows[order], np.unique(owners[order], return_inverse=True)[1]
    num_duplicates, findings = _duplicates(rows, owners), ["no problems found"]
    if (share := num_duplicates / len(rows)) > _MAX_DUPLICATES:
        findings = [f"{share:.1%} of the vectors are duplicates; ties among them are broken by id"]
    return VectorReport(
        num_rows=len(rows),
        dim=rows.shape[1],
        num_duplicates=num_duplicates,
        effective_rank=_effective_rank(rows),
        cosine=_neighbours(rows, owners),
        findings=tuple(findings),
    )


def _duplicates(rows: Floats, owners: Ints) -> int:
    """Number of rows that equal an earlier one of another owner."""
    bits = (rows + np.float32(0.0)).view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))  # -0 becomes 0
    group = np.unique(bits.ravel(), return_inverse=True)[1].ravel()
    pairs = np.unique(np.stack([group, owners], axis=1), axis=0)
    return int((np.bincount(pairs[:, 0]) - 1).sum())


def _effective_rank(rows: Floats) -> float:
    centered = (rows - rows.mean(axis=0)).astype(np.float64)
    values = np.sqrt(np.clip(np.linalg.eigvalsh(centered.T @ centered), 0.0, None))
    if not values.any():
        return 0.0
    shares = values[values > 0] / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def _neighbours(rows: Floats, owners: Ints) -> Neighbours:
    """Searches with each row for the nearest other owners; ``owners``: ascending from 0."""
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    num_lists = np.zeros(len(starts), dtype=np.int64)
    num_self_first, num_nearest = 0, min(NUM_NEIGHBOURS, len(starts) - 1)
    block = max(1, _SCORES_AT_A_TIME // len(rows))
    for start in range(0, len(rows), block):
        check_interrupted()
        scores_BN = rows[start : start + block] @ rows.T
        own_B = scores_BN.diagonal(start)
        scores_BO = np.maximum.reduceat(scores_BN, starts, axis=1)
        scores_BO[np.arange(len(own_B)), owners[start : start + block]] = -np.inf
        num_self_first += int((scores_BO.max(axis=1) <= own_B + _RELATIVE_TIE * np.abs(own_B)).sum())
        nearest_BW = np.argpartition(-scores_BO, num_nearest, axis=1)[:, :num_nearest]
        num_lists += np.bincount(nearest_BW.ravel(), minlength=len(starts))
    return Neighbours(
        num_queries=len(rows),
        self_first=num_self_first / len(rows),
        unreached=float((num_lists == 0).mean()),
        largest_hub=int(num_lists.max()),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Plane:
    """Two-dimensional layout of vectors, and their themes."""

    points: Floats  # `[N, 2]`, any range
    themes: Ints  # theme of each vector, `[N]`; theme 0 is the largest
    centers: Floats  # center of each theme, `[T, D]`, unit norm
    method: str  # `t-SNE`, or `principal components` without openTSNE and for few or equal vectors


def lay_out(vectors_ND: Vectors, *, num_themes: int, seed: int, on_step: Callable[[], None]) -> Plane:
    """Lays out at least one unit vector by t-SNE and finds at most ``num_themes`` by spherical k-means; deterministic.

    Of more than 3,000 vectors, a random 3,000 are laid out, and each of the others is placed among its five nearest.
    ``on_step``: called repeatedly; ends the work by raising. See Policar et al. 2024, openTSNE, and Kobak and Berens
    2019 for the landmarks.
    """
    vectors = np.ascontiguousarray(vectors_ND, dtype=np.float32)
    centers, themes = _themes(vectors, min(num_themes, len(vectors)), seed)
    landmarks = np.sort(np.random.default_rng(seed).permutation(len(vectors))[:LANDMARKS])
    on_step()
    points_L2, method = _lay_out_landmarks(vectors[landmarks], seed, on_step)
    return Plane(points=_place_all(vectors, landmarks, points_L2), themes=themes, centers=centers, method=method)


def _themes(vectors: Floats, num_themes: int, seed: int) -> tuple[Floats, Ints]:
    import faiss

    clusters = faiss.Kmeans(
        vectors.shape[1], num_themes, niter=15, nredo=3, seed=seed, spherical=True, min_points_per_centroid=1
    )
    clusters.train(vectors)
    centers = np.asarray(clusters.centroids, dtype=np.float32)
    themes = (vectors @ centers.T).argmax(axis=1)
    order = np.argsort(-np.bincount(themes, minlength=num_themes), kind="stable")
    return centers[order], np.argsort(order)[themes]


def _lay_out_landmarks(vectors_LD: Floats, seed: int, on_step: Callable[[], None]) -> tuple[Floats, str]:
    centered = vectors_LD - vectors_LD.mean(axis=0)
    _, axes = np.linalg.eigh(centered.T @ centered)
    inner = centered @ axes[:, ::-1][:, :_INNER_DIMS]
    if len(vectors_LD) < _MIN_VECTORS or inner[:, 0].std() < _MIN_SPREAD or missing_modules("openTSNE"):
        points = np.zeros((len(inner), 2), dtype=np.float32)
        points[:, : inner.shape[1]] = inner[:, :2]
        return points, "principal components"
    from openTSNE import TSNE

    def callback(iteration: int, error: float, embedding: object) -> None:
        on_step()

    layout = TSNE(
        perplexity=min(30.0, (len(inner) - 1) / 3),
        neighbors="exact",
        n_iter=300,
        random_state=seed,
        callbacks=callback,
        callbacks_every_iters=_CALLBACK_STEPS,
    )
    return np.asarray(layout.fit(np.ascontiguousarray(inner)), dtype=np.float32), "t-SNE"


def _place_all(vectors: Floats, landmarks: Ints, points_L2: Floats) -> Floats:
    """Places every other vector among its nearest landmarks, weighted by similarity."""
    points = np.empty((len(vectors), 2), dtype=np.float32)
    points[landmarks] = points_L2
    others = np.setdiff1d(np.arange(len(vectors)), landmarks)
    if len(others):
        import faiss

        index = faiss.IndexFlatIP(vectors.shape[1])
        index.add(vectors[landmarks])
        cosines, nearest = index.search(vectors[others], _NUM_NEAREST)
        weights = np.exp(20.0 * (cosines - cosines[:, :1]))
        points[others] = np.einsum("nk,nkd->nd", weights / weights.sum(axis=1, keepdims=True), points_L2[nearest])
    return points
