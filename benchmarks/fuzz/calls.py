"""A valid call of every rpc; a test says when one is missing."""

from importlib import import_module
from importlib.resources import files
from typing import Any

from google.protobuf import json_format, message_factory
from google.protobuf.message import Message

COLLECTION = "fuzz"
_PAPER = {"title": "Parsing free word order", "abstract": "We parse.", "id": "p1"}
_TEXT = {"text": "Marie Curie was born in Warsaw."}
_DOCUMENTS = [
    {
        "id": f"d{number}",
        "text": f"A dog barks at {number} cats.",
        "payload": {"n": number, "tags": ["a"], "deep": {"x": None}},
    }
    for number in range(4)
]
_FILTER = {
    "allOf": {
        "filters": [{"field": {"field": "n", "range": {"gte": 1.0}}}, {"field": {"field": "tags", "contains": "a"}}]
    }
}

# Method -> requests, as JSON; of a stream the messages of one call.
VALID: dict[str, list[dict[str, Any]]] = {
    "EmbeddingService/Embed": [{"texts": ["A dog barks.", "Rain."], "normalize": True}],
    "EmbeddingService/EmbedStream": [{"sequence": 1, "request": {"texts": ["A dog."]}}, {"sequence": 2, "request": {}}],
    "EmbeddingService/Explain": [{"texts": ["A dog barks."], "numWords": 3}],
    "SimilarityService/Score": [{"pairs": [{"first": "A dog.", "second": "A puppy."}], "explain": True, "numWords": 2}],
    "SummarizationService/Summarize": [{"documents": [{"text": "One dog. Two cats. Three cows."}], "numSentences": 1}],
    "TopicService/SuggestTopics": [{"texts": ["A dog barks."], "numTopics": 2, "keep": ["cat"], "avoid": ["rain"]}],
    "CollectionService/CreateCollection": [{"name": "fuzz-other"}],
    "CollectionService/GetCollection": [{"name": COLLECTION}],
    "CollectionService/ListCollections": [{"pageSize": 2}],
    "CollectionService/DeleteCollection": [{"name": "fuzz-other"}],
    "CollectionService/ReindexCollection": [{"name": COLLECTION}],
    "CollectionService/DiagnoseCollection": [{"name": COLLECTION, "queries": ["a dog", "who sells cats?"]}],
    "CollectionService/MapCollection": [{"name": COLLECTION, "maxDocuments": 50}],
    "DocumentService/Upsert": [{"collection": COLLECTION, "documents": _DOCUMENTS}],
    "DocumentService/UpsertStream": [
        {"open": {"collection": COLLECTION}},
        {"batch": {"sequence": 1, "documents": _DOCUMENTS}},
    ],
    "DocumentService/GetDocuments": [{"collection": COLLECTION, "ids": ["d0", "d9"], "includeFacets": True}],
    "DocumentService/DeleteDocuments": [{"collection": COLLECTION, "ids": ["d9"]}],
    "DocumentService/CountDocuments": [{"collection": COLLECTION, "where": _FILTER}],
    "DocumentService/ListDocuments": [{"collection": COLLECTION, "pageSize": 2, "where": _FILTER}],
    "DocumentService/Rerank": [{"query": "cat", "texts": ["a cat", "a dog"], "topK": 2}],
    "DocumentService/Search": [
        {"collection": COLLECTION, "queries": [{"text": "a dog"}], "topK": 3, "evidence": True, "where": _FILTER}
    ],
    "ModelService/ListModels": [{"pageSize": 1}],
    "ModelService/GetModel": [{}],
    "ModelService/GetServerStatus": [{}],
    "ModelService/TakeBackup": [{}],
    "RelationService/ExtractRelations": [{"texts": [_TEXT], "gazetteerNames": ["Marie Curie", "Warsaw"]}],
    "RelationService/FillSlots": [
        {"slots": [{"head": "Marie Curie", "relation": "per:city_of_birth"}], "texts": [_TEXT]}
    ],
    "RelationService/ScoreRelations": [{"patterns": ["$ARG1 was born in $ARG2"], "topK": 2}],
    "RelationService/DetectEntailment": [
        {"pairs": [{"premise": "$ARG1 killed $ARG2", "hypothesis": "$ARG1 met $ARG2"}]}
    ],
    "RelationService/ListRelations": [{"pageSize": 2}],
    "RelationService/AddRelation": [{"name": "fuzz relation", "examples": ["$ARG1 taught $ARG2"]}],
    "RelationService/DeleteRelation": [{"name": "fuzz relation"}],
    "RecommendationService/RecommendAuthors": [{"papers": [_PAPER], "options": {"topK": 2}}],
    "RecommendationService/RecommendCitations": [{"papers": [_PAPER], "options": {"topK": 2}}],
    "RecommendationService/RecommendBulk": [{"kind": "CANDIDATE_KIND_AUTHORS", "papers": [_PAPER]}],
    "RecommendationService/RankPapers": [{"kind": "CANDIDATE_KIND_AUTHORS", "ids": ["a1"], "collection": COLLECTION}],
    "RecommendationService/AddPapers": [{"papers": [_PAPER]}],
    "RecommendationService/AddAuthors": [
        {"authors": [{"author": {"name": "A. Author", "id": "a1"}, "papers": [_PAPER]}]}
    ],
    "RecommendationService/FindCandidates": [{"kind": "CANDIDATE_KIND_AUTHORS", "texts": ["author"], "topK": 2}],
}


class Rpc:
    """One rpc with its valid call.

    Attributes:
        name: ``EmbeddingService/Embed``.
        path: On the wire.
        is_stream: Whether both sides send streams.
        valid: The messages of a valid call.
    """

    def __init__(self, descriptor: Any) -> None:
        self.name = f"{descriptor.containing_service.name}/{descriptor.name}"
        self.path = f"/{descriptor.containing_service.full_name}/{descriptor.name}"
        self.is_stream = bool(descriptor.client_streaming)
        kind = message_factory.GetMessageClass(descriptor.input_type)
        self.valid: list[Message] = [
            json_format.ParseDict(message, kind(), ignore_unknown_fields=True) for message in VALID[self.name]
        ]
        self.input_type = descriptor.input_type


def rpcs() -> list[Rpc]:
    """Every rpc of ``facets.v1``, from the descriptors."""
    modules = sorted(entry.name for entry in files("facets_proto.v1").iterdir() if entry.name.endswith("_pb2.py"))
    found = [import_module(f"facets_proto.v1.{name.removesuffix('.py')}").DESCRIPTOR for name in modules]
    return [Rpc(method) for file in found for service in file.services_by_name.values() for method in service.methods]
