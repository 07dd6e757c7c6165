"""What explanations, scores and summaries are made of."""

from dataclasses import dataclass

from facets_client.core.results import FacetMatch, NearestWord, Span


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
class PairScore:
    """Score of one pair of texts; higher is more alike, the range depends on the method."""

    score: float
    calibrated_score: float | None  # as people would give it, on the scale asked for; None unless asked for
    matches: tuple[FacetMatch, ...]  # largest contribution first; empty unless asked for
    first_tokens: tuple[TokenAttention, ...]  # tokens of the first text; empty unless asked for
    second_tokens: tuple[TokenAttention, ...]  # tokens of the second text; empty unless asked for


@dataclass(frozen=True, slots=True)
class SummarySentence:
    """One sentence of a summary."""

    text: str
    sentence: int  # its place in the document, from 0
    start: int  # first character in the text
    end: int  # one past its last character
    selection: int  # when it was picked, from 0
    gain: float  # how much it added to the coverage, >= 0
