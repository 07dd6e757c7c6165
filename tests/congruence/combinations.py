"""Which stores and indexes are held to the same answers: one row each.

The reference is SQLite with everything compared; a row says how another combination is opened. Whoever adds a store or
an index adds a row; the tests need no line.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import postgres_server

Settings = Mapping[str, object]


def sqlite() -> Settings:
    """The store in the data directory."""
    return {}


def postgres() -> Settings:
    """A database of its own."""
    return {"store": postgres_server.server().new_database()}


@dataclass(frozen=True, kw_only=True)
class Combination:
    """How an engine of it is opened.

    Attributes:
        store: Gives the settings of an empty store; calls ``pytest.skip`` with the reason where there is none.
        index: Settings of the index of large collections.
        approximate: Whether that index may miss something where ``exact`` is not asked for.
    """

    store: Callable[[], Settings] = sqlite
    index: Settings = field(default_factory=dict)
    approximate: bool = True


FAISS = {"index": "faiss", "exact_max_facets": 300}
EDGE = {"index": "edge", "exact_max_facets": 300}
QDRANT = {"index": os.environ.get("FACETS_QDRANT_URL", ""), "exact_max_facets": 300}
REFERENCE = Combination(index={"exact_max_facets": 10**9}, approximate=False)
COMBINATIONS = {
    "sqlite+faiss": Combination(index=FAISS),
    "sqlite+edge": Combination(index=EDGE),
    "postgres+faiss": Combination(store=postgres, index=FAISS),
    "postgres+edge": Combination(store=postgres, index=EDGE),
}
if QDRANT["index"]:  # qdrant://HOST[:PORT] of a real server
    COMBINATIONS |= {"sqlite+qdrant": Combination(index=QDRANT)}
    COMBINATIONS |= {"postgres+qdrant": Combination(store=postgres, index=QDRANT)}
