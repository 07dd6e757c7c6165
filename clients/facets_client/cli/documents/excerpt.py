"""The part of a found document that people read: the sentence that answers, with the answer and the words marked."""

from itertools import pairwise

from rich.text import Text

from facets_client.cli.output import clean
from facets_client.core.results import Span
from facets_client.documents.display import shown_part
from facets_client.documents.results import SearchHit

__all__ = ["excerpt"]

_ANSWER, _WORD = "yellow", "bold"
_LEFT_OUT = "..."


def excerpt(hit: SearchHit, max_chars: int) -> Text:
    """The sentences around the answer, or the beginning of the text where no part of it answers.

    Args:
        hit: With its text.
        max_chars: About so many characters of the text are shown; the answer's beginning is among them.

    Returns:
        One line. The answer and the words of the query have styles, which only a terminal shows.
    """
    shown = shown_part(hit.text, hit.answer, max_chars)
    answer = [hit.answer] if hit.answer else []
    words = hit.matched_spans
    cuts = {shown.start, shown.end}
    cuts |= {min(max(edge, shown.start), shown.end) for span in (*answer, *words) for edge in (span.start, span.end)}
    line = Text(f"{_LEFT_OUT} " if shown.start > 0 else "")
    for start, end in pairwise(sorted(cuts)):
        piece = " ".join(f"|{clean(hit.text[start:end])}|".split())[1:-1]
        if line.plain.endswith(" "):
            piece = piece.removeprefix(" ")
        styles = [
            style for style, spans in ((_ANSWER, answer), (_WORD, words)) if any(_has(span, start) for span in spans)
        ]
        line.append(piece, style=" ".join(styles))
    if shown.end < len(hit.text):
        line.rstrip()
        line.append(f" {_LEFT_OUT}")
    return line


def _has(span: Span, place: int) -> bool:
    return span.start <= place < span.end
