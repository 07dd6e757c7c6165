"""The calls of ``facets.v1`` as a table: path, request class, response class.

The generated stubs are untyped and come per service and per kind of channel; this table is typed
and serves the sync and the asyncio channel alike.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

from facets_proto.v1 import (
    documents_pb2,
    models_pb2,
    papers_pb2,
    relations_pb2,
    texts_pb2,
)
from google.protobuf import wrappers_pb2
from google.protobuf.message import Message

RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)


@dataclass(frozen=True, slots=True)
class Rpc(Generic[RequestT, ResponseT]):
    """One call: where it goes, what it takes, what it gives."""

    service: str  # full name, e.g. facets.v1.EmbeddingService
    method: str
    request: type[RequestT]
    response: type[ResponseT]

    @property
    def path(self) -> str:
        """Path of the call on the wire."""
        return f"/{self.service}/{self.method}"


_COLLECTIONS = "facets.v1.CollectionService"
_DOCUMENTS = "facets.v1.DocumentService"
_EMBEDDING = "facets.v1.EmbeddingService"
_MODELS = "facets.v1.ModelService"
_RECOMMENDATION = "facets.v1.RecommendationService"
_RELATIONS = "facets.v1.RelationService"
_SIMILARITY = "facets.v1.SimilarityService"
_SUMMARIZATION = "facets.v1.SummarizationService"

SERVICES = (_EMBEDDING, _SIMILARITY, _SUMMARIZATION, _RELATIONS, _RECOMMENDATION, _COLLECTIONS, _DOCUMENTS, _MODELS)

EMBED = Rpc(_EMBEDDING, "Embed", texts_pb2.EmbedRequest, texts_pb2.EmbedResponse)
EMBED_STREAM = Rpc(_EMBEDDING, "EmbedStream", texts_pb2.EmbedStreamRequest, texts_pb2.EmbedStreamResponse)
EXPLAIN = Rpc(_EMBEDDING, "Explain", texts_pb2.ExplainRequest, texts_pb2.ExplainResponse)
SCORE = Rpc(_SIMILARITY, "Score", texts_pb2.ScoreRequest, texts_pb2.ScoreResponse)
SUMMARIZE = Rpc(_SUMMARIZATION, "Summarize", texts_pb2.SummarizeRequest, texts_pb2.SummarizeResponse)
CREATE_COLLECTION = Rpc(
    _COLLECTIONS,
    "CreateCollection",
    documents_pb2.CreateCollectionRequest,
    documents_pb2.CreateCollectionResponse,
)
GET_COLLECTION = Rpc(
    _COLLECTIONS, "GetCollection", documents_pb2.GetCollectionRequest, documents_pb2.GetCollectionResponse
)
LIST_COLLECTIONS = Rpc(
    _COLLECTIONS,
    "ListCollections",
    documents_pb2.ListCollectionsRequest,
    documents_pb2.ListCollectionsResponse,
)
DELETE_COLLECTION = Rpc(
    _COLLECTIONS,
    "DeleteCollection",
    documents_pb2.DeleteCollectionRequest,
    documents_pb2.DeleteCollectionResponse,
)
UPSERT = Rpc(_DOCUMENTS, "Upsert", documents_pb2.UpsertRequest, documents_pb2.UpsertResponse)
UPSERT_STREAM = Rpc(_DOCUMENTS, "UpsertStream", documents_pb2.UpsertStreamRequest, documents_pb2.UpsertStreamResponse)
GET_DOCUMENTS = Rpc(_DOCUMENTS, "GetDocuments", documents_pb2.GetDocumentsRequest, documents_pb2.GetDocumentsResponse)
DELETE_DOCUMENTS = Rpc(
    _DOCUMENTS, "DeleteDocuments", documents_pb2.DeleteDocumentsRequest, documents_pb2.DeleteDocumentsResponse
)
COUNT_DOCUMENTS = Rpc(
    _DOCUMENTS, "CountDocuments", documents_pb2.CountDocumentsRequest, documents_pb2.CountDocumentsResponse
)
LIST_DOCUMENTS = Rpc(
    _DOCUMENTS, "ListDocuments", documents_pb2.ListDocumentsRequest, documents_pb2.ListDocumentsResponse
)
SEARCH = Rpc(_DOCUMENTS, "Search", documents_pb2.SearchRequest, documents_pb2.SearchResponse)
LIST_MODELS = Rpc(_MODELS, "ListModels", models_pb2.ListModelsRequest, models_pb2.ListModelsResponse)
GET_MODEL = Rpc(_MODELS, "GetModel", models_pb2.GetModelRequest, models_pb2.GetModelResponse)
EXTRACT_RELATIONS = Rpc(
    _RELATIONS, "ExtractRelations", relations_pb2.ExtractRelationsRequest, relations_pb2.ExtractRelationsResponse
)
FILL_SLOTS = Rpc(_RELATIONS, "FillSlots", relations_pb2.FillSlotsRequest, relations_pb2.FillSlotsResponse)
SCORE_RELATIONS = Rpc(
    _RELATIONS, "ScoreRelations", relations_pb2.ScoreRelationsRequest, relations_pb2.ScoreRelationsResponse
)
DETECT_ENTAILMENT = Rpc(
    _RELATIONS, "DetectEntailment", relations_pb2.DetectEntailmentRequest, relations_pb2.DetectEntailmentResponse
)
LIST_RELATIONS = Rpc(
    _RELATIONS, "ListRelations", relations_pb2.ListRelationsRequest, relations_pb2.ListRelationsResponse
)
ADD_RELATION = Rpc(_RELATIONS, "AddRelation", relations_pb2.AddRelationRequest, relations_pb2.AddRelationResponse)
DELETE_RELATION = Rpc(
    _RELATIONS, "DeleteRelation", relations_pb2.DeleteRelationRequest, relations_pb2.DeleteRelationResponse
)
RECOMMEND_AUTHORS = Rpc(
    _RECOMMENDATION,
    "RecommendAuthors",
    papers_pb2.RecommendAuthorsRequest,
    papers_pb2.RecommendAuthorsResponse,
)
RECOMMEND_CITATIONS = Rpc(
    _RECOMMENDATION,
    "RecommendCitations",
    papers_pb2.RecommendCitationsRequest,
    papers_pb2.RecommendCitationsResponse,
)
RECOMMEND_BULK = Rpc(
    _RECOMMENDATION, "RecommendBulk", papers_pb2.RecommendBulkRequest, papers_pb2.RecommendBulkResponse
)
RANK_PAPERS = Rpc(_RECOMMENDATION, "RankPapers", papers_pb2.RankPapersRequest, papers_pb2.RankPapersResponse)
ADD_PAPERS = Rpc(_RECOMMENDATION, "AddPapers", papers_pb2.AddPapersRequest, papers_pb2.AddPapersResponse)
ADD_AUTHORS = Rpc(_RECOMMENDATION, "AddAuthors", papers_pb2.AddAuthorsRequest, papers_pb2.AddAuthorsResponse)
FIND_CANDIDATES = Rpc(
    _RECOMMENDATION,
    "FindCandidates",
    papers_pb2.FindCandidatesRequest,
    papers_pb2.FindCandidatesResponse,
)

# grpc.health.v1 without one more dependency: its request is one string and its response one enum, both in
# field 1, which on the wire is what these two wrappers are.
HEALTH_CHECK = Rpc("grpc.health.v1.Health", "Check", wrappers_pb2.StringValue, wrappers_pb2.Int32Value)
