"""Commands for documents."""

from facets_client.cli.documents.collections import collections_app, delete_documents, documents_app
from facets_client.cli.documents.diagnosis import diagnose
from facets_client.cli.documents.export import export
from facets_client.cli.documents.index import encode, index
from facets_client.cli.documents.search import rerank, search

__all__ = ["COMMANDS"]

COMMANDS = {
    "collections": collections_app,
    "index": index,
    "export": export,
    "delete": delete_documents,
    "encode": encode,
    "search": search,
    "rerank": rerank,
    "documents": documents_app,
    "diagnose": diagnose,
}
