"""A query that is the id, file name, title or a heading of a document finds it first."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from facets.documents import CollectionEngine, Document, Equals, SearchHit, SearchMode, SearchRequest
from facets.documents.parts import split_text

OpenEngine = Callable[..., CollectionEngine]
NUM_SHARING = 60
CHAPTER = "Bring them to the shop. " * 100
DOCUMENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "INV-2031": ("Cups, delivered to the side door.", {"kind": "order"}),
    "INV-2032": ("Saucers. See INV-2031, INV-2031 and INV 2031.", {}),
    "functools.partial": ("New function with some arguments given.", {}),
    "functools.partialmethod": ("A functools.partial: partial functools, partial.", {}),
    "manuals/X-20S.md": ("# Printer\nHas a cutter.\n\n## 3. Cleaning the head\nUse alcohol.", {}),
    "manuals/X-20.md": ("The X-20S is an X-20 with a cutter; X-20S.", {}),
    "p1": ("A weekly on politics.", {"title": "The Spectator"}),
    "p2": ("The Spectator says that a spectator is the spectator.", {"title": "Spectator, spectator"}),
    "long": (f"# Story\n{CHAPTER}\n\n# Disposal of batteries\n{CHAPTER}\n\n# Other\n{CHAPTER}", {}),
    "short": ("Disposal of batteries: disposal of batteries. How to clean the cleaning head: cleaning head.", {}),
    **{f"report {number}": (f"# Summary\nNumber {number}.", {}) for number in range(NUM_SHARING)},
    "summaries": ("A summary of the summary, summary.", {}),
}


@pytest.fixture
def engine(open_engine: OpenEngine) -> CollectionEngine:
    made = open_engine()
    made.create_collection("docs", model="m", model_revision="1", num_facets=1, dim=32)
    documents = []
    for id, (text, payload) in DOCUMENTS.items():
        parts = split_text(text)
        # Documents that only mention a name are the closest to every query.
        facet = np.eye(32)[0 if id in ("INV-2032", "functools.partialmethod", "manuals/X-20.md", "p2", "short") else 1]
        facets = np.tile(facet, (max(1, len(parts)), 1))
        documents.append(
            Document(
                id=id, text=text, facet_embeddings=facets, payload=payload, parts=parts, part_facets=[1] * len(parts)
            )
        )
    made.upsert("docs", documents)
    return made


def first(engine: CollectionEngine, query: str, mode: SearchMode, **options: Any) -> SearchHit:
    facets = None if mode == "lexical" else np.eye(32, dtype=np.float32)[None, :1]
    return engine.search("docs", SearchRequest(texts=[query], facets=facets, mode=mode, **options)).hits[0][0]


@pytest.mark.parametrize("mode", ["hybrid", "lexical"])
@pytest.mark.parametrize(
    ("query", "id"),
    [
        *((query, "INV-2031") for query in ("INV-2031", "inv-2031", '"INV-2031"', " INV-2031? ", "Where is INV-2031?")),
        *((query, "functools.partial") for query in ("functools.partial", "what does functools.partial do?")),
        *((query, "manuals/X-20S.md") for query in ("manuals/x-20s.md", "X-20S.md", "x-20s", "cleaning the head")),
        *((query, "p1") for query in ("The Spectator", "\u201cthe spectator\u201d")),
        ("Disposal of batteries", "long"),
    ],
)
def test_query_that_is_a_name_finds_its_document_first(
    engine: CollectionEngine, mode: SearchMode, query: str, id: str
) -> None:
    hit = first(engine, query, mode)
    assert hit.id == id
    assert -1 <= hit.score <= 1 or mode == "lexical"


def test_heading_finds_its_part(engine: CollectionEngine) -> None:
    assert first(engine, "disposal of batteries", "hybrid").text.startswith("# Disposal of batteries")


def test_named_document_must_pass_the_filter(engine: CollectionEngine) -> None:
    assert first(engine, "INV-2032", "hybrid", where=Equals("kind", "order")).id == "INV-2031"


@pytest.mark.parametrize("mode", ["hybrid", "lexical"])
def test_heading_of_many_documents_names_none(engine: CollectionEngine, mode: SearchMode) -> None:
    assert first(engine, "summary", mode).id == "summaries"


def test_name_is_forgotten_with_its_document(engine: CollectionEngine) -> None:
    engine.delete("docs", ids=["INV-2031"])
    assert first(engine, "INV-2031", "hybrid").id == "INV-2032"
