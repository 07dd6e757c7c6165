"""Commands for documents."""

from facets_client.cli.documents.commands import collections_app, documents_app
from facets_client.cli.documents.diagnosis import diagnose
from facets_client.cli.documents.index import index
from facets_client.cli.documents.search import rerank, search

__all__ = ["COMMANDS"]

COMMANDS = {
    "collections": collections_app,
    "index": index,
    "search": search,
    "rerank": rerank,
    "documents": documents_app,
    "diagnose": diagnose,
}
