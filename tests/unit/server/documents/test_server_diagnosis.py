"""DiagnoseCollection: a collection looked at as a whole."""

import pytest
from facets_proto.v1 import diagnosis_pb2, documents_pb2
from server_failures import failure
from server_fakes import served_passages

TEXTS = ["A man is lifting weights in a garage.", "The dog plays music.", "The dog plays music."]


@pytest.fixture(scope="module")
def collections(make_module_server):
    running = make_module_server(others=[served_passages()])
    for name in ("few", "empty"):
        running.collections.CreateCollection(documents_pb2.CreateCollectionRequest(name=name), timeout=60)
    stored = [documents_pb2.Document(id=str(place), text=text) for place, text in enumerate(TEXTS)]
    running.documents.Upsert(documents_pb2.UpsertRequest(collection="few", documents=stored), timeout=60)
    return running.collections


def request(name="few", **fields):
    return diagnosis_pb2.DiagnoseCollectionRequest(name=name, **fields)


def test_equal_documents_are_duplicates_and_queries_measure_recall(collections):
    alone = collections.DiagnoseCollection(request(), timeout=60)
    assert (alone.num_documents, alone.num_parts_seen) == (3, 3)
    assert alone.vectors.num_duplicates >= 1
    assert not alone.HasField("recall")
    found = collections.DiagnoseCollection(request(queries=["who plays music?", "a man"]), timeout=60)
    assert (found.num_queries, found.recall, found.index_kind) == (2, 1.0, "exact")
    assert found.model.name == "toy-passages" and found.index_revision > 0


@pytest.mark.parametrize(
    ("asked", "code", "says"),
    [
        (request("empty"), "INVALID_ARGUMENT", "empty"),
        (request("nowhere"), "NOT_FOUND", "nowhere"),
        (request(queries=["a dog", " "]), "INVALID_ARGUMENT", "queries[1] has no words"),
        (request(queries=["a dog"] * 1001), "INVALID_ARGUMENT", "queries has 1001 items, the limit is 1000"),
    ],
)
def test_broken_rules_are_named(collections, asked, code, says):
    refused = failure(collections.DiagnoseCollection, asked)
    assert refused.code.name == code and says in refused.message


def test_a_map_names_its_themes_and_is_kept_until_something_is_written(collections):
    asked = diagnosis_pb2.MapCollectionRequest(name="few")
    found = collections.MapCollection(asked, timeout=60)
    assert sorted(found.ids) == ["0", "1", "2"] and list(found.points.shape) == [3, 2]
    assert sum(theme.num_documents for theme in found.themes) == 3
    words = [word.word for theme in found.themes for word in theme.words]
    assert words and len(set(words)) == len(words)
    assert found.method == "principal components"
    again = collections.MapCollection(asked, timeout=60)
    assert again.points == found.points and again.index_revision == found.index_revision
    collections.DeleteCollection(documents_pb2.DeleteCollectionRequest(name="few"), timeout=60)
    assert "few" in failure(collections.MapCollection, asked).message
