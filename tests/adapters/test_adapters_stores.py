"""Facets and payload leave for other stores and come back the same."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from facets_client import Document, FacetsClient
from facets_client.adapters.exported import facets_of, join_norms, split_norms, whole
from facets_client.adapters.vespa import read_vespa, schema, write_vespa
from facets_client.core.types import Span

# A long text has more facets than others; each Unicode plane, nesting, large and small numbers in the payload.
PAYLOADS = [
    {},
    {"title": "Zoë 🐘", "year": 1990, "score": 0.1, "tags": ["a", None, True], "source": {"page": {"number": 2**53}}},
    {"long": "x" * 2000},
]


@pytest.fixture(scope="module")
def stored(client: FacetsClient, documents: list[Document]) -> list[Document]:
    """Documents of a server with their facets, one of them long."""
    client.create_collection("leaving")
    texts = [documents[0].text, documents[1].text, " ".join(document.text for document in documents)]
    client.upsert(
        "leaving",
        [
            Document(f"id/{place} é", text, payload)
            for place, (text, payload) in enumerate(zip(texts, PAYLOADS, strict=True))
        ],
    )
    found = list(client.list_documents("leaving", include_facets=True))
    assert len(found) == 3 and len(found[2].facet_embeddings) > len(found[0].facet_embeddings)
    return found


def assert_same(given: list[Document], back: list[Document], *, atol: float) -> None:
    assert [document.id for document in given] == [document.id for document in back]
    for own, other in zip(given, back, strict=True):
        assert (own.text, dict(own.payload), tuple(own.facet_spans)) == (
            other.text,
            dict(other.payload),
            tuple(other.facet_spans),
        )
        np.testing.assert_allclose(own.facet_embeddings, other.facet_embeddings, rtol=0, atol=atol)


def stored_again(client: FacetsClient, name: str, documents: list[Document]) -> list[Document]:
    """What a second collection keeps of them; nothing is encoded again."""
    client.create_collection(name)
    acks = list(client.upsert_stream(name, iter(documents)))
    assert [ack.rejected for ack in acks if ack.rejected] == []
    return list(client.list_documents(name, include_facets=True))


def test_parquet_gives_back_what_was_written_bit_by_bit(
    stored: list[Document], client: FacetsClient, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    from facets_client.adapters.parquet import read_parquet, write_parquet

    path = tmp_path / "wiki.parquet"
    without = Document("none", "No facets.", {})
    assert write_parquet(path, [*stored, without]) == 4
    *back, last = read_parquet(path)
    assert_same(stored, back, atol=0)
    assert last == without
    assert_same(stored, stored_again(client, "from-parquet", back), atol=1e-3)


def test_parquet_of_a_stranger_is_refused_with_the_column(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from facets_client.adapters.parquet import read_parquet
    from pyarrow import parquet

    parquet.write_table(pa.table({"id": ["a"], "text": ["b"]}), tmp_path / "other.parquet")
    with pytest.raises(ValueError, match="no column payload, facets, spans"):
        list(read_parquet(tmp_path / "other.parquet"))


def test_parquet_of_nothing_is_a_file_without_rows(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from facets_client.adapters.parquet import read_parquet, write_parquet

    assert write_parquet(tmp_path / "empty.parquet", []) == 0
    assert list(read_parquet(tmp_path / "empty.parquet")) == []


def test_qdrant_gives_back_what_was_written(stored: list[Document], client: FacetsClient) -> None:
    qdrant_client = pytest.importorskip("qdrant_client")
    from facets_client.adapters.qdrant import read_qdrant, write_qdrant

    qdrant = qdrant_client.QdrantClient(":memory:")
    assert write_qdrant(qdrant, "leaving", stored) == 3
    assert write_qdrant(qdrant, "leaving", stored) == 3  # replaced, not doubled
    back = sorted(read_qdrant(qdrant, "leaving"), key=lambda document: document.id)
    assert_same(stored, back, atol=1e-5)
    assert_same(stored, stored_again(client, "from-qdrant", back), atol=1e-3)


def test_qdrant_ranks_as_facets_do(client: FacetsClient) -> None:
    qdrant_client = pytest.importorskip("qdrant_client")
    from facets_client.adapters.qdrant import VECTOR, write_qdrant

    qdrant = qdrant_client.QdrantClient(":memory:")
    write_qdrant(qdrant, "wiki", client.list_documents("wiki", include_facets=True))
    embedded = client.embed(["birds that hunt, and where cats come from"], model=client.get_collection("wiki").model)
    query = embedded.facet_embeddings[0]
    query = query[query.any(axis=1)]
    ours = client.search("wiki", [query], mode="facets", exact=True, top_k=8)[0].hits
    theirs = qdrant.query_points("wiki", query=query.tolist(), using=VECTOR, limit=8).points
    assert [hit.id for hit in ours] == [point.payload["id"] for point in theirs]
    assert [len(query) * hit.score for hit in ours] == pytest.approx([point.score for point in theirs], abs=1e-3)


def test_qdrant_keeps_the_weights_of_a_query(stored: list[Document]) -> None:
    qdrant_client = pytest.importorskip("qdrant_client")
    from facets_client.adapters.qdrant import VECTOR, write_qdrant

    qdrant = qdrant_client.QdrantClient(":memory:")
    write_qdrant(qdrant, "leaving", stored)
    query = split_norms(np.concatenate([facets_of(document)[:1] for document in stored]))[0]
    query *= np.array([[0.7], [0.2], [0.1]], dtype=np.float32)[: len(query)]
    points = qdrant.query_points("leaving", query=query.tolist(), using=VECTOR, limit=3).points
    expected = {one.id: (split_norms(facets_of(one))[0] @ query.T).max(axis=0).sum() for one in stored}
    assert {point.payload["id"]: point.score for point in points} == pytest.approx(expected, abs=1e-3)


def test_qdrant_filters_name_fields_of_the_payload(stored: list[Document]) -> None:
    qdrant_client = pytest.importorskip("qdrant_client")
    from facets_client.adapters.qdrant import write_qdrant

    qdrant, models = qdrant_client.QdrantClient(":memory:"), qdrant_client.models
    write_qdrant(qdrant, "leaving", stored)
    recent = models.FieldCondition(key="payload.year", range=models.Range(gte=1980))
    points, _ = qdrant.scroll("leaving", scroll_filter=models.Filter(must=[recent]))
    assert [point.payload["id"] for point in points] == [stored[1].id]


def test_vespa_feed_gives_back_what_was_written(stored: list[Document], client: FacetsClient, tmp_path: Path) -> None:
    path = tmp_path / "wiki.jsonl"
    assert write_vespa(path, stored, document_type="article") == 3
    back = list(read_vespa(path))
    assert_same(stored, back, atol=1e-5)
    operation = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    assert operation["put"] == "id:facets:article::id%2F0%20%C3%A9"
    dim = stored[0].facet_embeddings.shape[1]
    assert {len(block) for block in operation["fields"]["facets"]["blocks"].values()} == {dim}
    fields = {line.split()[1] for line in schema("article", dim).splitlines() if line.strip().startswith("field ")}
    assert fields == set(operation["fields"])


def test_vespa_feed_of_a_stranger_names_its_line(stored: list[Document], tmp_path: Path) -> None:
    path = tmp_path / "wiki.jsonl"
    write_vespa(path, stored, document_type="article")
    path.write_text(path.read_text(encoding="utf-8") + '{"put": "id:a:b::c", "fields": {}}\n', encoding="utf-8")
    with pytest.raises(ValueError, match="line 4"):
        list(read_vespa(path))


def test_documents_read_without_facets_are_refused_and_the_old_file_kept(
    stored: list[Document], tmp_path: Path
) -> None:
    path = tmp_path / "wiki.jsonl"
    path.write_text("old", encoding="utf-8")
    bare = replace(stored[1], facet_embeddings=None)
    with pytest.raises(ValueError, match="include_facets=True"):
        write_vespa(path, [stored[0], bare], document_type="article")
    assert path.read_text(encoding="utf-8") == "old" and list(tmp_path.iterdir()) == [path]


def test_zero_facets_keep_their_place() -> None:
    facets = np.array([[0, 0], [3, 4], [0, 0], [0, 1]], dtype=np.float32)
    units, norms = split_norms(facets)
    assert units.shape == (2, 2) and norms.tolist() == [0, 5, 0, 1]
    np.testing.assert_allclose(join_norms(units, norms), facets, rtol=1e-6)
    with pytest.raises(ValueError, match="got 1 vectors, the norms expect 2"):
        join_norms(units[:1], norms)


def test_spans_without_a_place_come_back_as_none(stored: list[Document], tmp_path: Path) -> None:
    document = replace(stored[0], facet_spans=(None, *[Span(0, 3)] * (len(stored[0].facet_embeddings) - 1)))
    with whole(tmp_path / "a.jsonl") as partial:
        write_vespa(partial, [document], document_type="article")
    assert next(iter(read_vespa(tmp_path / "a.jsonl"))).facet_spans == document.facet_spans
