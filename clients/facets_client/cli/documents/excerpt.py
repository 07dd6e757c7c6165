"""The part of a found document that people read: the sentence that answers, with the answer and the words marked."""

import re
from itertools import pairwise

from rich.text import Text

from facets_client.cli.output import clean
from facets_client.core.results import Span
from facets_client.documents.results import SearchHit

__all__ = ["excerpt"]

_SENTENCE_END = re.compile(r"[.!?][\"')\]]*\s+|\n+")
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
    shown = _around(hit.text, hit.answer, max_chars)
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


def _around(text: str, answer: Span | None, max_chars: int) -> Span:
    """Whole sentences with the answer; of a longer part, the beginning of the answer with some text before it."""
    if answer is None:
        return Span(0, _word_end(text, 0, max_chars))
    before = max(0, answer.start - max_chars)
    starts = [match.end() for match in _SENTENCE_END.finditer(text, before, answer.start)]
    end = _SENTENCE_END.search(text, max(answer.start, answer.end - 1))
    sentence = Span(starts[-1] if starts else before, len(text) if end is None else end.start() + 1)
    if sentence.end - sentence.start <= max_chars:
        return sentence
    left = max(0, max_chars - (answer.end - answer.start)) // 2
    start = max(sentence.start, answer.start - left)
    if start > sentence.start:
        start = text.find(" ", start, answer.start) + 1 or answer.start
    return Span(start, min(sentence.end, _word_end(text, start, start + max_chars)))


def _word_end(text: str, start: int, end: int) -> int:
    """The end of the last word that ends between two places; the second one where a word fills all between."""
    if end >= len(text):
        return len(text)
    space = text.rfind(" ", start, end + 1)
    return space if space > start else end
