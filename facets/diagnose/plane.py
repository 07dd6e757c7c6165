"""Lays out vectors in two dimensions, so that similar ones lie close together, and groups them by theme.

Shape letters: N vectors, D dimensions, L landmarks, T themes.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.extras import missing_modules

LANDMARKS = 3_000  # vectors laid out by t-SNE; others are placed near their nearest landmarks
_NUM_NEAREST = 5
_INNER_DIMS = 30  # principal components used by t-SNE
_MIN_VECTORS = 10  # fewer are laid out by their principal components
_MIN_SPREAD = 1e-4  # unit vectors with a smaller spread count as equal
_CALLBACK_STEPS = 25


@dataclass(frozen=True, kw_only=True, slots=True)
class Plane:
    """Two-dimensional layout of vectors, and their themes."""

    points: NDArray[np.float32]  # `[N, 2]`, any range
    themes: NDArray[np.int64]  # theme of each vector, `[N]`; theme 0 is the largest
    centers: NDArray[np.float32]  # center of each theme, `[T, D]`, unit norm
    method: str  # `t-SNE`, or `principal components` without openTSNE and for few or equal vectors


def lay_out(vectors_ND: NDArray[np.floating], *, num_themes: int, seed: int, on_step: Callable[[], None]) -> Plane:
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


def _themes(vectors: NDArray[np.float32], num_themes: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    import faiss

    clusters = faiss.Kmeans(
        vectors.shape[1], num_themes, niter=15, nredo=3, seed=seed, spherical=True, min_points_per_centroid=1
    )
    clusters.train(vectors)
    centers = np.asarray(clusters.centroids, dtype=np.float32)
    themes = (vectors @ centers.T).argmax(axis=1)
    order = np.argsort(-np.bincount(themes, minlength=num_themes), kind="stable")
    return centers[order], np.argsort(order)[themes]


def _lay_out_landmarks(
    vectors_LD: NDArray[np.float32], seed: int, on_step: Callable[[], None]
) -> tuple[NDArray[np.float32], str]:
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


def _place_all(
    vectors: NDArray[np.float32], landmarks: NDArray[np.int64], points_L2: NDArray[np.float32]
) -> NDArray[np.float32]:
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
