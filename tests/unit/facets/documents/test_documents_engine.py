"""The engine: what callers see of collections, documents and search."""

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import pytest
from numpy.typing import NDArray
from references import reference_search

from facets.documents import CollectionEngine, Document, Equals, SearchRequest, SearchResult
from facets.documents.types import MAX_ID_BYTES, MAX_PAYLOAD_BYTES
from facets.errors import ConflictError, InvalidInputError, NotFoundError, StorageError
from facets.index.config import MAX_BATCH_DOCUMENTS, MAX_DOCUMENT_BYTES, MAX_TOP_K

MakeDocuments = Callable[..., list[Document]]
MakeFacets = Callable[..., NDArray[np.float32]]


def document(id: str = "a", **changes: object) -> Document:
    values: dict[str, object] = {"id": id, "text": "t", "facet_embeddings": np.ones((2, 32))}
    return Document(**{**values, **changes})  # type: ignore[arg-type]


def expected_hits(documents: list[Document], query: NDArray[np.float32], top_k: int) -> list[str]:
    half = np.stack([entry.facet_embeddings for entry in documents])
    half = (half / np.linalg.norm(half, axis=2, keepdims=True)).astype(np.float16)
    weighted = query / np.linalg.norm(query, axis=1, keepdims=True) / len(query)
    scores = reference_search(weighted[None], half)[0]
    order = sorted(range(len(documents)), key=lambda n: (-scores[n], documents[n].id))
    return [documents[n].id for n in order[:top_k]]


def ids(result: SearchResult) -> list[str]:
    return [hit.id for hit in result.hits[0]]


def test_collection_lifecycle(engine: CollectionEngine) -> None:
    before = datetime.now(tz=UTC)
    made = engine.create_collection("a-1", model="m", model_revision="r", num_facets=3, dim=8)
    assert (made.name, made.model, made.model_revision, made.num_facets, made.dim) == ("a-1", "m", "r", 3, 8)
    assert abs((made.create_time - before).total_seconds()) < 60
    assert engine.get_collection("a-1") == made
    assert [info.name for info in engine.list_collections()] == ["a-1", "docs"]
    deleted = engine.delete_collection("a-1")
    assert (deleted.revision, deleted.num_deleted) == (engine.revision, 0)
    with pytest.raises(NotFoundError) as caught:
        engine.get_collection("a-1")
    assert (caught.value.resource_type, caught.value.resource_name) == ("collection", "a-1")


@pytest.mark.parametrize("name", ["", "A", "-a", "a b", "a/b", "a" * 65, "\u00e9", "a\n", "../x"])
def test_bad_collection_name_is_refused(engine: CollectionEngine, name: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        engine.create_collection(name, model="m", model_revision="r", num_facets=1, dim=8)
    assert caught.value.field == "name"


def test_bad_collection_settings_are_refused(engine: CollectionEngine) -> None:
    with pytest.raises(ConflictError, match="docs"):
        engine.create_collection("docs", model="m", model_revision="r", num_facets=1, dim=8)
    for num_facets, dim, field in ((0, 8, "num_facets"), (1, 0, "dim"), (257, 8, "num_facets")):
        with pytest.raises(InvalidInputError) as caught:
            engine.create_collection("x", model="m", model_revision="r", num_facets=num_facets, dim=dim)
        assert caught.value.field == field


@pytest.mark.parametrize(
    "call",
    [
        lambda e: e.upsert("none", [document()]),
        lambda e: e.get("none", ["a"]),
        lambda e: e.delete("none", ids=["a"]),
        lambda e: e.list_documents("none"),
        lambda e: e.count("none"),
        lambda e: e.search("none", SearchRequest(facets=np.ones((1, 2, 32)), top_k=1)),
        lambda e: e.delete_collection("none"),
    ],
)
def test_unknown_collection_is_not_found(engine: CollectionEngine, call: Callable[[CollectionEngine], object]) -> None:
    with pytest.raises(NotFoundError, match="none"):
        call(engine)


def test_upsert_inserts_then_replaces(engine: CollectionEngine, make_documents: MakeDocuments) -> None:
    first = engine.upsert("docs", make_documents(10))
    assert (first.num_inserted, first.num_updated) == (10, 0)
    changed = [document("d0003", text="new", payload={"x": [1, {"y": None}]}), document("z")]
    second = engine.upsert("docs", changed)
    assert (second.num_inserted, second.num_updated) == (1, 1)
    assert second.revision == first.revision + 1 == engine.revision
    assert engine.count("docs").num_documents == 11
    found = engine.get("docs", ["d0003"]).documents[0]
    assert (found.text, found.payload, found.revision) == ("new", {"x": [1, {"y": None}]}, second.revision)
    query = np.ones((1, 1, 32), dtype=np.float32)
    hits = engine.search("docs", SearchRequest(facets=query, top_k=2)).hits[0]
    assert [(hit.id, hit.score, hit.text) for hit in hits] == [("d0003", 1.0, "new"), ("z", 1.0, "t")]


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (document("a"), "documents[1].id"),
        (document(""), "documents[1].id"),
        (document("x\0"), "documents[1].id"),
        (document("x" * (MAX_ID_BYTES + 1)), "documents[1].id"),
        (document("\ud800"), "documents[1].id"),
        (document("b", text="\udfff"), "documents[1].text"),
        (document("b", text="x" * (MAX_DOCUMENT_BYTES + 1)), "documents[1].text"),
        (document("b", payload={"x": "y" * MAX_PAYLOAD_BYTES}), "documents[1].payload"),
        (document("b", payload={"x": float("nan")}), "documents[1].payload"),
        (document("b", payload={"x": object()}), "documents[1].payload"),
        (document("b", payload={"x": json.loads("[" * 40 + "]" * 40)}), "documents[1].payload"),
        (document("b", payload={1: 2}), "documents[1].payload"),
        (document("b", payload={"x": "goat\0s"}), "documents[1].payload"),  # SQLite's filters would take it for goat
        (document("b", payload={"x": {"y\0": ["\\\\\0"]}}), "documents[1].payload"),
        (document("b", payload=[1]), "documents[1].payload"),
        (document("b", facet_embeddings=np.ones((3, 32))), "documents[1].facet_embeddings"),
        (document("b", facet_embeddings=np.ones((2, 31))), "documents[1].facet_embeddings"),
        (document("b", facet_embeddings=np.full((2, 32), np.nan)), "documents[1].facet_embeddings"),
        (document("b", facet_embeddings=np.full((2, 32), -np.inf)), "documents[1].facet_embeddings"),
        (document("b", facet_embeddings=np.full((2, 32), 1e300)), "documents[1].facet_embeddings"),
        (document("b", facet_embeddings=np.ones((2, 32), dtype=int)), "documents[1].facet_embeddings"),
    ],
)
def test_bad_document_is_refused_and_nothing_stored(engine: CollectionEngine, bad: Document, field: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        engine.upsert("docs", [document("a"), bad])
    assert caught.value.field == field
    assert engine.count("docs").num_documents == 0


def test_duplicate_id_is_named_with_its_place(engine: CollectionEngine) -> None:
    with pytest.raises(InvalidInputError, match="'twice', which is also the id of an earlier document") as caught:
        engine.upsert("docs", [document("twice"), document("b"), document("twice")])
    assert caught.value.path == ("documents", 2, "id")


def test_too_large_batch_is_refused(engine: CollectionEngine) -> None:
    with pytest.raises(InvalidInputError, match=str(MAX_BATCH_DOCUMENTS)):
        engine.upsert("docs", [document()] * (MAX_BATCH_DOCUMENTS + 1))
    with pytest.raises(InvalidInputError, match="one str"):
        engine.get("docs", "abc")


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_magnitudes_survive_storage(engine: CollectionEngine, scale: float) -> None:
    facets = (np.random.default_rng(0).standard_normal((2, 32)) * scale).astype(np.float32)
    facets[1] = 0
    engine.upsert("docs", [document(facet_embeddings=facets)])
    stored = engine.get("docs", ["a"], include_facets=True).documents[0].facet_embeddings
    assert stored is not None
    np.testing.assert_allclose(stored, facets, atol=1e-2 * scale)
    np.testing.assert_allclose(np.linalg.norm(stored, axis=1), np.linalg.norm(facets, axis=1), rtol=1e-3)


def test_delete_by_id_and_by_filter(engine: CollectionEngine, make_documents: MakeDocuments) -> None:
    engine.upsert("docs", make_documents(10))
    result = engine.delete("docs", ids=["d0001", "none"])
    assert result.num_deleted == 1
    assert engine.delete("docs", where=Equals("even", True)).num_deleted == 5
    assert engine.count("docs").num_documents == 4
    found = engine.search("docs", SearchRequest(facets=np.ones((1, 1, 32), dtype=np.float32), top_k=20))
    assert sorted(ids(found)) == ["d0003", "d0005", "d0007", "d0009"]
    for arguments in ({}, {"ids": ["a"], "where": Equals("even", True)}):
        with pytest.raises(InvalidInputError):
            engine.delete("docs", **arguments)  # type: ignore[arg-type]


def test_another_collection_of_the_same_name_is_not_the_one_seen(
    engine: CollectionEngine, make_documents: MakeDocuments
) -> None:
    documents = make_documents(2)
    query = documents[0].facet_embeddings[None].astype(np.float32)
    seen = engine.record("docs")
    engine.upsert("docs", documents, seen=seen)
    assert ids(engine.search("docs", SearchRequest(facets=query, top_k=1), seen=seen)) == ["d0000"]
    engine.delete_collection("docs")
    engine.create_collection("docs", model="other", model_revision="1", num_facets=2, dim=32)
    with pytest.raises(NotFoundError, match="during the call"):
        engine.upsert("docs", documents, seen=seen)
    with pytest.raises(NotFoundError, match="during the call"):
        engine.search("docs", SearchRequest(facets=query, top_k=1), seen=seen)
    assert engine.count("docs").num_documents == 0
    assert engine.upsert("docs", documents).num_inserted == 2


def test_foreign_page_token_is_refused(engine: CollectionEngine, make_documents: MakeDocuments) -> None:
    engine.upsert("docs", make_documents(5))
    engine.create_collection("other", model="m", model_revision="r", num_facets=2, dim=32)
    token = engine.list_documents("docs", page_size=2).next_page_token
    for name, filter, bad in (
        ("docs", None, "rubbish"),
        ("docs", None, "\u00e9"),
        ("docs", None, token[:-1]),
        ("docs", None, token[:-4]),
        ("docs", None, "AAAA" + token[4:]),
        ("docs", Equals("even", True), token),
        ("other", None, token),
    ):
        with pytest.raises(InvalidInputError) as caught:
            engine.list_documents(name, page_token=bad, where=filter)
        assert caught.value.field == "page_token"


@pytest.mark.parametrize("exact", [False, True])
def test_search_matches_reference(
    faiss_engine: CollectionEngine, make_documents: MakeDocuments, make_facets: MakeFacets, exact: bool
) -> None:
    documents = make_documents(650)
    queries = make_facets(6, 3, 32, seed=9)
    result = faiss_engine.search("docs", SearchRequest(facets=queries, top_k=10, exact=exact))
    assert result.index_kind == faiss_engine.get_collection("docs").index_kind == "faiss-ivf-int8"
    assert result.exhaustive or not exact
    expected = [expected_hits(documents, query, 10) for query in queries]
    found = [[hit.id for hit in hits] for hits in result.hits]
    if exact:
        assert found == expected
    shared = sum(len(set(one) & set(other)) for one, other in zip(found, expected, strict=True))
    assert shared >= 0.9 * 60


@pytest.mark.parametrize("weights", [[[0.0, 0.0]], [[-1.0, 2.0]], [[np.nan, 1.0]], [[1.0]], [[1.0, 1.0], [1.0, 1.0]]])
def test_bad_weights_are_refused(engine: CollectionEngine, weights: list[list[float]]) -> None:
    with pytest.raises(InvalidInputError, match="weights"):
        engine.search(
            "docs", SearchRequest(facets=np.ones((1, 2, 32), dtype=np.float32), top_k=1, weights=np.array(weights))
        )


def test_ties_are_broken_by_id(faiss_engine: CollectionEngine) -> None:
    faiss_engine.upsert("docs", [document(f"tie{n:03}") for n in reversed(range(300))])
    faiss_engine.maintain()
    faiss_engine.upsert("docs", [document("tie-a"), document("tie999")])
    result = faiss_engine.search(
        "docs", SearchRequest(facets=np.ones((1, 1, 32), dtype=np.float32), top_k=4, exact=True)
    )
    assert ids(result) == ["tie-a", "tie000", "tie001", "tie002"]


@pytest.mark.parametrize(
    "query",
    [
        np.ones((2, 32)),
        np.ones((1, 2, 31)),
        np.ones((0, 2, 32)),
        np.ones((1, 0, 32)),
        np.full((1, 2, 32), np.nan),
        np.full((1, 2, 32), np.inf),
        np.ones((1, 2, 32), dtype=int),
    ],
)
def test_bad_query_is_refused(engine: CollectionEngine, query: NDArray[np.float32]) -> None:
    with pytest.raises(InvalidInputError, match=r"^facets"):
        engine.search("docs", SearchRequest(facets=query, top_k=1))


def test_closed_engine_says_so(engine: CollectionEngine) -> None:
    engine.close()
    engine.close()
    with pytest.raises(StorageError, match="closed"):
        engine.count("docs")
    with pytest.raises(StorageError, match="closed"):
        engine.upsert("docs", [document()])


def test_searches_beside_writes_see_every_acknowledged_document(
    open_engine: Callable[..., CollectionEngine], make_documents: MakeDocuments
) -> None:
    engine = open_engine(exact_max_facets=400, background=True, snapshot_every_writes=100)
    engine.create_collection("docs", model="toy", model_revision="1", num_facets=2, dim=32)
    documents = make_documents(1200)
    engine.upsert("docs", documents[:100])
    acknowledged = 100
    failures: list[str] = []
    done = threading.Event()

    def search(seed: int) -> None:
        rng = np.random.default_rng(seed)
        while not done.is_set():
            wanted = documents[rng.integers(0, acknowledged)]
            query = wanted.facet_embeddings[None].astype(np.float32)
            texts = [wanted.text] if seed == 2 else None  # by facets, by facets exactly, by words too
            found = ids(engine.search("docs", SearchRequest(facets=query, texts=texts, top_k=3, exact=bool(seed % 2))))
            if wanted.id not in found or len(set(found)) != 3:
                failures.append(f"{wanted.id} not among {found}")

    threads = [threading.Thread(target=search, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for start in range(100, 1200, 50):
        engine.upsert("docs", documents[start : start + 50])
        acknowledged = start + 50
        engine.upsert("docs", documents[start - 100 : start - 50])  # replaced by themselves
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert engine.count("docs").num_documents == 1200
    engine.maintain()
    assert engine.get_collection("docs").index_kind == "faiss-ivf-int8"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("top_k", value) for value in (0, -1, MAX_TOP_K + 1)),
        *((field, value) for field in ("min_confidence", "diversify") for value in (-0.1, 1.1, float("nan"))),
        *(("combine", "all"), ("mode", "words")),
    ],
)
def test_search_out_of_range_is_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidInputError, match=f"^{field} must be"):
        SearchRequest(**{field: value})  # type: ignore[arg-type]  # any field
