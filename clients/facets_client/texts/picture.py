"""The layout of an explanation as a picture: tokens shaded by attention, facets in words, which facet met which.

What Chang 2022, figure 3.3 shows. Everything is set in cells of one width, as in a terminal, so that a picture
needs no font to be measured and is the same wherever it is made. Units are pixels.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len, chop_cells

from facets_client.core.results import FacetMatch
from facets_client.texts.pairing import paired_rows
from facets_client.texts.results import Explanation, FacetWords

__all__ = ["CELL", "FONT_SIZE", "Label", "Link", "Picture", "Shade", "explanation_picture", "pair_picture"]

Role = Literal["title", "text", "unknown", "faint", "cosine"]

FONT_SIZE = 13.0
CELL = 7.8  # width of one character
_LINE = 20.0
_MARGIN = 20.0
_COLUMN_CELLS = 54
_GAP = 210.0  # between the columns of a pair, for the links
_ROW_PADDING = 8.0
_MAX_LINKS = 16
_MIN_CONTRIBUTION = 0.01  # fainter meetings only hide the others
# Where along a link its cosine may stand, best first.
_LABEL_PLACES = (0.5, 0.38, 0.62, 0.26, 0.74, 0.16, 0.84)


@dataclass(frozen=True, slots=True)
class Shade:
    """A rectangle behind a token."""

    x: float
    y: float
    width: float
    height: float
    strength: float  # attention over the strongest one of the picture, in [0, 1]


@dataclass(frozen=True, slots=True)
class Link:
    """A line between two facets."""

    x1: float
    y1: float
    x2: float
    y2: float
    strength: float  # contribution over the largest one, in [0, 1]


@dataclass(frozen=True, slots=True)
class Label:
    """A line of text; ``x`` is its left end, ``y`` its base line."""

    x: float
    y: float
    text: str
    role: Role

    @property
    def width(self) -> float:
        """Width that the text takes."""
        return cell_len(self.text) * CELL


@dataclass(frozen=True, slots=True)
class Picture:
    """What is to be painted, in this order: shades, links, labels."""

    width: float
    height: float
    description: str  # for those who cannot see it
    shades: tuple[Shade, ...]
    links: tuple[Link, ...]
    labels: tuple[Label, ...]


def explanation_picture(text: str, explanation: Explanation) -> Picture:
    """One text: its tokens, and below them its facets with nearest words and the tokens they attend to.

    Args:
        text: The text that was explained.
        explanation: What the model saw in it.
    """
    canvas = _Canvas()
    y = canvas.tokens(_MARGIN, _MARGIN, explanation, strongest=_strongest([explanation]), num_cells=2 * _COLUMN_CELLS)
    y = canvas.caption(_MARGIN, y, _caption(explanation))
    for facet in explanation.facets:
        attended = ", ".join(_visible(explanation.tokens[item.token].text) for item in facet.tokens)
        lines = canvas.facet(_MARGIN, y, facet, _COLUMN_CELLS)
        beside = _wrapped(f"attends to {attended}".split(" "), _COLUMN_CELLS) if attended else []
        for number, line in enumerate(beside):
            x = _MARGIN + (_COLUMN_CELLS + 2) * CELL
            canvas.label(x, y + number * _LINE, line, "faint")
        y += max(lines, len(beside)) * _LINE + _ROW_PADDING
    return canvas.picture(2 * _MARGIN + (2 * _COLUMN_CELLS + 2) * CELL, y, f"Facets of: {text}")


def pair_picture(
    texts: tuple[str, str], explanations: tuple[Explanation, Explanation], matches: Sequence[FacetMatch]
) -> Picture:
    """Two texts side by side: tokens shaded on one scale, facets, and lines between the facets that met.

    Args:
        texts: The two texts.
        explanations: What the model saw in each.
        matches: Which facet met which; the 16 largest contributions are drawn, if above 1 %, each with its cosine.

    References:
        Chang 2022, figure 3.3.
    """
    canvas = _Canvas()
    first, second = explanations
    left, right = _MARGIN, _MARGIN + _COLUMN_CELLS * CELL + _GAP
    strongest = _strongest(explanations)
    y = max(
        canvas.caption(x, canvas.tokens(x, _MARGIN, item, strongest=strongest, num_cells=_COLUMN_CELLS), _caption(item))
        for x, item in ((left, first), (right, second))
    )
    middles_first: dict[int, float] = {}
    middles_second: dict[int, float] = {}
    for row in paired_rows(matches, len(first.facets), len(second.facets)):
        lines = 1
        for x, item, facet, middles in (
            (left, first, row.first_facet, middles_first),
            (right, second, row.second_facet, middles_second),
        ):
            if facet is not None:
                lines = max(lines, canvas.facet(x, y, item.facets[facet], _COLUMN_CELLS))
                middles[facet] = y + _LINE / 2
        y += lines * _LINE + _ROW_PADDING
    large = [match for match in matches if match.contribution >= _MIN_CONTRIBUTION]
    drawn = sorted(large, key=lambda match: -match.contribution)[:_MAX_LINKS]
    ends = [(middles_first[match.first_facet], middles_second[match.second_facet]) for match in drawn]
    canvas.links((left + _COLUMN_CELLS * CELL + 6, right - 6), ends, drawn)
    description = f"Facets of: {texts[0]} Facets of: {texts[1]} Lines join facets that met, with their cosine."
    return canvas.picture(right + _COLUMN_CELLS * CELL + _MARGIN, y, description)


class _Canvas:
    """Collects what a picture holds."""

    def __init__(self) -> None:
        self._shades: list[Shade] = []
        self._links: list[Link] = []
        self._labels: list[Label] = []

    def label(self, x: float, y: float, text: str, role: Role) -> None:
        """Text whose line has its upper edge at ``y``."""
        self._labels.append(Label(x, y + 0.72 * _LINE, text, role))

    def tokens(self, x: float, y: float, explanation: Explanation, *, strongest: float, num_cells: int) -> float:
        """Shaded tokens, broken into lines of at most so many cells; returns where the next line begins."""
        used = 0
        end = 0
        for token in explanation.tokens:
            gap = int(used > 0 and token.start > end)
            end = token.end
            for part in chop_cells(_visible(token.text), num_cells):
                cells = cell_len(part)
                if used + gap + cells > num_cells:
                    used, gap, y = 0, 0, y + _LINE + 4
                left = x + (used + gap) * CELL
                strength = min(1.0, max(0.0, token.attention / strongest))
                self._shades.append(Shade(left - 1, y, cells * CELL + 2, _LINE, strength))
                self.label(left, y, part, "text" if token.known else "unknown")
                used, gap = used + gap + cells, 0
        return y + _LINE

    def caption(self, x: float, y: float, text: str) -> float:
        """A faint line below the tokens; returns where the facets begin."""
        self.label(x, y + 4, text, "faint")
        return y + 2 * _LINE

    def facet(self, x: float, y: float, facet: FacetWords, num_cells: int) -> int:
        """A facet's number and nearest words; returns how many lines they take."""
        self.label(x, y, f"{facet.facet:>2}", "title")
        nearest = [f"{_visible(word.word)} {word.cosine:.2f}" for word in facet.words]
        parts = [f"{part}," for part in nearest[:-1]] + nearest[-1:]
        lines = _wrapped(parts, num_cells - 4) or [""]
        for number, line in enumerate(lines):
            self.label(x + 4 * CELL, y + number * _LINE, line, "text")
        return len(lines)

    def links(
        self, sides: tuple[float, float], ends: Sequence[tuple[float, float]], matches: Sequence[FacetMatch]
    ) -> None:
        """Lines between the columns, each with its cosine where it covers no other."""
        left, right = sides
        largest = max((match.contribution for match in matches), default=0.0) or 1.0
        placed: list[tuple[float, float]] = []
        for (y1, y2), match in zip(ends, matches, strict=True):
            self._links.append(Link(left, y1, right, y2, match.contribution / largest))
            text = f"{match.cosine:.2f}"
            spots = [(left + t * (right - left), y1 + t * (y2 - y1)) for t in _LABEL_PLACES]
            x, y = min(spots, key=lambda spot: _crowd(spot, placed))  # min takes the first of equals
            placed.append((x, y))
            self._labels.append(Label(x - cell_len(text) * CELL / 2, y + 0.22 * _LINE, text, "cosine"))

    def picture(self, width: float, height: float, description: str) -> Picture:
        """Everything so far, with a margin below."""
        items = (tuple(self._shades), tuple(self._links), tuple(self._labels))
        return Picture(width, height + _MARGIN, _visible(description), *items)


def _crowd(spot: tuple[float, float], placed: Sequence[tuple[float, float]]) -> int:
    """How many cosines a further one would cover."""
    return sum(abs(spot[0] - x) < 5 * CELL and abs(spot[1] - y) < 0.75 * _LINE for x, y in placed)


def _strongest(explanations: Sequence[Explanation]) -> float:
    attentions = itertools.chain.from_iterable((token.attention for token in item.tokens) for item in explanations)
    return max(attentions, default=0.0) or 1.0


def _caption(explanation: Explanation) -> str:
    stats = explanation.token_stats
    cut = ", the end was not read" if stats.truncated else ""
    return f"{stats.num_tokens} tokens, {stats.num_unknown_tokens} unknown{cut}"


def _wrapped(parts: Sequence[str], num_cells: int) -> list[str]:
    """Parts joined by spaces into lines of at most so many cells; longer parts are cut."""
    lines: list[str] = []
    for part in itertools.chain.from_iterable(_pieces(part, num_cells) for part in parts):
        if lines and cell_len(lines[-1]) + 1 + cell_len(part) <= num_cells:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    return lines


def _pieces(part: str, num_cells: int) -> Iterator[str]:
    return iter(chop_cells(part, num_cells))


def _visible(text: str) -> str:
    """Text on one line without characters that cannot be painted."""
    return "".join(character if character.isprintable() else " " for character in text)
