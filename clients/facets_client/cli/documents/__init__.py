"""Commands for documents."""

from facets_client.cli.documents import collections, commands, index, search

__all__ = ["COMMANDS"]

COMMANDS = {
    "collections": collections.app,
    "index": index.index,
    "search": search.search,
    "documents": commands.app,
}
