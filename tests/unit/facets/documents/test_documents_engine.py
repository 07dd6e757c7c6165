"""The engine: what callers see of collections, documents and search."""

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import pytest
from numpy.typing import NDArray

from facets.documents import CollectionEngine, Document, Equals, SearchRequest, SearchResult
from facets.documents.types import MAX_ID_BYTES, MAX_PAYLOAD_BYTES
from facets.errors import ConflictError, InvalidInputError, NotFoundError, StoreClosedError
from facets.index.config import MAX_BATCH_DOCUMENTS, MAX_DOCUMENT_BYTES, MAX_TOP_K

MakeDocuments = Callable[..., list[Document]]
MakeFacets = Callable[..., NDArray[np.float32]]


def document(id: str = "a", **changes: object) -> Document:
    values: dict[str, object] = {"id": id, "text": "t", "facet_embeddings": np.ones((2, 32))}
    return Document(**{**values, **changes})  # type: ignore[arg-type]


def ids(result: SearchResult) -> list[str]:
    return [hit.id for hit in result.hits[0]]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("name", name) for name in ("", "A", "-a", "a b", "a/b", "a" * 65, "\u00e9", "a\n", "../x")),
        *(("num_facets", number) for number in (0, 257)),
        ("dim", 0),
    ],
)
def test_bad_collection_is_refused(engine: CollectionEngine, field: str, value: object) -> None:
    fields = {"name": "x", "model": "m", "model_revision": "r", "num_facets": 1, "dim": 8} | {field: value}
    with pytest.raises(InvalidInputError) as caught:
        engine.create_collection(**fields)  # type: ignore[arg-type]  # any value
    assert caught.value.field == field


def test_collections_are_described_listed_and_deleted(engine: CollectionEngine) -> None:
    made = engine.create_collection("a-1", model="m", model_revision="r", num_facets=3, dim=8)
    assert (made.name, made.model, made.model_revision, made.num_facets, made.dim) == ("a-1", "m", "r", 3, 8)
    assert abs((made.create_time - datetime.now(tz=UTC)).total_seconds()) < 60
    assert engine.get_collection("a-1") == made
    assert [info.name for info in engine.list_collections()] == ["a-1", "docs"]
    with pytest.raises(ConflictError, match="docs"):
        engine.create_collection("docs", model="m", model_revision="r", num_facets=1, dim=8)
    assert engine.delete_collection("a-1").revision == engine.revision
    with pytest.raises(NotFoundError) as caught:
        engine.get_collection("a-1")
    assert (caught.value.resource_type, caught.value.resource_name) == ("collection", "a-1")


def test_unknown_collection_is_not_found(engine: CollectionEngine) -> None:
    for call in (
        lambda: engine.upsert("none", [document()]),
        lambda: engine.get("none", ["a"]),
        lambda: engine.delete("none", ids=["a"]),
        lambda: engine.list_documents("none"),
        lambda: engine.count("none"),
        lambda: engine.search("none", SearchRequest(facets=np.ones((1, 2, 32)))),
        lambda: engine.delete_collection("none"),
    ):
        with pytest.raises(NotFoundError, match="none"):
            call()


def test_too_large_batch_is_refused(engine: CollectionEngine) -> None:
    with pytest.raises(InvalidInputError, match=str(MAX_BATCH_DOCUMENTS)):
        engine.upsert("docs", [document()] * (MAX_BATCH_DOCUMENTS + 1))
    with pytest.raises(InvalidInputError, match="one str"):
        engine.get("docs", "abc")


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        *(("id", {"id": id}) for id in ("a", "", "x\0", "x" * (MAX_ID_BYTES + 1), "\ud800")),
        *(("text", {"text": text}) for text in ("\udfff", "x" * (MAX_DOCUMENT_BYTES + 1))),
        *(
            ("payload", {"payload": payload})
            for payload in (
                {"x": "y" * MAX_PAYLOAD_BYTES},
                {"x": float("nan")},
                {"x": object()},
                {"x": json.loads("[" * 40 + "]" * 40)},
                {1: 2},
                {"x": "goat\0s"},  # SQLite's filters would take it for goat
                {"x": {"y\0": ["\\\\\0"]}},
                [1],
            )
        ),
        *(
            ("facet_embeddings", {"facet_embeddings": facets})
            for facets in (
                *(np.ones(shape) for shape in ((3, 32), (2, 31))),
                *(np.full((2, 32), number) for number in (np.nan, -np.inf, 1e300, 1)),
            )
        ),
    ],
)
def test_bad_document_is_refused_and_nothing_stored(
    engine: CollectionEngine, field: str, changes: dict[str, object]
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        engine.upsert("docs", [document("a"), document(**{"id": "b", **changes})])  # type: ignore[arg-type]
    assert caught.value.path[:3] == ("documents", 1, field)
    assert engine.count("docs").num_documents == 0


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_magnitudes_survive_storage(engine: CollectionEngine, scale: float) -> None:
    facets = (np.random.default_rng(0).standard_normal((2, 32)) * scale).astype(np.float32)
    facets[1] = 0
    engine.upsert("docs", [document(facet_embeddings=facets)])
    stored = engine.get("docs", ["a"], include_facets=True).documents[0].facet_embeddings
    assert stored is not None
    np.testing.assert_allclose(stored, facets, atol=1e-2 * scale)
    np.testing.assert_allclose(np.linalg.norm(stored, axis=1), np.linalg.norm(facets, axis=1), rtol=1e-3)


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
    assert engine.upsert("docs", documents).num_added == 2


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


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("facets", np.ones(shape)) for shape in ((2, 32), (1, 2, 31), (0, 2, 32), (1, 0, 32))),
        *(("facets", np.full((1, 2, 32), number)) for number in (np.nan, np.inf, 1)),
        *(
            ("weights", np.array(own))
            for own in ([[0.0, 0.0]], [[-1.0, 2.0]], [[np.nan, 1.0]], [[1.0]], [[1.0, 1.0]] * 2)
        ),
    ],
)
def test_bad_query_is_refused(engine: CollectionEngine, field: str, value: NDArray[np.float32]) -> None:
    request = SearchRequest(**{"facets": np.ones((1, 2, 32), dtype=np.float32), field: value})  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=f"^{field}"):
        engine.search("docs", request)


def test_closed_engine_says_so(engine: CollectionEngine) -> None:
    engine.close()
    engine.close()
    with pytest.raises(StoreClosedError, match="closed"):
        engine.count("docs")
    with pytest.raises(StoreClosedError, match="closed"):
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
