"""Why a result is one: facets that matched, tokens by their attention, texts with marked parts."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from rich.text import Text

from facets_client.core.drawing import clean
from facets_client.generated.types import FacetMatch, Span, TokenAttention

ANSWER_STYLE, _WORD_STYLE = "yellow", "bold"
_FACET_COLORS = ("cyan", "green", "magenta", "yellow", "blue", "red")
_MAX_TOKENS = 400  # shown of a text


def match_line(match: FacetMatch, first: str, second: str) -> Text:
    """One line about two facets that matched."""
    sides = ((first, match.first_facet, match.first_words), (second, match.second_facet, match.second_words))
    shown = Text(style="dim")
    for start, (side, facet, words) in zip(("", " matches "), sides, strict=True):
        shown.append(f"{start}{side} facet ").append(str(facet), _facet_style(facet))
        shown.append(clean(f" ({', '.join(word.word for word in words)})" if words else ""))
    return shown.append(f", cosine {match.cosine:.3f}")


def attention_line(tokens: Sequence[TokenAttention], facets: Mapping[int, int] | None = None) -> Text:
    """Tokens with attention or weight, 0 to 9 of the strongest; ``facets``: the closest one, which gives the colour."""
    strengths = [token.attention if token.weight is None else token.weight for token in tokens]
    strongest = max(strengths, default=0.0) or 1.0
    shown = Text()
    for place, (token, strength) in enumerate(zip(tokens[:_MAX_TOKENS], strengths, strict=False)):
        digit = min(9, int(10 * max(0.0, strength / strongest))) if token.known else "-"
        style = _facet_style(facets[place]) if facets and place in facets else ""
        shown.append(" " if place else "").append(f"{clean(token.text)}/{digit}", style)
    return shown.append(" ..." if len(tokens) > _MAX_TOKENS else "")


def marked(text: str, shown: Span, answer: Span | None, words: Iterable[Span]) -> Text:
    """The shown part of a text on one line, with the answer and the words of the query highlighted."""
    words = tuple(words)
    edges = [edge for span in (*words, *((answer,) if answer else ())) for edge in (span.start, span.end)]
    cuts = {shown.start, shown.end, *(min(max(edge, shown.start), shown.end) for edge in edges)}
    excerpt = Text("... " if shown.start > 0 else "")
    for start, end in pairwise(sorted(cuts)):
        is_answer = answer is not None and answer.start <= start < answer.end
        is_word = any(word.start <= start < word.end for word in words)
        piece = " ".join(f"|{clean(text[start:end])}|".split())[1:-1]  # the bars preserve leading and trailing spaces
        piece = piece.removeprefix(" ") if excerpt.plain.endswith(" ") else piece
        excerpt.append(piece, " ".join([ANSWER_STYLE] * is_answer + [_WORD_STYLE] * is_word))
    if text[shown.end :].strip():
        excerpt.rstrip()
        excerpt.append(" ...")
    return excerpt


def _facet_style(facet: int) -> str:
    return _FACET_COLORS[facet % len(_FACET_COLORS)]
