"""Explanations, scores and summaries as people read them: in a notebook, and as plain text."""

from collections.abc import Sequence
from html import escape

from facets_client.core.html import fragment, header, listed_words, met, row
from facets_client.texts.parts import FacetWords, PairScore, SummarySentence, TokenAttention

_STRONGEST = 0.6  # opacity: the text on it must stay readable


def explanation_html(tokens: Sequence[TokenAttention], facets: Sequence[FacetWords]) -> str:
    """The text, shaded by attention, and a table of the facets with their nearest words."""
    rows = (
        row(
            str(facet.facet),
            listed_words(facet.words, with_cosine=True),
            escape(", ".join(tokens[item.token].text for item in facet.tokens)),
        )
        for facet in facets
    )
    table = f"<table>{header('facet', 'nearest words', 'attends to')}{''.join(rows)}</table>"
    return fragment(f"<p>{_shaded(tokens)}</p>", table)


def explanation_text(tokens: Sequence[TokenAttention], facets: Sequence[FacetWords]) -> str:
    """The tokens, then a line a facet."""
    lines = [" ".join(token.text for token in tokens)]
    for facet in facets:
        lines.append(f"{facet.facet:>2}  {', '.join(f'{word.word} {word.cosine:.2f}' for word in facet.words)}")
    return "\n".join(lines)


def scores_html(pairs: Sequence[PairScore]) -> str:
    """A score a pair, its words shaded by their weight, and the facets that met."""
    return fragment(*(_pair_html(pair) for pair in pairs))


def _pair_html(pair: PairScore) -> str:
    texts = [f"<p>{_shaded(tokens)}</p>" for tokens in (pair.first_tokens, pair.second_tokens) if tokens]
    matches = "".join(f'<p class="dim">{met(match, "first", "second")}</p>' for match in pair.matches)
    return f"<p><strong>{_score(pair)}</strong></p>{''.join(texts)}{matches}"


def scores_text(pairs: Sequence[PairScore]) -> str:
    """A line a pair."""
    return "\n".join(_score(pair) for pair in pairs)


def _score(pair: PairScore) -> str:
    return f"{pair.score:.4f}" if pair.calibrated_score is None else f"{pair.calibrated_score:.2f} ({pair.score:.4f})"


def summary_html(sentences: Sequence[SummarySentence], num_in_document: int) -> str:
    """The sentences in their order, with their place in the document and what each added."""
    items = "".join(
        f'<p>{escape(sentence.text)} <span class="dim">sentence {sentence.sentence + 1} of '
        f"{num_in_document}, gain {sentence.gain:.3f}</span></p>"
        for sentence in sentences
    )
    return fragment(items or "<p>no sentence</p>")


def _shaded(tokens: Sequence[TokenAttention]) -> str:
    """Tokens on a background that grows with attention, or with their weight in a score; the number is their title."""
    shown = [token.attention if token.weight is None else token.weight for token in tokens]
    strongest = max(shown, default=0.0) or 1.0
    return " ".join(
        f'<span style="background:rgba(220,80,40,{_STRONGEST * max(0.0, strength) / strongest:.2f})" '
        f'title="{strength:.3f}">{escape(token.text)}</span>'
        for token, strength in zip(tokens, shown, strict=True)
    )
