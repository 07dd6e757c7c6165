"""A picture of an explanation as SVG: plain, deterministic, readable on light and on dark pages."""

from xml.sax.saxutils import escape

from facets_client.texts.explain_picture import FONT_SIZE, Picture

__all__ = ["svg"]

# One palette for light pages, one for dark ones; the picture brings its own ground, so it never depends on the page.
_STYLE = """
.ground{fill:#ffffff}.shade{fill:#d7301f}.link{stroke:#2b6cb0}
text{font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#1f2328}
.title{font-weight:bold}.unknown{fill:#6e7781;font-style:italic}.faint{fill:#59636e}
.cosine{fill:#1a4f8b;stroke:#ffffff;stroke-width:4px;paint-order:stroke}
@media (prefers-color-scheme:dark){.ground{fill:#0d1117}.shade{fill:#f4583e}.link{stroke:#79b8ff}
text{fill:#e6edf3}.unknown,.faint{fill:#9198a1}.cosine{fill:#a5d0ff;stroke:#0d1117}}
"""
_STRONGEST_SHADE = 0.6  # opacity: the text on it must stay readable


def svg(picture: Picture) -> str:
    """The picture as an SVG document; the same picture gives the same bytes.

    Args:
        picture: The layout.

    Returns:
        Well-formed XML in UTF-8 without anything from outside: no font, script or address is loaded.
    """
    width, height = _number(picture.width), _number(picture.height)
    description = escape("".join(c if c.isprintable() else " " for c in picture.description))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        f' font-size="{_number(FONT_SIZE)}" role="img">',
        f"<title>{description}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="ground" width="{width}" height="{height}"/>',
    ]
    parts += [
        f'<rect class="shade" x="{_number(shade.x)}" y="{_number(shade.y)}" width="{_number(shade.width)}"'
        f' height="{_number(shade.height)}" rx="2" fill-opacity="{_number(_STRONGEST_SHADE * shade.strength)}"/>'
        for shade in picture.shades
    ]
    parts += [
        f'<line class="link" x1="{_number(link.x1)}" y1="{_number(link.y1)}" x2="{_number(link.x2)}"'
        f' y2="{_number(link.y2)}" stroke-width="{_number(0.8 + 3.2 * link.strength)}"'
        f' stroke-opacity="{_number(0.35 + 0.5 * link.strength)}"/>'
        for link in picture.links
    ]
    # The length is given, so that a page without these fonts shows every word in its place.
    parts += [
        f'<text class="{label.role}" x="{_number(label.x)}" y="{_number(label.y)}"'
        f' textLength="{_number(label.width)}" lengthAdjust="spacingAndGlyphs">{escape(label.text)}</text>'
        for label in picture.labels
        if label.text.strip()
    ]
    return "\n".join([*parts, "</svg>", ""])


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
