"""The reading of a whole text, and the position of each of its characters in the original."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from facets.arrays import Ints
from facets.language.blocks import blocks, is_plain_line
from facets.language.markup import Hyphens, replaced

_LONGEST_KEPT = 40_000  # characters; shorter readings are cached, because facets and words need them in turn
_NUM_KEPT = 128


class Reading(NamedTuple):
    """A text as it is read."""

    text: str  # one line for each block, without marks and with wrapped lines and hyphenated words joined
    # `[P]` int64, offsets in `text` of the pieces taken from the original; None if `text` is the original.
    places: Ints | None = None
    origins: Ints | None = None  # `[P]` int64, offsets of these pieces in the original
    # `[H, 2]` int64, start and end of each heading in the original, in order
    headings: Ints = np.empty((0, 2), dtype=np.int64)

    def headings_above(self, spans_N2: NDArray[np.integer]) -> tuple[Ints, Ints]:
        """Index and end of the last heading before each span of the original starts; -1 where there is none."""
        above_N = np.searchsorted(self.headings[:, 0], spans_N2[:, 0], side="right") - 1
        return above_N, np.append(self.headings[:, 1], -1)[above_N]

    def original(self, spans_N2: NDArray[np.integer]) -> NDArray[np.integer]:
        """Converts spans of ``text`` (start and end, ``[N, 2]``) to spans of the original; empty spans stay empty."""
        if self.places is None or self.origins is None:
            return spans_N2
        firsts_N, lasts_N = spans_N2[:, 0], np.maximum(spans_N2[:, 1] - 1, spans_N2[:, 0])
        next_P = np.append(self.origins[1:], np.iinfo(np.int64).max)
        bounds = []
        for offsets_N in (firsts_N, lasts_N):
            piece_N = np.maximum(np.searchsorted(self.places, offsets_N, side="right") - 1, 0)
            origins_N = self.origins[piece_N] + offsets_N - self.places[piece_N]
            bounds.append(np.minimum(origins_N, next_P[piece_N]))  # the name of a column belongs to the cell after it
        is_span_N1 = (spans_N2[:, 1] > spans_N2[:, 0])[:, None]
        return np.where(is_span_N1, np.stack((bounds[0], bounds[1] + 1), axis=1), spans_N2).astype(spans_N2.dtype)


def read(text: str) -> Reading:
    r"""The text as it is read, with offsets into the original.

    Example:
        >>> reading = read("# Milk\n\nThe **cow** gives\nmilk.")
        >>> reading.text
        'Milk\nThe cow gives\nmilk.'
        >>> reading.original(np.array([[9, 12]])).tolist()
        [[14, 17]]
    """
    if is_plain_line(text):
        return Reading(text)
    return _read(text) if len(text) <= _LONGEST_KEPT else _read.__wrapped__(text)


@lru_cache(maxsize=_NUM_KEPT)
def _read(text: str) -> Reading:
    hyphens = Hyphens(text)
    pieces: list[str] = []
    places: list[int] = []
    origins: list[int] = []
    headings: list[tuple[int, int]] = []
    size = 0
    for block in blocks(text):
        start = block.said_start
        if block.kind == "heading":
            headings.append((start, block.said_end))
        cuts = replaced(text, start, block.said_end, hyphens=hyphens, cells=block.row.cuts if block.row else ())
        for first, last, instead in (*cuts, (block.said_end, block.said_end, "\n")):
            if first > start:
                places.append(size)
                origins.append(start)
            pieces += (text[start:first], instead)
            size += first - start + len(instead)
            start = last
    plain = "".join(pieces)
    if not plain.strip():
        return Reading(text)
    starts = np.array([places, origins], dtype=np.int64)
    return Reading(plain[:-1], starts[0], starts[1], np.array(headings, dtype=np.int64).reshape(-1, 2))
