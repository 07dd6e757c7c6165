"""Texts with marked parts, and facets that matched, as HTML for notebooks."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import pairwise

from facets_client.core.html import Html, html_of, span_html, table_html
from facets_client.generated.types import FacetMatch, NearestWord, Span

_MAX_FACETS = 12  # on a side of a heat map
_WORDS = 3  # of a facet on a heat map


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


def marked_html(text: str, shown: Span, *, answer: Span | None = None, words: Iterable[Span] = ()) -> Html:
    """The shown part of a text, escaped: the answer in ``mark``, words in ``strong``."""
    parts = ["... " if shown.start else ""]
    for piece, in_answer, in_word in pieces(text, shown, answer, words):
        html = f"<strong>{escape(piece)}</strong>" if in_word else escape(piece)
        parts.append(f"<mark>{html}</mark>" if in_answer else html)
    parts.append(" ..." if shown.end < len(text) else "")
    return Html("".join(parts).replace("</mark><mark>", ""))  # one mark for the whole answer


def matches_html(matches: Sequence[FacetMatch], first: str, second: str) -> str:
    """Heat map of the facets that matched: a row for a facet of the first side, a column for one of the second."""
    cells = {(match.first_facet, match.second_facet): match for match in reversed(matches)}
    rows = list(dict.fromkeys(match.first_facet for match in matches))[:_MAX_FACETS]
    columns = list(dict.fromkeys(match.second_facet for match in matches))[:_MAX_FACETS]
    first_words = {match.first_facet: match.first_words for match in matches}
    second_words = {match.second_facet: match.second_words for match in matches}

    def head(facet: int, words: Sequence[NearestWord]) -> Html:
        chip = span_html(facet, 0.5, facet=facet)
        return Html(f"{chip} {html_of(', '.join(word.word for word in words[:_WORDS]))}")

    def cell(match: FacetMatch | None) -> object:
        return match and span_html(f"{match.cosine:.2f}", match.cosine, title=f"{match.contribution:.0%} of the score")

    return table_html(
        [f"{first}\u00a0\u2193 {second}\u00a0\u2192", *(head(column, second_words[column]) for column in columns)],
        [[head(row, first_words[row]), *(cell(cells.get((row, column))) for column in columns)] for row in rows],
        kind="heat",
    )
