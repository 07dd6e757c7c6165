"""All operations of a client, room by room."""

from facets_client.core.operations import ModelOperations
from facets_client.documents.operations import CollectionOperations, DocumentOperations
from facets_client.papers.operations import PaperOperations
from facets_client.relations.operations import RelationOperations
from facets_client.texts.operations import TextOperations

__all__ = ["Operations"]


class Operations(
    TextOperations, CollectionOperations, DocumentOperations, RelationOperations, PaperOperations, ModelOperations
):
    """What either client can do; each method is one operation."""
