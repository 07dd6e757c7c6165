import grpc
import numpy as np
import pytest
from facets_proto.v1 import documents_pb2
from server_failures import failure
from server_fakes import FakeModel

TEXTS = {
    "a": "the cat and the dog",
    "b": "a boat on the river",
    "c": "a song for the piano",
    "d": "cheese and wine",
    "e": "the king of the city",
}


@pytest.fixture
def documents(running):
    running.collections.CreateCollection(documents_pb2.CreateCollectionRequest(name="news"), timeout=60)
    return running.documents


def document(id_, text, **payload):
    message = documents_pb2.Document(id=id_, text=text)
    message.payload.update(payload)
    return message


def fill(documents):
    batch = [document(id_, text, rank=rank, even=rank % 2 == 0) for rank, (id_, text) in enumerate(TEXTS.items())]
    return documents.Upsert(documents_pb2.UpsertRequest(collection="news", documents=batch), timeout=60)


def search(documents, **settings):
    return documents.Search(documents_pb2.SearchRequest(collection="news", **settings), timeout=60)


def text_query(text):
    return documents_pb2.SearchQuery(text=text)


def test_collection_life(running):
    asked = documents_pb2.CreateCollectionRequest(name="x")
    created = running.collections.CreateCollection(asked, timeout=60).collection
    assert (created.name, created.model, created.num_facets, created.dim) == ("x", "fake", 3, 32)
    got = running.collections.GetCollection(documents_pb2.GetCollectionRequest(name="x"), timeout=60).collection
    assert got.create_time == created.create_time
    failure(running.collections.CreateCollection, asked, grpc.StatusCode.ALREADY_EXISTS)
    running.collections.DeleteCollection(documents_pb2.DeleteCollectionRequest(name="x"), timeout=60)
    failure(running.collections.GetCollection, documents_pb2.GetCollectionRequest(name="x"), grpc.StatusCode.NOT_FOUND)


def test_collections_are_listed_in_pages_by_name(running):
    for name in ("c", "a", "b"):
        running.collections.CreateCollection(documents_pb2.CreateCollectionRequest(name=name), timeout=60)
    seen, token = [], ""
    while True:
        request = documents_pb2.ListCollectionsRequest(page_size=2, page_token=token)
        page = running.collections.ListCollections(request, timeout=60)
        seen += [collection.name for collection in page.collections]
        token = page.next_page_token
        if not token:
            break
    assert seen == ["a", "b", "c"]


def test_a_text_finds_itself_first(documents):
    fill(documents)
    reply = search(documents, queries=[text_query(text) for text in TEXTS.values()], top_k=2)
    assert [result.hits[0].id for result in reply.results] == list(TEXTS)
    assert all(result.hits[0].facets_score == pytest.approx(1.0, abs=2e-3) for result in reply.results)
    assert reply.results[0].hits[0].text == TEXTS["a"]
    assert dict(reply.results[1].hits[0].payload) == {"rank": 1.0, "even": False}
    assert reply.exhaustive
    assert reply.model.name == "fake"


def test_evidence_names_the_facets_that_met_and_their_words(running, documents):
    fill(documents)
    hit = search(documents, queries=[text_query("the dog")], top_k=1, evidence=True, num_words=4).results[0].hits[0]
    match = hit.evidence[0]
    shares = [entry.contribution for entry in hit.evidence]
    assert shares == sorted(shares, reverse=True) and 0 < sum(shares) <= 1 + 1e-6
    facets = running.model.encode(["the dog", hit.text])
    query, found = facets[0][match.first_facet], facets[1][match.second_facet]
    cosine = query @ found / np.linalg.norm(query) / np.linalg.norm(found)
    assert match.cosine == pytest.approx(cosine, abs=2e-3)
    units = [array / np.linalg.norm(array, axis=1, keepdims=True) for array in facets]
    assert hit.facets_score == pytest.approx((units[0] @ units[1].T).max(axis=1).mean(), abs=2e-3)
    expected = running.model.words.nearest(query[None], 4)[0]
    assert [word.word for word in match.first_words] == [word for word, _ in expected]
    assert len(match.second_words) == 4


def test_a_collection_of_another_model_revision_is_refused(make_server, tmp_path):
    first = make_server(data_dir=tmp_path / "shared")
    first.collections.CreateCollection(documents_pb2.CreateCollectionRequest(name="news"), timeout=60)
    first.server.stop(0.1)
    first.engine.close()
    second = make_server(data_dir=tmp_path / "shared", models=[FakeModel(revision="r2")])
    with pytest.raises(grpc.RpcError) as raised:
        fill(second.documents)
    assert raised.value.code() == grpc.StatusCode.FAILED_PRECONDITION


def reindex(running, **fields):
    request = documents_pb2.ReindexCollectionRequest(name="news", **fields)
    return running.collections.ReindexCollection(request, timeout=60)


def test_collection_moves_to_another_model(make_server):
    running = make_server(models=[FakeModel(), FakeModel("other")])
    running.collections.CreateCollection(documents_pb2.CreateCollectionRequest(name="news"), timeout=60)
    before = list(running.others[0].batches)  # of the warm-up
    fill(running.documents)
    assert running.others[0].batches == before
    step = reindex(running, model="other")
    assert (step.done, step.num_encoded, step.collection.model) == (True, 5, "other")
    assert search(running.documents, queries=[text_query(TEXTS["b"])], top_k=1).results[0].hits[0].id == "b"
    again = reindex(running)
    assert (again.done, again.collection.model) == (True, "other")
    unknown = documents_pb2.ReindexCollectionRequest(name="news", model="none")
    failure(running.collections.ReindexCollection, unknown, grpc.StatusCode.NOT_FOUND)
