"""``facets export`` and ``facets delete``."""

import numpy as np
import pytest
from facets_client.documents.messages import from_document
from facets_client.generated.types import Document


@pytest.fixture
def stored(world):
    """Two documents that a file holds only with care."""
    documents = (
        Document("a", 'two\nlines, "quoted"', {"year": 1990, "tags": ["x", "y"], "code": "007"}),
        Document("b", "\u00e9t\u00e9", {"title": "Summer", "end": None}, np.eye(1, 2, dtype=np.float32)),
    )
    world.store("news", [from_document(document) for document in documents])
    return {document.id: document for document in documents}


@pytest.mark.parametrize("name", ["news.jsonl", "news.jsonl.gz --facets", "news.csv", "news.parquet --facets"])
def test_exported_documents_are_indexed_as_they_were(facets, world, stored, tmp_path, name):
    if "parquet" in name:
        pytest.importorskip("pyarrow", reason="the extra parquet brings it")
    name, *flags = name.split()
    assert "wrote 2 documents" in facets("export", name, "-c", "news", *flags).stderr
    before = dict(world.documents["news"])
    world.documents["news"].clear()
    facets("index", name, "-c", "news")
    after = world.documents["news"]
    if name.endswith("csv"):  # which has no types: lists come back as their JSON
        assert {key: one.text for key, one in after.items()} == {key: one.text for key, one in before.items()}
        assert dict(after["a"].payload) == {"year": 1990.0, "tags": '["x", "y"]', "code": "007"}
    else:
        assert [(one.text, one.payload) for one in after.values()] == [
            (one.text, one.payload) for one in before.values()
        ]


def test_parquet_holds_documents_with_facets(facets, stored, tmp_path):
    pytest.importorskip("pyarrow", reason="the extra parquet brings it")
    from facets_client.adapters.parquet import read_parquet

    facets("export", "news.parquet", "-c", "news", "--facets")
    assert {one.id: one.payload for one in read_parquet(tmp_path / "news.parquet")}["b"]["title"] == "Summer"


@pytest.mark.parametrize(
    ("collection", "args", "says"),
    [
        ("news", ["there.jsonl"], "there.jsonl exists already"),
        ("news", ["x.xml"], "FILE must end in"),
        ("news", ["x.csv", "--facets"], "CSV holds no embeddings"),
        ("nowhere", ["x.csv"], "does not exist"),
        ("news", ["no/folder/x.csv"], "cannot be written"),
        ("odd", ["x.jsonl"], "has a field 'text'"),
    ],
)
def test_what_cannot_be_exported_is_one_sentence_and_leaves_nothing(
    facets, server, world, tmp_path, collection, args, says
):
    (tmp_path / "there.jsonl").write_text("kept")
    world.make("odd")
    world.store("odd", [from_document(Document("x", "y", {"text": "z"}))])
    done = facets("export", *args, "-c", collection, code=2)
    assert says in done.stderr and done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["there.jsonl"]
    assert (tmp_path / "there.jsonl").read_text() == "kept"


def test_delete_takes_conditions_and_asks_first(facets, world, stored):
    refused = facets("delete", "-c", "news", "--where", "year=1990", code=2)
    assert "--yes" in refused.stderr and len(world.documents["news"]) == 2
    assert "deleted" in facets("delete", "-c", "news", "--where", "year=1990", "--yes").stderr
