"""Results of text calls, and their notebook and plain-text output."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from facets_client.core.html import fragment, match_html, words_html
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

_MAX_OPACITY = 0.6  # of the shading behind a token, which must stay readable


class Embeddings(EmbeddingsFields):
    """Facet embeddings of some texts; ``np.asarray(embeddings)`` is the array."""

    __slots__ = ()

    def __array__(self, dtype: np.dtype[np.generic] | None = None, copy: bool | None = None) -> FacetsArray:
        return np.array(self.facet_embeddings, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.facet_embeddings)

    def __getitem__(self, index: int) -> FacetsArray:
        return self.facet_embeddings[index]


class Explanation(ExplanationFields):
    """Tokens of a text with their attention, and facets with their nearest words."""

    __slots__ = ()

    def __str__(self) -> str:
        lines = ["".join(f"{space}{token.text}" for space, token in _spaced(self.tokens))]
        for facet in self.facets:
            lines.append(f"{facet.facet:>2}  {', '.join(f'{word.word} {word.cosine:.2f}' for word in facet.words)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [f'<th scope="col">{name}</th>' for name in ("facet", "nearest words", "attends to")]
        for facet in self.facets:
            attended = escape(", ".join(self.tokens[item.token].text for item in facet.tokens))
            cells = (str(facet.facet), words_html(facet.words, with_cosine=True), attended)
            rows.append("</tr><tr>" + "".join(f"<td>{cell}</td>" for cell in cells))
        return fragment(f"<p>{_shaded(self.tokens)}</p>", f"<table><tr>{''.join(rows)}</tr></table>")


@dataclass(frozen=True, slots=True)
class PairScore:
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

    def _repr_html_(self) -> str:
        texts = [f"<p>{_shaded(tokens)}</p>" for tokens in (self.first_tokens, self.second_tokens) if tokens]
        matches = "".join(f'<p class="dim">{match_html(match, "first", "second")}</p>' for match in self.matches)
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
    """The picked sentences of one document, in document order."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """The sentences joined by one space."""
        return " ".join(sentence.text for sentence in self.sentences)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        items = "".join(
            f'<p>{escape(sentence.text)} <span class="dim">sentence {sentence.sentence + 1} of '
            f"{self.num_sentences_in_document}, gain {sentence.gain:.3f}</span></p>"
            for sentence in self.sentences
        )
        return fragment(items or "<p>no sentence</p>")


def _shaded(tokens: Sequence[TokenAttention]) -> str:
    """Tokens shaded by their weight in a score, or else their attention; the value is shown as a tooltip."""
    strengths = [token.attention if token.weight is None else token.weight for token in tokens]
    strongest = max(strengths, default=0.0) or 1.0
    return "".join(
        f'{space}<span style="background:rgba(220,80,40,{_MAX_OPACITY * max(0.0, strength) / strongest:.2f})" '
        f'title="{strength:.3f}">{escape(token.text)}</span>'
        for (space, token), strength in zip(_spaced(tokens), strengths, strict=True)
    )


def _spaced(tokens: Sequence[TokenAttention]) -> list[tuple[str, TokenAttention]]:
    """Each token after the space that separates it from the one before, if any."""
    ends = [token.start for token in tokens[:1]] + [token.end for token in tokens[:-1]]
    return [(" " if token.start > end else "", token) for end, token in zip(ends, tokens, strict=True)]
