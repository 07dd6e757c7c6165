"""The reranking routes of TEI, Cohere and Jina."""

import pytest
from facets_proto.v1 import common_pb2, documents_pb2, results_pb2
from facets_server.gateway.failures import own_failure
from server_gateway_fakes import browser

from facets.errors import InvalidInputError

RERANK = "/facets.v1.DocumentService/Rerank"


def reranked(data: bytes) -> documents_pb2.RerankResponse:
    """The last text first; the first one has no confidence."""
    request = documents_pb2.RerankRequest.FromString(data)
    results = [results_pb2.RankedText(index=i, score=i / 4, confidence=i / 8) for i in range(len(request.texts))]
    results[0].ClearField("confidence")
    kept = results[::-1][: request.top_k if request.HasField("top_k") else None]
    model = common_pb2.ModelVersion(name=request.model or "default")
    return documents_pb2.RerankResponse(results=kept, model=model, num_tokens=7)


REFUSED = own_failure(InvalidInputError("is empty, expected at least one word", path=("texts", 1)))


def post(path: str, body: object, answer=reranked):
    return browser({RERANK: answer}).client.post(path, json=body)


def test_tei_gets_places_and_probabilities():
    reply = post("/rerank", {"query": "cat", "texts": ["a", "b", "c"], "truncate": True})
    assert reply.json() == [{"index": 2, "score": 0.25}, {"index": 1, "score": 0.125}, {"index": 0, "score": 0}]


def test_tei_gets_raw_scores_and_texts_when_asked_for():
    reply = post("/rerank", {"query": "cat", "texts": ["a", "b"], "raw_scores": True, "return_text": True})
    assert reply.json() == [{"index": 1, "score": 0.25, "text": "b"}, {"index": 0, "score": 0, "text": "a"}]


def test_cohere_gets_results_and_jina_the_tokens():
    body = {"model": "one", "query": "cat", "documents": ["a", {"text": "b"}, "c"], "top_n": 2}
    reply = post("/v1/rerank", body).json()
    assert reply["results"] == [{"index": 2, "relevance_score": 0.25}, {"index": 1, "relevance_score": 0.125}]
    assert reply["model"] == "one" and reply["usage"] == {"total_tokens": 7} and reply["id"] and "meta" in reply


def test_more_than_all_are_all_and_documents_come_back_when_asked_for():
    body = {"query": "cat", "documents": [{"text": "a"}, {"text": "b"}], "top_n": 9, "return_documents": True}
    results = post("/v1/rerank", body).json()["results"]
    assert [one["document"] for one in results] == [{"text": "b"}, {"text": "a"}]


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/rerank", {"query": "cat"}, "texts is missing"),
        ("/rerank", {"query": 3, "texts": ["a"]}, "query is no text"),
        ("/rerank", {"query": "cat", "texts": ["a"], "raw_scores": 1}, "raw_scores is neither true nor false"),
        ("/rerank", {"query": "cat", "texts": ["a"], "top_n": 1}, "top_n is not known"),
        ("/v1/rerank", {"query": "cat", "documents": []}, "documents is missing or empty"),
        ("/v1/rerank", {"query": "cat", "documents": "cat"}, "documents is missing or empty"),
        ("/v1/rerank", {"query": "cat", "documents": ["a", {"title": "b"}]}, "documents[1] is neither"),
        ("/v1/rerank", {"query": "cat", "documents": ["a"], "top_n": 0}, "top_n is no whole number"),
    ],
)
def test_refusals_name_the_field(path, body, message):
    reply = post(path, body)
    assert reply.status_code == 400
    assert message in reply.json()["error" if path == "/rerank" else "message"]


@pytest.mark.parametrize(("path", "texts"), [("/rerank", "texts"), ("/v1/rerank", "documents")])
def test_the_server_calls_the_texts_as_the_route_does(path, texts):
    reply = post(path, {"query": "cat", texts: ["a", " "]}, REFUSED)
    assert reply.status_code == 400
    assert reply.json()["error" if path == "/rerank" else "message"].startswith(f"{texts}[1] is empty")
