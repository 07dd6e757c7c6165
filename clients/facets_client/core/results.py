"""What every room takes and returns: which model answered, how long it took, its limits, facets that met."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

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
class NearestWord:
    """A vocabulary word close to a facet."""

    word: str
    cosine: float  # in [-1, 1]


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a text, in characters: ``text[start:end]``."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class FacetMatch:
    """Two facets that met: what explains a score."""

    first_facet: int  # of the first text, or of the query
    second_facet: int  # of the second text, or of the document
    cosine: float  # in [-1, 1]
    contribution: float  # share of the score, in [0, 1]
    first_words: tuple[NearestWord, ...]
    second_words: tuple[NearestWord, ...]
    second_span: Span | None = None  # where the second facet stands in the document; only in searches


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
    space: str  # of its facets: models of one space search each other's collections


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """How a server is now."""

    version: str
    start_time: datetime
    num_running: int  # calls worked on, the one that asked among them
    num_queued: int  # calls waiting for admission
    num_streams: int
    num_waiting: dict[str, int]  # model -> texts, or calls, that wait for it
    num_requests: dict[str, int]  # code -> calls answered since the start
    disk_bytes: dict[str, int]  # part of the data directory -> bytes
    free_bytes: int  # left on the disk; 0: not known
    last_backup_time: datetime | None  # None: never, as far as the server knows
