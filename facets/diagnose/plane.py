"""Many vectors in a plane, so that what is alike lies together, and the themes that they belong to.

Shape letters: N vectors, D dimensions, L landmarks, T themes.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.extras import missing_modules

LANDMARKS = 3_000  # vectors that are laid out by themselves; the others follow those that they are near to
_NEAREST = 5
_INNER_DIMS = 30  # that the layout looks at
_FEWEST = 10  # with less there is nothing to lay out
_LEAST_SPREAD = 1e-4  # of unit vectors that are not all the same
_STEPS = 25  # of the layout between two looks at whether anybody waits for it


@dataclass(frozen=True, kw_only=True, slots=True)
class Plane:
    """Vectors as points, and their themes."""

    points: NDArray[np.float32]  # `[N, 2]`, float32, of any range
    themes: NDArray[np.int64]  # `[N]` theme of each, the largest theme first
    centers: NDArray[np.float32]  # `[T, D]` middle of each theme, at length 1
    # `t-SNE`; `principal components` where openTSNE is not installed, and of fewer than 10 vectors or equal ones.
    method: str


def lay_out(vectors_ND: NDArray[np.floating], *, num_themes: int, seed: int, on_step: Callable[[], None]) -> Plane:
    """Points and themes of unit vectors; the same ones give the same plane.

    Themes are clusters by cosine (k-means). Of more than 3,000 vectors a random 3,000 are laid out by t-SNE, and each
    other one stands among the five of them that it is nearest to.

    Args:
        vectors_ND: ``[N, D]``, N at least 1.
        num_themes: T at most.
        seed: Of all that is drawn.
        on_step: Called now and then; what it raises ends the work.

    References:
        Policar et al. 2024, openTSNE; Kobak and Berens 2019 for the landmarks.
    """
    vectors = np.ascontiguousarray(vectors_ND, dtype=np.float32)
    centers, themes = _themes(vectors, min(num_themes, len(vectors)), seed)
    chosen = np.sort(np.random.default_rng(seed).permutation(len(vectors))[:LANDMARKS])
    on_step()
    marks, method = _laid_out(vectors[chosen], seed, on_step)
    return Plane(points=_placed(vectors, chosen, marks), themes=themes, centers=centers, method=method)


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


def _laid_out(marks_LD: NDArray[np.float32], seed: int, on_step: Callable[[], None]) -> tuple[NDArray[np.float32], str]:
    """Landmarks in the plane."""
    centered = marks_LD - marks_LD.mean(axis=0)
    _, axes = np.linalg.eigh(centered.T @ centered)
    inner = centered @ axes[:, ::-1][:, :_INNER_DIMS]
    if len(marks_LD) < _FEWEST or inner[:, 0].std() < _LEAST_SPREAD or missing_modules("openTSNE"):
        plane = np.zeros((len(inner), 2), dtype=np.float32)
        plane[:, : inner.shape[1]] = inner[:, :2]
        return plane, "principal components"
    from openTSNE import TSNE

    def look(iteration: int, error: float, embedding: object) -> None:
        on_step()

    layout = TSNE(
        perplexity=min(30.0, (len(inner) - 1) / 3),
        neighbors="exact",
        n_iter=300,
        random_state=seed,
        callbacks=look,
        callbacks_every_iters=_STEPS,
    )
    return np.asarray(layout.fit(np.ascontiguousarray(inner)), dtype=np.float32), "t-SNE"


def _placed(
    vectors: NDArray[np.float32], chosen: NDArray[np.int64], marks_L2: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Every vector among its nearest landmarks, by how near they are; landmarks where they are."""
    points = np.empty((len(vectors), 2), dtype=np.float32)
    points[chosen] = marks_L2
    others = np.setdiff1d(np.arange(len(vectors)), chosen)
    if len(others):
        import faiss

        index = faiss.IndexFlatIP(vectors.shape[1])
        index.add(vectors[chosen])
        cosines, nearest = index.search(vectors[others], _NEAREST)
        weights = np.exp(20.0 * (cosines - cosines[:, :1]))
        points[others] = np.einsum("nk,nkd->nd", weights / weights.sum(axis=1, keepdims=True), marks_L2[nearest])
    return points
