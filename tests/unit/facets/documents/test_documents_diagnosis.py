"""A collection looked at as a whole."""

from functools import partial

import numpy as np
import pytest

from facets.documents import Document, SearchRequest
from facets.documents.diagnosis import collection_vocabulary, diagnose_collection, map_collection
from facets.errors import InvalidInputError, NotFoundError
from facets.language.interruption import apart


def diagnose(engine, requests=(), name="docs"):
    with apart() as run, engine.view(name) as (view, record):
        return diagnose_collection(view, record, requests, search=partial(engine.search, name), run=run)


def draw(engine, name="docs", *, max_documents=0):
    with apart() as run, engine.view(name) as (view, record):
        return map_collection(view, record, max_documents=max_documents, run=run)


def test_vectors_are_described_without_queries(engine, make_documents):
    documents = make_documents(30)
    copy = Document(id="copy", text="x", facet_embeddings=documents[0].facet_embeddings)
    engine.upsert("docs", [*documents, copy])
    found = diagnose(engine)
    assert (found.num_documents, found.num_parts, found.num_parts_seen, found.num_queries) == (31, 31, 31, 0)
    assert (found.recall, found.missed_ids, found.index_kind) == (None, (), "")
    assert found.vectors.num_rows == 62
    assert found.vectors.num_duplicates == 2
    assert found.index_revision == engine.revision


def test_an_approximate_index_says_what_it_misses(faiss_engine, make_facets):
    few, many = (SearchRequest(facets=make_facets(20, facets, 32, seed=3)) for facets in (1, 2))
    found = diagnose(faiss_engine, [few, many])
    assert found.num_queries == 40
    assert found.index_kind.startswith("faiss")
    assert 0.5 < found.recall <= 1.0
    assert bool(found.missed_ids) == (found.recall < 1.0)


def test_what_nothing_can_be_told_of_is_refused(engine, make_documents):
    with pytest.raises(InvalidInputError, match="is empty"):
        diagnose(engine)
    engine.upsert("docs", make_documents(3))
    with pytest.raises(InvalidInputError, match="shape"):
        diagnose(engine, [SearchRequest(facets=np.ones((2, 1, 16), np.float32))])
    with pytest.raises(NotFoundError):
        diagnose(engine, name="nowhere")


def test_a_map_has_every_document_once(engine, make_documents):
    documents = make_documents(30)
    engine.upsert("docs", documents)
    found = draw(engine)
    assert sorted(found.ids) == sorted(document.id for document in documents)
    assert found.points.shape == (30, 2)
    assert len(found.document_themes) == 30 and max(found.document_themes) < len(found.centers)
    assert found.index_revision == engine.revision


def test_a_map_of_a_part_is_a_random_sample_and_always_the_same(engine, make_documents):
    engine.upsert("docs", make_documents(60))
    first, second = draw(engine, max_documents=20), draw(engine, max_documents=20)
    assert (first.num_documents, len(first.ids)) == (60, 20)
    assert first.ids == second.ids != tuple(sorted(document.id for document in make_documents(60))[:20])


def test_what_cannot_be_drawn_is_refused(engine):
    with pytest.raises(InvalidInputError, match="is empty"):
        draw(engine)
    with pytest.raises(InvalidInputError, match="limit is 100000"):
        draw(engine, max_documents=100_001)
    with pytest.raises(NotFoundError):
        draw(engine, "nowhere")


@pytest.mark.parametrize(
    ("texts", "language", "first", "without"),
    [
        (["Die Katze schläft.", "Die Katzen schlafen, und die Katze frisst."], "de", "Katze", {"die", "und", "Die"}),
        (["Кошка спит на диване.", "Кошка ест, и кошка не спит 42 часа."], "ru", "Кошка", {"на", "и", "не", "42"}),
        (["火车票多少钱", "火车票在哪里买"], "zh", "火车", {"火"}),
    ],
)
def test_the_words_of_a_collection_follow_its_language(engine, texts, language, first, without):
    engine.create_collection("told", model="m", model_revision="1", num_facets=1, dim=32, language=language)
    facets = np.ones((1, 32), dtype=np.float32)
    engine.upsert("told", [Document(id=str(i), text=text, facet_embeddings=facets) for i, text in enumerate(texts)])
    with engine.view("told") as (view, record):
        found, rows = collection_vocabulary(view, record)
    assert engine.has_all(rows)
    assert found.words[0] == first and found.counts[0] == 2 and not without & set(found.words)
    assert len({word.lower() for word in found.words}) == len(found.words)
    engine.upsert("told", [Document(id="0", text="42", facet_embeddings=facets)])  # replaces one
    assert not engine.has_all(rows)
