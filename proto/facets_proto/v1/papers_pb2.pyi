from facets_proto.v1 import common_pb2 as _common_pb2
from facets_proto.v1 import filters_pb2 as _filters_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CandidateKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CANDIDATE_KIND_UNSPECIFIED: _ClassVar[CandidateKind]
    CANDIDATE_KIND_AUTHORS: _ClassVar[CandidateKind]
    CANDIDATE_KIND_CITATIONS: _ClassVar[CandidateKind]
CANDIDATE_KIND_UNSPECIFIED: CandidateKind
CANDIDATE_KIND_AUTHORS: CandidateKind
CANDIDATE_KIND_CITATIONS: CandidateKind

class Paper(_message.Message):
    __slots__ = ("title", "abstract", "id", "authors", "cited_by_ids", "year", "excluded_ids")
    TITLE_FIELD_NUMBER: _ClassVar[int]
    ABSTRACT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    AUTHORS_FIELD_NUMBER: _ClassVar[int]
    CITED_BY_IDS_FIELD_NUMBER: _ClassVar[int]
    YEAR_FIELD_NUMBER: _ClassVar[int]
    EXCLUDED_IDS_FIELD_NUMBER: _ClassVar[int]
    title: str
    abstract: str
    id: str
    authors: _containers.RepeatedCompositeFieldContainer[Author]
    cited_by_ids: _containers.RepeatedScalarFieldContainer[str]
    year: int
    excluded_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, title: _Optional[str] = ..., abstract: _Optional[str] = ..., id: _Optional[str] = ..., authors: _Optional[_Iterable[_Union[Author, _Mapping]]] = ..., cited_by_ids: _Optional[_Iterable[str]] = ..., year: _Optional[int] = ..., excluded_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class Author(_message.Message):
    __slots__ = ("name", "id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    id: str
    def __init__(self, name: _Optional[str] = ..., id: _Optional[str] = ...) -> None: ...

class CandidateList(_message.Message):
    __slots__ = ("ids",)
    IDS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, ids: _Optional[_Iterable[str]] = ...) -> None: ...

class PaperOptions(_message.Message):
    __slots__ = ("top_k", "excluded_ids", "candidates", "from_year", "to_year", "facet_weight", "evidence", "diversify")
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    EXCLUDED_IDS_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    FROM_YEAR_FIELD_NUMBER: _ClassVar[int]
    TO_YEAR_FIELD_NUMBER: _ClassVar[int]
    FACET_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    DIVERSIFY_FIELD_NUMBER: _ClassVar[int]
    top_k: int
    excluded_ids: _containers.RepeatedScalarFieldContainer[str]
    candidates: CandidateList
    from_year: int
    to_year: int
    facet_weight: float
    evidence: bool
    diversify: float
    def __init__(self, top_k: _Optional[int] = ..., excluded_ids: _Optional[_Iterable[str]] = ..., candidates: _Optional[_Union[CandidateList, _Mapping]] = ..., from_year: _Optional[int] = ..., to_year: _Optional[int] = ..., facet_weight: _Optional[float] = ..., evidence: _Optional[bool] = ..., diversify: _Optional[float] = ...) -> None: ...

class CandidateEvidence(_message.Message):
    __slots__ = ("facet", "nearest_words", "nearest_papers")
    FACET_FIELD_NUMBER: _ClassVar[int]
    NEAREST_WORDS_FIELD_NUMBER: _ClassVar[int]
    NEAREST_PAPERS_FIELD_NUMBER: _ClassVar[int]
    facet: int
    nearest_words: _containers.RepeatedCompositeFieldContainer[_common_pb2.NearestWord]
    nearest_papers: _containers.RepeatedCompositeFieldContainer[NearestPaper]
    def __init__(self, facet: _Optional[int] = ..., nearest_words: _Optional[_Iterable[_Union[_common_pb2.NearestWord, _Mapping]]] = ..., nearest_papers: _Optional[_Iterable[_Union[NearestPaper, _Mapping]]] = ...) -> None: ...

class NearestPaper(_message.Message):
    __slots__ = ("id", "title", "cosine")
    ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    COSINE_FIELD_NUMBER: _ClassVar[int]
    id: str
    title: str
    cosine: float
    def __init__(self, id: _Optional[str] = ..., title: _Optional[str] = ..., cosine: _Optional[float] = ...) -> None: ...

class RankedCandidate(_message.Message):
    __slots__ = ("id", "name", "score", "facet_score", "document_score", "evidence", "confidence")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    FACET_SCORE_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_SCORE_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    score: float
    facet_score: float
    document_score: float
    evidence: CandidateEvidence
    confidence: float
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., score: _Optional[float] = ..., facet_score: _Optional[float] = ..., document_score: _Optional[float] = ..., evidence: _Optional[_Union[CandidateEvidence, _Mapping]] = ..., confidence: _Optional[float] = ...) -> None: ...

class CandidateRanking(_message.Message):
    __slots__ = ("candidates",)
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    candidates: _containers.RepeatedCompositeFieldContainer[RankedCandidate]
    def __init__(self, candidates: _Optional[_Iterable[_Union[RankedCandidate, _Mapping]]] = ...) -> None: ...

class RecommendAuthorsRequest(_message.Message):
    __slots__ = ("papers", "model", "options")
    PAPERS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    papers: _containers.RepeatedCompositeFieldContainer[Paper]
    model: str
    options: PaperOptions
    def __init__(self, papers: _Optional[_Iterable[_Union[Paper, _Mapping]]] = ..., model: _Optional[str] = ..., options: _Optional[_Union[PaperOptions, _Mapping]] = ...) -> None: ...

class RecommendAuthorsResponse(_message.Message):
    __slots__ = ("results", "model", "timings")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[CandidateRanking]
    model: _common_pb2.ModelVersion
    timings: _common_pb2.Timings
    def __init__(self, results: _Optional[_Iterable[_Union[CandidateRanking, _Mapping]]] = ..., model: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ..., timings: _Optional[_Union[_common_pb2.Timings, _Mapping]] = ...) -> None: ...

class RecommendCitationsRequest(_message.Message):
    __slots__ = ("papers", "model", "options")
    PAPERS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    papers: _containers.RepeatedCompositeFieldContainer[Paper]
    model: str
    options: PaperOptions
    def __init__(self, papers: _Optional[_Iterable[_Union[Paper, _Mapping]]] = ..., model: _Optional[str] = ..., options: _Optional[_Union[PaperOptions, _Mapping]] = ...) -> None: ...

class RecommendCitationsResponse(_message.Message):
    __slots__ = ("results", "model", "timings")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[CandidateRanking]
    model: _common_pb2.ModelVersion
    timings: _common_pb2.Timings
    def __init__(self, results: _Optional[_Iterable[_Union[CandidateRanking, _Mapping]]] = ..., model: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ..., timings: _Optional[_Union[_common_pb2.Timings, _Mapping]] = ...) -> None: ...

class RecommendBulkRequest(_message.Message):
    __slots__ = ("kind", "papers", "model", "options")
    KIND_FIELD_NUMBER: _ClassVar[int]
    PAPERS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    kind: CandidateKind
    papers: _containers.RepeatedCompositeFieldContainer[Paper]
    model: str
    options: PaperOptions
    def __init__(self, kind: _Optional[_Union[CandidateKind, str]] = ..., papers: _Optional[_Iterable[_Union[Paper, _Mapping]]] = ..., model: _Optional[str] = ..., options: _Optional[_Union[PaperOptions, _Mapping]] = ...) -> None: ...

class RecommendBulkResponse(_message.Message):
    __slots__ = ("candidate_ids", "results", "model", "timings", "unknown_candidates", "num_unknown_candidates")
    CANDIDATE_IDS_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    NUM_UNKNOWN_CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    candidate_ids: _containers.RepeatedScalarFieldContainer[str]
    results: _containers.RepeatedCompositeFieldContainer[BulkResult]
    model: _common_pb2.ModelVersion
    timings: _common_pb2.Timings
    unknown_candidates: _containers.RepeatedScalarFieldContainer[str]
    num_unknown_candidates: int
    def __init__(self, candidate_ids: _Optional[_Iterable[str]] = ..., results: _Optional[_Iterable[_Union[BulkResult, _Mapping]]] = ..., model: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ..., timings: _Optional[_Union[_common_pb2.Timings, _Mapping]] = ..., unknown_candidates: _Optional[_Iterable[str]] = ..., num_unknown_candidates: _Optional[int] = ...) -> None: ...

class BulkResult(_message.Message):
    __slots__ = ("candidates", "scores")
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    candidates: _containers.RepeatedScalarFieldContainer[int]
    scores: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, candidates: _Optional[_Iterable[int]] = ..., scores: _Optional[_Iterable[float]] = ...) -> None: ...

class PaperList(_message.Message):
    __slots__ = ("papers",)
    PAPERS_FIELD_NUMBER: _ClassVar[int]
    papers: _containers.RepeatedCompositeFieldContainer[Paper]
    def __init__(self, papers: _Optional[_Iterable[_Union[Paper, _Mapping]]] = ...) -> None: ...

class RankPapersRequest(_message.Message):
    __slots__ = ("kind", "ids", "collection", "papers", "model", "top_k", "where", "from_year", "to_year", "excluded_ids", "facet_weight", "evidence", "min_revision")
    KIND_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    PAPERS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    FROM_YEAR_FIELD_NUMBER: _ClassVar[int]
    TO_YEAR_FIELD_NUMBER: _ClassVar[int]
    EXCLUDED_IDS_FIELD_NUMBER: _ClassVar[int]
    FACET_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    MIN_REVISION_FIELD_NUMBER: _ClassVar[int]
    kind: CandidateKind
    ids: _containers.RepeatedScalarFieldContainer[str]
    collection: str
    papers: PaperList
    model: str
    top_k: int
    where: _filters_pb2.Filter
    from_year: int
    to_year: int
    excluded_ids: _containers.RepeatedScalarFieldContainer[str]
    facet_weight: float
    evidence: bool
    min_revision: int
    def __init__(self, kind: _Optional[_Union[CandidateKind, str]] = ..., ids: _Optional[_Iterable[str]] = ..., collection: _Optional[str] = ..., papers: _Optional[_Union[PaperList, _Mapping]] = ..., model: _Optional[str] = ..., top_k: _Optional[int] = ..., where: _Optional[_Union[_filters_pb2.Filter, _Mapping]] = ..., from_year: _Optional[int] = ..., to_year: _Optional[int] = ..., excluded_ids: _Optional[_Iterable[str]] = ..., facet_weight: _Optional[float] = ..., evidence: _Optional[bool] = ..., min_revision: _Optional[int] = ...) -> None: ...

class RankPapersResponse(_message.Message):
    __slots__ = ("rankings", "num_papers", "index_revision", "model", "timings")
    RANKINGS_FIELD_NUMBER: _ClassVar[int]
    NUM_PAPERS_FIELD_NUMBER: _ClassVar[int]
    INDEX_REVISION_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    rankings: _containers.RepeatedCompositeFieldContainer[PaperRanking]
    num_papers: int
    index_revision: int
    model: _common_pb2.ModelVersion
    timings: _common_pb2.Timings
    def __init__(self, rankings: _Optional[_Iterable[_Union[PaperRanking, _Mapping]]] = ..., num_papers: _Optional[int] = ..., index_revision: _Optional[int] = ..., model: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ..., timings: _Optional[_Union[_common_pb2.Timings, _Mapping]] = ...) -> None: ...

class PaperRanking(_message.Message):
    __slots__ = ("papers",)
    PAPERS_FIELD_NUMBER: _ClassVar[int]
    papers: _containers.RepeatedCompositeFieldContainer[RankedPaper]
    def __init__(self, papers: _Optional[_Iterable[_Union[RankedPaper, _Mapping]]] = ...) -> None: ...

class RankedPaper(_message.Message):
    __slots__ = ("id", "title", "score", "facet_score", "document_score", "evidence", "position")
    ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    FACET_SCORE_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_SCORE_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    id: str
    title: str
    score: float
    facet_score: float
    document_score: float
    evidence: CandidateEvidence
    position: int
    def __init__(self, id: _Optional[str] = ..., title: _Optional[str] = ..., score: _Optional[float] = ..., facet_score: _Optional[float] = ..., document_score: _Optional[float] = ..., evidence: _Optional[_Union[CandidateEvidence, _Mapping]] = ..., position: _Optional[int] = ...) -> None: ...

class AddPapersRequest(_message.Message):
    __slots__ = ("papers", "model")
    PAPERS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    papers: _containers.RepeatedCompositeFieldContainer[Paper]
    model: str
    def __init__(self, papers: _Optional[_Iterable[_Union[Paper, _Mapping]]] = ..., model: _Optional[str] = ...) -> None: ...

class AddPapersResponse(_message.Message):
    __slots__ = ("num_papers", "num_authors", "num_citing_papers", "unknown_citations", "num_unknown_citations", "model", "timings")
    NUM_PAPERS_FIELD_NUMBER: _ClassVar[int]
    NUM_AUTHORS_FIELD_NUMBER: _ClassVar[int]
    NUM_CITING_PAPERS_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_CITATIONS_FIELD_NUMBER: _ClassVar[int]
    NUM_UNKNOWN_CITATIONS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    num_papers: int
    num_authors: int
    num_citing_papers: int
    unknown_citations: _containers.RepeatedScalarFieldContainer[str]
    num_unknown_citations: int
    model: _common_pb2.ModelVersion
    timings: _common_pb2.Timings
    def __init__(self, num_papers: _Optional[int] = ..., num_authors: _Optional[int] = ..., num_citing_papers: _Optional[int] = ..., unknown_citations: _Optional[_Iterable[str]] = ..., num_unknown_citations: _Optional[int] = ..., model: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ..., timings: _Optional[_Union[_common_pb2.Timings, _Mapping]] = ...) -> None: ...

class AddAuthorsRequest(_message.Message):
    __slots__ = ("authors", "model")
    AUTHORS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    authors: _containers.RepeatedCompositeFieldContainer[NewAuthor]
    model: str
    def __init__(self, authors: _Optional[_Iterable[_Union[NewAuthor, _Mapping]]] = ..., model: _Optional[str] = ...) -> None: ...

class NewAuthor(_message.Message):
    __slots__ = ("author", "papers", "paper_ids")
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    PAPERS_FIELD_NUMBER: _ClassVar[int]
    PAPER_IDS_FIELD_NUMBER: _ClassVar[int]
    author: Author
    papers: _containers.RepeatedCompositeFieldContainer[Paper]
    paper_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, author: _Optional[_Union[Author, _Mapping]] = ..., papers: _Optional[_Iterable[_Union[Paper, _Mapping]]] = ..., paper_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class AddAuthorsResponse(_message.Message):
    __slots__ = ("num_papers", "num_authors", "model", "timings")
    NUM_PAPERS_FIELD_NUMBER: _ClassVar[int]
    NUM_AUTHORS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    num_papers: int
    num_authors: int
    model: _common_pb2.ModelVersion
    timings: _common_pb2.Timings
    def __init__(self, num_papers: _Optional[int] = ..., num_authors: _Optional[int] = ..., model: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ..., timings: _Optional[_Union[_common_pb2.Timings, _Mapping]] = ...) -> None: ...

class FindCandidatesRequest(_message.Message):
    __slots__ = ("kind", "texts", "top_k", "model")
    KIND_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    kind: CandidateKind
    texts: _containers.RepeatedScalarFieldContainer[str]
    top_k: int
    model: str
    def __init__(self, kind: _Optional[_Union[CandidateKind, str]] = ..., texts: _Optional[_Iterable[str]] = ..., top_k: _Optional[int] = ..., model: _Optional[str] = ...) -> None: ...

class FindCandidatesResponse(_message.Message):
    __slots__ = ("results", "num_candidates", "model", "timings")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    NUM_CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[FoundCandidates]
    num_candidates: int
    model: _common_pb2.ModelVersion
    timings: _common_pb2.Timings
    def __init__(self, results: _Optional[_Iterable[_Union[FoundCandidates, _Mapping]]] = ..., num_candidates: _Optional[int] = ..., model: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ..., timings: _Optional[_Union[_common_pb2.Timings, _Mapping]] = ...) -> None: ...

class FoundCandidates(_message.Message):
    __slots__ = ("candidates",)
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    candidates: _containers.RepeatedCompositeFieldContainer[Candidate]
    def __init__(self, candidates: _Optional[_Iterable[_Union[Candidate, _Mapping]]] = ...) -> None: ...

class Candidate(_message.Message):
    __slots__ = ("id", "name")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...
