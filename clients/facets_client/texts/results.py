"""What the calls about texts return: plain frozen dataclasses and NumPy arrays, never protobuf."""

from dataclasses import dataclass

import numpy as np

from facets_client.core.results import FacetsArray, ModelVersion, Span, Timings
from facets_client.texts import display
from facets_client.texts.parts import AttendedToken as AttendedToken
from facets_client.texts.parts import FacetWords, PairScore, SummarySentence, TokenAttention


@dataclass(frozen=True, slots=True)
class TokenStats:
    """What the tokenizer made of one text."""

    num_tokens: int  # tokens that were read
    num_unknown_tokens: int
    truncated: bool  # the end of the text was not read
    num_tokens_in_text: int = 0  # tokens of the whole text; 0: the server did not say


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Facet embeddings of some texts. ``np.asarray(embeddings)`` is the array.

    Attributes:
        facet_embeddings: ``[len(texts), num_facets, dim]``; row i belongs to texts[i].
        token_stats: Entry i belongs to texts[i].
        model: The model that answered.
        timings: Where the time went.
        facet_spans: Entry i says where each facet of texts[i] stands in it; only when asked for.
    """

    facet_embeddings: FacetsArray
    token_stats: tuple[TokenStats, ...]
    model: ModelVersion
    timings: Timings
    facet_spans: tuple[tuple[Span | None, ...], ...] = ()

    def __array__(self, dtype: np.dtype[np.generic] | None = None, copy: bool | None = None) -> FacetsArray:
        return np.array(self.facet_embeddings, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.facet_embeddings)


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the model saw in one text: tokens with their attention, facets with their nearest words."""

    tokens: tuple[TokenAttention, ...]
    facets: tuple[FacetWords, ...]
    token_stats: TokenStats

    def __str__(self) -> str:
        return display.explanation_text(self.tokens, self.facets)

    def _repr_html_(self) -> str:
        return display.explanation_html(self.tokens, self.facets)


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of some pairs; entry i belongs to pairs[i]."""

    pairs: tuple[PairScore, ...]
    method: str
    attention: bool
    model: ModelVersion
    timings: Timings

    def __str__(self) -> str:
        return display.scores_text(self.pairs)

    def _repr_html_(self) -> str:
        return display.scores_html(self.pairs)


@dataclass(frozen=True, slots=True)
class Summary:
    """The picked sentences of one document, in the order asked for."""

    sentences: tuple[SummarySentence, ...]
    num_sentences_in_document: int
    num_words: int

    @property
    def text(self) -> str:
        """The sentences joined by one space."""
        return " ".join(sentence.text for sentence in self.sentences)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return display.summary_html(self.sentences, self.num_sentences_in_document)
