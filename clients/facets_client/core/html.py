"""Results as HTML for notebooks: one fragment with its style, readable on light and on dark, nothing to load."""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise

from facets_client.core.types import FacetMatch, NearestWord, Span

# The page's own colours stay; what is marked lets them shine through, so that both themes can be read.
_STYLE = (
    ".facets-out{font:inherit;color:inherit;line-height:1.45}"
    ".facets-out mark{background:rgba(255,190,0,.35);color:inherit;padding:0}"
    ".facets-out .dim{opacity:.7;font-size:.9em}"
    ".facets-out ol{padding-left:1.8em;margin:.3em 0}.facets-out li{margin:.5em 0}"
    ".facets-out p{margin:.2em 0}"
    ".facets-out table{border-collapse:collapse;color:inherit;background:none;margin:.4em 0}"
    ".facets-out th,.facets-out td{text-align:left;vertical-align:top;padding:.15em .8em .15em 0;background:none}"
)


def fragment(*parts: str) -> str:
    """Parts of HTML in one element with the style."""
    return f'<div class="facets-out"><style>{_STYLE}</style>{"".join(parts)}</div>'


def marked(text: str, shown: Span, *, answer: Span | None = None, words: Iterable[Span] = ()) -> str:
    """A part of a text, escaped: the answer in ``mark``, words in ``strong``.

    Args:
        text: The whole text.
        shown: The part to show.
        answer: A span of the text.
        words: Spans of the text.
    """
    words = tuple(words)
    edges = [edge for span in (*words, *((answer,) if answer else ())) for edge in (span.start, span.end)]
    cuts = {shown.start, shown.end, *(min(max(edge, shown.start), shown.end) for edge in edges)}
    parts = ["... " if shown.start else ""]
    for start, end in pairwise(sorted(cuts)):
        piece = escape(text[start:end])
        if any(word.start <= start < word.end for word in words):
            piece = f"<strong>{piece}</strong>"
        if answer and answer.start <= start < answer.end:
            piece = f"<mark>{piece}</mark>"
        parts.append(piece)
    parts.append(" ..." if shown.end < len(text) else "")
    return "".join(parts).replace("</mark><mark>", "")  # one mark, whatever is bold in it


def listed_words(words: Sequence[NearestWord], *, with_cosine: bool = False) -> str:
    """Nearest words in one line, escaped."""
    return escape(", ".join(f"{word.word} {word.cosine:.2f}" if with_cosine else word.word for word in words))


def met(match: FacetMatch, first: str, second: str) -> str:
    """Which facet met which, in words."""
    ends = (
        f"{who} facet {facet}" + (f" (<i>{listed_words(words)}</i>)" if words else "")
        for who, facet, words in (
            (first, match.first_facet, match.first_words),
            (second, match.second_facet, match.second_words),
        )
    )
    return f"{' &harr; '.join(ends)}, cosine {match.cosine:.2f}"


def header(*names: str) -> str:
    """First row of a table."""
    cells = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    return f"<tr>{cells}</tr>"


def row(*cells: str) -> str:
    """A row of a table; cells are HTML already."""
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
