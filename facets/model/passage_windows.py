"""Windows over the pieces of texts: what the network reads at once, in batches of similar length."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Window", "cut_windows", "length_batches"]


@dataclass(frozen=True, slots=True)
class Window:
    """A run of pieces of one text.

    Attributes:
        text: Position of the text.
        first: Its first piece.
        last: The piece behind its last.
    """

    text: int
    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first


def cut_windows(text: int, num_pieces: int, *, longest: int, overlap: int) -> list[Window]:
    """Windows of about equal length that cover a text; as few as do.

    Args:
        text: Position of the text.
        num_pieces: Its length, at least 1.
        longest: Pieces of a window at most.
        overlap: Pieces that neighbours share at least, below ``longest``.

    Example:
        >>> [(w.first, w.last) for w in cut_windows(0, 10, longest=6, overlap=1)]
        [(0, 6), (4, 10)]
    """
    if num_pieces <= longest:
        return [Window(text, 0, num_pieces)]
    count = -(-(num_pieces - overlap) // (longest - overlap))
    length = min(longest, -(-(num_pieces + (count - 1) * overlap) // count))
    return [Window(text, start, start + length) for start in _starts(num_pieces - length, count)]


def _starts(last_start: int, count: int) -> list[int]:
    return [last_start * i // (count - 1) for i in range(count)]


def length_batches(lengths: Sequence[int] | NDArray[np.integer], *, max_tokens: int) -> Iterator[NDArray[np.int64]]:
    """Places of texts in batches of similar length, the longest first.

    Args:
        lengths: Tokens of each text.
        max_tokens: Of a batch, a longer text alone.
    """
    lengths_B = np.asarray(lengths, dtype=np.int64)
    order_B = np.argsort(-lengths_B, kind="stable")
    ends_B = np.cumsum(lengths_B[order_B])
    start = 0
    while start < len(order_B):
        before = int(ends_B[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(ends_B, before + max_tokens, side="right")))
        yield order_B[start:end]
        start = end
