"""Fixtures for documents and search: small collections of seeded facets."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from facets.documents import CollectionEngine, Document, EngineConfig

Facets = NDArray[np.float32]


@pytest.fixture
def make_facets() -> Callable[..., Facets]:
    """``make_facets(n, k, d, seed=0)``: clustered facets with magnitudes, ``[n, k, d]`` float32.

    Their directions are exact in int8, so that references need not know how they are stored.
    """

    def make(num: int, num_facets: int, dim: int, seed: int = 0) -> Facets:
        rng = np.random.default_rng(seed)
        centers = np.random.default_rng(7).standard_normal((20, dim))
        chosen = centers[rng.integers(0, len(centers), (num, num_facets))]
        facets = chosen + 0.5 * rng.standard_normal(chosen.shape)
        facets = np.rint(facets * (127 / np.abs(facets).max(axis=2, keepdims=True))) / 127
        return (facets * rng.uniform(0.1, 10.0, (num, num_facets, 1))).astype(np.float32)

    return make


@pytest.fixture
def make_documents(make_facets: Callable[..., Facets]) -> Callable[..., list[Document]]:
    """``make_documents(n, k=2, d=32, seed=0, prefix="d")``: documents with ids ``d0000`` and payloads."""

    def make(num: int, num_facets: int = 2, dim: int = 32, seed: int = 0, prefix: str = "d") -> list[Document]:
        return [
            Document(
                id=f"{prefix}{number:04}",
                text=f"text {number}",
                facet_embeddings=facets,
                payload={"number": number, "even": number % 2 == 0, "author": {"name": f"a{number % 5}"}},
            )
            for number, facets in enumerate(make_facets(num, num_facets, dim, seed))
        ]

    return make


@pytest.fixture
def open_engine(tmp_path: Path) -> Iterator[Callable[..., CollectionEngine]]:
    """``open_engine(**config)`` opens ``tmp_path/data`` without a background thread; closed afterwards.

    ``open_engine(documents, **config)`` also stores documents in a new collection ``docs``, and folds them.
    """
    opened: list[CollectionEngine] = []

    def open_(documents: list[Document] | None = None, **settings: object) -> CollectionEngine:
        config = EngineConfig(**{"background": False, **settings})  # type: ignore[arg-type]  # any setting
        opened.append(CollectionEngine.open(tmp_path / "data", config))
        if documents is not None:
            opened[-1].create_collection("docs", model="toy", model_revision="1", num_facets=2, dim=32)
            opened[-1].upsert("docs", documents)
            opened[-1].maintain()
        return opened[-1]

    yield open_
    for engine in opened:
        engine.close()


@pytest.fixture
def engine(open_engine: Callable[..., CollectionEngine]) -> CollectionEngine:
    """An engine with an empty collection ``docs`` of 2 facets of 32 dimensions, searched exactly."""
    opened = open_engine()
    opened.create_collection("docs", model="toy", model_revision="1", num_facets=2, dim=32)
    return opened


@pytest.fixture
def faiss_engine(
    open_engine: Callable[..., CollectionEngine], make_documents: Callable[..., list[Document]]
) -> CollectionEngine:
    """An engine whose collection ``docs`` has 600 documents in FAISS and 50 in the exact tail."""
    documents = make_documents(650)
    opened = open_engine(documents[:600], exact_max_facets=1000)
    opened.upsert("docs", documents[600:])
    return opened
