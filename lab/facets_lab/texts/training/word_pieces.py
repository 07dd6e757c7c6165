"""Packed words as pieces: those of a backbone's tokenizer, or of the vocabulary that unknown words are read with.

Shape suffixes: V words, B texts, L words of a text, T word pieces of a text.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from facets.language.vocabulary import Vocabulary
from facets.model.network import BackboneEncoder

__all__ = ["PieceDropout", "WordPieceTable"]

# Longer words of a corpus are markup or noise; a backbone reads only so much of them.
_MAX_PIECES_OF_A_WORD = 8


class WordPieceTable:
    """The word pieces of every word of a vocabulary, so that a packed corpus trains a backbone model.

    A backbone splits at spaces and punctuation before it looks for pieces, so the pieces of a text are those of its
    words one after the other; words outside the vocabulary become the backbone's unknown piece.

    Example:
        >>> table = WordPieceTable([[7, 8], [9]], unknown_piece=1)
        >>> rows, lengths = table.pieces(np.array([[1, 0, 2], [1, 0, 0]]), np.array([3, 1]), max_pieces=8)
        >>> rows.tolist(), lengths.tolist()
        ([[9, 7, 8, 1], [9, 0, 0, 0]], [4, 1])
    """

    def __init__(self, pieces: Sequence[Sequence[int] | NDArray[np.int64]], *, unknown_piece: int) -> None:
        """Keeps the pieces of each word.

        Args:
            pieces: Piece ids of the ``V`` words; a word without any counts as unknown.
            unknown_piece: Id that stands for row ``V``.
        """
        rows = [np.asarray(ids[:_MAX_PIECES_OF_A_WORD], dtype=np.int64) for ids in pieces]
        unknown = np.array([unknown_piece], dtype=np.int64)
        rows = [ids if len(ids) else unknown for ids in rows] + [unknown]
        self._counts_V = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        self._starts_V = np.concatenate([[0], np.cumsum(self._counts_V)[:-1]])
        self._ids = np.concatenate(rows)

    @classmethod
    def of_backbone(cls, encoder: BackboneEncoder, words: Sequence[str]) -> "WordPieceTable":
        """The table of a backbone and a vocabulary's words."""
        return cls(encoder.tokenize(words, _MAX_PIECES_OF_A_WORD), unknown_piece=encoder.unknown_piece)

    def pieces(
        self, rows_BL: NDArray[np.int64], lengths_B: NDArray[np.int64], *, max_pieces: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Word rows of texts as word pieces.

        Args:
            rows_BL: Word rows, ``[B, L]``, in ``[0, V]``, padded at the end with anything.
            lengths_B: Words of each text.
            max_pieces: Longer texts are cut.

        Returns:
            Piece ids ``[B, T]`` padded with 0, and the number of pieces of each text ``[B]``; T >= 1.
        """
        counts_BL = np.where(np.arange(rows_BL.shape[1]) < lengths_B[:, None], self._counts_V[rows_BL], 0)
        ends_BL = np.cumsum(counts_BL, axis=1)
        totals_B = np.minimum(ends_BL[:, -1], max_pieces)
        steps_T = np.arange(max(1, int(totals_B.max())))
        # Which word each place belongs to: the number of words that end at or before it.
        marks_BT = np.zeros((len(rows_BL), len(steps_T) + 1), dtype=np.int64)
        texts_BL = np.broadcast_to(np.arange(len(rows_BL))[:, None], ends_BL.shape)
        np.add.at(marks_BT, (texts_BL, np.minimum(ends_BL, len(steps_T))), 1)
        words_BT = np.minimum(np.cumsum(marks_BT[:, :-1], axis=1), rows_BL.shape[1] - 1)
        offsets_BT = steps_T - np.take_along_axis(ends_BL - counts_BL, words_BT, axis=1)
        mask_BT = steps_T < totals_B[:, None]
        places_BT = self._starts_V[np.take_along_axis(rows_BL, words_BT, axis=1)] + offsets_BT
        return np.where(mask_BT, self._ids[np.where(mask_BT, places_BT, 0)], 0), totals_B


class PieceDropout:
    """Reads some known words as their pieces, so that a model learns what pieces mean together.

    Words that nobody has seen come as pieces later; a packed corpus holds known words only.
    """

    def __init__(self, vocabulary: Vocabulary, *, rate: float) -> None:
        """Keeps the pieces of every word.

        Args:
            vocabulary: Words and pieces; the corpus has its words, in their order.
            rate: Share of the words that are read as pieces, in ``[0, 1]``.
        """
        self._num_words = vocabulary.num_words
        self._rate = rate
        words = vocabulary.words[: self._num_words]
        whole = [(row,) for row in range(self._num_words)]
        pieces = [vocabulary.pieces(word) or (row,) for row, word in enumerate(words)]
        self._table = WordPieceTable([*whole, *pieces], unknown_piece=vocabulary.unknown_row)

    def __call__(
        self, rows_BL: NDArray[np.int64], lengths_B: NDArray[np.int64], rng: np.random.Generator | None, max_tokens: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows and lengths of the same texts; without ``rng`` every word stays whole."""
        rows_BL = np.where(rows_BL < self._num_words, rows_BL, 2 * self._num_words)
        if rng is not None:
            chosen_BL = (rng.random(rows_BL.shape) < self._rate) & (rows_BL < self._num_words)
            rows_BL = rows_BL + self._num_words * chosen_BL
        return self._table.pieces(rows_BL, lengths_B, max_pieces=max_tokens)
