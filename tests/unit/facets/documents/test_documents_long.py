"""Long documents: more facets than K, found and scored like others whatever the index, and after restarts."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from references import reference_search

from facets.documents import CollectionEngine, Document, SearchRequest
from facets.documents.codes import decode_units, encode_units
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


def queries(num: int, num_facets: int) -> NDArray[np.float32]:
    return np.random.default_rng(99).standard_normal((num, num_facets, DIM)).astype(np.float32)


def padded(documents: list[Document]) -> NDArray[np.float64]:
    """Facets as they are stored."""
    facets = np.zeros((len(documents), 40, DIM))
    for place, document in enumerate(documents):
        units = document.facet_embeddings / np.linalg.norm(document.facet_embeddings, axis=1, keepdims=True)
        facets[place, : len(units)] = decode_units(encode_units(units))
    return facets


def assert_found(engine: CollectionEngine, documents: list[Document], *, num_facets: int, exact: bool) -> float:
    """Scores and evidence are those of the reference; returns the recall of its best ten."""
    asked = queries(8, num_facets)
    units = asked / np.linalg.norm(asked, axis=2, keepdims=True) / num_facets
    truth = reference_search(units, padded(documents))
    by_id = {document.id: place for place, document in enumerate(documents)}
    recalls = []
    for line, scores in zip(
        engine.search("docs", SearchRequest(facets=asked, top_k=10, exact=exact)).hits, truth, strict=True
    ):
        places = [by_id[hit.id] for hit in line]
        np.testing.assert_allclose([hit.score for hit in line], scores[places], atol=1e-3)
        assert len(set(places)) == len(line) == min(10, len(documents))
        for hit, place in zip(line, places, strict=True):
            for match in hit.evidence:
                facet = documents[place].facet_embeddings[match.second_facet]
                np.testing.assert_allclose(match.facet, facet / np.linalg.norm(facet), atol=3e-3)
                assert match.second_span is not None and match.second_span.start == match.second_facet
        recalls.append(len(set(places) & set(np.argsort(-scores, kind="stable")[:10].tolist())) / len(line))
    return float(np.mean(recalls))


def make_collection(engine: CollectionEngine) -> None:
    engine.create_collection("docs", model="toy", model_revision="1", num_facets=3, dim=DIM)


@pytest.mark.parametrize("num_facets", [1, 3])
def test_long_documents_are_found_through_every_state_of_the_index(open_engine: OpenEngine, num_facets: int) -> None:
    settings = {"exact_max_facets": 900}
    engine = open_engine(**settings)
    make_collection(engine)
    documents = ragged_documents(250, seed=1)
    engine.upsert("docs", documents)
    assert assert_found(engine, documents, num_facets=num_facets, exact=True) >= 0.99
    more = ragged_documents(200, seed=2, prefix="m")
    engine.upsert("docs", more)
    engine.maintain()
    assert engine.get_collection("docs").index_kind.startswith("faiss")
    documents = documents[20:] + more
    engine.delete("docs", ids=[f"d{number:04}" for number in range(20)])
    changed = ragged_documents(40, seed=3)[20:]
    engine.upsert("docs", changed)
    documents = [document for document in documents if document.id not in {one.id for one in changed}] + changed
    for _ in range(2):
        assert assert_found(engine, documents, num_facets=num_facets, exact=True) >= 0.99
        assert assert_found(engine, documents, num_facets=num_facets, exact=False) >= 0.9
        engine.maintain()
    engine.upsert("docs", ragged_documents(80, seed=4, prefix="z"))
    documents += ragged_documents(80, seed=4, prefix="z")
    engine.maintain()
    for _ in range(2):  # the second one reads the snapshot of the first
        engine.close()
        engine = open_engine(**settings)
        assert assert_found(engine, documents, num_facets=num_facets, exact=True) >= 0.99
        assert engine.count("docs").num_documents == len(documents)


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
