"""Where texts are cut to be read: windows for one vector, runs of sentences for facets; batches of like length.

Shape suffixes: S sentences, B texts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

_SHORTEST_SENTENCE = 2  # pieces that are no marks; the number of an item or a "Yes." is one with the next
_LONGEST_SENTENCE = 128  # pieces; a longer one (a table, a list without stops) is read in parts
NUM_SPECIAL = 2
"""Pieces before and behind whatever is read."""


def sentence_bounds(starts_S: NDArray[np.integer], says_L: NDArray[np.bool_], *, longest: int) -> NDArray[np.int64]:
    """Where what is read by itself begins: sentences, very short ones with the next, very long ones in equal parts.

    ``starts_S``: first piece of each sentence, ascending. ``says_L``: of each piece of the text, at least one, whether
    it is more than a mark. ``longest``: pieces that are read at once. Returns first pieces, from 0, and the number of
    pieces at the end.

    Example:
        >>> sentence_bounds(np.array([0, 2, 9]), np.ones(30, dtype=bool) & (np.arange(30) != 1), longest=12).tolist()
        [0, 9, 19, 30]
    """
    longest = min(longest, _LONGEST_SENTENCE)
    said_L1 = np.concatenate([np.zeros(1, dtype=np.int64), says_L.cumsum()])
    bounds, last = [0], len(says_L)
    for start, said in zip(starts_S.tolist(), said_L1[starts_S].tolist(), strict=True):
        enough = min(said - said_L1[bounds[-1]], said_L1[last] - said)
        if enough >= _SHORTEST_SENTENCE:
            bounds.append(start)
    bounds_S1 = np.array([*bounds, last], dtype=np.int64)
    if (np.diff(bounds_S1) <= longest).all():
        return bounds_S1
    cuts = [np.linspace(a, b, -(-(b - a) // longest) + 1).astype(np.int64)[1:] for a, b in pairwise(bounds_S1.tolist())]
    return np.concatenate([np.zeros(1, dtype=np.int64), *cuts])


@dataclass(frozen=True, slots=True)
class SentenceRun:
    """Whole sentences of one text whose facets are made together."""

    text: int  # position of the text
    bounds: NDArray[np.int64]  # first piece of each sentence, and the piece behind the last

    @property
    def sentences(self) -> NDArray[np.int64]:
        """Tokens of each sentence, special ones included."""
        return np.diff(self.bounds) + NUM_SPECIAL

    def __len__(self) -> int:
        return int(self.bounds[-1] - self.bounds[0]) + NUM_SPECIAL * (len(self.bounds) - 1)


def cut_runs(text: int, bounds_S1: NDArray[np.int64], *, longest: int, most: int) -> list[SentenceRun]:
    """Runs of about equal length that make up a text.

    ``bounds_S1``: of its sentences, none of which has more than ``longest`` tokens. ``longest``: tokens of a run at
    most. ``most``: sentences of a run at most.

    Example:
        >>> [run.bounds.tolist() for run in cut_runs(0, np.array([0, 4, 8, 12]), longest=12, most=16)]
        [[0, 4, 8], [8, 12]]
    """
    ends_S = np.cumsum(np.diff(bounds_S1) + NUM_SPECIAL)
    count = max(-(-int(ends_S[-1]) // longest), -(-len(ends_S) // most))
    if count == 1:
        return [SentenceRun(text, bounds_S1)]
    runs: list[SentenceRun] = []
    first = done = 0
    while first < len(ends_S):
        share = (ends_S[-1] - done) / max(1, count - len(runs))
        wanted = int(np.searchsorted(ends_S, done + share)) + 1
        fitting = int(np.searchsorted(ends_S, done + longest, side="right"))
        last = min(wanted, fitting, first + most, len(ends_S))
        runs.append(SentenceRun(text, bounds_S1[first : last + 1]))
        first, done = last, int(ends_S[last - 1])
    return runs


@dataclass(frozen=True, slots=True)
class Window:
    """A run of pieces of one text."""

    text: int  # position of the text
    first: int  # its first piece
    last: int  # the piece behind its last

    def __len__(self) -> int:
        return self.last - self.first


def cut_windows(text: int, num_pieces: int, *, longest: int, overlap: int) -> list[Window]:
    """Windows of about equal length that cover a text; as few as do.

    ``num_pieces``: its length, at least 1. ``longest``: pieces of a window at most. ``overlap``: pieces that neighbours
    share at least, below ``longest``.

    Example:
        >>> [(w.first, w.last) for w in cut_windows(0, 10, longest=6, overlap=1)]
        [(0, 6), (4, 10)]
    """
    if num_pieces <= longest:
        return [Window(text, 0, num_pieces)]
    count = -(-(num_pieces - overlap) // (longest - overlap))
    length = min(longest, -(-(num_pieces + (count - 1) * overlap) // count))
    starts = [(num_pieces - length) * i // (count - 1) for i in range(count)]
    return [Window(text, start, start + length) for start in starts]


def length_batches(lengths: Sequence[int] | NDArray[np.integer], *, max_tokens: int) -> Iterator[NDArray[np.int64]]:
    """Places of texts in batches of similar length, the longest first."""
    lengths_B = np.asarray(lengths, dtype=np.int64)
    order_B = np.argsort(-lengths_B, kind="stable")
    ends_B = np.cumsum(lengths_B[order_B])
    start = 0
    while start < len(order_B):
        before = int(ends_B[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(ends_B, before + max_tokens, side="right")))
        yield order_B[start:end]
        start = end
