"""Says which extra brings a framework instead of a bare ``No module named 'langchain_core'``."""

import importlib.util

from facets_client.core.distribution import install_command

__all__ = ["MODULES", "require"]

# Extra -> the module that it brings, under the name that is imported.
MODULES = {
    "langchain": "langchain_core",
    "llama-index": "llama_index",
    "haystack": "haystack",
    "qdrant": "qdrant_client",
    "parquet": "pyarrow",
}


def require(extra: str) -> None:
    """Checks that what an adapter adapts is installed.

    Args:
        extra: One of ``MODULES``.

    Raises:
        ImportError: It is not; the message has the command that installs it.
    """
    module = MODULES[extra]
    if importlib.util.find_spec(module) is None:
        raise ImportError(f"{module} not installed: {install_command(extra)}")
