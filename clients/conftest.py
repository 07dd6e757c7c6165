"""Modules of extras are read where the framework is installed."""

import importlib.util

_MODULES = {
    "adapters/langchain": "langchain_core",
    "adapters/llama_index": "llama_index",
    "adapters/haystack": "haystack",
    "adapters/parquet": "pyarrow",
    "adapters/encoded": "pyarrow",
    "mcp": "mcp",
}
collect_ignore = [
    f"facets_client/{path}.py" for path, module in _MODULES.items() if importlib.util.find_spec(module) is None
]
