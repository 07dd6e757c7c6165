"""Adapters of popular frameworks, one module per framework, each with an extra of the same name.

Nothing here is imported by the client itself: ``from facets_client.adapters.langchain import FacetsRetriever`` needs
LangChain, and nothing else does.
"""

from facets_client.core.extras import require_extra

# Extra -> import name of the module that it installs.
MODULES = {
    "langchain": "langchain_core",
    "llama-index": "llama_index",
    "haystack": "haystack",
    "parquet": "pyarrow",
}


def require(extra: str) -> None:
    """Checks that the package behind an adapter is installed.

    Args:
        extra: One of ``MODULES``.

    Raises:
        ImportError: It is not installed; the message has the command that installs it.
    """
    require_extra(extra, MODULES[extra])
