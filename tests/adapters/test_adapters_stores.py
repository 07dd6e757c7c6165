"""Facets and payload leave for other stores and come back the same."""

from pathlib import Path

import numpy as np
import pytest
from facets_client import Document, FacetsClient

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
    client.add(
        [
            Document(f"id/{place} é", text, payload)
            for place, (text, payload) in enumerate(zip(texts, PAYLOADS, strict=True))
        ],
        collection="leaving",
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
    client.create_collection("from-parquet")
    assert not any(ack.rejected for ack in client.upsert_stream("from-parquet", iter(back)))
    assert_same(stored, list(client.list_documents("from-parquet", include_facets=True)), atol=1e-3)


def test_parquet_of_a_stranger_is_refused_with_the_column(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from facets_client.adapters.parquet import read_parquet
    from pyarrow import parquet

    parquet.write_table(pa.table({"id": ["a"], "text": ["b"]}), tmp_path / "other.parquet")
    with pytest.raises(ValueError, match="no column payload, facets, spans"):
        list(read_parquet(tmp_path / "other.parquet"))
