"""Results as HTML for notebooks: one element with its style, readable on light and dark, without external files."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import pairwise

from facets_client.generated.types import FacetMatch, NearestWord, Span

# The notebook's own colours are kept; highlighting is transparent, so that it is readable in both themes.
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
    """Pieces of HTML in one styled element."""
    return f'<div class="facets-out"><style>{_STYLE}</style>{"".join(parts)}</div>'


def pieces(text: str, shown: Span, answer: Span | None, words: Iterable[Span]) -> Iterator[tuple[str, bool, bool]]:
    """The shown part of a text in pieces; with each, whether it is part of the answer, and of a word.

    Spans refer to the whole text.
    """
    words = tuple(words)
    edges = [edge for span in (*words, *((answer,) if answer else ())) for edge in (span.start, span.end)]
    cuts = {shown.start, shown.end, *(min(max(edge, shown.start), shown.end) for edge in edges)}
    for start, end in pairwise(sorted(cuts)):
        in_answer = answer is not None and answer.start <= start < answer.end
        yield text[start:end], in_answer, any(word.start <= start < word.end for word in words)


def marked_html(text: str, shown: Span, *, answer: Span | None = None, words: Iterable[Span] = ()) -> str:
    """The shown part of a text, escaped: the answer in ``mark``, words in ``strong``."""
    parts = ["... " if shown.start else ""]
    for piece, in_answer, in_word in pieces(text, shown, answer, words):
        html = f"<strong>{escape(piece)}</strong>" if in_word else escape(piece)
        parts.append(f"<mark>{html}</mark>" if in_answer else html)
    parts.append(" ..." if shown.end < len(text) else "")
    return "".join(parts).replace("</mark><mark>", "")  # one mark for the whole answer


def table_html(columns: Sequence[str], *rows: Sequence[str]) -> str:
    """A small table."""
    lines = [("th", columns), *(("td", row) for row in rows)]
    cells = ("".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in line) for tag, line in lines)
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in cells)}</table>"


def words_html(words: Sequence[NearestWord], *, with_cosine: bool = False) -> str:
    """Nearest words on one line."""
    return escape(", ".join(f"{word.word} {word.cosine:.2f}" if with_cosine else word.word for word in words))


def match_html(match: FacetMatch, first: str, second: str) -> str:
    """Two facets that matched, with the names of the two sides."""
    sides = (
        f"{side} facet {facet}" + (f" (<i>{words_html(words)}</i>)" if words else "")
        for side, facet, words in (
            (first, match.first_facet, match.first_words),
            (second, match.second_facet, match.second_words),
        )
    )
    return f"{' &harr; '.join(sides)}, cosine {match.cosine:.2f}"
