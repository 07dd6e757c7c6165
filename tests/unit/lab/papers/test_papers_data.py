"""Word vectors from the tf-idf matrix of a corpus, against the dense decomposition."""

import numpy as np
from facets_lab.papers.data import singular_word_vectors, word_counts

NUM_WORDS = 12


def corpus() -> tuple[np.ndarray, np.ndarray]:
    """Typed rows of 40 texts, unknown words and an empty text among them."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 9, 40)
    lengths[7] = 0
    return rng.integers(0, 2 * (NUM_WORDS + 1), lengths.sum()).astype(np.uint16), np.concatenate(
        [[0], lengths.cumsum()]
    )


def test_vectors_are_the_singular_vectors_of_the_dense_matrix() -> None:
    counts = word_counts(*corpus(), NUM_WORDS)
    dense = counts.toarray().astype(np.float64)
    weighted = np.where(dense > 0, 1 + np.log(np.maximum(dense, 1)), 0.0)
    weighted *= np.log(len(dense) / (1 + (dense > 0).sum(axis=0))).clip(min=0)
    weighted /= np.maximum(np.linalg.norm(weighted, axis=1, keepdims=True), 1e-9)
    expected = np.linalg.svd(weighted)[2][:4].T
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    found = singular_word_vectors(counts, 4)
    # Axes have no sign: compare what words are to each other.
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=0.05)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-5)
