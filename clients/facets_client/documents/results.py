"""What the calls about collections and documents take and return: plain frozen dataclasses, never protobuf."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from facets_client.core.results import FacetsArray, ModelVersion, Span, Timings
from facets_client.documents import display
from facets_client.documents.hits import SearchHit
from facets_client.texts.results import TokenStats


@dataclass(frozen=True, slots=True)
class Collection:
    """A set of documents that are searched together."""

    name: str
    model: str
    model_revision: str
    num_facets: int
    dim: int
    num_documents: int
    num_damaged: int  # of them, left out of searches because they are damaged on disk, as far as they have been met
    index_revision: int  # grows with every stored change of any collection
    create_time: datetime | None
    index_kind: str  # how it is searched now: exact, faiss-ivf-fp16, ...
    space: str  # of its facets: any model of this space can search it
    num_vectors: int  # in the index in memory; 0: it was not needed yet
    snapshot_bytes: int  # of the saved index; 0: there is none


@dataclass(frozen=True, slots=True)
class ReindexProgress:
    """How far a collection has moved to another model."""

    num_encoded: int  # documents encoded so far
    done: bool  # True: it has moved
    collection: Collection  # as it was until done, then as it is


@dataclass(frozen=True, slots=True)
class Document:
    """A text with an id and whatever else belongs to it.

    Attributes:
        id: Identity in the collection, 1 to 512 bytes of UTF-8.
        text: The text that is embedded.
        payload: Any JSON object. Numbers travel as doubles: integers beyond 2**53 are refused.
        facet_embeddings: ``[num_facets, dim]``, more facets where the text is long. On writes: the caller's own, the
            server then does not encode. On reads: only when asked for.
        revision: On reads, the index revision that stored it; ignored on writes.
        token_stats: On reads, what the model read of the text, where known; ignored on writes.
        facet_spans: Where each facet stands in the text, None for one that has no place. On writes only with
            ``facet_embeddings``, one a facet; on reads only with them.
    """

    id: str
    text: str
    payload: Mapping[str, object] = field(default_factory=dict)
    facet_embeddings: FacetsArray | None = None
    revision: int = 0
    token_stats: TokenStats | None = None
    facet_spans: Sequence[Span | None] = ()


@dataclass(frozen=True, slots=True)
class TruncatedDocument:
    """A document that is stored, but whose text was not read to its end."""

    position: int  # place among the documents sent, from 0
    id: str
    token_stats: TokenStats


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What a write did."""

    num_documents: int  # documents stored, or deleted
    index_revision: int  # give it as min_revision to read your writes
    truncated: tuple[TruncatedDocument, ...] = ()  # stored, but not read to their end


@dataclass(frozen=True, slots=True)
class FoundDocuments:
    """Documents by id."""

    documents: tuple[Document, ...]  # in the order of the ids
    missing_ids: tuple[str, ...]  # ids that are not there
    index_revision: int


@dataclass(frozen=True, slots=True)
class SearchResults:
    """Hits for some queries; entry i belongs to queries[i], best first."""

    hits: tuple[tuple[SearchHit, ...], ...]
    index_revision: int
    exhaustive: bool  # every matching document was compared: no better one exists
    index_kind: str  # how it was searched: exact, faiss-ivf-fp16, ...
    model: ModelVersion
    timings: Timings

    def __str__(self) -> str:
        return display.results_text(self.hits)

    def _repr_html_(self) -> str:
        return display.results_html(self.hits)


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
        truncated: Documents stored whose text was not read to its end.
    """

    sequence: int
    num_upserted: int
    rejected: tuple[RejectedDocument, ...]
    index_revision: int
    already_stored: bool
    resume_token: str
    truncated: tuple[TruncatedDocument, ...] = ()
