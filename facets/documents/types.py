"""Documents, results and limits: the records that go in and out of the engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from facets.arrays import Floats, Vectors
from facets.model.contract import ModelInfo

MAX_COLLECTION_NAME_LENGTH = 64  # characters of [a-z0-9_-], the first one [a-z0-9]
MAX_ID_BYTES = 512  # UTF-8 bytes of a document id
MAX_SOURCE_BYTES = 1024  # UTF-8 bytes of the name of a document's source
MAX_NUM_FACETS = 256  # K of a collection, and facets of a long part
MAX_PARTS = 65_536  # of one document
MAX_PAYLOAD_BYTES = 64 * 1024  # UTF-8 bytes of a document's payload as compact JSON

_NOT_ENCODED = np.empty(0, np.float32)  # in place of the facets of a document that has none yet

SearchMode = Literal["hybrid", "facets", "lexical"]
Combination = Literal["sum", "any"]

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentPart:
    """A part of a long document, with its own facets and words; searches find parts."""

    start: int  # offset of its first character in the text, in code points
    end: int  # offset after its last character
    headings: tuple[str, ...] = ()  # headings above it, outermost first
    page: int = 0  # page on which it starts, from 1; 0: not known


@dataclass(frozen=True, slots=True)
class TokenStats:
    """How many tokens of a text the model has read."""

    num_tokens: int
    num_tokens_in_text: int
    num_unknown_tokens: int = 0

    @property
    def truncated(self) -> bool:
        """Whether the end of the text was not read."""
        return self.num_tokens < self.num_tokens_in_text


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """A document to store."""

    id: str  # unique in the collection, 1 to `MAX_ID_BYTES` bytes of UTF-8 without NUL
    text: str  # at most `MAX_DOCUMENT_BYTES` bytes of UTF-8; may be empty
    # `[K, D]`, finite; magnitudes are kept. A long text may have up to `MAX_NUM_FACETS` facets if spans are given.
    # Left out: `Collections` encodes the text, and `parts` may be the sections that the caller knows.
    facet_embeddings: Vectors = field(default_factory=lambda: _NOT_ENCODED)
    payload: Mapping[str, JsonValue] = field(default_factory=dict)  # JSON object of at most `MAX_PAYLOAD_BYTES`
    # Span of each facet in the text, `[K, 2]`: offsets of its first character and after its last one, in code points;
    # equal offsets: no span. Searched fields count as if they followed the text, see `fields.SearchedText`.
    facet_spans: NDArray[np.integer] | None = None
    token_stats: TokenStats | None = None  # what the model has read of the text; None: not known
    parts: Sequence[DocumentPart] = ()  # at most `MAX_PARTS`, which cover a long text; empty: the text is one part
    part_facets: Sequence[int] = ()  # facets of each part: at least K, with spans up to `MAX_NUM_FACETS`
    source: str = ""  # file that it came from, at most `MAX_SOURCE_BYTES` bytes of UTF-8 without NUL; empty: none

    @property
    def is_encoded(self) -> bool:
        """Whether the document has facets."""
        return self.facet_embeddings is not _NOT_ENCODED


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredDocument(Document):
    """A document as read from the store; facets, spans and ``part_facets`` are there if they were asked for."""

    revision: int  # revision of the write that stored it
    # `[K, D]` float32 with magnitudes; directions are as precise as the store keeps them. None unless asked for.
    facet_embeddings: Floats | None = None  # type: ignore[assignment]


@dataclass(frozen=True, kw_only=True, slots=True)
class FilterWarning:
    """A likely mistake in a filter, because of which it may find nothing."""

    field: str  # path of the field
    message: str  # includes the most similar field name if there is no field of this name


@dataclass(frozen=True, kw_only=True, slots=True)
class DeleteResult:
    """A durable deletion."""

    revision: int  # `index_revision` from which no read sees the deleted documents
    num_deleted: int
    warnings: tuple[FilterWarning, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class GetResult:
    """Documents by id."""

    documents: tuple[StoredDocument, ...]  # in the order of the ids
    missing_ids: tuple[str, ...]  # ids without a document, in the order of the request
    index_revision: int  # revision that was read


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentPage:
    """One page of a listing, ordered by id."""

    documents: tuple[StoredDocument, ...]  # at most `page_size`, fewer if they exceed `MAX_PAGE_BYTES`
    next_page_token: str  # empty on the last page
    index_revision: int  # revision that was read
    warnings: tuple[FilterWarning, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentSource:
    """A file that documents came from."""

    source: str  # as in `Document`
    num_documents: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SourcePage:
    """One page of the sources of a collection, ordered by name."""

    sources: tuple[DocumentSource, ...]
    next_page_token: str  # empty on the last page
    index_revision: int  # revision that was read


@dataclass(frozen=True, kw_only=True, slots=True)
class CountResult:
    """Number of documents."""

    num_documents: int
    index_revision: int  # revision that was read
    warnings: tuple[FilterWarning, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A range of a document's text or of one of its fields."""

    start: int  # offset of its first character, in code points
    end: int  # offset after its last character
    text: str
    words: tuple[tuple[int, int], ...] = ()  # offsets, in the same text, of query words in it, in any form
    field: str = ""  # path of the payload field, `headings` for the headings of a part; empty: the text
    problem: str = ""  # the problem or question that the part solves, as the document states it
    columns: tuple[str, ...] = ()  # if the part is a row of a table: names of the columns, as many as `cells`
    cells: tuple[str, ...] = ()  # cells of the row; empty outside tables with a header row


@dataclass(frozen=True, kw_only=True, slots=True)
class FacetMatch:
    """The best facet of a document for one facet of the query."""

    first_facet: int  # facet of the query, from 0
    second_facet: int  # facet of the document, from 0
    cosine: float  # in [-1, 1]
    contribution: float  # share of the facets' score, in [0, 1]; those of a hit add up to 1, or to 0 without any
    facet: Floats  # the facet of the document, `[D]`, unit norm
    second_span: Span | None = None  # where the facet stands in the document; None: not known
    first_words: tuple[tuple[str, float], ...] = ()  # words nearest to the query's facet with cosines, if added
    second_words: tuple[tuple[str, float], ...] = ()  # words nearest to the document's facet


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoredText:
    """A text that answers a query, with its scores."""

    # Orders the texts, best highest. `facets_score` in mode facets, `lexical_score` in mode lexical; in mode hybrid a
    # convex sum of both and of the score of the document as a whole, in [-1, 1] (`facets.documents.ranking`).
    score: float
    # Weighted mean over the query's facets of the best cosine in the document, in [-1, 1]; 0 in mode lexical.
    facets_score: float
    lexical_score: float  # BM25, 0 or more; 0 in mode facets. Rarity is counted over the texts that were searched.
    answer: Span | None  # the part of the text that answers best; None if neither spans nor words match
    # Calibrated probability that `answer` answers the query, in [0, 1]; None if no reader has read the text.
    answer_confidence: float | None = None
    # Calibrated probability that the text is relevant, in [0, 1], comparable across queries; it does not increase with
    # the rank. None without a curve for the mode.
    confidence: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class RankedText(ScoredText):
    """One of the texts of a request."""

    index: int  # position in the request, from 0


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchHit(ScoredText):
    """A document that a search found, with its evidence."""

    id: str
    text: str  # of the document, or of the part for a document of several parts
    payload: Mapping[str, JsonValue] | None  # None if left out
    evidence: tuple[FacetMatch, ...]  # up to three facets of the query, largest contribution first
    matched_words: tuple[str, ...]  # query words in the document, in any form, in the order of the query
    signals: Mapping[str, float]  # what the confidence is computed from, see `facets.documents.confidence.SIGNALS`
    revision: int  # revision of the write that stored the document
    # The part that was found; None if the document is one part. Spans of the hit count from the start of the part.
    part: DocumentPart | None = None
    part_number: int = 0  # from 1; 0 without parts
    num_parts: int = 1  # of the document

    @property
    def matched_spans(self) -> tuple[tuple[int, int], ...]:
        """Offsets of query words in the answer."""
        return self.answer.words if self.answer else ()


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchResult:
    """Hits of every query."""

    # `hits[q]` belongs to query q: best first, ties ordered by id; fewer than `top_k` only if fewer documents match.
    hits: tuple[tuple[SearchHit, ...], ...]
    index_revision: int  # every write up to this revision was seen
    exhaustive: bool  # whether every allowed document was compared
    index_kind: str  # `exact`, `faiss-ivf-int8`, ...
    left_out: str = ""  # what could not be searched and why, so that words alone found the candidates; empty: nothing
    warnings: tuple[FilterWarning, ...] = ()
    model: ModelInfo | None = None  # that encoded the queries
    recall: float | None = None  # recent recall of approximate searches of the collection, if that is measured
