"""Results of text calls, and their notebook and plain-text output."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from facets_client.core.evidence import matches_html
from facets_client.core.html import MAX_ROWS, more_html, span_html, table_html
from facets_client.core.rows import Listed, Shown
from facets_client.core.values import FacetsArray
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

_MAX_TOKENS = 400  # shown of a text


class Embeddings(EmbeddingsFields):
    """Facet embeddings of some texts; ``np.asarray(embeddings)`` is the array."""

    __slots__ = ()

    def __array__(self, dtype: np.dtype[np.generic] | None = None, copy: bool | None = None) -> FacetsArray:
        return np.array(self.facet_embeddings, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.facet_embeddings)

    def __getitem__(self, index: int) -> FacetsArray:
        return self.facet_embeddings[index]


class Explanation(Shown, ExplanationFields):
    """Tokens of a text with their attention, and facets with their nearest words."""

    __slots__ = ()

    def __str__(self) -> str:
        lines = ["".join(f"{space}{token.text}" for space, token in _spaced(self.tokens))]
        for facet in self.facets:
            lines.append(f"{facet.facet:>2}  {', '.join(f'{word.word} {word.cosine:.2f}' for word in facet.words)}")
        return "\n".join(lines)

    def _html(self) -> str:
        closest: dict[int, tuple[float, int]] = {}  # token -> cosine and number of its closest facet
        rows = []
        for facet in self.facets[:MAX_ROWS]:
            for item in facet.tokens:
                closest[item.token] = max(closest.get(item.token, (0.0, 0)), (item.cosine, facet.facet))
            tokens = ", ".join(self.tokens[item.token].text for item in facet.tokens)
            words = ", ".join(f"{word.word} {word.cosine:.2f}" for word in facet.words)
            rows.append((span_html(facet.facet, 1.0, facet=facet.facet), words, tokens))
        text = _shaded(self.tokens, {token: facet for token, (_, facet) in closest.items()})
        table = table_html(("facet", "nearest words (cosine)", "attends to"), rows)
        return f"<p>{text}</p>{table}{more_html(len(self.facets) - MAX_ROWS)}"


@dataclass(frozen=True, slots=True)
class PairScore(Shown):
    """Score of one pair of texts; matches and tokens are empty unless requested."""

    score: float  # higher is more similar; the range depends on the method
    calibrated_score: float | None  # on the requested human scale; None unless requested
    matches: tuple[FacetMatch, ...]  # facets that matched, largest contribution first
    first_tokens: tuple[TokenAttention, ...]
    second_tokens: tuple[TokenAttention, ...]
    label: str = ""  # equivalent, entails, neutral or contradicts; empty where the method does not decide
    differences: tuple[Difference, ...] = ()  # where the texts differ about the same things, largest weight first

    def __str__(self) -> str:
        score = f"{self.score:.4f}"
        if self.calibrated_score is not None:
            score = f"{self.calibrated_score:.2f} ({score})"
        return f"{score}  {self.differing}" if self.differences else score

    @property
    def differing(self) -> str:
        """The differences on one line, such as ``open / closed (antonym)``; empty when there are none."""
        return ", ".join(dict.fromkeys(f"{item.first} / {item.second} ({item.kind})" for item in self.differences))

    def _html(self) -> str:
        texts = [f"<p>{_shaded(tokens)}</p>" for tokens in (self.first_tokens, self.second_tokens) if tokens]
        matches = matches_html(self.matches, "first", "second") if self.matches else ""
        return f"<p><strong>{escape(str(self))}</strong> {self.label}</p>{''.join(texts)}{matches}"


@dataclass(frozen=True, slots=True, repr=False)
class Scores(Listed[PairScore]):
    """Scores of some pairs; entry i belongs to pairs[i]."""

    pairs: tuple[PairScore, ...]
    method: str
    attention: bool
    model: ModelVersion
    timings: Timings


class Summary(Shown, SummaryFields):
    """The picked sentences of one document, in document order."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """The sentences joined by one space."""
        return " ".join(sentence.text for sentence in self.sentences)

    def __str__(self) -> str:
        return self.text

    def _html(self) -> str:
        return "".join(
            f'<p>{escape(sentence.text)} <span class="dim">sentence {sentence.sentence + 1} of '
            f"{self.num_sentences_in_document}, gain {sentence.gain:.3f}</span></p>"
            for sentence in self.sentences
        )


def _shaded(tokens: Sequence[TokenAttention], facets: Mapping[int, int] | None = None) -> str:
    """The first tokens shaded by their weight in a score, or else their attention, in the colours of their facets."""
    strengths = [token.attention if token.weight is None else token.weight for token in tokens]
    strongest = max(strengths, default=0.0) or 1.0
    html = "".join(
        space + span_html(token.text, strength / strongest, facet=(facets or {}).get(number), title=f"{strength:.3f}")
        for number, ((space, token), strength) in enumerate(zip(_spaced(tokens), strengths, strict=True))
        if number < _MAX_TOKENS
    )
    return html + more_html(len(tokens) - _MAX_TOKENS)


def _spaced(tokens: Sequence[TokenAttention]) -> list[tuple[str, TokenAttention]]:
    """Each token after the space that separates it from the one before, if any."""
    ends = [token.start for token in tokens[:1]] + [token.end for token in tokens[:-1]]
    return [(" " if token.start > end else "", token) for end, token in zip(ends, tokens, strict=True)]
