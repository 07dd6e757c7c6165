"""Facets inside the frameworks people use already, one module a framework, each behind an extra of its own name.

Nothing here is imported by the client itself: ``from facets_client.adapters.langchain import FacetsRetriever`` needs
LangChain, and nothing else does.
"""

from facets_client.core.extras import require_extra

# Extra -> the module that it brings, under the name that is imported.
MODULES = {
    "langchain": "langchain_core",
    "llama-index": "llama_index",
    "haystack": "haystack",
    "parquet": "pyarrow",
}


def require(extra: str) -> None:
    """Checks that what an adapter adapts is installed.

    Args:
        extra: One of ``MODULES``.

    Raises:
        ImportError: It is not; the message has the command that installs it.
    """
    require_extra(extra, MODULES[extra])
