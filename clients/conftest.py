"""Examples in docstrings of adapters are read where the framework is installed."""

import importlib.util

_MODULES = {
    "langchain": "langchain_core",
    "llama_index": "llama_index",
    "haystack": "haystack",
    "parquet": "pyarrow",
    "encoded": "pyarrow",
}
collect_ignore = [
    f"facets_client/adapters/{adapter}.py"
    for adapter, module in _MODULES.items()
    if importlib.util.find_spec(module) is None
]
