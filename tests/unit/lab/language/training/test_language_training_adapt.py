"""Post-processing, blending, and fitting to sentences."""

import numpy as np
import pytest
from facets_lab.language.training.adapt import fit_to_sentences
from numpy.testing import assert_allclose

from facets.errors import InvalidInputError
from facets.language.postprocess import blend, principal_axes, reduce_dim, remove_common
from facets.language.vectors import WordVectors, unit_rows
from facets.language.vocabulary import Vocabulary


@pytest.fixture
def vectors() -> np.ndarray:
    random = np.random.default_rng(7)
    common = 5 * random.normal(size=(1, 12)) + 3 * random.normal(size=(60, 1)) * random.normal(size=(1, 12))
    return (random.normal(size=(60, 12)) + common).astype(np.float32)


def test_principal_axes_are_those_of_the_singular_values(vectors: np.ndarray) -> None:
    centred = vectors - vectors.mean(axis=0)
    expected = np.linalg.svd(centred.astype(np.float64))[2]
    axes = principal_axes(centred)
    assert_allclose(np.abs(axes @ expected.T), np.eye(12), atol=1e-3)
    assert (axes[np.arange(12), np.abs(axes).argmax(axis=1)] > 0).all()


def test_remove_common_leaves_no_mean_and_no_leading_component(vectors: np.ndarray) -> None:
    units = unit_rows(vectors)
    removed = remove_common(vectors, 1)
    assert_allclose(removed.mean(axis=0), 0, atol=1e-6)
    leading = principal_axes(units - units.mean(axis=0))[0]
    assert_allclose(removed @ leading, 0, atol=1e-5)
    assert_allclose(remove_common(vectors, 0), units - units.mean(axis=0), atol=1e-6)


def test_reduce_dim_to_the_same_dim_keeps_cosines_of_centred_vectors(vectors: np.ndarray) -> None:
    expected = unit_rows(vectors - vectors.mean(axis=0))
    reduced = reduce_dim(vectors, 12)
    assert_allclose(reduced @ reduced.T, expected @ expected.T, atol=1e-4)
    assert reduce_dim(vectors, 5).shape == (60, 5)
    with pytest.raises(InvalidInputError, match=r"dim must be in \[1, 12\], got 13"):
        reduce_dim(vectors, 13)


def as_words(vectors: np.ndarray) -> WordVectors:
    return WordVectors(Vocabulary([f"w{i}" for i in range(len(vectors))], np.ones(len(vectors), int)), vectors)


def test_blend_averages_the_cosines_of_both_spaces() -> None:
    random = np.random.default_rng(1)
    first, second = (unit_rows(random.normal(size=(60, 6))) for _ in range(2))
    # Opposite words beside each other: both spaces are centred already, so that cosines can be compared.
    first, second = np.vstack([first, -first]), np.vstack([second, -second])
    blended = blend(as_words(first), as_words(second), second_weight=0.5, dim=12).vectors
    expected = (first @ first.T + 0.25 * (second @ second.T)) / 1.25
    assert_allclose(blended @ blended.T, expected, atol=1e-4)


def test_blend_refuses_other_words_and_negative_weights(vectors: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="same words"):
        blend(as_words(vectors), as_words(vectors[:-1]), second_weight=1.0, dim=4)
    with pytest.raises(InvalidInputError, match="second_weight must be >= 0, got -1"):
        blend(as_words(vectors), as_words(vectors), second_weight=-1, dim=4)


def test_fit_to_sentences_matches_the_dense_solution() -> None:
    random = np.random.default_rng(2)
    vectors = random.normal(size=(20, 5))
    weights = random.uniform(0.1, 1, size=20)
    sentences = [random.integers(0, 18, size=random.integers(1, 9)) for _ in range(40)]
    targets = random.normal(size=(40, 5))
    fitted = fit_to_sentences(vectors, sentences, targets, weights=weights, ridge=0.2, num_steps=60)

    averaging = np.zeros((40, 20))
    for row, words in enumerate(sentences):
        for word in words:
            averaging[row, word] += weights[word] / weights[words].sum()
    averages = averaging @ vectors
    averages -= averages.mean(axis=0)
    targets = targets - targets.mean(axis=0)
    targets *= (np.linalg.norm(averages, axis=1) / np.linalg.norm(targets, axis=1))[:, None]
    gram = averaging.T @ averaging + 0.2 * np.eye(20)
    expected = vectors + np.linalg.solve(gram, averaging.T @ (targets - averages))
    assert_allclose(fitted, expected, atol=1e-4)
    assert_allclose(fitted[18:], vectors[18:], rtol=1e-6)  # words of no sentence


def test_fit_to_sentences_refuses_bad_input() -> None:
    vectors, weights = np.eye(3), np.ones(3)
    with pytest.raises(InvalidInputError, match="ridge must be > 0, got 0"):
        fit_to_sentences(vectors, [np.array([1])], np.ones((1, 3)), weights=weights, ridge=0)
    with pytest.raises(InvalidInputError, match=r"shape \(1, 3\), got \(2, 3\)"):
        fit_to_sentences(vectors, [np.array([1])], np.ones((2, 3)), weights=weights)
    with pytest.raises(InvalidInputError, match="got an empty one"):
        fit_to_sentences(vectors, [np.array([], dtype=int)], np.ones((1, 3)), weights=weights)
