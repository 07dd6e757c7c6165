"""Long documents: more facets than K, found and scored like others whatever the index, and after restarts."""

from collections.abc import Callable

import numpy as np

from facets.documents import CollectionEngine, Document, SearchRequest
from facets.documents.types import MAX_NUM_FACETS

OpenEngine = Callable[..., CollectionEngine]
DIM = 32


def ragged_documents(num: int, seed: int, prefix: str = "d") -> list[Document]:
    """Most with K = 3 facets, some with up to 40."""
    rng = np.random.default_rng(seed)
    counts = np.where(rng.random(num) < 0.3, rng.integers(4, 41, num), 3)
    return [
        Document(
            id=f"{prefix}{number:04}",
            text="word " * 50,
            facet_embeddings=rng.standard_normal((count, DIM)),
            facet_spans=np.stack([np.arange(count), np.arange(count) + 4], axis=1),
            payload={"even": number % 2 == 0},
        )
        for number, count in enumerate(counts.tolist())
    ]


def make_collection(engine: CollectionEngine) -> None:
    engine.create_collection("docs", model="toy", model_revision="1", num_facets=3, dim=DIM)


def test_a_few_long_documents_do_not_hide_the_others(open_engine: OpenEngine) -> None:
    """Every facet of two documents is closer to the query than any other: they fill the list of the best facets."""
    rng = np.random.default_rng(0)
    query = np.eye(1, DIM, dtype=np.float32)
    engine = open_engine(exact_max_facets=10)
    make_collection(engine)
    documents = ragged_documents(300, seed=6)
    for number in range(2):
        near = query + 0.05 * rng.standard_normal((MAX_NUM_FACETS, DIM))
        spans = np.zeros((MAX_NUM_FACETS, 2), dtype=np.int64)
        documents.append(Document(id=f"near{number}", text="near", facet_embeddings=near, facet_spans=spans))
    engine.upsert("docs", documents)
    engine.maintain()
    [hits] = engine.search("docs", SearchRequest(facets=query[None], top_k=50)).hits
    assert len(hits) == 50
    assert {hits[0].id, hits[1].id} == {"near0", "near1"}
