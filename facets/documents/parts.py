"""Cuts long texts into parts, at sections and between sentences, in time linear in the length of the text.

Sections are given by the caller, or start at the headings that :mod:`facets.language.blocks` finds; pages end with a
form feed. Parts cover the text without overlap.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from facets.arrays import Ints, Vectors
from facets.documents.fields import SearchedText
from facets.documents.types import Document, DocumentPart, TokenStats
from facets.errors import ErrorPath, InvalidInputError
from facets.language.blocks import Block, blocks
from facets.language.interruption import check_interrupted
from facets.language.sentences import sentences_of

LONGEST_WHOLE_CHARS = 3000  # a longer text is cut
_PART_CHARS = 2000  # approximate length of a part
_MIN_SECTION_CHARS = 300  # a shorter section is joined with the next one
_MIN_SHARE, _MAX_SHARE = 0.6, 1.4  # of the ideal length of a part; a natural cut is searched for in this range
_MAX_HEADINGS = 8  # headings kept for a part
_MAX_HEADING_CHARS = 200
_WHITE = re.compile(r"\s")
_NOT_WHITE = re.compile(r"\S")


class _Section(NamedTuple):
    """A range of a text under one heading, up to the start of the next section."""

    start: int
    headings: tuple[str, ...]


def split_text(text: str, sections: Sequence[DocumentPart] = ()) -> tuple[DocumentPart, ...]:
    r"""The parts of a text in order; empty if it is one part.

    ``sections``: starts of sections and pages, checked by :func:`check_sections`; empty: detected.

    Example:
        >>> text = "# Cranes\n" + "A crane fell. " * 300 + "\n\n# Bees\n" + "Bees make honey. " * 50
        >>> [(part.end - part.start, part.headings) for part in split_text(text)]
        [(1409, ('Cranes',)), (1400, ('Cranes',)), (1402, ('Cranes',)), (857, ('Bees',))]
    """
    if len(text) <= LONGEST_WHOLE_CHARS:
        return ()
    page_starts = [part.start for part in sections if part.page]
    pages = np.array(page_starts or [0, *(match.end() for match in re.finditer("\f", text))], dtype=np.int64)
    numbers = [part.page for part in sections if part.page] or list(range(1, len(pages) + 1))
    given = _given(sections)
    found = blocks(text) if not given or "|" in text else []
    header_rows = _header_rows(found)
    joined = _joined(given or _detected(text, found), len(text))
    parts = list[DocumentPart]()
    for section, end in zip(joined, [*(section.start for section in joined[1:]), len(text)], strict=True):
        check_interrupted()
        for first, last in _cut(text, section.start, end, pages):
            content = _NOT_WHITE.search(text, first, last)
            if content is None:  # belongs to the part before it, or else to the next one
                if parts:
                    parts[-1] = replace(parts[-1], end=last)
                continue
            begin = content.start()
            page = int(np.searchsorted(pages, begin, side="right")) - 1
            number = numbers[page] if 0 <= page and len(pages) > 1 else 0
            headings = section.headings[: _MAX_HEADINGS - 1] + header_rows.get(begin, ())
            parts.append(DocumentPart(start=first if parts else 0, end=last, headings=headings, page=number))
    return tuple(parts) if len(parts) > 1 else ()


def with_parts(document: Document, parts: tuple[DocumentPart, ...], *, num_facets: int) -> Document:
    """Divides the facets of a whole text among its parts: each facet goes to the part in which its span starts.

    A document without spans, or without parts, stays as it is. Facets with an empty span are dropped.
    """
    spans_T2 = document.facet_spans
    if not parts or spans_T2 is None:
        return document
    starts, ends = (np.array([getattr(part, end) for part in parts]) for end in ("start", "end"))
    placed = np.flatnonzero(spans_T2[:, 1] > spans_T2[:, 0])
    part_of = np.searchsorted(starts, spans_T2[placed, 0], side="right") - 1
    order = placed[np.argsort(part_of, kind="stable")]
    counts = np.bincount(part_of, minlength=len(parts))
    room = np.maximum(counts, num_facets)
    at = np.arange(len(order)) + np.repeat(np.cumsum(room) - room - (np.cumsum(counts) - counts), counts)
    facets = np.zeros((int(room.sum()), *document.facet_embeddings.shape[1:]), dtype=np.float32)
    spans = np.zeros((len(facets), 2), dtype=np.int64)
    facets[at], spans[at] = document.facet_embeddings[order], spans_T2[order]
    in_text = spans[:, 1] <= len(document.text)  # other spans lie in fields, after the text
    spans[:, 1] = np.where(in_text, np.minimum(spans[:, 1], np.repeat(ends, room)), spans[:, 1])
    return replace(document, facet_embeddings=facets, facet_spans=spans, parts=parts, part_facets=room.tolist())


@dataclass(frozen=True, slots=True)
class EncodedText:
    """The output of a model for one text: a document or a part."""

    facets: Vectors  # `[K, D]` or more rows, magnitudes kept
    spans: NDArray[np.integer] | None = None  # span of each facet in the model's input, `[K, 2]`; None: not known
    token_stats: TokenStats | None = None  # what the model has read of the text; None: not known

    @classmethod
    def of_nothing(cls, num_facets: int, dim: int) -> "EncodedText":
        """The output for a text without words."""
        return cls(
            np.zeros((num_facets, dim), dtype=np.float16), np.zeros((num_facets, 2), dtype=np.int32), TokenStats(0, 0)
        )


def from_encoded(
    given: Document, parts: Sequence[DocumentPart], searched: Sequence[SearchedText], encoded: Sequence[EncodedText]
) -> Document:
    """A document to store, from the outputs of a model for its parts; no ``parts``: the text is one part."""
    pairs = zip(searched, encoded, strict=True)
    spans = [own.in_document(own.kept_spans(output.spans)) for own, output in pairs if output.spans is not None]
    stats = [output.token_stats for output in encoded if output.token_stats is not None]
    num_tokens, num_in_text = sum(own.num_tokens for own in stats), sum(own.num_tokens_in_text for own in stats)
    return Document(
        id=given.id,
        text=given.text,
        payload=given.payload,
        facet_embeddings=np.concatenate([output.facets for output in encoded]),
        facet_spans=np.concatenate(spans) if len(spans) == len(encoded) else None,
        token_stats=TokenStats(num_tokens, num_in_text) if len(stats) == len(encoded) else None,
        parts=parts,
        part_facets=[len(output.facets) for output in encoded],
        source=given.source,
    )


def check_sections(text: str, sections: Sequence[DocumentPart], path: ErrorPath) -> tuple[DocumentPart, ...]:
    """Sections for :func:`split_text`; raises InvalidInputError if one is out of order or starts after the text."""
    before = 0
    for place, section in enumerate(sections):
        if not before <= section.start <= len(text):
            rule = f"must be in order and within the {len(text)} characters of the text, got {section.start}"
            raise InvalidInputError(rule + f" after {before}", path=(*path, place, "start"))
        before = section.start
    return tuple(replace(section, headings=_headings(section.headings)) for section in sections)


def _headings(headings: Sequence[str]) -> tuple[str, ...]:
    tidy = (
        " ".join(heading[: 2 * _MAX_HEADING_CHARS].split())[:_MAX_HEADING_CHARS] for heading in headings[:_MAX_HEADINGS]
    )
    return tuple(heading for heading in tidy if heading)


def _given(sections: Sequence[DocumentPart]) -> list[_Section]:
    """Sections whose headings differ from those of the section before."""
    kept = [_Section(0, ())]
    for section in sections:
        if section.headings != kept[-1].headings:
            kept.append(_Section(section.start, section.headings))
    return kept if len(kept) > 1 else []


def _header_rows(found: Sequence[Block]) -> dict[int, tuple[str, ...]]:
    """The header row of the table, as a heading, by the start of each row below the first one; none if it is long."""
    rows = dict[int, tuple[str, ...]]()
    for before, block in pairwise(found):
        if before.row and block.row and block.row.names and before.row.names == block.row.names:
            heading = f"| {' | '.join(block.row.names)} |"
            rows[block.start] = (heading,) if len(heading) <= _MAX_HEADING_CHARS else ()
    return rows


def _detected(text: str, found: Sequence[Block]) -> list[_Section]:
    """Sections under the headings found in the text."""
    sections, above = [_Section(0, ())], list[tuple[int, str]]()
    for block in found:
        level, heading = block.level, text[block.said_start : block.said_end]
        if block.kind != "heading" or heading.endswith(":"):  # labels of lists and figures are not headings
            continue
        if heading[0].isdigit() or heading.isupper():  # there may be a title above
            level = max(2, level + heading[0].isdigit())
        while above and above[-1][0] >= level:
            above.pop()
        above.append((level, heading))
        sections.append(_Section(block.start, _headings([heading for _, heading in above])))
    return sections


def _joined(sections: Sequence[_Section], end: int) -> list[_Section]:
    """Joins short sections with the next one; the result has the headings of the longest one."""
    joined: list[_Section] = []
    start, longest = 0, -1
    headings: tuple[str, ...] = ()
    for section, stop in zip(sections, [*(section.start for section in sections[1:]), end], strict=True):
        if stop - section.start > longest:
            longest, headings = stop - section.start, section.headings
        if stop - start >= _MIN_SECTION_CHARS:
            joined.append(_Section(start, headings))
            start, longest = stop, -1
    return joined or [_Section(0, headings)]


def _cut(text: str, start: int, end: int, pages: Ints) -> Iterator[tuple[int, int]]:
    """Cuts a section into parts of similar length, before a page or paragraph, or else a sentence, or else a word."""
    count = -(-(end - start) // _PART_CHARS)
    if end - start <= LONGEST_WHOLE_CHARS:
        yield start, end
        return
    goal = (end - start) / count
    found = [(start + sentence.start, sentence.row) for sentence in sentences_of(text[start:end])]
    sentences = np.array([text.rfind("\n", start, at) + 1 or at if row else at for at, row in found], dtype=np.int64)
    breaks = np.array([start + match.end() for match in re.finditer(r"\n[ \t\r]*\n\s*|\f\s*", text[start:end])])
    better = np.intersect1d(sentences, np.concatenate([breaks.astype(np.int64), pages]))
    while end - start > _MAX_SHARE * goal:
        low, high, aim = start + int(_MIN_SHARE * goal), start + int(_MAX_SHARE * goal), start + int(goal)
        white = _WHITE.search(text, aim, high)
        at_word = white.end() if white else aim
        cut = _nearest(better, low, high, aim) or _nearest(sentences, low, high, aim) or at_word
        yield start, cut
        start = cut
    yield start, end


def _nearest(places: Ints, low: int, high: int, aim: int) -> int:
    """The position nearest to ``aim`` between ``low`` and ``high``; 0 if there is none."""
    within = places[np.searchsorted(places, low) : np.searchsorted(places, high, side="right")]
    return int(within[np.abs(within - aim).argmin()]) if len(within) else 0
