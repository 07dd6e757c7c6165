"""What a key must be good for, method by method."""

from typing import Any, NamedTuple

from facets_server.runtime.keys import Role


class Right(NamedTuple):
    """What a method needs.

    Attributes:
        role: The least role of a key.
        of_server: Whether the method concerns all collections, or models: not for keys of some collections.
    """

    role: Role
    of_server: bool = False


_READ, _WRITE, _ADMIN = Right(Role.READ), Right(Role.WRITE), Right(Role.ADMIN)
_READ_ALL, _WRITE_ALL = Right(Role.READ, of_server=True), Right(Role.WRITE, of_server=True)

# By the full name of the method.
RIGHTS = {
    f"/facets.v1.{service}/{method}": right
    for service, methods in {
        "ModelService": {"ListModels": _READ, "GetModel": _READ, "GetServerStatus": _READ_ALL},
        "EmbeddingService": {"Embed": _READ, "EmbedStream": _READ, "Explain": _READ},
        "SimilarityService": {"Score": _READ},
        "SummarizationService": {"Summarize": _READ},
        "TopicService": {"SuggestTopics": _READ},
        "CollectionService": {
            "CreateCollection": _ADMIN,
            "GetCollection": _READ,
            "ListCollections": _READ_ALL,
            "DeleteCollection": _ADMIN,
            "ReindexCollection": _ADMIN,
            "DiagnoseCollection": _READ,
            "MapCollection": _READ,
        },
        "DocumentService": {
            "Upsert": _WRITE,
            "UpsertStream": _WRITE,
            "GetDocuments": _READ,
            "DeleteDocuments": _WRITE,
            "CountDocuments": _READ,
            "ListDocuments": _READ,
            "Search": _READ,
            "Rerank": _READ,
        },
        "RecommendationService": {
            "RecommendAuthors": _READ,
            "RecommendCitations": _READ,
            "RankPapers": _READ,
            "RecommendBulk": _READ,
            "AddPapers": _WRITE_ALL,
            "AddAuthors": _WRITE_ALL,
            "FindCandidates": _READ,
        },
        "RelationService": {
            "ExtractRelations": _READ,
            "FillSlots": _READ,
            "ScoreRelations": _READ,
            "DetectEntailment": _READ,
            "ListRelations": _READ,
            "AddRelation": _WRITE_ALL,
            "DeleteRelation": _WRITE_ALL,
        },
    }.items()
    for method, right in methods.items()
}


def right_of(method: str) -> Right:
    """What a method needs; one that nobody has thought of needs a key that may do everything."""
    return RIGHTS.get(method, Right(Role.ADMIN, of_server=True))


def collection_of(method: str, request: Any) -> str:
    """The collection that a request names; empty: none."""
    if "/facets.v1.CollectionService/" in method:
        return str(getattr(request, "name", ""))
    opening = getattr(request, "open", request)  # of UpsertStream
    return str(getattr(opening, "collection", ""))
