"""A picture of an explanation as SVG or PNG, painted by matplotlib (extra ``plot``), which brings its own fonts."""

import importlib.util
import io
import warnings
from typing import TYPE_CHECKING, Literal, get_args

from facets_client.core.distribution import install_command
from facets_client.texts.picture import FONT_SIZE, Picture, Role

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FORMATS", "Format", "plot", "require_matplotlib"]

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
