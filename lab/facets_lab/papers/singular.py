"""Word vectors of a corpus of short texts: singular vectors of their tf-idf matrix.

The vectors of a general corpus do not know the words of a field ("llm" and "treebank" are among the 45 % of the
papers' vocabulary that ``facets-en`` lacks), and adding them gains nothing. Shape letters: N texts, V words, D
dimensions.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import svds

from facets.errors import InvalidInputError
from facets.language.vectors import unit_rows


def word_counts(rows: NDArray[np.uint16], offsets: NDArray[np.int64], num_words: int) -> csr_matrix:
    """How often each text has each known word, of whatever type, ``[N, V]`` float32.

    Args:
        rows: Typed rows (``facets.papers.typed_rows``) of all texts, one after the other.
        offsets: ``[N + 1]``, text ``n`` is ``rows[offsets[n]:offsets[n + 1]]``.
        num_words: V.
    """
    words = rows.astype(np.int64) % (num_words + 1)
    texts = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    known = words < num_words
    ones = np.ones(int(known.sum()), dtype=np.float32)
    return csr_matrix((ones, (texts[known], words[known])), shape=(len(offsets) - 1, num_words))


def singular_word_vectors(counts_NV: csr_matrix, dim: int, *, seed: int = 1) -> NDArray[np.float32]:
    """Unit vectors of the words, ``[V, D]``.

    Right singular vectors of the matrix of texts and words, weighted by ``(1 + log count) log(N / texts)`` with
    texts at unit length; then each word at unit length.

    Args:
        counts_NV: How often each text has each word.
        dim: D.
        seed: Start of the iteration.

    Raises:
        InvalidInputError: There are fewer texts or words than ``dim`` needs.
    """
    num_texts, num_words = counts_NV.shape
    if min(num_texts, num_words) <= dim:
        raise InvalidInputError(
            f"word_dim must be below the number of papers and of words, {num_texts} and {num_words}, got {dim}"
        )
    frequency_V = np.asarray((counts_NV > 0).sum(axis=0)).ravel()
    weighted = counts_NV.copy()
    weighted.data = 1.0 + np.log(weighted.data)
    weighted = weighted @ diags(np.log(num_texts / (1.0 + frequency_V)).clip(min=0.0))
    lengths_N = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    weighted = (diags(1.0 / np.maximum(lengths_N, 1e-9)) @ weighted).astype(np.float32)
    start = np.random.default_rng(seed).standard_normal(min(weighted.shape)).astype(np.float32)
    _, _, rows_DV = svds(weighted, k=dim, v0=start, tol=1e-2)
    return unit_rows(np.ascontiguousarray(rows_DV[::-1].T))
