"""A picture of an explanation as PNG, painted by matplotlib (extra ``png``), which brings its own fonts."""

import importlib.util
import io

from facets_client.texts.explain_picture import FONT_SIZE, Picture, Role

__all__ = ["png"]

_DPI = 72.0
_SCALE = 2.0  # pixels for each unit of the picture
_MAX_PIXELS = 20_000  # of a side
_SHADE, _LINK = "#d7301f", "#2b6cb0"
_STRONGEST_SHADE = 0.6
_COLORS: dict[Role, str] = {
    "title": "#1f2328",
    "text": "#1f2328",
    "unknown": "#6e7781",
    "faint": "#59636e",
    "cosine": "#1a4f8b",
}


def png(picture: Picture) -> bytes:
    """The picture as a PNG file, two pixels for each unit, on a white ground.

    Args:
        picture: The layout.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: The picture is too large for a PNG.
    """
    largest = int(_SCALE * max(picture.width, picture.height))
    if largest > _MAX_PIXELS:
        raise ValueError(f"a PNG may have {_MAX_PIXELS} pixels a side, this one needs {largest}: write an SVG")
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError("a PNG needs matplotlib, which is not installed: pip install 'facets[png]', or write an SVG")
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle
    from matplotlib.patheffects import withStroke

    figure = Figure(figsize=(picture.width / _DPI, picture.height / _DPI), dpi=_SCALE * _DPI)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(0, picture.width)
    axes.set_ylim(picture.height, 0)
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
            family="DejaVu Sans Mono",
            weight="bold" if label.role == "title" else "normal",
            style="italic" if label.role == "unknown" else "normal",
            verticalalignment="baseline",
            path_effects=[withStroke(linewidth=4, foreground="white")] if label.role == "cosine" else [],
            parse_math=False,  # a dollar is a dollar
        )
    file = io.BytesIO()
    # Without the name of the program the same picture gives the same bytes.
    figure.savefig(file, format="png", dpi=_SCALE * _DPI, metadata={"Software": None})
    return file.getvalue()
