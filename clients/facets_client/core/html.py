"""Results as HTML for notebooks: one element with its style, readable on light and dark, without scripts or files.

Text and background are the notebook's own, in every theme; colours are laid over them, half transparent.
"""

from collections.abc import Sequence
from datetime import datetime
from html import escape

STYLE = (
    ".facets-out{font:inherit;color:inherit;line-height:1.5;max-width:60em}"
    ".facets-out mark{background:rgba(255,190,0,.35);color:inherit;padding:0}"
    ".facets-out .dim{opacity:.72;font-size:.9em}.facets-out .dim .dim{opacity:1;font-size:1em}"
    ".facets-out ol{padding-left:1.8em;margin:.3em 0}.facets-out li{margin:.7em 0}"
    ".facets-out p{margin:.2em 0}"
    ".facets-out summary{cursor:pointer}"
    ".facets-out table{border-collapse:collapse;color:inherit;background:none;margin:.4em 0;font-size:.95em}"
    ".facets-out tr{background:none}"
    ".facets-out th,.facets-out td{text-align:left;vertical-align:top;padding:.2em .8em .2em .3em;"
    "border-bottom:1px solid rgba(128,128,128,.3);white-space:normal}"
    ".facets-out .f{background:hsl(var(--h) 85% 50%/var(--a));border-radius:.2em}"
    ".facets-out .heat th{font-weight:normal;max-width:9em}.facets-out .heat td{padding:1px}"
    ".facets-out .heat td .f{display:block;text-align:center;padding:.3em .8em}"
)
_CELL_CHARS = 300
MAX_ROWS = 20  # shown of a list
_GOLDEN_ANGLE = 137.5  # between the hues of consecutive facets, so that neighbours differ
_MAX_OPACITY = 0.5  # of a colour behind text, which must stay readable


class Html(str):
    """HTML, which is not escaped again."""

    __slots__ = ()


def text_of(value: object) -> str:
    """A value on one line: numbers rounded, long texts cut."""
    if value is None or isinstance(value, bool):
        value = {None: "", True: "yes", False: "no"}[value]
    elif isinstance(value, float):
        value = f"{value:.3f}"
    elif isinstance(value, datetime):
        value = f"{value:%Y-%m-%d %H:%M}"
    text = " ".join(str(value).split())
    return text if len(text) <= _CELL_CHARS else f"{text[:_CELL_CHARS]} ..."


def html_of(value: object) -> str:
    """A value as HTML, as ``text_of``."""
    return value if isinstance(value, Html) else escape(text_of(value))


def table_html(columns: Sequence[object], rows: Sequence[Sequence[object]], *, kind: str = "") -> str:
    """A table; with a kind, each row starts with its name."""
    lines = ["".join(f"<th>{html_of(name)}</th>" for name in columns)] if columns else []
    for row in rows:
        tags = ["th" if kind and not place else "td" for place in range(len(row))]
        lines.append("".join(f"<{tag}>{html_of(cell)}</{tag}>" for tag, cell in zip(tags, row, strict=True)))
    return f'<table class="{kind}">{"".join(f"<tr>{line}</tr>" for line in lines)}</table>'


def more_html(number: int) -> str:
    """A line about what is not shown; empty if that is nothing."""
    return f'<p class="dim">and {number:,} more</p>' if number > 0 else ""


def span_html(text: object, strength: float, *, facet: int | None = None, title: str = "") -> Html:
    """Text on the colour of a facet, or on orange; ``strength`` in [0, 1] is how strong the colour is."""
    hue = 20 if facet is None else round(210 + facet * _GOLDEN_ANGLE) % 360
    opacity = _MAX_OPACITY * min(1.0, max(0.0, strength))
    return Html(f'<span class="f" style="--h:{hue};--a:{opacity:.2f}" title="{escape(title)}">{html_of(text)}</span>')
