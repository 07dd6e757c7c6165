"""Results as HTML for notebooks: one fragment with its style, readable on light and on dark, nothing to load."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import pairwise

from facets_client.generated.types import FacetMatch, NearestWord, Span

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


def pieces(text: str, shown: Span, answer: Span | None, words: Iterable[Span]) -> Iterator[tuple[str, bool, bool]]:
    """A part of a text in pieces, each with whether it is of the answer and of a word; spans are of the whole text."""
    words = tuple(words)
    edges = [edge for span in (*words, *((answer,) if answer else ())) for edge in (span.start, span.end)]
    cuts = {shown.start, shown.end, *(min(max(edge, shown.start), shown.end) for edge in edges)}
    for start, end in pairwise(sorted(cuts)):
        in_answer = answer is not None and answer.start <= start < answer.end
        yield text[start:end], in_answer, any(word.start <= start < word.end for word in words)


def marked(text: str, shown: Span, *, answer: Span | None = None, words: Iterable[Span] = ()) -> str:
    """A part of a text, escaped: the answer in ``mark``, words in ``strong``."""
    parts = ["... " if shown.start else ""]
    for piece, in_answer, in_word in pieces(text, shown, answer, words):
        said = f"<strong>{escape(piece)}</strong>" if in_word else escape(piece)
        parts.append(f"<mark>{said}</mark>" if in_answer else said)
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
