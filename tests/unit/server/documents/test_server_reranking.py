"""Rerank: texts of a request in order, as a search of a collection of them would have them; nothing is stored."""

import pytest
from facets_proto.v1 import documents_pb2
from server_failures import failure
from server_fakes import served_passages

from facets.documents import RelevanceCurve

TEXTS = ["A man is lifting weights in a garage.", "The dog plays music.", "music " * 400]
WEIGHTS = {"intercept": -2.0, "cosine": 3.0, "coverage": 2.0}
CURVE = RelevanceCurve(revision="1", weights={"hybrid": WEIGHTS, "lexical": WEIGHTS})


@pytest.fixture(scope="module")
def running(make_module_server):
    return make_module_server(others=[served_passages(relevance=CURVE)])


def request(**fields):
    return documents_pb2.RerankRequest(**{"query": "the dog plays", "texts": TEXTS, **fields})


@pytest.mark.parametrize("mode", ["SEARCH_MODE_UNSPECIFIED", "SEARCH_MODE_FACETS", "SEARCH_MODE_LEXICAL"])
def test_order_and_scores_are_those_of_a_search(running, mode):
    running.collections.CreateCollection(documents_pb2.CreateCollectionRequest(name=mode.lower()), timeout=60)
    stored = [documents_pb2.Document(id=str(place), text=text) for place, text in enumerate(TEXTS)]
    running.documents.Upsert(documents_pb2.UpsertRequest(collection=mode.lower(), documents=stored), timeout=60)
    asked = documents_pb2.SearchRequest(
        collection=mode.lower(), queries=[documents_pb2.SearchQuery(text="the dog plays")], mode=mode
    )
    hits = running.documents.Search(asked, timeout=60).results[0].hits
    reply = running.documents.Rerank(request(mode=mode), timeout=60)
    assert [str(one.index) for one in reply.results] == [hit.id for hit in hits]
    for one, hit in zip(reply.results, hits, strict=True):
        assert one.score == pytest.approx(hit.score, abs=1e-5)
        assert one.HasField("confidence") == hit.HasField("confidence")
        assert one.confidence == pytest.approx(hit.confidence, abs=1e-5)
        assert one.answer == hit.answer
    assert reply.model.name == "toy-passages" and reply.timings.total_ms > 0
    assert (reply.num_tokens > 400) == (mode != "SEARCH_MODE_LEXICAL"), "long texts are read whole"


def test_best_texts_alone_come_back(running):
    [one] = running.documents.Rerank(request(top_k=1), timeout=60).results
    assert one.index == 1 and 0 < one.confidence < 1


@pytest.mark.parametrize(
    ("fields", "code", "says"),
    [
        ({"texts": []}, "INVALID_ARGUMENT", "texts has 0 items"),
        ({"texts": ["a dog"] * 513}, "INVALID_ARGUMENT", "texts has at least 513 items, the limit is 512"),
        ({"texts": ["a dog", " \n"]}, "INVALID_ARGUMENT", "texts[1] has no words"),
        ({"texts": ["a dog", "x" * (2**20 + 1)]}, "INVALID_ARGUMENT", "texts[1] has 1048577 bytes"),
        ({"query": " "}, "INVALID_ARGUMENT", "query has no words"),
        ({"top_k": 4}, "INVALID_ARGUMENT", "top_k must be in [1, 3], got 4"),
        ({"top_k": 0}, "INVALID_ARGUMENT", "top_k must be in [1, 3], got 0"),
        ({"mode": 9}, "INVALID_ARGUMENT", "mode"),
        ({"model": "nobody"}, "NOT_FOUND", "nobody"),
    ],
)
def test_broken_rules_are_named(running, fields, code, says):
    refused = failure(running.documents.Rerank, request(**fields))
    assert refused.code.name == code and says in refused.message
