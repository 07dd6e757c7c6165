"""What the calls about texts return: plain frozen dataclasses and NumPy arrays, never protobuf."""

from dataclasses import dataclass

import numpy as np

from facets_client.core.results import FacetMatch, FacetsArray, ModelVersion, NearestWord, Span, Timings

__all__ = [
    "AttendedToken",
    "Embeddings",
    "Explanation",
    "FacetWords",
    "PairScore",
    "Scores",
    "Summary",
    "SummarySentence",
    "TokenAttention",
    "TokenStats",
]


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
class AttendedToken:
    """A token close to a facet."""

    token: int  # place among the tokens of the same explanation
    cosine: float  # in (0, 1]


@dataclass(frozen=True, slots=True)
class FacetWords:
    """One facet and the words near it, closest first."""

    facet: int
    words: tuple[NearestWord, ...]
    tokens: tuple[AttendedToken, ...]  # tokens of the text that the facet attends to, strongest first
    span: Span | None = None  # where the facet stands in the text, for models of passages


@dataclass(frozen=True, slots=True)
class TokenAttention:
    """One token of a text and how much it matters."""

    text: str
    start: int  # first character in the text
    end: int  # one past the last character
    attention: float  # sum over the facets, in [0, num_facets]; 0 for a token without a word vector
    known: bool  # the token has a word vector
    weight: float | None = None  # in the score of its pair, >= 0; None where no score weighs words


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the model saw in one text: tokens with their attention, facets with their nearest words."""

    tokens: tuple[TokenAttention, ...]
    facets: tuple[FacetWords, ...]
    token_stats: TokenStats


@dataclass(frozen=True, slots=True)
class PairScore:
    """Score of one pair of texts; higher is more alike, the range depends on the method."""

    score: float
    calibrated_score: float | None  # as people would give it, on the scale asked for; None unless asked for
    matches: tuple[FacetMatch, ...]  # largest contribution first; empty unless asked for
    first_tokens: tuple[TokenAttention, ...]  # tokens of the first text; empty unless asked for
    second_tokens: tuple[TokenAttention, ...]  # tokens of the second text; empty unless asked for


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of some pairs; entry i belongs to pairs[i]."""

    pairs: tuple[PairScore, ...]
    method: str
    attention: bool
    model: ModelVersion
    timings: Timings


@dataclass(frozen=True, slots=True)
class SummarySentence:
    """One sentence of a summary."""

    text: str
    sentence: int  # its place in the document, from 0
    start: int  # first character in the text
    end: int  # one past its last character
    selection: int  # when it was picked, from 0
    gain: float  # how much it added to the coverage, >= 0


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
