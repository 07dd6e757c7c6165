"""An explanation as a picture: tokens shaded by attention, facets in words, which facet met which.

What Chang 2022, figure 3.3 shows. Everything is set in cells of one width, as in a terminal, so that a layout
needs no font to be measured and is the same wherever it is made: x counts cells, y lines. Painted as SVG or PNG by
matplotlib (extra ``plot``), which brings its own fonts.
"""

import io
import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from rich.cells import cell_len, chop_cells

from facets_client.core.extras import require_extra
from facets_client.core.types import FacetMatch, FacetWords
from facets_client.texts.results import Explanation

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


Role: TypeAlias = Literal["title", "text", "unknown", "faint", "cosine"]
Format = Literal["svg", "png"]
FORMATS: tuple[Format, ...] = get_args(Format)

_CELL, _LINE = 7.8, 20.0  # pixels of a character and of a line
_MARGIN_X, _MARGIN_Y = 2.6, 1.0
_COLUMN = 54
_GAP = 27  # between the columns of a pair, for the links
_PADDING = 0.4  # between two facets
_MAX_LINKS = 16
_MIN_CONTRIBUTION = 0.01  # fainter meetings only hide the others
# Where along a link its cosine may stand, best first.
_LABEL_PLACES = (0.5, 0.38, 0.62, 0.26, 0.74, 0.16, 0.84)
_DPI = 72.0
_PNG_SCALE = 2.0  # pixels of the file for each of the layout
_MAX_PIXELS = 20_000  # of a side
_SHADE, _LINK = "#d7301f", "#2b6cb0"
_STRONGEST_SHADE = 0.6  # opacity: the text on it must stay readable
_STYLES: dict[Role, dict[str, Any]] = {
    "title": {"color": "#1f2328", "weight": "bold"},
    "text": {"color": "#1f2328"},
    "unknown": {"color": "#6e7781", "style": "italic"},
    "faint": {"color": "#59636e"},
    "cosine": {"color": "#1a4f8b", "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 1.0}},
}
_FONT: dict[str, Any] = {
    "fontsize": 12.8,  # a little narrower than a cell, so that no word leaves its place
    "family": ["DejaVu Sans Mono", "monospace"],
    "verticalalignment": "baseline",
    "parse_math": False,  # a dollar is a dollar
}


def require_matplotlib() -> None:
    """Checks that pictures can be painted.

    Raises:
        ImportError: matplotlib is not installed.
    """
    require_extra("plot", "matplotlib")


def explanation_picture(text: str, explanation: Explanation) -> "Figure":
    """One text: its tokens, and below them its facets with nearest words and the tokens they attend to.

    Raises:
        ImportError: matplotlib is not installed.
    """
    sheet = _Sheet(f"Facets of: {text}", [explanation])
    y = sheet.tokens(0, explanation, num_cells=2 * _COLUMN)
    for facet in explanation.facets:
        attended = ", ".join(_visible(explanation.tokens[item.token].text) for item in facet.tokens)
        beside = _wrapped(f"attends to {attended}".split(" "), _COLUMN) if attended else []
        for number, line in enumerate(beside):
            sheet.write(_COLUMN + 2, y + number, line, "faint")
        y += max(sheet.facet(0, y, facet), len(beside)) + _PADDING
    return sheet.cut(2 * _COLUMN + 2, y)


def pair_picture(
    texts: tuple[str, str], explanations: tuple[Explanation, Explanation], matches: Sequence[FacetMatch]
) -> "Figure":
    """Two texts side by side: tokens shaded on one scale, facets, and lines between the facets that met.

    Args:
        texts: The two texts.
        explanations: What the model saw in each.
        matches: Which facet met which; the 16 largest contributions are drawn, if above 1 %, each with its cosine.

    Raises:
        ImportError: matplotlib is not installed.

    References:
        Chang 2022, figure 3.3.
    """
    description = f"Facets of: {texts[0]} Facets of: {texts[1]} Lines join facets that met, with their cosine."
    sheet = _Sheet(description, explanations)
    columns = tuple(zip((0, _COLUMN + _GAP), explanations, strict=True))
    y = max(sheet.tokens(x, item, num_cells=_COLUMN) for x, item in columns)
    middles: tuple[dict[int, float], dict[int, float]] = ({}, {})
    for row in paired_rows(matches, *(len(item.facets) for item in explanations)):
        lines = 1
        for (x, item), facet, side in zip(columns, (row.first_facet, row.second_facet), middles, strict=True):
            if facet is not None:
                lines = max(lines, sheet.facet(x, y, item.facets[facet]))
                side[facet] = y + 0.5
        y += lines + _PADDING
    large = [match for match in matches if match.contribution >= _MIN_CONTRIBUTION]
    drawn = sorted(large, key=lambda match: -match.contribution)[:_MAX_LINKS]
    sheet.links([(middles[0][one.first_facet], middles[1][one.second_facet]) for one in drawn], drawn)
    return sheet.cut(2 * _COLUMN + _GAP, y)


class _Sheet:
    """A picture on its way; all texts are shaded on one scale."""

    def __init__(self, description: str, explanations: Sequence[Explanation]) -> None:
        require_matplotlib()
        from matplotlib.figure import Figure

        self._figure = Figure(dpi=_DPI)
        self._figure.set_label(_visible(description))  # for those who cannot see it
        self._axes = self._figure.add_axes((0.0, 0.0, 1.0, 1.0))
        self._axes.set_axis_off()
        attentions = (token.attention for item in explanations for token in item.tokens)
        self._strongest = max(attentions, default=0.0) or 1.0

    def write(self, x: float, y: float, text: str, role: Role) -> None:
        """Text whose line has its upper edge at ``y``."""
        self._axes.text(x, y + 0.72, text, **_STYLES[role], **_FONT)

    def tokens(self, x: float, explanation: Explanation, *, num_cells: int) -> float:
        """Shaded tokens in lines of at most so many cells, how many they are; returns where the facets begin."""
        from matplotlib.patches import Rectangle

        y, used, end = 0.0, 0, 0
        for token in explanation.tokens:
            gap = int(used > 0 and token.start > end)
            end = token.end
            strength = min(1.0, max(0.0, token.attention / self._strongest))
            for part in chop_cells(_visible(token.text), num_cells):
                cells = cell_len(part)
                if used + gap + cells > num_cells:
                    used, gap, y = 0, 0, y + 1.2
                left = x + used + gap
                shade = Rectangle((left - 0.1, y), cells + 0.2, 1, color=_SHADE, alpha=_STRONGEST_SHADE * strength)
                shade.set_linewidth(0)
                self._axes.add_patch(shade)
                self.write(left, y, part, "text" if token.known else "unknown")
                used, gap = used + gap + cells, 0
        stats = explanation.token_stats
        cut = ", the end was not read" if stats.truncated else ""
        self.write(x, y + 1.2, f"{stats.num_tokens} tokens, {stats.num_unknown_tokens} unknown{cut}", "faint")
        return y + 3

    def facet(self, x: float, y: float, facet: FacetWords) -> int:
        """A facet's number and nearest words; returns how many lines they take."""
        self.write(x, y, f"{facet.facet:>2}", "title")
        nearest = [f"{_visible(word.word)} {word.cosine:.2f}" for word in facet.words]
        lines = _wrapped([f"{part}," for part in nearest[:-1]] + nearest[-1:], _COLUMN - 4) or [""]
        for number, line in enumerate(lines):
            self.write(x + 4, y + number, line, "text")
        return len(lines)

    def links(self, ends: Sequence[tuple[float, float]], matches: Sequence[FacetMatch]) -> None:
        """Lines between the columns, each with its cosine where it covers no other."""
        left, right = _COLUMN + 0.8, _COLUMN + _GAP - 0.8
        largest = max((match.contribution for match in matches), default=0.0) or 1.0
        placed: list[tuple[float, float]] = []
        for (y1, y2), match in zip(ends, matches, strict=True):
            strength = match.contribution / largest
            self._axes.plot(
                (left, right), (y1, y2), color=_LINK, linewidth=0.8 + 3.2 * strength, alpha=0.35 + 0.5 * strength
            )
            text = f"{match.cosine:.2f}"
            spots = [(left + t * (right - left), y1 + t * (y2 - y1)) for t in _LABEL_PLACES]
            x, y = min(spots, key=lambda spot: _crowd(spot, placed))  # min takes the first of equals
            placed.append((x, y))
            self.write(x - cell_len(text) / 2, y - 0.5, text, "cosine")

    def cut(self, width: float, height: float) -> "Figure":
        """The sheet, cut to what is on it and a margin."""
        self._axes.set_xlim(-_MARGIN_X, width + _MARGIN_X)
        self._axes.set_ylim(height + _MARGIN_Y, -_MARGIN_Y)
        pixels = (width + 2 * _MARGIN_X) * _CELL, (height + 2 * _MARGIN_Y) * _LINE
        self._figure.set_size_inches(pixels[0] / _DPI, pixels[1] / _DPI)
        return self._figure


def _crowd(spot: tuple[float, float], placed: Sequence[tuple[float, float]]) -> int:
    """How many cosines a further one would cover."""
    return sum(abs(spot[0] - x) < 5 and abs(spot[1] - y) < 0.75 for x, y in placed)


def _wrapped(parts: Sequence[str], num_cells: int) -> list[str]:
    """Parts joined by spaces into lines of at most so many cells; longer parts are cut."""
    lines: list[str] = []
    for part in itertools.chain.from_iterable(chop_cells(part, num_cells) for part in parts):
        if lines and cell_len(lines[-1]) + 1 + cell_len(part) <= num_cells:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    return lines


def _visible(text: str) -> str:
    """Text on one line without characters that cannot be painted."""
    return "".join(character if character.isprintable() else " " for character in text)


def plot(picture: "Figure", form: Format) -> bytes:
    """The picture as a file, on a white ground; the same picture gives the same bytes.

    Args:
        picture: What was drawn.
        form: ``svg``, or ``png`` with two pixels for each of the layout.

    Raises:
        ValueError: The picture is too large for a PNG.
    """
    import matplotlib

    scale = _PNG_SCALE if form == "png" else 1.0
    largest = int(scale * _DPI * max(picture.get_size_inches()))
    if form == "png" and largest > _MAX_PIXELS:
        raise ValueError(f"a PNG may have {_MAX_PIXELS} pixels a side, this one needs {largest}: write an SVG")
    about = {"Software": None} if form == "png" else {"Title": str(picture.get_label()), "Date": None, "Creator": None}
    file = io.BytesIO()
    # Text stays text; with a salt of its own and no date the same picture gives the same bytes.
    settings = matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "facets"})
    with settings, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a character that the font lacks shows as a box
        picture.savefig(file, format=form, dpi=scale * _DPI, metadata=about)
    return file.getvalue()
