"""The words a model knows, with their rows and frequencies, and pieces for other words."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.arrays import Ints
from facets.errors import CheckpointError, InvalidInputError
from facets.language.stop_words import STOP_WORDS
from facets.storage.files import reading, write_whole

PIECE_MARK = "##"  # marks pieces: "goat##" begins a word, "##herd" continues one
_TOTAL = "#total"
# The most frequent words of three or more letters also serve as word beginnings: "goat" needs no "goat##".
_NUM_BEGINNINGS = 25_000
_MIN_BEGINNING = 3
# Number of words outside the vocabulary whose pieces are cached.
_MAX_CACHED_SPLITS = 100_000


class Vocabulary:
    """Lower-case words with their counts in a corpus; row ``i`` belongs to ``words[i]``, row ``V`` to unknown words.

    Entries that begin or end with ``##`` are pieces of other words: ``goatherd`` may be read as ``goat`` and
    ``##herd``, ``kyanite`` as ``ky##``, ``##ani`` and ``##te``.

    Example:
        >>> vocabulary = Vocabulary(["the", "cat"], np.array([3, 1]), total_count=8)
        >>> vocabulary.rows(["the", "dog", "cat"]).tolist()
        [0, 2, 1]
        >>> vocabulary.probabilities.tolist(), vocabulary.is_stop.tolist()
        ([0.375, 0.125], [True, False, True])
    """

    def __init__(self, words: Sequence[str], counts: NDArray[np.integer], *, total_count: int | None = None) -> None:
        """``total_count``: by default the sum of ``counts``.

        Raises InvalidInputError if lengths differ, a word occurs twice, a count is negative or the total too small.
        """
        self.words = tuple(words)  # usually the most frequent first, and pieces at the end
        self.counts = np.ascontiguousarray(counts, dtype=np.int64)  # occurrences in the corpus, `[V]`
        if self.counts.shape != (len(self.words),):
            raise InvalidInputError(f"counts must have shape ({len(self.words)},), got {self.counts.shape}")
        if self.counts.size and self.counts.min() < 0:
            raise InvalidInputError(f"counts must be >= 0, got {self.counts.min()}")
        in_vocabulary = int(self.counts.sum())
        # Tokens in the whole corpus, including those outside the vocabulary.
        self.total_count = in_vocabulary if total_count is None else total_count
        if self.total_count < in_vocabulary:
            raise InvalidInputError(f"total_count must be >= {in_vocabulary}, got {self.total_count}")
        self._rows = {word: row for row, word in enumerate(self.words)}
        if len(self._rows) != len(self.words):
            twice = next(word for row, word in enumerate(self.words) if self._rows[word] != row)
            raise InvalidInputError(f"words must be distinct, got {twice!r} twice")
        self.unknown_row = len(self.words)
        self.probabilities = self.counts / max(self.total_count, 1)  # `[V]` float64: p(w) of eq. 3.6 and of SIF
        # `[V + 1]`: stop words, tokens without a letter or digit, and the unknown row.
        self.is_stop = np.array([*map(_is_stop_word, self.words), True], dtype=np.bool_)
        self.is_piece = np.array([*map(_is_piece, self.words), False], dtype=np.bool_)
        pieces = [self.words[row] for row in np.flatnonzero(self.is_piece)]
        longest_piece = max(map(len, pieces), default=0) - len(PIECE_MARK)
        self._longest_continuation = longest_piece
        self._longest_beginning = max(longest_piece, *map(len, self.words[:_NUM_BEGINNINGS])) if pieces else 0
        self._splits: dict[str, tuple[int, ...]] = {}

    def __len__(self) -> int:
        return len(self.words)

    @property
    def num_words(self) -> int:
        """Number of entries that are whole words."""
        return len(self.words) - int(np.count_nonzero(self.is_piece))

    def without_pieces(self) -> "Vocabulary":
        """The vocabulary of whole words, as used to pack corpora; ``self`` if it has no pieces."""
        is_piece = self.is_piece[:-1]
        if not is_piece.any():
            return self
        total = self.total_count - int(self.counts[is_piece].sum())
        words = [self.words[row] for row in np.flatnonzero(~is_piece)]
        return Vocabulary(words, self.counts[~is_piece], total_count=total)

    def rows(self, tokens: Sequence[str]) -> Ints:
        """Rows of lower-case tokens, ``[N]`` int64; ``V`` for tokens outside the vocabulary."""
        get, unknown = self._rows.get, self.unknown_row
        return np.fromiter((get(token, unknown) for token in tokens), dtype=np.int64, count=len(tokens))

    def split(self, token: str) -> tuple[int, ...]:
        """Row of a token, or rows of its pieces, or ``unknown_row``."""
        row = self._rows.get(token)
        if row is not None and not self.is_piece[row]:
            return (row,)
        rows = self._splits.get(token)
        if rows is None:
            if len(self._splits) >= _MAX_CACHED_SPLITS:
                self._splits.clear()
            rows = self._splits[token] = self.pieces(token) or (self.unknown_row,)
        return rows

    def pieces(self, token: str) -> tuple[int, ...]:
        """Rows of the pieces of a token: the longest beginning, then longest continuations; () if none fit."""
        rows: list[int] = []
        start = 0
        while start < len(token):
            longest = start + self._longest_continuation if rows else self._longest_beginning
            for end in range(min(len(token) - (not rows), longest), start, -1):
                part = token[start:end]
                row = self._rows.get(PIECE_MARK + part) if rows else self._beginning(part)
                if row is not None:
                    break
            else:
                return ()
            rows.append(row)
            start = end
        return tuple(rows)

    def _beginning(self, part: str) -> int | None:
        row = self._rows.get(part + PIECE_MARK)
        if row is not None or len(part) < _MIN_BEGINNING:
            return row
        row = self._rows.get(part)
        return row if row is not None and row < _NUM_BEGINNINGS else None

    def split_rows(self, tokens: Sequence[str]) -> tuple[Ints, Ints]:
        """``split`` for all tokens: rows ``[M]`` int64, and the number of rows per token, ``[N]``, >= 1."""
        rows = self.rows(tokens)
        odd = np.flatnonzero(self.is_piece[rows] | (rows == self.unknown_row))
        counts = np.ones(len(rows), dtype=np.int64)
        if not len(odd):  # the common case, which needs no call per token
            return rows, counts
        splits = [self.split(tokens[i]) for i in odd.tolist()]
        counts[odd] = [len(split) for split in splits]
        split_rows = np.repeat(rows, counts)
        split_rows[np.repeat(np.isin(np.arange(len(rows)), odd), counts)] = list(chain.from_iterable(splits))
        return split_rows, counts

    def save(self, path: Path) -> None:
        """Writes a tab-separated file: the total, then a word and its count on each line, in row order."""
        lines = ((_TOTAL, self.total_count), *zip(self.words, self.counts, strict=True))
        write_whole(path, "".join(f"{word}\t{count}\n" for word, count in lines))

    @classmethod
    def load(cls, path: Path) -> "Vocabulary":
        """Reads what ``save`` wrote; raises CheckpointError, which names file and line, if it is missing or damaged."""
        lines = _lines(path)
        if lines.pop() != "":
            raise CheckpointError(f"{path}, line {len(lines) + 1}: expected a newline at the end, got a cut line")
        # Two lists of strings: a list of pairs would let the garbage collector look through the whole program.
        words = [line.partition("\t")[0] for line in lines]
        counts = [line.partition("\t")[2] for line in lines]
        for number, (word, count) in enumerate(zip(words, counts, strict=True), start=1):
            if not (word and count.isdigit() and count.isascii()):
                raise CheckpointError(f"{path}, line {number}: expected word<TAB>count, got {lines[number - 1][:60]!r}")
        if words[:1] != [_TOTAL]:
            raise CheckpointError(f"{path}, line 1: expected {_TOTAL}<TAB>count, got {lines[:1]!r}")
        with reading(path):
            return cls(words[1:], np.array([*map(int, counts[1:])], dtype=np.int64), total_count=int(counts[0]))


def num_words_of(path: Path) -> int:
    """``num_words`` of a saved vocabulary; raises CheckpointError if it cannot be read."""
    words = (line.partition("\t")[0] for line in _lines(path)[1:] if line)
    return sum(not _is_piece(word) for word in words)


def _lines(path: Path) -> list[str]:
    with reading(path):
        return path.read_bytes().decode("utf-8").split("\n")


def _is_stop_word(word: str) -> bool:
    return word in STOP_WORDS or not (word.isalnum() or any(map(str.isalnum, word)))


def _is_piece(word: str) -> bool:
    return (word.startswith(PIECE_MARK) or word.endswith(PIECE_MARK)) and any(map(str.isalnum, word))
