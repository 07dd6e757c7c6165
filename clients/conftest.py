"""Examples in docstrings of adapters are read where the framework is installed."""

import importlib.util
from pathlib import Path

from facets_client.adapters import MODULES

_ADAPTERS = Path(__file__).parent / "facets_client" / "adapters"
collect_ignore = [
    str(_ADAPTERS / f"{extra.replace('-', '_')}.py")
    for extra, module in MODULES.items()
    if importlib.util.find_spec(module) is None
]
