"""Vectors of word pieces, so that a word outside the vocabulary still has a place in the space.

Shape suffixes: N words that are split, P pieces, D dimensions.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from itertools import chain

import numpy as np
import scipy.linalg
import scipy.sparse

from facets.errors import ConfigError
from facets.language.vectors import WordVectors
from facets.language.vocabulary import PIECE_MARK, Vocabulary

logger = logging.getLogger(__name__)


def add_pieces(
    words: WordVectors, word_pieces: Sequence[str], *, min_words: int = 2, ridge: float = 0.1
) -> WordVectors:
    """The same words with vectors of the pieces that other words are made of.

    The vectors are fitted so that a word of the vocabulary, read as its pieces, lands near its own vector: by ridge
    regression of ``sqrt(n) w`` on the sum of its ``n`` pieces.

    Args:
        words: Word vectors; pieces in them are made anew.
        word_pieces: Pieces to choose from, in the way of WordPiece: ``goat`` begins a word, ``##herd`` continues one.
        min_words: Pieces that fewer words of the vocabulary hold are left out; single characters stay.
        ridge: Weight of the squared length of a piece's vector; more makes rare pieces shorter.

    Returns:
        The words at unit length in their old rows, then the pieces, at most of unit length.

    Raises:
        ConfigError: A setting is out of range, or no piece is left.
    """
    if ridge <= 0 or min_words < 1:
        raise ConfigError(f"expected ridge > 0 and min_words >= 1, got {ridge} and {min_words}")
    words = words.without_pieces()
    marked = [
        piece if piece.startswith(PIECE_MARK) else piece + PIECE_MARK
        for piece in dict.fromkeys(word_pieces)
        if any(map(str.isalnum, piece))
    ]
    counts = _piece_counts(words.vocabulary, marked)
    chosen = [piece for piece in marked if counts[piece] >= min_words or len(piece) == len(PIECE_MARK) + 1]
    if not chosen:
        raise ConfigError(f"expected pieces that {min_words} words hold, got none among {len(word_pieces)}")
    vocabulary = _with_pieces(words.vocabulary, chosen)
    splits = [vocabulary.pieces(word) for word in words.vocabulary.words]
    rows = np.array([row for row, parts in enumerate(splits) if parts])
    lengths = np.array([len(splits[row]) for row in rows])
    parts = np.fromiter(chain.from_iterable(splits), dtype=np.int64)
    owners = np.repeat(np.arange(len(rows)), lengths)
    logger.info("fitting %d pieces to %d words", len(chosen), len(rows))
    is_word = parts < len(words)  # a beginning that is a word stays what it is
    targets_ND = np.sqrt(lengths, dtype=np.float32)[:, None] * words.unit_vectors[rows]
    np.subtract.at(targets_ND, owners[is_word], words.unit_vectors[parts[is_word]])
    free = np.ones(int(np.count_nonzero(~is_word)), dtype=np.float32)
    design_NP = scipy.sparse.csr_matrix(
        (free, (owners[~is_word], parts[~is_word] - len(words))), shape=(len(rows), len(chosen))
    )
    gram_PP = (design_NP.T @ design_NP).toarray()
    gram_PP[np.diag_indices_from(gram_PP)] += ridge
    vectors_PD = scipy.linalg.solve(
        gram_PP, design_NP.T @ targets_ND, assume_a="pos", overwrite_a=True, overwrite_b=True
    )
    # Longer than a word a piece would drown its text.
    vectors_PD /= np.maximum(1.0, np.linalg.norm(vectors_PD, axis=1, keepdims=True))
    return WordVectors(vocabulary, np.concatenate([words.unit_vectors, vectors_PD]))


def _with_pieces(vocabulary: Vocabulary, pieces: Sequence[str]) -> Vocabulary:
    """A piece counts as seen once: its frequency must not make a rare word weigh little."""
    return Vocabulary(
        [*vocabulary.words, *pieces],
        np.concatenate([vocabulary.counts, np.ones(len(pieces), dtype=np.int64)]),
        total_count=vocabulary.total_count + len(pieces),
    )


def _piece_counts(vocabulary: Vocabulary, pieces: Sequence[str]) -> Counter[str]:
    """In how many words of more than one piece each piece occurs."""
    candidates = _with_pieces(vocabulary, pieces)
    splits = map(candidates.pieces, vocabulary.words)
    return Counter(candidates.words[row] for parts in splits if len(parts) > 1 for row in parts)
