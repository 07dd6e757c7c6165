"""What the calls about texts return as a whole, and how it looks in a notebook and as plain text."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

import numpy as np

from facets_client.core.html import fragment, header, listed_words, met, row
from facets_client.core.values import FacetsArray, Listed
from facets_client.generated.types import (
    Difference,
    EmbeddingsFields,
    ExplanationFields,
    FacetMatch,
    ModelVersion,
    SummaryFields,
    Timings,
    TokenAttention,
)

ScoreRange = Literal["0..1", "0..5"]

_STRONGEST = 0.6  # opacity: the text on it must stay readable


class Embeddings(EmbeddingsFields):
    """Facet embeddings of some texts. ``np.asarray(embeddings)`` is the array."""

    __slots__ = ()

    def __array__(self, dtype: np.dtype[np.generic] | None = None, copy: bool | None = None) -> FacetsArray:
        return np.array(self.facet_embeddings, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.facet_embeddings)

    def __getitem__(self, place: int) -> FacetsArray:
        return self.facet_embeddings[place]


class Explanation(ExplanationFields):
    """What the model saw in one text: tokens with their attention, facets with their nearest words."""

    __slots__ = ()

    def __str__(self) -> str:
        """The tokens, then a line a facet."""
        lines = ["".join(f"{_gap(self.tokens, place)}{token.text}" for place, token in enumerate(self.tokens))]
        for facet in self.facets:
            lines.append(f"{facet.facet:>2}  {', '.join(f'{word.word} {word.cosine:.2f}' for word in facet.words)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The text, shaded by attention, and a table of the facets with their nearest words."""
        rows = (
            row(
                str(facet.facet),
                listed_words(facet.words, with_cosine=True),
                escape(", ".join(self.tokens[item.token].text for item in facet.tokens)),
            )
            for facet in self.facets
        )
        table = f"<table>{header('facet', 'nearest words', 'attends to')}{''.join(rows)}</table>"
        return fragment(f"<p>{_shaded(self.tokens)}</p>", table)


@dataclass(frozen=True, slots=True)
class PairScore:
    """Score of one pair of texts; higher is more alike, the range depends on the method."""

    score: float
    calibrated_score: float | None  # as people would give it, on the scale asked for; None unless asked for
    matches: tuple[FacetMatch, ...]  # largest contribution first; empty unless asked for
    first_tokens: tuple[TokenAttention, ...]  # tokens of the first text; empty unless asked for
    second_tokens: tuple[TokenAttention, ...]  # tokens of the second text; empty unless asked for
    label: str = ""  # entails, neutral or contradicts; empty where the method does not tell
    differences: tuple[Difference, ...] = ()  # what the texts say differently of the same things, heaviest first

    def __str__(self) -> str:
        score = f"{self.score:.4f}"
        shown = score if self.calibrated_score is None else f"{self.calibrated_score:.2f} ({score})"
        return f"{shown}  {self.differing}" if self.differences else shown

    @property
    def differing(self) -> str:
        """What differs, as a line: ``open / closed differ``; empty: nothing that was found."""
        listed = ", ".join(dict.fromkeys(f"{one.first} / {one.second}" for one in self.differences))
        return f"{listed} differ" if listed else ""

    def _repr_html_(self) -> str:
        """The score, its words shaded by their weight, and the facets that met."""
        texts = [f"<p>{_shaded(tokens)}</p>" for tokens in (self.first_tokens, self.second_tokens) if tokens]
        matches = "".join(f'<p class="dim">{met(match, "first", "second")}</p>' for match in self.matches)
        return f"<p><strong>{escape(str(self))}</strong></p>{''.join(texts)}{matches}"


@dataclass(frozen=True, slots=True)
class Scores(Listed[PairScore]):
    """Scores of some pairs; entry i belongs to pairs[i]."""

    pairs: tuple[PairScore, ...]
    method: str
    attention: bool
    model: ModelVersion
    timings: Timings

    def __str__(self) -> str:
        return "\n".join(map(str, self.pairs))

    def _repr_html_(self) -> str:
        return fragment(*(pair._repr_html_() for pair in self.pairs))


class Summary(SummaryFields):
    """The picked sentences of one document, in the order asked for."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """The sentences joined by one space."""
        return " ".join(sentence.text for sentence in self.sentences)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """The sentences in their order, with their place in the document and what each added."""
        items = "".join(
            f'<p>{escape(sentence.text)} <span class="dim">sentence {sentence.sentence + 1} of '
            f"{self.num_sentences_in_document}, gain {sentence.gain:.3f}</span></p>"
            for sentence in self.sentences
        )
        return fragment(items or "<p>no sentence</p>")


def _shaded(tokens: Sequence[TokenAttention]) -> str:
    """Tokens on a background that grows with attention, or with their weight in a score; the number is their title."""
    shown = [token.attention if token.weight is None else token.weight for token in tokens]
    strongest = max(shown, default=0.0) or 1.0
    return "".join(
        f"{_gap(tokens, place)}<span "
        f'style="background:rgba(220,80,40,{_STRONGEST * max(0.0, strength) / strongest:.2f})" '
        f'title="{strength:.3f}">{escape(token.text)}</span>'
        for place, (token, strength) in enumerate(zip(tokens, shown, strict=True))
    )


def _gap(tokens: Sequence[TokenAttention], place: int) -> str:
    """A blank before a token that does not touch the one before it."""
    return " " if place and tokens[place].start > tokens[place - 1].end else ""
