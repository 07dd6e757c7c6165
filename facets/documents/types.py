"""Documents, results and limits: the plain types that go in and out of the engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

MAX_COLLECTION_NAME_LENGTH = 64  # characters of [a-z0-9_-], the first one [a-z0-9]
MAX_ID_BYTES = 512  # UTF-8 bytes of a document id; at least 1, no NUL
MAX_NUM_FACETS = 256  # K of a collection, and facets of a long part
MAX_PARTS = 65_536  # of one document
MAX_PAYLOAD_BYTES = 64 * 1024  # UTF-8 bytes of a document's payload as compact JSON
MAX_PAYLOAD_DEPTH = 32  # nested lists and objects in a payload
MAX_CONFIG_BYTES = 64 * 1024  # UTF-8 bytes of a collection's config as compact JSON

SearchMode = Literal["hybrid", "facets", "lexical"]
Combination = Literal["sum", "any"]

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentPart:
    """A part of a long document, which searches find: it has facets and words of its own."""

    start: int  # offset of its first character in the text, in code points
    end: int  # offset behind its last one
    headings: tuple[str, ...] = ()  # what it stands under, the outermost first
    page: int = 0  # where it begins, from 1; 0: nobody said


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """A document to store.

    Attributes:
        id: The caller's name for it, unique in the collection, 1 to ``MAX_ID_BYTES`` bytes of UTF-8.
        text: What was encoded, with its fields, at most ``MAX_DOCUMENT_BYTES`` bytes of UTF-8; may be empty.
        facet_embeddings: ``[K, D]``, any float dtype, finite, magnitudes kept; K and D of the collection. A long text
            may have more facets, up to ``MAX_NUM_FACETS``, if ``facet_spans`` are given.
        payload: JSON object of the caller's, at most ``MAX_PAYLOAD_BYTES``; filters look into it.
        facet_spans: Where in the text each facet comes from, ``[K, 2]`` integers: offsets of its first character and
            behind its last one, in code points; equal ones for none. Those in fields are kept as if these stood
            behind the text: :class:`facets.documents.fields.SearchedText`. None: nobody knows.
        num_tokens: Tokens of the text; None: nobody counted.
        num_read: How many of them the model has read.
        parts: Of a long text: each begins where the one before ends, the first at 0, and the last one ends with the
            text. At most ``MAX_PARTS``; none or one: the text is one part.
        part_facets: How many of the facets belong to each part, in their order: K of the collection or more, where
            there are spans up to ``MAX_NUM_FACETS``. Needed with parts.
    """

    id: str
    text: str
    facet_embeddings: NDArray[np.floating]
    payload: Mapping[str, JsonValue] = field(default_factory=dict)
    facet_spans: NDArray[np.integer] | None = None
    num_tokens: int | None = None
    num_read: int | None = None
    parts: Sequence[DocumentPart] = ()
    part_facets: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class TokenStats:
    """How many of a text's tokens the model has read."""

    num_tokens: int
    num_tokens_in_text: int
    num_unknown_tokens: int = 0

    @property
    def truncated(self) -> bool:
        """Whether the end of the text was not read."""
        return self.num_tokens < self.num_tokens_in_text


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredDocument:
    """A document as the store holds it."""

    id: str  # its id
    text: str  # its text
    payload: dict[str, JsonValue]  # its payload
    revision: int  # revision of the write that stored it
    # `[K, D]` float32 with magnitudes: directions as precise as the collection keeps them, norms in single precision;
    # None unless asked for.
    facet_embeddings: NDArray[np.float32] | None = None
    # `[K, 2]`, see `Document`; None unless facets are asked for, or when nobody said.
    facet_spans: NDArray[np.int64] | None = None
    num_tokens: int | None = None  # see `Document`
    num_read: int | None = None  # see `Document`
    parts: tuple[DocumentPart, ...] = ()  # its parts; none where it is one
    part_facets: tuple[int, ...] = ()  # see `Document`; none unless facets are asked for, or where it is one part

    @property
    def token_stats(self) -> "TokenStats | None":
        """What the model read of the text; None where nobody counted."""
        if self.num_read is None or self.num_tokens is None:
            return None
        return TokenStats(self.num_read, self.num_tokens)


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectionInfo:
    """What a collection is."""

    name: str  # `[a-z0-9][a-z0-9_-]{0,63}`
    model: str  # name of the model whose facets it holds
    model_revision: str  # revision of that model
    # What models must share to search each other's collections, e.g. `all-MiniLM-L6-v2`; of a model that has a space of
    # its own `name@revision`.
    space: str
    num_facets: int  # K, facets of each document
    dim: int  # D, dimensions of each facet
    create_time: datetime  # when, UTC
    config: dict[str, JsonValue]  # free JSON object given at creation
    search_fields: dict[str, float]  # fields of the payload that are searched with the text, and what their words weigh
    num_documents: int  # documents now stored
    num_parts: int  # of their parts; a short document is one
    num_damaged: int  # those of them that searches leave out because they are damaged on disk; known when they are met
    index_kind: str  # how it is searched now: `exact` or `faiss-ivf-int8`
    # Facets in the index in memory, those of removed documents until they are taken out; 0: it has not been needed yet.
    num_vectors: int
    snapshot_bytes: int  # size of the saved index; 0: there is none


@dataclass(frozen=True, kw_only=True, slots=True)
class FilterWarning:
    """What is odd about a filter that is no error: it may find nothing because of it."""

    field: str  # path of the field
    message: str  # what is odd, with the field most like it where there is none of that name


@dataclass(frozen=True, kw_only=True, slots=True)
class UpsertResult:
    """A durable write: it survives kill -9 and power loss."""

    revision: int  # `index_revision` from which every read sees the write
    num_inserted: int  # documents whose id was new
    num_updated: int  # documents that replaced one of the same id


@dataclass(frozen=True, kw_only=True, slots=True)
class DeleteResult:
    """A durable delete."""

    revision: int  # `index_revision` from which no read sees the deleted documents
    num_deleted: int  # documents that existed and are gone
    warnings: tuple[FilterWarning, ...] = ()  # what is odd about the filter, see `facets.documents.filter_warnings`


@dataclass(frozen=True, kw_only=True, slots=True)
class GetResult:
    """Documents by id."""

    documents: tuple[StoredDocument, ...]  # those found, in the order of the ids asked for
    missing_ids: tuple[str, ...]  # ids that no document has, in the order asked for
    index_revision: int  # revision that was read


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentPage:
    """One page of a listing, in the order of ids."""

    # At most `page_size` documents, fewer where they have more than `MAX_READ_BYTES` together.
    documents: tuple[StoredDocument, ...]
    next_page_token: str  # token of the next page; empty on the last page
    index_revision: int  # revision that was read
    warnings: tuple[FilterWarning, ...] = ()  # what is odd about the filter, see `facets.documents.filter_warnings`


@dataclass(frozen=True, kw_only=True, slots=True)
class CountResult:
    """Number of documents."""

    num_documents: int  # how many
    index_revision: int  # revision that was read
    warnings: tuple[FilterWarning, ...] = ()  # what is odd about the filter, see `facets.documents.filter_warnings`


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A stretch of a document's text, or of what stands in one of its fields."""

    start: int  # offset of its first character, in code points
    end: int  # offset behind its last one
    text: str  # what stands there
    words: tuple[tuple[int, int], ...] = ()  # offsets, in the same text, of words of the query in it, in any form
    field: str = ""  # path of the field in the payload, `headings` for those that a part stands under; empty: the text


@dataclass(frozen=True, kw_only=True, slots=True)
class FacetMatch:
    """How one facet of the query was answered."""

    first_facet: int  # which facet of the query, from 0, ...
    second_facet: int  # ... met which facet of the document, 0..K-1: the one closest to it
    cosine: float  # of the two, in [-1, 1]
    # Its share in what spoke for the document, in [0, 1]; those of a hit add up to 1, or to 0 where nothing did.
    contribution: float
    # That facet of the document, `[D]` float32, unit norm: its nearest words explain the hit.
    facet: NDArray[np.float32]
    second_span: Span | None = None  # where in the text it comes from; None where the document was stored without spans
    # Words nearest to the facet of the query with their cosines, closest first, where they were added.
    first_words: tuple[tuple[str, float], ...] = ()
    second_words: tuple[tuple[str, float], ...] = ()  # the same for the facet of the document


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchHit:
    """A document found, with its evidence."""

    id: str  # its id
    # What the hits are in order of; higher is better. Mode facets: `facets_score`; lexical: `lexical_score`; hybrid:
    # both, in [-1, 1] (`facets.documents.ranking`).
    score: float
    text: str  # its text; of a document of several parts that of the part
    payload: dict[str, JsonValue] | None  # its payload; None where nobody asked for it
    # One match for every facet of the query, the largest contribution first; none in mode lexical.
    evidence: tuple[FacetMatch, ...]
    # The weighted mean, over the facets of the query, of the cosine with the document's best facet; in [-1, 1], exact
    # to 1e-3 (half-precision storage); 0 in mode lexical.
    facets_score: float
    lexical_score: float  # BM25, 0 or more; 0 in mode facets
    # Words of the query that the text has in any form, in the order of the query; none in mode facets.
    matched_words: tuple[str, ...]
    # The part of the text that answers best, see `facets.documents.evidence.answer_of`; None where neither spans nor
    # words say.
    answer: Span | None
    # Calibrated probability that the hit is relevant, in [0, 1], comparable across queries, and of one query never less
    # where the score is more; None without a curve for the mode.
    confidence: float | None
    signals: Mapping[str, float]  # what speaks for it, see `facets.documents.confidence.SIGNALS`
    revision: int  # revision of the write that stored the document
    # The part that was found: of the parts of the document the best one, where hits are documents. None where the
    # document is one part. Spans of the hit count in `text`, that of the part; its `start` is where that begins in the
    # whole.
    part: DocumentPart | None = None
    part_number: int = 0  # which one it is, from 1; 0 without parts
    num_parts: int = 1  # of the document

    @property
    def matched_spans(self) -> tuple[tuple[int, int], ...]:
        """Where words of the query stand in the answer, in the order of the text."""
        return self.answer.words if self.answer else ()


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchResult:
    """Hits of every query."""

    # `hits[q]` are the hits of query q, best first, ties in the order of ids; fewer than `top_k` only when fewer
    # documents exist (or pass the filter).
    hits: tuple[tuple[SearchHit, ...], ...]
    index_revision: int  # every write up to this revision was seen
    exhaustive: bool  # true when every allowed document was compared (exact search)
    index_kind: str  # `exact` or `faiss-ivf-int8`
    # What could not be asked, and why: candidates are then of the words alone; empty: nothing.
    left_out: str = field(default="", kw_only=True)
    warnings: tuple[FilterWarning, ...] = ()  # what is odd about the filter, see `facets.documents.filter_warnings`
