"""An explanation as a picture: tokens shaded by attention, facets in words, which facet met which.

What Chang 2022, figure 3.3 shows. Everything is set in cells of one width, as in a terminal, so that a layout
needs no font to be measured and is the same wherever it is made. Units are pixels. Painted as SVG or PNG by
matplotlib (extra ``plot``), which brings its own fonts.
"""

import importlib.util
import io
import itertools
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from rich.cells import cell_len, chop_cells

from facets_client.core.extras import install_command
from facets_client.core.types import FacetMatch, FacetWords
from facets_client.texts.results import Explanation


@dataclass(frozen=True, slots=True)
class FacetRow:
    """Two facets that stand side by side; numbers count from 0."""

    first_facet: int | None  # of the first text; None when the second has more facets
    second_facet: int | None
    match: FacetMatch | None  # how they met; None when they did not


def paired_rows(matches: Sequence[FacetMatch], num_first: int, num_second: int) -> tuple[FacetRow, ...]:
    """Rows in the order of the first text's facets, each with the facet it met most.

    Greedy: the largest contribution first, every facet once; facets that are left over fill the free places in
    order.

    Args:
        matches: Meetings of the facets.
        num_first: Facets of the first text.
        num_second: Facets of the second text.

    Returns:
        ``max(num_first, num_second)`` rows.
    """
    partners: dict[int, FacetMatch] = {}
    taken: set[int] = set()
    for match in sorted(matches, key=lambda item: (-item.contribution, item.first_facet, item.second_facet)):
        if match.first_facet not in partners and match.second_facet not in taken:
            partners[match.first_facet] = match
            taken.add(match.second_facet)
    left_over = iter([facet for facet in range(num_second) if facet not in taken])
    rows = []
    for row in range(max(num_first, num_second)):
        met = partners.get(row)
        second = met.second_facet if met else next(left_over, None)
        rows.append(FacetRow(row if row < num_first else None, second, met))
    return tuple(rows)


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


if TYPE_CHECKING:
    from matplotlib.axes import Axes


Format = Literal["svg", "png"]
FORMATS: tuple[Format, ...] = get_args(Format)

_DPI = 72.0
_PNG_SCALE = 2.0  # pixels for each unit of the picture
_MAX_PIXELS = 20_000  # of a side
_SHADE, _LINK = "#d7301f", "#2b6cb0"
_STRONGEST_SHADE = 0.6  # opacity: the text on it must stay readable
_FONTS = ["DejaVu Sans Mono", "monospace"]
_COLORS: dict[Role, str] = {
    "title": "#1f2328",
    "text": "#1f2328",
    "unknown": "#6e7781",
    "faint": "#59636e",
    "cosine": "#1a4f8b",
}


def require_matplotlib() -> None:
    """Checks that pictures can be painted.

    Raises:
        ImportError: matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError(f"a picture needs matplotlib, which is not installed: {install_command('plot')}")


def plot(picture: Picture, form: Format) -> bytes:
    """The picture as a file, on a white ground; the same picture gives the same bytes.

    Args:
        picture: The layout.
        form: ``svg``, or ``png`` with two pixels for each unit.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: The picture is too large for a PNG.
    """
    largest = int(_PNG_SCALE * max(picture.width, picture.height))
    if form == "png" and largest > _MAX_PIXELS:
        raise ValueError(f"a PNG may have {_MAX_PIXELS} pixels a side, this one needs {largest}: write an SVG")
    require_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    dpi = _DPI * (_PNG_SCALE if form == "png" else 1.0)
    figure = Figure(figsize=(picture.width / _DPI, picture.height / _DPI), dpi=dpi)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(0, picture.width)
    axes.set_ylim(picture.height, 0)
    _paint(picture, axes)
    metadata = {"Software": None} if form == "png" else {"Title": picture.description, "Date": None, "Creator": None}
    file = io.BytesIO()
    # Text stays text; with a salt of its own and no date the same picture gives the same bytes.
    settings = matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "facets"})
    with settings, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a character that the font lacks shows as a box
        figure.savefig(file, format=form, dpi=dpi, metadata=metadata)
    return file.getvalue()


def _paint(picture: Picture, axes: "Axes") -> None:
    """Shades, links and labels, in this order."""
    from matplotlib.patches import Rectangle

    for shade in picture.shades:
        opacity = _STRONGEST_SHADE * shade.strength
        axes.add_patch(
            Rectangle((shade.x, shade.y), shade.width, shade.height, color=_SHADE, alpha=opacity, linewidth=0)
        )
    for link in picture.links:
        axes.plot(
            (link.x1, link.x2),
            (link.y1, link.y2),
            color=_LINK,
            linewidth=0.8 + 3.2 * link.strength,
            alpha=0.35 + 0.5 * link.strength,
        )
    for label in picture.labels:
        axes.text(
            label.x,
            label.y,
            label.text,
            color=_COLORS[label.role],
            # A little narrower than a cell of the layout, so that no word leaves its place.
            fontsize=0.985 * FONT_SIZE,
            family=_FONTS,
            weight="bold" if label.role == "title" else "normal",
            style="italic" if label.role == "unknown" else "normal",
            verticalalignment="baseline",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0} if label.role == "cosine" else None,
            parse_math=False,  # a dollar is a dollar
        )
