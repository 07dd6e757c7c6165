"""A collection looked at as a whole."""

import numpy as np
import pytest

from facets.documents import Document
from facets.errors import InvalidInputError, NotFoundError

NONE = np.empty((0, 32), dtype=np.float32)


def never(texts):
    raise AssertionError("nobody needs the texts")


def test_vectors_are_described_without_queries(engine, make_documents):
    documents = make_documents(30)
    copy = Document(id="copy", text="x", facet_embeddings=documents[0].facet_embeddings)
    engine.upsert("docs", [*documents, copy])
    found = engine.diagnose("docs", NONE, never)
    assert (found.num_documents, found.num_parts, found.num_parts_seen, found.num_queries) == (31, 31, 31, 0)
    assert (found.payoff, found.reachability) == (None, None)
    assert found.vectors.num_rows == 62
    assert found.vectors.num_duplicates == 2
    assert found.index_revision == engine.revision


def test_facets_pay_where_queries_meet_one_of_two(engine, make_facets):
    facets = make_facets(60, 2, 32)
    documents = [Document(id=f"d{i}", text=f"{i}", facet_embeddings=own) for i, own in enumerate(facets)]
    engine.upsert("docs", documents)
    units = facets / np.linalg.norm(facets, axis=2, keepdims=True)
    asked = []

    def own_vectors(texts):
        asked.extend(texts)
        return units[[int(text) for text in texts]].mean(axis=1)

    found = engine.diagnose("docs", units[:20, 1], own_vectors)
    assert set(asked) == {str(i) for i in range(20)}
    assert found.payoff.best == 2
    assert found.payoff.delta > 0.1
    assert (found.reachability.recall, found.reachability.index_kind) == (1.0, "exact")


def test_an_approximate_index_says_what_it_misses(faiss_engine, make_facets):
    queries = make_facets(40, 1, 32, seed=3)[:, 0]
    found = faiss_engine.diagnose("docs", queries, lambda texts: np.ones((len(texts), 32), dtype=np.float32))
    assert found.reachability.index_kind.startswith("faiss")
    assert 0.5 < found.reachability.recall <= 1.0
    assert bool(found.reachability.missed_ids) == (found.reachability.recall < 1.0)


def test_what_nothing_can_be_told_of_is_refused(engine, make_documents):
    with pytest.raises(InvalidInputError, match="holds no documents"):
        engine.diagnose("docs", NONE, never)
    engine.upsert("docs", make_documents(3))
    with pytest.raises(InvalidInputError, match="dimensions"):
        engine.diagnose("docs", np.ones((2, 16)), never)
    with pytest.raises(NotFoundError):
        engine.diagnose("nowhere", NONE, never)


def test_a_map_has_every_document_once(engine, make_documents):
    documents = make_documents(30)
    engine.upsert("docs", documents)
    found = engine.map("docs")
    assert sorted(found.ids) == sorted(document.id for document in documents)
    assert found.points.shape == (30, 2)
    assert len(found.document_themes) == 30 and max(found.document_themes) < len(found.centers)
    assert found.index_revision == engine.revision


def test_a_map_of_a_part_is_a_random_sample_and_always_the_same(engine, make_documents):
    engine.upsert("docs", make_documents(60))
    first, second = engine.map("docs", max_documents=20), engine.map("docs", max_documents=20)
    assert (first.num_documents, len(first.ids)) == (60, 20)
    assert first.ids == second.ids != tuple(sorted(document.id for document in make_documents(60))[:20])


def test_what_cannot_be_drawn_is_refused(engine):
    with pytest.raises(InvalidInputError, match="holds no documents"):
        engine.map("docs")
    with pytest.raises(InvalidInputError, match="limit is 100000"):
        engine.map("docs", max_documents=100_001)
    with pytest.raises(NotFoundError):
        engine.map("nowhere")
