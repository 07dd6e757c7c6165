"""Ranking candidates of many queries together."""

from collections.abc import Callable

import numpy as np

from facets.documents import CollectionEngine, Document


def test_queries_of_one_call_may_have_candidates_far_apart(open_engine: Callable[..., CollectionEngine]) -> None:
    """Thousands of equal documents are candidates of one query; those of the other one lie behind all of them."""
    first, second = np.eye(2, dtype=np.float32)[:, None]
    engine = open_engine()
    engine.create_collection("c", model="m", model_revision="1", num_facets=1, dim=2)
    engine.upsert("c", [Document(id=f"a{number:04}", text="", facet_embeddings=first) for number in range(3000)])
    engine.upsert("c", [Document(id="b", text="", facet_embeddings=second)])
    found = engine.search("c", np.stack([first, second]), top_k=1)
    assert [[hit.id for hit in hits] for hits in found.hits] == [["a0000"], ["b"]]
