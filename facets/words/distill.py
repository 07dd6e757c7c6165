"""Word vectors distilled from a sentence-transformers model, and the blend of two sets of vectors."""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from facets.errors import CheckpointError, InvalidInputError
from facets.text.vocabulary import Vocabulary
from facets.words.vectors import WordVectors, unit_rows

__all__ = ["blend", "distill", "encode_words", "reduce_dim", "remove_common"]

logger = logging.getLogger(__name__)


def distill(
    vocabulary: Vocabulary, encoder_path: str | Path, *, dim: int = 256, num_removed: int = 0
) -> WordVectors:
    """Encodes every word on its own and reduces the result to ``dim`` dimensions.

    Args:
        vocabulary: The words.
        encoder_path: Folder of a sentence-transformers model.
        dim: Dimensions wanted, at most the encoder's.
        num_removed: Leading principal components to remove (see ``remove_common``).

    Returns:
        Unit vectors ``[V, dim]``.
    """
    vectors = encode_words(vocabulary.words, encoder_path)
    return WordVectors(vocabulary, reduce_dim(remove_common(vectors, num_removed), dim))


def encode_words(
    words: Sequence[str], encoder_path: str | Path, *, batch_size: int = 512
) -> NDArray[np.float32]:
    """The encoder's embedding of every word as a text of its own, ``[V, D]``, float32.

    Raises:
        CheckpointError: The folder holds no sentence-transformers model.
    """
    try:
        model = SentenceTransformer(str(encoder_path), device="cpu", local_files_only=True)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"expected a sentence-transformers model in {encoder_path}, got: {error}") from error
    vectors: NDArray[np.float32] = model.encode(
        list(words), batch_size=batch_size, convert_to_numpy=True, show_progress_bar=False
    )
    return vectors


def remove_common(vectors: NDArray[np.floating], num_removed: int) -> NDArray[np.float32]:
    """Unit vectors less their mean and their ``num_removed`` leading principal components.

    What all words share makes them look alike; without it cosines spread over the whole range
    (Mu and Viswanath 2018, "All-but-the-top").
    """
    units = unit_rows(vectors)
    centred = units - units.mean(axis=0)
    components = _principal_axes(centred)[:num_removed]  # [R, D]
    return np.ascontiguousarray(centred - centred @ components.T @ components, dtype=np.float32)


def reduce_dim(vectors: NDArray[np.floating], dim: int) -> NDArray[np.float32]:
    """Projection on the ``dim`` leading principal axes, at unit length.

    Raises:
        InvalidInputError: ``dim`` is larger than the vectors' dimension.
    """
    if not 1 <= dim <= vectors.shape[1]:
        raise InvalidInputError(f"dim must be in [1, {vectors.shape[1]}], got {dim}")
    centred = vectors - vectors.mean(axis=0)
    return unit_rows(centred @ _principal_axes(centred)[:dim].T)


def blend(first: WordVectors, second: WordVectors, *, second_weight: float, dim: int = 256) -> WordVectors:
    """Concatenates two sets of unit vectors of the same words and reduces them to ``dim`` dimensions.

    Args:
        first: Vectors of ``V`` words.
        second: Vectors of the same words in the same order.
        second_weight: Length of the second vectors beside unit length of the first; their share of a cosine
            is the square of it.
        dim: Dimensions wanted.

    Returns:
        Unit vectors ``[V, dim]``.

    Raises:
        InvalidInputError: The vocabularies differ, or ``second_weight`` is negative.
    """
    if first.vocabulary.words != second.vocabulary.words:
        raise InvalidInputError("the vectors to blend must have the same words in the same order, got others")
    if second_weight < 0:
        raise InvalidInputError(f"second_weight must be >= 0, got {second_weight}")
    both = np.hstack([first.unit_vectors, np.float32(second_weight) * second.unit_vectors])
    return WordVectors(first.vocabulary, reduce_dim(both, dim))


def _principal_axes(centred: NDArray[np.floating]) -> NDArray[np.float64]:
    """Principal axes as rows, ``[D, D]``, the one of the largest variance first."""
    covariance = centred.astype(np.float64).T @ centred / len(centred)
    axes: NDArray[np.float64] = np.linalg.eigh(covariance)[1].T[::-1]
    # The sign of an axis is arbitrary; a fixed one makes results repeatable.
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    return axes * signs[:, None]
