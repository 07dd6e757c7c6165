r"""Parts of long texts: cut where sections begin and between sentences, so that each says one thing and has its place.

A text that one part holds stays whole. Sections are those the caller knows, else those under the headings that
:mod:`facets.language.blocks` finds in the text; pages end with a form feed. Parts overlap by nothing and leave out
nothing: each goes on until the next one. All of it takes time in proportion to the text.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from facets.documents.fields import SearchedText
from facets.documents.types import Document, DocumentPart, JsonValue
from facets.errors import ErrorPath, InvalidInputError
from facets.language.blocks import blocks
from facets.language.interruption import check_interrupted
from facets.language.sentences import sentences_of

LONGEST_WHOLE_CHARS = 3000  # a longer text is cut
_PART_CHARS = 2000  # about so long are its parts
_SHORTEST_CHARS = 300  # a shorter section goes with the next one
_LEAST, _MOST = 0.6, 1.4  # of what a part should have; a cut that is better by nature is looked for in between
_MAX_DEPTH = 8  # headings above a part
_MAX_HEADING_CHARS = 200
_TITLE_WORD = r"(?:[A-Z][\w'-]*|and|of|the|to|in|for|or|on|by|a|an|with)"
# A numbered heading that its paragraph goes on behind: "7. No Warranty. Unless".
_RUN_IN = re.compile(rf"(\d{{1,3}}(?:\.\d{{1,3}}){{0,4}})\.?[ \t]+({_TITLE_WORD}(?:,? {_TITLE_WORD}){{0,9}})\.(?:\s|$)")
_WHITE = re.compile(r"\s")
_NOT_WHITE = re.compile(r"\S")


class _Section(NamedTuple):
    """A stretch of a text under one heading, from its start to the next one's."""

    start: int
    headings: tuple[str, ...]


def split_text(text: str, sections: Sequence[DocumentPart] = ()) -> tuple[DocumentPart, ...]:
    r"""The parts of a text, one behind the other; none where it is one part.

    Args:
        text: Any text.
        sections: Where sections and pages begin as the caller knows them, checked by :func:`check_sections`; ``end``
            does not matter. None: what the text shows.

    Example:
        >>> text = "# Cranes\n" + "A crane fell. " * 300 + "\n\n# Bees\n" + "Bees make honey. " * 50
        >>> [(part.end - part.start, part.headings) for part in split_text(text)]
        [(1409, ('Cranes',)), (1400, ('Cranes',)), (1402, ('Cranes',)), (857, ('Bees',))]
    """
    if len(text) <= LONGEST_WHOLE_CHARS:
        return ()
    pages = np.array([part.start for part in sections if part.page] or _pages(text), dtype=np.int64)
    numbers = [part.page for part in sections if part.page] or list(range(1, len(pages) + 1))
    found = _joined(_given(sections) or _detected(text), len(text))
    parts = []
    for section, end in zip(found, [*(section.start for section in found[1:]), len(text)], strict=True):
        check_interrupted()
        for first, last in _cut(text, section.start, end, pages):
            said = _NOT_WHITE.search(text, first, last)
            page = int(np.searchsorted(pages, said.start() if said else first, side="right")) - 1
            number = numbers[page] if 0 <= page and len(pages) > 1 else 0
            parts.append(DocumentPart(start=first, end=last, headings=section.headings, page=number))
    return tuple(_with_words(text, parts)) if len(parts) > 1 else ()


def with_parts(document: Document, parts: tuple[DocumentPart, ...], *, num_facets: int) -> Document:
    """A document with facets of its whole text as one of these parts: each facet goes where its span begins.

    ``document``: with spans; facets that are zero or have no place may be left out. ``parts``: none: it stays one.
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
    in_text = spans[:, 1] <= len(document.text)  # others lie in fields, which stand behind it
    spans[:, 1] = np.where(in_text, np.minimum(spans[:, 1], np.repeat(ends, room)), spans[:, 1])
    return replace(document, facet_embeddings=facets, facet_spans=spans, parts=parts, part_facets=room.tolist())


@dataclass(frozen=True, slots=True)
class EncodedText:
    """What a model made of one text: a document's, or that of a part."""

    facets: NDArray[np.floating]  # `[K, D]` or more, magnitudes kept
    # Where each stands in what was read, `[K, 2]`; None: the model does not say.
    spans: NDArray[np.integer] | None = None
    num_tokens: int | None = None  # tokens of the text; None: the model does not say
    num_read: int | None = None  # how many of them the model has read

    @classmethod
    def of_nothing(cls, num_facets: int, dim: int) -> "EncodedText":
        """Of a text without words."""
        return cls(np.zeros((num_facets, dim), dtype=np.float16), np.zeros((num_facets, 2), dtype=np.int32), 0, 0)


def from_encoded(
    id: str,
    text: str,
    payload: Mapping[str, JsonValue],
    *,
    parts: tuple[DocumentPart, ...],
    said: Sequence[SearchedText],
    encoded: Sequence[EncodedText],
) -> Document:
    """A document to store, of what a model made of its parts.

    ``parts``: those of the text; none where it is one.
    """
    pairs = zip(said, encoded, strict=True)
    spans = [one.in_document(one.kept_spans(read.spans)) for one, read in pairs if read.spans is not None]
    num_tokens, num_read = ([getattr(one, name) for one in encoded] for name in ("num_tokens", "num_read"))
    return Document(
        id=id,
        text=text,
        payload=payload,
        facet_embeddings=np.concatenate([one.facets for one in encoded]),
        facet_spans=np.concatenate(spans) if len(spans) == len(encoded) else None,
        num_tokens=None if None in num_tokens else sum(num_tokens),
        num_read=None if None in num_read else sum(num_read),
        parts=parts,
        part_facets=[len(one.facets) for one in encoded],
    )


def check_sections(text: str, sections: Sequence[DocumentPart], path: ErrorPath) -> tuple[DocumentPart, ...]:
    """Sections as :func:`split_text` takes them, of their headings what counts.

    Raises:
        InvalidInputError: They are not in the order of start, or begin behind the text.
    """
    before = 0
    for place, section in enumerate(sections):
        if not before <= section.start <= len(text):
            rule = f"must be in order and within the {len(text)} characters of the text, got {section.start}"
            raise InvalidInputError(rule + f" after {before}", path=(*path, place, "start"))
        before = section.start
    return tuple(replace(one, headings=_headings(one.headings)) for one in sections)


def _headings(headings: Sequence[str]) -> tuple[str, ...]:
    tidy = (
        " ".join(heading[: 2 * _MAX_HEADING_CHARS].split())[:_MAX_HEADING_CHARS] for heading in headings[:_MAX_DEPTH]
    )
    return tuple(heading for heading in tidy if heading)


def _given(sections: Sequence[DocumentPart]) -> list[_Section]:
    """Sections whose headings are other ones than those of the section before."""
    found = [_Section(0, ())]
    for section in sections:
        if section.headings != found[-1].headings:
            found.append(_Section(section.start, section.headings))
    return found if len(found) > 1 else []


def _pages(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer("\f", text))]


def _detected(text: str) -> list[_Section]:
    """Sections under the headings that the text shows."""
    found, above = [_Section(0, ())], list[tuple[int, str]]()
    for block in blocks(text):
        level, said = block.level, text[block.said_start : block.said_end]
        if block.kind != "heading" or said.endswith(":"):  # labels of what is listed or shown are none
            run_in = _RUN_IN.match(text, block.start, block.end)
            if run_in is None or text[max(0, block.start - 3) : block.start].rstrip(" \t\r")[-2:].strip("\n"):
                continue
            level, said = 2 + run_in[1].count("."), f"{run_in[1]} {run_in[2]}"
        elif said[0].isdigit() or said.isupper():  # a title may stand above
            level = max(2, level + said[0].isdigit())
        while above and above[-1][0] >= level:
            above.pop()
        above.append((level, said))
        found.append(_Section(block.start, _headings([one for _, one in above])))
    return found


def _joined(sections: Sequence[_Section], end: int) -> list[_Section]:
    """Sections, short ones with the next one; what is joined has the headings of the longest."""
    found: list[_Section] = []
    start, longest = 0, -1
    headings: tuple[str, ...] = ()
    for section, stop in zip(sections, [*(section.start for section in sections[1:]), end], strict=True):
        if stop - section.start > longest:
            longest, headings = stop - section.start, section.headings
        if stop - start >= _SHORTEST_CHARS:
            found.append(_Section(start, headings))
            start, longest = stop, -1
    return found or [_Section(0, headings)]


def _cut(text: str, start: int, end: int, pages: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Parts of about one length of one section; cut before a page or a paragraph, else a sentence, else a word."""
    count = -(-(end - start) // _PART_CHARS)
    if end - start <= LONGEST_WHOLE_CHARS:
        yield start, end
        return
    goal = (end - start) / count
    sentences = np.array([start + one.start for one in sentences_of(text[start:end])], dtype=np.int64)
    breaks = np.array([start + match.end() for match in re.finditer(r"\n[ \t\r]*\n\s*|\f\s*", text[start:end])])
    better = np.intersect1d(sentences, np.concatenate([breaks.astype(np.int64), pages]))
    while end - start > _MOST * goal:
        low, high, aim = start + int(_LEAST * goal), start + int(_MOST * goal), start + int(goal)
        cut = _nearest(better, low, high, aim) or _nearest(sentences, low, high, aim) or _at_word(text, low, high, aim)
        yield start, cut
        start = cut
    yield start, end


def _nearest(places: NDArray[np.int64], low: int, high: int, aim: int) -> int:
    """The place nearest to the aim from ``low`` to ``high``; 0: there is none."""
    within = places[np.searchsorted(places, low) : np.searchsorted(places, high, side="right")]
    return int(within[np.abs(within - aim).argmin()]) if len(within) else 0


def _at_word(text: str, low: int, high: int, aim: int) -> int:
    """Behind the white space that is nearest behind the aim, else before it, else at the aim."""
    found = _WHITE.search(text, aim, high)
    if found:
        return found.end()
    before = max(text.rfind(" ", low, aim), text.rfind("\n", low, aim))
    return before + 1 if before >= low else aim


def _with_words(text: str, parts: Sequence[DocumentPart]) -> Iterator[DocumentPart]:
    """Parts of nothing but white space belong to the one before, or to the next one."""
    held: DocumentPart | None = None
    for part in parts:
        if held is not None and not text[part.start : part.end].strip():
            held = replace(held, end=part.end)
            continue
        if held is not None and not text[held.start : held.end].strip():
            held = replace(part, start=held.start)
            continue
        if held is not None:
            yield held
        held = part
    if held is not None:
        yield held
