"""Explains an encoded text: tokens with their attention, facets with their nearest words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from facets import scoring
from facets.arrays import Bools, Floats
from facets.errors import InvalidInputError
from facets.language.interruption import check_interrupted
from facets.language.reading import read
from facets.language.tokenizer import Token, check_texts
from facets.model.contract import TextModel


@dataclass(frozen=True, slots=True)
class TokenAttention:
    """One token of a text and its importance."""

    text: str  # as the model reads it: "harbour" for "har-" and "bour" on two lines
    start: int  # offset of the first character in the text
    end: int  # offset after the last character
    attention: float  # eq. 3.6, in [0, K]; 0 for a token without a word vector
    known: bool  # whether the token has a word vector
    weight: float | None = None  # weight in the score of a pair, >= 0; None unless a word method scored the pair


@dataclass(frozen=True, slots=True)
class NearestWord:
    """A vocabulary word close to a facet."""

    word: str
    cosine: float  # in [-1, 1]


@dataclass(frozen=True, slots=True)
class FacetWords:
    """A facet with its nearest words."""

    facet: int  # index of the facet, in `[0, K)`
    words: tuple[NearestWord, ...]  # closest first
    # Tokens that the facet attends to, strongest first: index in `TextExplanation.tokens`, and cosine above 0.
    tokens: tuple[tuple[int, float], ...]
    span: tuple[int, int] | None = None  # characters of the text it attends to; None if the model has no spans


@dataclass(frozen=True, slots=True)
class TextExplanation:
    """The explanation of one text."""

    tokens: tuple[TokenAttention, ...]  # the tokens the model read, in the order of the text
    facets: tuple[FacetWords, ...]  # all facets that are not zero, in order
    truncated: bool  # whether the text has more than `max_tokens` tokens, so that its end was not read


def explain(model: TextModel, texts: Sequence[str], *, num_words: int = 5) -> list[TextExplanation]:
    """Explains texts by the attention on their tokens and the words nearest to their facets.

    ``num_words``: most nearest words, and most attended tokens, per facet; >= 1. Raises InvalidInputError for a blank
    text.
    """
    check_texts(texts, "explain")
    return explain_encoded(model, texts, model.encode(texts), num_words=num_words) if texts else []


def explain_encoded(
    model: TextModel,
    texts: Sequence[str],
    facets_TKD: Floats,
    *,
    num_words: int = 5,
    spans_TK2: NDArray[np.integer] | None = None,
) -> list[TextExplanation]:
    """``explain`` for texts that are already encoded.

    ``facets_TKD``: facets of the texts. ``spans_TK2``: characters that each facet attends to, if the model has spans.
    """
    if num_words < 1:
        raise InvalidInputError(f"must be >= 1, got {num_words}", path="num_words")
    if not texts:
        return []
    nearest = model.words.nearest(facets_TKD.reshape(-1, facets_TKD.shape[-1]), num_words)
    num_facets = facets_TKD.shape[1]
    explanations = [
        _explain_text(model, tokens, facets_KD, nearest[i * num_facets : (i + 1) * num_facets], num_words)
        for i, (tokens, facets_KD) in enumerate(zip(_read_tokens(model, texts), facets_TKD, strict=True))
    ]
    if spans_TK2 is None:
        return explanations
    return [
        replace(text, facets=tuple(replace(own, span=tuple(spans[own.facet])) for own in text.facets))
        for text, spans in zip(explanations, spans_TK2.tolist(), strict=True)
    ]


def _read_tokens(model: TextModel, texts: Sequence[str]) -> Iterator[list[Token]]:
    """The tokens of each text as the model reads it, with their offsets in the original text."""
    readings = [read(text) for text in texts]
    # One token more than the model reads shows that a text is truncated.
    tokens_of = model.tokenizer.tokenize([reading.text for reading in readings], most=model.max_tokens + 1)
    for reading, tokens in zip(readings, tokens_of, strict=True):
        spans_L2 = reading.original(np.array([(token.start, token.end) for token in tokens]).reshape(-1, 2))
        yield [Token(token.text, *span) for token, span in zip(tokens, spans_L2.tolist(), strict=True)]


def with_weights(explanation: TextExplanation, weights_L: Floats) -> TextExplanation:
    """The explanation with the weight of each token in a score."""
    tokens = (replace(token, weight=float(weight)) for token, weight in zip(explanation.tokens, weights_L, strict=True))
    return replace(explanation, tokens=tuple(tokens))


def _explain_text(
    model: TextModel, tokens: list[Token], facets_KD: Floats, nearest: list[list[tuple[str, float]]], num_tokens: int
) -> TextExplanation:
    check_interrupted()
    read = tokens[: model.max_tokens]
    words_LD = model.words.of([token.text.lower() for token in read])
    known_L: Bools = np.any(words_LD != 0, axis=1)
    words, facets = torch.from_numpy(words_LD), torch.from_numpy(facets_KD)
    attention_L = scoring.attention(words.unsqueeze(0), facets.unsqueeze(0))[0].numpy()
    cosines_KL = (scoring.unit_facets(facets) @ words.mT).numpy()
    return TextExplanation(
        tokens=tuple(
            TokenAttention(token.text, token.start, token.end, float(weight), bool(known))
            for token, weight, known in zip(read, attention_L, known_L, strict=True)
        ),
        facets=tuple(
            FacetWords(
                facet,
                # The facets of a text without a known word, in Chinese for example, say nothing about it.
                tuple(NearestWord(word, cosine) for word, cosine in words_of_facet) if known_L.any() else (),
                _strongest(cosines_L, num_tokens),
            )
            for facet, (words_of_facet, cosines_L) in enumerate(zip(nearest, cosines_KL, strict=True))
            if facets_KD[facet].any()
        ),
        truncated=len(tokens) > len(read),
    )


def _strongest(cosines_L: Floats, num_tokens: int) -> tuple[tuple[int, float], ...]:
    best = np.argsort(-cosines_L, kind="stable")[:num_tokens]
    return tuple((int(token), float(cosines_L[token])) for token in best if cosines_L[token] > 0)
