"""Fits word vectors to sentences: the weighted average of a sentence's words shall point where its embedding does."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from facets.errors import InvalidInputError
from facets.language.vectors import unit_rows

__all__ = ["fit_to_sentences"]


def fit_to_sentences(
    vectors: NDArray[np.floating],
    sentences: Sequence[NDArray[np.integer]],
    targets: NDArray[np.floating],
    *,
    weights: NDArray[np.floating],
    ridge: float = 0.3,
    num_steps: int = 30,
) -> NDArray[np.float32]:
    """Ridge regression of sentence embeddings on averages of word vectors, starting from given vectors.

    Solves ``min_D ||A (X + D) - T||^2 + ridge ||D||^2`` by conjugate gradients, where row ``s`` of ``A`` holds the
    weights of the words of sentence ``s``, divided by their sum; ``A X`` and ``T`` are centred, and every target gets
    the length of its sentence's average. Words that occur in no sentence stay as they are.

    Args:
        vectors: ``[V, D]``, the vectors ``X`` to start from.
        sentences: ``S`` arrays of rows of ``vectors``, none empty.
        targets: ``[S, D]``, the embeddings of the sentences in the same space.
        weights: ``[V]``, positive: how much each word counts in an average.
        ridge: What holds the vectors in place, more than 0.
        num_steps: Conjugate gradient steps.

    Returns:
        ``[V, D]``, float32, the vectors ``X + D``, not at unit length.

    Raises:
        InvalidInputError: ``ridge`` is not positive, or the shapes do not fit.
    """
    if ridge <= 0:
        raise InvalidInputError(f"ridge must be > 0, got {ridge}")
    if targets.shape != (len(sentences), vectors.shape[1]):
        raise InvalidInputError(f"targets must have shape ({len(sentences)}, {vectors.shape[1]}), got {targets.shape}")
    averaging_SV = _averaging(sentences, weights)
    averages = averaging_SV @ vectors
    averages = averages - averages.mean(axis=0)
    lengths = np.linalg.norm(averages, axis=1, keepdims=True)
    residual = unit_rows(targets - targets.mean(axis=0)) * lengths - averages
    change = _ridge(averaging_SV, residual.astype(np.float32), ridge, num_steps)
    return np.ascontiguousarray(vectors + change, dtype=np.float32)


def _averaging(sentences: Sequence[NDArray[np.integer]], weights: NDArray[np.floating]) -> csr_matrix:
    lengths = [len(rows) for rows in sentences]
    if not lengths or min(lengths) == 0:
        raise InvalidInputError("sentences must have at least one word each, got an empty one")
    values = np.concatenate([weights[rows] / weights[rows].sum() for rows in sentences]).astype(np.float32)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return csr_matrix((values, np.concatenate(sentences), starts), shape=(len(sentences), len(weights)))


def _ridge(
    averaging_SV: csr_matrix, residual_SD: NDArray[np.float32], ridge: float, num_steps: int
) -> NDArray[np.float32]:
    """Conjugate gradients on ``(A^T A + ridge) D = A^T R``, all columns of ``D`` side by side."""
    transposed_VS = averaging_SV.T.tocsr()
    left = transposed_VS @ residual_SD  # what is left of the right-hand side, [V, D]
    solution, direction = np.zeros_like(left), left.copy()
    size = (left**2).sum(axis=0)
    tiny = np.finfo(np.float32).tiny
    for _ in range(num_steps):
        image = transposed_VS @ (averaging_SV @ direction) + np.float32(ridge) * direction
        step = size / np.maximum((direction * image).sum(axis=0), tiny)
        solution += step * direction
        left -= step * image
        size, old_size = (left**2).sum(axis=0), size
        direction = left + size / np.maximum(old_size, tiny) * direction
    return np.asarray(solution, dtype=np.float32)
