"""The index on Qdrant, in process and by the client of a server: the reference's ranking; away, full, foreign."""

import os
from importlib.util import find_spec

import numpy as np
import pytest

from facets.documents import CollectionEngine, Document, EngineConfig, SearchRequest
from facets.errors import ConfigError, DiskFullError, IndexAwayError
from facets.index import qdrant
from facets.index.base import FacetSource, paged
from facets.index.config import EngineConfig as Config
from facets.index.qdrant import QdrantBackend, QdrantServer

K, DIM, N = 4, 32, 300
URL = os.environ.get("FACETS_QDRANT_URL", "")
KINDS = [
    pytest.param("memory", marks=pytest.mark.skipif(find_spec("qdrant_client") is None, reason="no extra 'qdrant'")),
    pytest.param("server", marks=pytest.mark.skipif(not URL, reason="FACETS_QDRANT_URL names no Qdrant")),
]
rng = np.random.default_rng(5)
FACETS = rng.standard_normal((N, K, DIM)).astype(np.float32)
FACETS[::7, 2:] = 0  # two of four
FACETS[::50] = 0  # none
FACETS[8:12] = FACETS[8]  # equal ones
NORMS = np.linalg.norm(FACETS, axis=2, keepdims=True)
UNITS = (FACETS / np.where(NORMS > 0, NORMS, 1)).astype(np.float16)
ROWS = np.arange(10, 10 + 3 * N, 3)
QUERIES = rng.standard_normal((6, 3, DIM)).astype(np.float32)
QUERIES *= (np.array([0.6, 0.3, 0.1]) / np.linalg.norm(QUERIES, axis=2))[:, :, None]
QUERIES[3, 1:] = 0
QUERIES[3] /= 0.6
QUERIES[5] = -QUERIES[4]


class Source(FacetSource):
    num_facets, dim = K, DIM

    def __init__(self, revision=7):
        self._revision = revision

    def revision(self):
        return self._revision

    def rows(self):
        return ROWS

    def read(self, rows):
        kept = np.isin(ROWS, rows)
        return ROWS[kept], UNITS[kept]


@pytest.fixture(params=KINDS)
def backend(request):
    from qdrant_client import QdrantClient

    server = QdrantServer(URL or "qdrant://nowhere", None if request.param == "server" else QdrantClient(":memory:"))
    made = QdrantBackend(Config(index="qdrant://nowhere"), server).of("facets-test-1")
    made.drop()
    yield made
    made.drop()


@pytest.fixture
def index(backend):
    def chunks():
        yield ROWS[:200], UNITS[:200]
        yield ROWS[200:], UNITS[200:]

    return backend.build(chunks, num_documents=N, num_facets=K)


def test_the_numbers_of_many_documents_do_not_go_along(index, monkeypatch):
    allowed = ROWS[::3]
    with_numbers = index.search(QUERIES, 10, allowed_rows=allowed, exhaustive=True)
    monkeypatch.setattr(qdrant, "MAX_FILTER_IDS", 5)
    without = index.search(QUERIES, 10, allowed_rows=allowed, exhaustive=True)
    assert [set(line[:10]) for line in with_numbers.rows] == [set(line[:10]) for line in without.rows]


def test_removed_documents_are_hidden_at_once_and_deleted_later(backend, index, monkeypatch):
    best = int(index.search(QUERIES[:1], 1, exhaustive=True).rows[0, 0])
    assert index.remove(np.array([best, 10**6])) == 1 and index.num_masked == 1
    assert best not in index.search(QUERIES[:1], 10, exhaustive=True).rows
    index.purge()
    assert index.num_masked == 1 and best in backend.open(Source()).rows()  # for a search that began before
    monkeypatch.setattr(qdrant, "DELETE_AFTER_S", -1.0)
    index.purge()
    assert index.num_masked == 0 and best not in backend.open(Source()).rows()
    assert len(index) == N - 1 and len(index.slots) == N - 1


def test_points_are_found_again_and_those_of_others_are_passed_over(backend, index):
    again = backend.open(Source())
    assert again is not None and sorted(again.rows()) == ROWS.tolist()
    one, two = (some.search(QUERIES, 10, exhaustive=True) for some in (index, again))
    assert [set(line) for line in one.rows] == [set(line) for line in two.rows]
    best = QUERIES[0] / np.linalg.norm(QUERIES[0], axis=1, keepdims=True)
    rows, places = paged(np.array([5000]), best.astype(np.float16), np.array([0, 3]), num_facets=K)
    again.add(rows, places)
    assert again.search(QUERIES[:1], 1, exhaustive=True).rows[0, 0] == 5000
    assert 5000 not in index.search(QUERIES[:1], 10, exhaustive=True).rows  # another server has sent it


def test_a_long_document_is_one_point(backend, index):
    long = rng.standard_normal((2 * K + 1, DIM))
    long /= np.linalg.norm(long, axis=1, keepdims=True)
    rows, places = paged(
        np.array([7001, 7002]), np.concatenate([long, long[:1]]).astype(np.float16), np.array([0, 9, 10]), num_facets=K
    )
    assert len(rows) == 4
    index.add(rows, places)
    assert len(index) == N + 2
    found = index.search(long[None, 8:9].astype(np.float32), 1, exhaustive=True)
    assert found.rows[0, 0] == 7001 and found.scores[0, 0] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.skipif(find_spec("qdrant_client") is None, reason="no extra 'qdrant'")
def test_an_odd_address_and_nobody_there_are_named():
    from qdrant_client import QdrantClient

    server = QdrantServer("qdrant://nowhere", QdrantClient(":memory:"))
    backend = QdrantBackend(Config(index="qdrant://nowhere"), server).of("facets-x-1")
    backend.build(lambda: [(ROWS, UNITS)], num_documents=N, num_facets=K)

    for url in ("qdrant://host:port", "qdrant://"):
        with pytest.raises(ConfigError, match=r"qdrant://HOST\[:PORT\]"):
            QdrantServer(url)
    with pytest.raises(ValueError, match="index"):
        Config(index="pinecone://host")
    away = QdrantBackend(Config(index="qdrant://127.0.0.1:1")).of("facets-x-1")
    for ask in (lambda: away.open(Source()), lambda: away.open(Source()), away.check):  # at once the second time
        with pytest.raises(IndexAwayError, match="does not answer"):
            ask()
    assert backend.dependency == "qdrant" and backend.check() is None
    with pytest.raises(DiskFullError, match="no space"), server.errors("x"):
        raise RuntimeError("Service internal error: No space left on device")


def test_points_of_a_store_that_was_restored_since_are_sent_anew(backend, index):
    backend.open(Source(revision=9))
    backend.build(lambda: [(ROWS[:3] + 1, UNITS[:3])], num_documents=3, num_facets=K)
    assert len(backend.open(Source(revision=9))) == N + 3
    assert backend.open(Source(revision=8)) is None  # its rows may be given to other documents by now
    again = backend.build(lambda: [(ROWS, UNITS)], num_documents=N, num_facets=K)
    assert len(again) == N and sorted(backend.open(Source(revision=8)).rows()) == ROWS.tolist()


@pytest.mark.skipif(find_spec("qdrant_client") is None, reason="no extra 'qdrant'")
def test_without_its_index_a_collection_is_written_and_searched_by_words(tmp_path):
    settings = EngineConfig(index="qdrant://127.0.0.1:1", exact_max_facets=100, background=False)
    with CollectionEngine.open(tmp_path, settings) as engine:
        engine.create_collection("docs", model="m", model_revision="1", num_facets=K, dim=DIM)
        texts = ["goat", "river", "bridge"]
        documents = [Document(id=str(n), text=texts[n % 3], facet_embeddings=FACETS[n]) for n in range(N)]
        assert engine.upsert("docs", documents).num_added == N
        found = engine.search("docs", SearchRequest(facets=QUERIES[:1], texts=["river"], top_k=5))
        assert {hit.text for hit in found.hits[0]} == {"river"} and found.hits[0][0].facets_score
        assert (found.exhaustive, found.index_kind) == (False, "lexical") and "does not answer" in found.left_out
        assert engine.search("docs", SearchRequest(texts=["river"], mode="lexical", top_k=5)).left_out == ""
        for refused in (
            SearchRequest(facets=QUERIES, top_k=5),
            SearchRequest(facets=QUERIES[:1], texts=["x"], top_k=5, exact=True),
        ):
            with pytest.raises(IndexAwayError):
                engine.search("docs", refused)
        assert engine.delete("docs", ids=["1"]).num_deleted == 1
        assert engine.count("docs").num_documents == N - 1
    with CollectionEngine.open(tmp_path, EngineConfig(background=False)) as engine:
        assert engine.search("docs", SearchRequest(facets=QUERIES, top_k=5)).exhaustive
