"""Word vectors of a corpus of papers: singular vectors of the papers' tf-idf matrix.

The vectors of a general corpus do not know the words of a field ("llm" and "treebank" are among the third of the
vocabulary that ``facets-en`` lacks), and adding them gains nothing. Shape letters: I papers, V words, D dimensions.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import svds

from facets.errors import InvalidInputError
from facets.training.papers_data import PaperCorpus
from facets.words.vectors import WordVectors, unit_rows

__all__ = ["paper_word_vectors", "word_counts"]


def word_counts(corpus: PaperCorpus) -> csr_matrix:
    """How often each paper has each known word, titles and abstracts together, ``[I, V]`` float32."""
    num_words = len(corpus.vocabulary)
    rows = corpus.rows.astype(np.int64) % (num_words + 1)
    papers = np.repeat(np.arange(len(corpus)), np.diff(corpus.offsets))
    known = rows < num_words
    ones = np.ones(int(known.sum()), dtype=np.float32)
    return csr_matrix((ones, (papers[known], rows[known])), shape=(len(corpus), num_words))


def paper_word_vectors(corpus: PaperCorpus, *, dim: int, seed: int = 1) -> WordVectors:
    """Unit vectors of the words of a corpus.

    Right singular vectors of the matrix of papers and words, weighted by ``(1 + log count) log(I / papers)`` with
    papers at unit length; then each word at unit length.

    Args:
        corpus: The papers.
        dim: D.
        seed: Start of the iteration.

    Raises:
        InvalidInputError: The corpus has fewer papers or words than ``dim`` needs.
    """
    vectors = unit_rows(_singular_vectors(word_counts(corpus), dim, seed))
    return WordVectors(corpus.vocabulary, vectors)


def _singular_vectors(counts_IV: csr_matrix, dim: int, seed: int) -> NDArray[np.float32]:
    num_papers, num_words = counts_IV.shape
    if min(num_papers, num_words) <= dim:
        raise InvalidInputError(
            f"word_dim must be below the number of papers and of words, {num_papers} and {num_words}, got {dim}"
        )
    frequency_V = np.asarray((counts_IV > 0).sum(axis=0)).ravel()
    weighted = counts_IV.copy()
    weighted.data = 1.0 + np.log(weighted.data)
    weighted = weighted @ diags(np.log(num_papers / (1.0 + frequency_V)).clip(min=0.0))
    lengths_I = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    weighted = (diags(1.0 / np.maximum(lengths_I, 1e-9)) @ weighted).astype(np.float32)
    start = np.random.default_rng(seed).standard_normal(min(weighted.shape)).astype(np.float32)
    _, _, rows_DV = svds(weighted, k=dim, v0=start, tol=1e-2)
    return np.ascontiguousarray(rows_DV[::-1].T)
