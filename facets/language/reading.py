"""A whole text as it is read, and where in the original each of its characters stands."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from facets.language.blocks import blocks, is_plain_line
from facets.language.markup import Hyphens, replaced

_LONGEST_KEPT = 20_000  # characters; what is read again (by facets, then by words) is kept while it is short
_NUM_KEPT = 256


class Reading(NamedTuple):
    """What a text says."""

    text: str  # its blocks, a line each: newlines within them are spaces, hyphenated words whole, marks gone
    # `[P]` int64, where the pieces that stand in the original begin in `text`; None: `text` is the original.
    places: NDArray[np.int64] | None = None
    origins: NDArray[np.int64] | None = None  # `[P]` int64, where they begin in the original
    # `[H, 2]` int64, where in the original the words of each heading begin and end, in order
    headings: NDArray[np.int64] = np.empty((0, 2), dtype=np.int64)

    def headings_above(self, spans_N2: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of spans of the original the last heading that begins before or with each, and where that ends; -1: none."""
        above_N = np.searchsorted(self.headings[:, 0], spans_N2[:, 0], side="right") - 1
        return above_N, np.append(self.headings[:, 1], -1)[above_N]

    def original(self, spans_N2: NDArray[np.integer]) -> NDArray[np.integer]:
        """Spans of ``text`` as spans of the original; an empty span stays as it is.

        ``spans_N2``: first offset and the one behind the last, ``[N, 2]``. Returns ``[N, 2]`` of the same type.
        """
        if self.places is None or self.origins is None:
            return spans_N2
        firsts_N, lasts_N = spans_N2[:, 0], np.maximum(spans_N2[:, 1] - 1, spans_N2[:, 0])
        found = []
        for offsets_N in (firsts_N, lasts_N):
            piece_N = np.maximum(np.searchsorted(self.places, offsets_N, side="right") - 1, 0)
            found.append(self.origins[piece_N] + offsets_N - self.places[piece_N])
        is_span_N1 = (spans_N2[:, 1] > spans_N2[:, 0])[:, None]
        return np.where(is_span_N1, np.stack((found[0], found[1] + 1), axis=1), spans_N2).astype(spans_N2.dtype)


def read(text: str) -> Reading:
    r"""Reads a text; most are one line that says what it says.

    Example:
        >>> reading = read("# Milk\n\nThe **cow** gives\nmilk.")
        >>> reading.text
        'Milk\nThe cow gives\nmilk.'
        >>> reading.original(np.array([[9, 12]])).tolist()
        [[14, 17]]
    """
    if is_plain_line(text):
        return Reading(text)
    return _kept(text) if len(text) <= _LONGEST_KEPT else _read(text)


@lru_cache(maxsize=_NUM_KEPT)
def _kept(text: str) -> Reading:
    return _read(text)


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
        cuts = replaced(text, start, block.said_end, hyphens=hyphens, is_row=block.kind == "row")
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
    starts, spans = np.array([places, origins], dtype=np.int64), np.array(headings, dtype=np.int64)
    return Reading(plain[:-1], starts[0], starts[1], spans.reshape(-1, 2))
