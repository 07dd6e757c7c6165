"""The combinations of stores and indexes that must give the same answers as SQLite with exact search."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec

import postgres_server

Settings = Mapping[str, object]


def sqlite() -> Settings:
    return {}


def postgres() -> Settings:
    return {"store": postgres_server.server().new_database()}


@dataclass(frozen=True, kw_only=True)
class Combination:
    store: Callable[[], Settings] = sqlite  # settings of an empty store; skips the test if there is no database
    index: Settings = field(default_factory=dict)  # settings of the index of large collections
    approximate: bool = True  # whether that index may miss documents without ``exact``


FAISS = {"index": "faiss", "exact_max_facets": 300}
# A real server, or Qdrant's local mode in memory (see conftest.py).
QDRANT = {"index": os.environ.get("FACETS_QDRANT_URL", "qdrant://memory"), "exact_max_facets": 300}
REFERENCE = Combination(index={"exact_max_facets": 10**9}, approximate=False)
COMBINATIONS = {"sqlite+faiss": Combination(index=FAISS), "postgres+faiss": Combination(store=postgres, index=FAISS)}
if find_spec("qdrant_client") is not None:
    COMBINATIONS |= {
        "sqlite+qdrant": Combination(index=QDRANT),
        "postgres+qdrant": Combination(store=postgres, index=QDRANT),
    }
