"""What the client takes and returns: plain frozen dataclasses, strings and NumPy arrays, never protobuf."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "AttendedToken",
    "Collection",
    "Document",
    "DocumentPage",
    "Embeddings",
    "Explanation",
    "FacetMatch",
    "FacetWords",
    "FacetsArray",
    "FoundDocuments",
    "Limits",
    "Model",
    "ModelVersion",
    "NearestWord",
    "PairScore",
    "RejectedDocument",
    "Scores",
    "SearchHit",
    "SearchResults",
    "StreamAck",
    "Summary",
    "SummarySentence",
    "Timings",
    "TokenAttention",
    "TokenStats",
    "WriteResult",
]

FacetsArray = NDArray[np.floating]  # float32, or float16 when asked for


@dataclass(frozen=True, slots=True)
class ModelVersion:
    """The model that answered."""

    name: str
    revision: str  # content hash of the checkpoint: equal revisions give equal embeddings


@dataclass(frozen=True, slots=True)
class Timings:
    """Where the time of a call went, in milliseconds; summed when a call was split into requests."""

    queue_ms: float = 0.0
    inference_ms: float = 0.0
    total_ms: float = 0.0

    def __add__(self, other: "Timings") -> "Timings":
        return Timings(
            self.queue_ms + other.queue_ms,
            self.inference_ms + other.inference_ms,
            self.total_ms + other.total_ms,
        )


@dataclass(frozen=True, slots=True)
class TokenStats:
    """What the tokenizer made of one text."""

    num_tokens: int
    num_unknown_tokens: int
    truncated: bool  # the end of the text was not read


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Facet embeddings of some texts. ``np.asarray(embeddings)`` is the array.

    Attributes:
        facet_embeddings: ``[len(texts), num_facets, dim]``; row i belongs to texts[i].
        token_stats: Entry i belongs to texts[i].
        model: The model that answered.
        timings: Where the time went.
    """

    facet_embeddings: FacetsArray
    token_stats: tuple[TokenStats, ...]
    model: ModelVersion
    timings: Timings

    def __array__(self, dtype: np.dtype[np.generic] | None = None, copy: bool | None = None) -> FacetsArray:
        return np.array(self.facet_embeddings, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.facet_embeddings)


@dataclass(frozen=True, slots=True)
class NearestWord:
    """A vocabulary word close to a facet."""

    word: str
    cosine: float  # in [-1, 1]


@dataclass(frozen=True, slots=True)
class AttendedToken:
    """A token close to a facet."""

    token: int  # place among the tokens of the same explanation
    cosine: float  # in (0, 1]


@dataclass(frozen=True, slots=True)
class FacetWords:
    """One facet told in words, closest first."""

    facet: int
    words: tuple[NearestWord, ...]
    tokens: tuple[AttendedToken, ...]  # tokens of the text that the facet attends to, strongest first


@dataclass(frozen=True, slots=True)
class TokenAttention:
    """One token of a text and how much it matters."""

    text: str
    start: int  # first character in the text
    end: int  # one past the last character
    attention: float  # in [0, num_facets]; 0 for a token without a word vector
    known: bool  # the token has a word vector


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the model saw in one text: tokens with their attention, facets with their nearest words."""

    tokens: tuple[TokenAttention, ...]
    facets: tuple[FacetWords, ...]
    token_stats: TokenStats


@dataclass(frozen=True, slots=True)
class FacetMatch:
    """Two facets that met: what explains a score."""

    first_facet: int  # of the first text, or of the query
    second_facet: int  # of the second text, or of the document
    cosine: float  # in [-1, 1]
    contribution: float  # share of the score, in [0, 1]
    first_words: tuple[NearestWord, ...]
    second_words: tuple[NearestWord, ...]


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


@dataclass(frozen=True, slots=True)
class Collection:
    """A set of documents that are searched together."""

    name: str
    model: str
    model_revision: str
    num_facets: int
    dim: int
    num_documents: int
    index_revision: int  # grows with every stored change of any collection
    create_time: datetime | None
    index_kind: str  # how it is searched now: exact, faiss-ivf-fp16, ...


@dataclass(frozen=True, slots=True)
class Document:
    """A text with an id and whatever else belongs to it.

    Attributes:
        id: Identity in the collection, 1 to 512 bytes of UTF-8.
        text: The text that is embedded.
        payload: Any JSON object. Numbers travel as doubles: integers beyond 2**53 are refused.
        facet_embeddings: ``[num_facets, dim]``. On writes: the caller's own, the server then does not encode.
            On reads: only when asked for.
        revision: On reads, the index revision that stored it; ignored on writes.
    """

    id: str
    text: str
    payload: Mapping[str, object] = field(default_factory=dict)
    facet_embeddings: FacetsArray | None = None
    revision: int = 0


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What a write did."""

    num_documents: int  # documents stored, or deleted
    index_revision: int  # give it as min_revision to read your writes


@dataclass(frozen=True, slots=True)
class FoundDocuments:
    """Documents by id."""

    documents: tuple[Document, ...]  # in the order of the ids
    missing_ids: tuple[str, ...]  # ids that are not there
    index_revision: int


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """One page of a collection, in the order of the ids."""

    documents: tuple[Document, ...]
    next_page_token: str  # empty: there is no more
    index_revision: int


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A document that was found."""

    id: str
    score: float  # cosine of the best pair of facets, in [-1, 1]
    text: str
    payload: dict[str, object]
    evidence: tuple[FacetMatch, ...]  # first is the query's facet, second the document's; when asked for
    revision: int  # the index revision that stored the document


@dataclass(frozen=True, slots=True)
class SearchResults:
    """Hits for some queries; entry i belongs to queries[i], best first."""

    hits: tuple[tuple[SearchHit, ...], ...]
    index_revision: int
    exhaustive: bool  # every matching document was compared: no better one exists
    index_kind: str  # how it was searched: exact, faiss-ivf-fp16, ...
    model: ModelVersion
    timings: Timings


@dataclass(frozen=True, slots=True)
class RejectedDocument:
    """A document of a batch that was not stored."""

    position: int  # place in the batch, from 0
    id: str
    code: str  # gRPC status name, e.g. INVALID_ARGUMENT
    reason: str  # stable word; empty when unknown
    message: str  # what, expected, got


@dataclass(frozen=True, slots=True)
class StreamAck:
    """One batch of an upsert stream is durable, and so are all before it.

    Attributes:
        sequence: Number of the batch in its stream, from 1.
        num_upserted: Documents stored from this batch.
        rejected: Documents not stored, with the reason.
        index_revision: Revision of the collection that holds the batch.
        already_stored: The batch had been stored before the connection broke; nothing was changed.
        resume_token: Opens the stream again after a broken connection.
    """

    sequence: int
    num_upserted: int
    rejected: tuple[RejectedDocument, ...]
    index_revision: int
    already_stored: bool
    resume_token: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a server for requests to a model; 0 means that the server did not say."""

    max_texts_per_request: int
    max_text_bytes: int
    max_message_bytes: int
    max_pairs_per_request: int
    max_document_bytes: int
    max_sentences_per_document: int
    max_documents_per_upsert: int
    max_queries_per_search: int
    max_top_k: int
    max_page_size: int
    max_nearest_words: int
    max_concurrent_requests: int
    max_queued_requests: int
    max_stream_window: int
    max_evidence_hits: int
    max_patterns_per_request: int
    max_gazetteer_names: int
    max_slots_per_request: int
    max_relation_scores: int
    max_ranked_papers: int


@dataclass(frozen=True, slots=True)
class Model:
    """A model of the server."""

    name: str
    revision: str
    task: str
    num_facets: int
    dim: int
    vocabulary_size: int
    max_tokens: int
    normalization: str  # none or unit
    is_default: bool
    limits: Limits
