"""Turning and joining spaces of word vectors: what all words share removed, dimensions reduced, two spaces blended."""

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError
from facets.language.vectors import WordVectors, unit_rows


def remove_common(vectors: NDArray[np.floating], num_removed: int) -> NDArray[np.float32]:
    """Unit vectors less their mean and their ``num_removed`` leading principal components.

    What all words share makes them look alike; without it cosines spread over the whole range
    (Mu and Viswanath 2018, "All-but-the-top").

    Args:
        vectors: ``[V, D]``.
        num_removed: From 0 (the mean only) to ``D``.

    Returns:
        ``[V, D]``, float32, not at unit length.
    """
    units = unit_rows(vectors)
    centred = units - units.mean(axis=0)
    axes = principal_axes(centred)[:num_removed]  # [R, D]
    return np.ascontiguousarray(centred - centred @ axes.T @ axes, dtype=np.float32)


def reduce_dim(vectors: NDArray[np.floating], dim: int) -> NDArray[np.float32]:
    """Projection of the centred vectors on their ``dim`` leading principal axes, ``[V, dim]``, at unit length.

    Raises:
        InvalidInputError: ``dim`` is larger than the vectors' dimension.
    """
    if not 1 <= dim <= vectors.shape[1]:
        raise InvalidInputError(f"dim must be in [1, {vectors.shape[1]}], got {dim}")
    centred = vectors - vectors.mean(axis=0)
    return unit_rows(centred @ principal_axes(centred)[:dim].T)


def blend(first: WordVectors, second: WordVectors, *, second_weight: float, dim: int = 256) -> WordVectors:
    """Concatenates two sets of unit vectors of the same words and reduces them to ``dim`` dimensions.

    Args:
        first: Vectors of ``V`` words.
        second: Vectors of the same words in the same order.
        second_weight: Length of the second vectors beside unit length of the first, at least 0; a cosine is
            then the average of both spaces' cosines with weights 1 and ``second_weight ** 2``.
        dim: Dimensions wanted.

    Returns:
        Unit vectors ``[V, dim]``.

    Raises:
        InvalidInputError: The vocabularies differ, ``second_weight`` is negative, or ``dim`` is too large.
    """
    if first.vocabulary.words != second.vocabulary.words:
        raise InvalidInputError("the vectors to blend must have the same words in the same order, got others")
    if second_weight < 0:
        raise InvalidInputError(f"second_weight must be >= 0, got {second_weight}")
    both = np.hstack([first.unit_vectors, np.float32(second_weight) * second.unit_vectors])
    return WordVectors(first.vocabulary, reduce_dim(both, dim))


def principal_axes(centred: NDArray[np.floating]) -> NDArray[np.float32]:
    """Principal axes of centred vectors as rows, ``[D, D]``, the one of the largest variance first."""
    covariance = centred.astype(np.float64).T @ centred / len(centred)
    axes = np.linalg.eigh(covariance)[1].T[::-1]
    # The sign of an axis is arbitrary; a fixed one makes results repeatable.
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    return np.ascontiguousarray(axes * signs[:, None], dtype=np.float32)
