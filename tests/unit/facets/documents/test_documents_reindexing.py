"""Moving a collection to another model: nothing is lost, whatever is written or breaks meanwhile."""

import shutil
import threading
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from facets.documents import CollectionEngine, Document, EncodedText, EngineConfig, SearchRequest, TargetModel
from facets.errors import NotFoundError, NotReadyError

OpenEngine = Callable[..., CollectionEngine]
NUM_FACETS, DIM = 3, 64  # of the new model; the old one has 2 and 32


def vectors(texts: Sequence[str], num_facets: int = NUM_FACETS, dim: int = DIM) -> NDArray[np.float32]:
    """Facets that depend on the text alone."""
    lines = [np.random.default_rng(zlib.crc32(text.encode())).standard_normal((num_facets, dim)) for text in texts]
    return np.array(lines, dtype=np.float32).reshape(len(texts), num_facets, dim)


def documents(*numbers: int, version: str = "first") -> list[Document]:
    texts = [f"{version} text of {number}" for number in numbers]
    return [
        Document(id=f"d{number}", text=text, facet_embeddings=facets, payload={"version": version})
        for number, text, facets in zip(numbers, texts, vectors(texts, 2, 32), strict=True)
    ]


def target(encode: Callable[[Sequence[str]], NDArray[np.float32]] = vectors, revision: str = "new") -> TargetModel:
    return TargetModel(
        model="other",
        model_revision=revision,
        num_facets=NUM_FACETS,
        dim=DIM,
        encode=lambda texts: [EncodedText(facets) for facets in encode(texts)],
    )


def texts_of(engine: CollectionEngine) -> dict[str, str]:
    listed = engine.list_documents("docs", page_size=1000).documents
    assert len(listed) == engine.count("docs").num_documents
    return {document.id: document.text for document in listed}


def assert_moved(engine: CollectionEngine, expected: dict[str, str]) -> None:
    """The collection is of the new model and every document is found by its own text."""
    assert texts_of(engine) == expected
    info = engine.get_collection("docs")
    assert (info.model, info.model_revision, info.num_facets, info.dim) == ("other", "new", NUM_FACETS, DIM)
    ids = list(expected)
    result = engine.get("docs", ids, include_facets=True)
    assert result.missing_ids == ()
    for document in result.documents:
        assert document.facet_embeddings is not None
        np.testing.assert_allclose(document.facet_embeddings, vectors([document.text])[0], atol=2e-2)
    found = engine.search("docs", SearchRequest(facets=vectors([expected[id] for id in ids]), top_k=1))
    assert [hits[0].id for hits in found.hits] == ids


@pytest.fixture
def filled(engine: CollectionEngine) -> CollectionEngine:
    """An engine with 200 documents of the old model in ``docs``."""
    engine.upsert("docs", documents(*range(200)))
    return engine


def test_collection_answers_as_it_was_until_it_has_moved(filled: CollectionEngine) -> None:
    query, steps = vectors(["first text of 7"], 2, 32), 0
    before = {one.id: (one.text, one.payload, one.revision) for one in filled.list_documents("docs").documents}
    made = filled.get_collection("docs").create_time
    while not (step := filled.reindex("docs", target(), budget_s=0.0)).done:
        steps += 1
        assert step.num_encoded == min(64 * steps, 200)
        assert step.record.num_documents == 200
        assert filled.get_collection("docs").dim == 32
        assert filled.search("docs", SearchRequest(facets=query, top_k=1)).hits[0][0].id == "d7"
        assert [info.name for info in filled.list_collections()] == ["docs"]
    assert steps >= 3
    assert (step.num_encoded, step.record.dim) == (200, DIM)
    assert_moved(filled, texts_of(filled))
    after = {one.id: (one.text, one.payload, one.revision) for one in filled.list_documents("docs").documents}
    assert after == before
    assert filled.get_collection("docs").create_time == made
    assert filled.record("docs").revision == filled.revision
    assert [info.name for info in filled.list_collections()] == ["docs"]
    assert filled.reindex("docs", target(lambda _: pytest.fail("encoded again"))).done


def test_writer_that_never_rests_neither_stops_the_move_nor_loses_a_write(filled: CollectionEngine) -> None:
    stop = threading.Event()
    written: dict[str, str] = {}
    refused: list[NotReadyError] = []

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            one = documents(1000 + number % 50, version=f"write {number}")
            try:
                filled.upsert("docs", one, seen=seen)
            except NotReadyError as error:
                refused.append(error)
                return
            written[one[0].id] = one[0].text

    seen = filled.record("docs")
    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert filled.reindex("docs", target()).done
    finally:
        writer.join(30)
        stop.set()
    assert not writer.is_alive()
    assert written
    assert "send it again" in str(refused[0])
    expected = {f"d{n}": f"first text of {n}" for n in range(200)} | written
    assert_moved(filled, dict(sorted(expected.items())))


def test_step_beside_another_one_ends_in_its_time(filled: CollectionEngine) -> None:
    encoding, go_on = threading.Event(), threading.Event()

    def encode_when_told(texts: Sequence[str]) -> NDArray[np.float32]:
        encoding.set()
        assert go_on.wait(30)
        return vectors(texts)

    first = threading.Thread(target=lambda: filled.reindex("docs", target(encode_when_told)))
    first.start()
    assert encoding.wait(30)
    second = threading.Thread(target=lambda: filled.reindex("docs", target(), budget_s=0.01))
    second.start()
    second.join(10)
    try:
        assert not second.is_alive()
    finally:
        go_on.set()
        first.join(30)
        second.join(30)
    assert_moved(filled, texts_of(filled))


def test_naming_the_model_it_has_gives_the_move_up(filled: CollectionEngine, tmp_path: Path) -> None:
    filled.reindex("docs", target(), budget_s=0.0)
    own = TargetModel(model="toy", model_revision="1", num_facets=2, dim=32, encode=lambda _: pytest.fail("encoded"))
    step = filled.reindex("docs", own)
    assert (step.done, step.record.model, step.num_encoded) == (True, "toy", 200)
    filled.reindex("docs", target(revision="older"), budget_s=0.0)
    filled.maintain()
    filled.close()
    assert [path.name for path in (tmp_path / "data" / "indexes").iterdir()] == []
    with CollectionEngine.open(tmp_path / "data", EngineConfig(background=False)) as engine:
        assert engine.reindex("docs", target(), budget_s=0.0).num_encoded == 64
        assert engine.reindex("docs", target()).done
        assert_moved(engine, texts_of(engine))


def test_deleted_collection_takes_its_copy_with_it(filled: CollectionEngine) -> None:
    filled.reindex("docs", target(), budget_s=0.0)

    def encode_and_delete(texts: Sequence[str]) -> NDArray[np.float32]:
        if filled.list_collections():
            filled.delete_collection("docs")
        return vectors(texts)

    with pytest.raises(NotFoundError):
        filled.reindex("docs", target(encode_and_delete))
    assert filled.list_collections() == ()
    filled.create_collection("docs", model="toy", model_revision="1", num_facets=2, dim=32)
    filled.upsert("docs", documents(1))
    assert filled.reindex("docs", target()).done
    assert_moved(filled, {"d1": "first text of 1"})


def test_crash_between_any_two_batches_loses_nothing(filled: CollectionEngine, tmp_path: Path) -> None:
    images: list[tuple[Path, dict[str, str]]] = []

    def take_image() -> None:
        path = tmp_path / f"image{len(images)}"
        shutil.copytree(tmp_path / "data", path)  # nothing is being written: what a crash would leave
        images.append((path, texts_of(filled)))

    def encode_and_write(texts: Sequence[str]) -> NDArray[np.float32]:
        take_image()
        if len(images) <= 5:
            filled.upsert("docs", documents(len(images), version=f"write {len(images)}"))
            filled.delete("docs", ids=[f"d{100 + len(images)}"])
        return vectors(texts)

    filled.reindex("docs", target(encode_and_write), budget_s=0.0)
    filled.reindex("docs", target(encode_and_write))
    take_image()
    assert len(images) >= 5
    for path, expected in images:
        with CollectionEngine.open(path, EngineConfig(background=False)) as engine:
            assert texts_of(engine) == expected
            if engine.get_collection("docs").model == "toy":
                query = vectors([expected["d50"]], 2, 32)
                assert engine.search("docs", SearchRequest(facets=query, top_k=1)).hits[0][0].id == "d50"
            engine.maintain()
            assert engine.reindex("docs", target()).done
            assert_moved(engine, expected)


def test_replaced_documents_are_deleted_and_their_room_used_again(open_engine: OpenEngine, tmp_path: Path) -> None:
    engine = open_engine(documents(*range(300)), exact_max_facets=100)
    engine.reindex("docs", target())
    engine.maintain()
    engine.close()
    assert [path.name for path in (tmp_path / "data" / "indexes").iterdir()] == ["2.index"]
    sizes = []
    for revision in ("newer", "newest", "new"):
        engine = open_engine(exact_max_facets=100)
        assert engine.get_collection("docs").index_kind == "faiss-ivf-int8"
        engine.reindex("docs", target(revision=revision))
        engine.maintain()
        engine.close()
        sizes.append((tmp_path / "data" / "documents.sqlite3").stat().st_size)
    engine = open_engine()
    assert_moved(engine, texts_of(engine))
    assert sizes[-1] < 1.1 * sizes[0]
