"""The routes compatible with OpenAI, TEI and Cohere."""

import base64

import grpc
import numpy as np
import pytest
from facets_proto.v1 import common_pb2, documents_pb2, models_pb2, results_pb2, texts_pb2
from facets_server.gateway.errors import CallError
from server_gateway_fakes import browser

from facets.errors import InvalidInputError, OverloadedError

EMBED = "/facets.v1.EmbeddingService/Embed"
LIST = "/facets.v1.ModelService/ListModels"
RERANK = "/facets.v1.DocumentService/Rerank"
DIM = 4
MODELS = models_pb2.ListModelsResponse(
    models=[
        models_pb2.Model(name="authors", task="papers", is_default=True),
        models_pb2.Model(name="short", task="sentences", is_default=True),
        models_pb2.Model(
            name="long", task="passages", revision="r", is_default=True, max_tokens=256,
            limits=models_pb2.Limits(max_texts_per_request=512),
        ),
    ]
)  # fmt: skip


def array(values: np.ndarray) -> common_pb2.FacetArray:
    data = values.astype("<f4").tobytes()
    return common_pb2.FacetArray(shape=values.shape, dtype="DATA_TYPE_FLOAT32", data=data)


def embedded(data: bytes) -> texts_pb2.EmbedResponse:
    """Text i has the vector (i + 1, 0, 0, 0) and two facets; the last text lacks the second one."""
    request = texts_pb2.EmbedRequest.FromString(data)
    num = len(request.texts)
    vectors = np.zeros((num, DIM))
    vectors[:, 0] = np.arange(1, num + 1)
    facets = np.stack([vectors, vectors[:, ::-1]], axis=1)
    facets[-1, 1] = 0
    spans = [texts_pb2.FacetSpans(spans=[common_pb2.Span(start=0, end=3), common_pb2.Span()]) for _ in range(num)]
    return texts_pb2.EmbedResponse(
        facet_embeddings=array(facets),
        vectors=array(vectors),
        facet_spans=spans,
        token_stats=[common_pb2.TokenStats(num_tokens=5)] * num,
        model=common_pb2.ModelVersion(name=request.model),
    )


def reranked(data: bytes) -> documents_pb2.RerankResponse:
    """The last text first; the first text has no confidence."""
    request = documents_pb2.RerankRequest.FromString(data)
    results = [results_pb2.RankedText(index=i, score=i / 4, confidence=i / 8) for i in range(len(request.texts))]
    results[0].ClearField("confidence")
    kept = results[::-1][: request.top_k if request.HasField("top_k") else None]
    model = common_pb2.ModelVersion(name=request.model or "default")
    return documents_pb2.RerankResponse(results=kept, model=model, num_tokens=7)


def client(answer: object = None, **settings: object):
    return browser({EMBED: answer or embedded, RERANK: answer or reranked, LIST: MODELS}, **settings).client


def test_openai_embeddings():
    reply = client().post("/v1/embeddings", json={"input": ["cat", "dog"], "model": "short"}).json()
    assert reply == {
        "object": "list",
        "data": [
            {"object": "embedding", "index": 0, "embedding": [1, 0, 0, 0]},
            {"object": "embedding", "index": 1, "embedding": [2, 0, 0, 0]},
        ],
        "model": "short",
        "usage": {"prompt_tokens": 10, "total_tokens": 10},
    }
    one = client().post("/v1/embeddings", json={"input": "cat", "user": "me", "dimensions": DIM}).json()
    assert len(one["data"]) == 1
    packed = client().post("/v1/embeddings", json={"input": "cat", "encoding_format": "base64"}).json()
    vector = np.frombuffer(base64.b64decode(packed["data"][0]["embedding"]), dtype="<f4")
    assert vector.tolist() == [1, 0, 0, 0]


def test_openai_facets_without_unused_ones():
    data = client().post("/v1/embeddings", json={"input": ["cat", "dog"], "facets": True}).json()["data"]
    assert [entry["facets"] for entry in data] == [[[1, 0, 0, 0], [0, 0, 0, 1]], [[2, 0, 0, 0]]]
    assert data[1]["facet_spans"] == [[0, 3]]


def test_openai_models_and_tei_info():
    assert [model["id"] for model in client().get("/v1/models").json()["data"]] == ["long", "short"]
    info = client().get("/info").json()
    assert (info["model_id"], info["max_input_length"], info["max_client_batch_size"]) == ("long", 256, 512)


def test_tei_embed():
    texts = {"inputs": ["cat", "dog"], "truncate": True, "truncation_direction": "Right", "prompt_name": None}
    assert client().post("/embed", json=texts).json() == [[1, 0, 0, 0], [1, 0, 0, 0]]
    assert client().post("/", json=texts).json() == [[1, 0, 0, 0], [1, 0, 0, 0]]
    assert "<html" in client().get("/").text
    assert client().post("/embed", json={**texts, "normalize": False}).json() == [[1, 0, 0, 0], [2, 0, 0, 0]]


def test_tei_rerank():
    reply = client().post("/rerank", json={"query": "cat", "texts": ["a", "b", "c"], "truncate": True})
    assert reply.json() == [{"index": 2, "score": 0.25}, {"index": 1, "score": 0.125}, {"index": 0, "score": 0}]
    body = {"query": "cat", "texts": ["a", "b"], "raw_scores": True, "return_text": True}
    expected = [{"index": 1, "score": 0.25, "text": "b"}, {"index": 0, "score": 0, "text": "a"}]
    assert client().post("/rerank", json=body).json() == expected


def test_cohere_rerank():
    body = {"model": "one", "query": "cat", "documents": ["a", {"text": "b"}, "c"], "top_n": 2}
    reply = client().post("/v1/rerank", json=body).json()
    assert reply["results"] == [{"index": 2, "relevance_score": 0.25}, {"index": 1, "relevance_score": 0.125}]
    assert reply["model"] == "one" and reply["usage"] == {"total_tokens": 7} and reply["id"] and "meta" in reply
    body = {"query": "cat", "documents": [{"text": "a"}, {"text": "b"}], "top_n": 9, "return_documents": True}
    results = client().post("/v2/rerank", json=body).json()["results"]
    assert [result["document"] for result in results] == [{"text": "b"}, {"text": "a"}]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/embeddings", {}, "input"),
        ("/v1/embeddings", {"input": None}, "input"),
        ("/v1/embeddings", {"input": [[1, 2]]}, "input"),
        ("/v1/embeddings", {"input": ["a", 1.5]}, "input[1]"),
        ("/v1/embeddings", {"input": [True]}, "input[0]"),
        ("/v1/embeddings", {"input": "a", "model": 3}, "model"),
        ("/v1/embeddings", {"input": "a", "encoding_format": "int8"}, "encoding_format"),
        ("/v1/embeddings", {"input": "a", "dimensions": 3}, "dimensions"),
        ("/v1/embeddings", {"input": "a", "voice": "low"}, "voice"),
        ("/embed", {"inputs": "a", "prompt_name": "query"}, "prompt_name"),
        ("/rerank", {"query": "cat", "texts": ["a"], "raw_scores": 1}, "raw_scores"),
        ("/v1/rerank", {"query": "cat", "documents": []}, "documents"),
        ("/v1/rerank", {"query": "cat", "documents": ["a", {"title": "b"}]}, "documents[1]"),
        ("/v1/rerank", {"query": "cat", "documents": ["a"], "top_n": 0}, "top_n"),
    ],
)
def test_invalid_fields_are_named_in_the_format_of_the_route(path, body, field):
    reply = client().post(path, json=body)
    assert reply.status_code == 400
    error = reply.json()
    if path == "/v1/embeddings":
        error = error["error"]
        assert (error["type"], error["param"]) == ("invalid_request_error", field)
    elif path != "/v1/rerank":
        assert error["error_type"] == "Validation"
    assert error.get("message", error.get("error")).startswith(f"{field}: ")


def test_errors_of_the_server_have_the_format_of_the_route():
    error = CallError.of_facets(InvalidInputError("has no words, expected at least one", path=("texts", 1)))
    openai = client(error).post("/v1/embeddings", json={"input": ["a", ""]}).json()["error"]
    assert (openai["param"], openai["message"]) == ("input[1]", "input[1] has no words, expected at least one")
    tei = client(error).post("/rerank", json={"query": "cat", "texts": ["a", ""]}).json()
    assert tei["error"].startswith("texts[1] has no words")
    cohere = client(error).post("/v1/rerank", json={"query": "cat", "documents": ["a", ""]}).json()
    assert cohere["message"].startswith("documents[1] has no words")
    missing = CallError(grpc.StatusCode.NOT_FOUND, "model 'gpt' is not served")
    reply = client(missing).post("/v1/embeddings", json={"input": "a", "model": "gpt"})
    error_body = reply.json()["error"]
    assert (reply.status_code, error_body["param"], error_body["code"]) == (404, "model", "model_not_found")
    full = client(CallError.of_facets(OverloadedError("full", retry_after_s=1.5)))
    reply = full.post("/v1/embeddings", json={"input": "a"})
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "2")
    assert reply.json()["error"]["type"] == "rate_limit_error"
    assert full.post("/embed", json={"inputs": "a"}).json() == {"error": "full", "error_type": "Overloaded"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/embeddings", {"input": "a", "model": "text-embedding-3-small"}),
        ("/v2/rerank", {"query": "a", "documents": ["b"], "model": "rerank-v3.5"}),
        ("/v1/rerank", {"query": "a", "documents": ["b"], "model": "jina-reranker-v2-base-multilingual"}),
    ],
)
def test_model_names_of_other_vendors_mean_the_default_if_a_setting_says_so(path, body):
    def served(data: bytes):
        request = (texts_pb2.EmbedRequest if "input" in body else documents_pb2.RerankRequest).FromString(data)
        if request.model:
            return CallError(grpc.StatusCode.NOT_FOUND, f"model {request.model!r} is not served")
        return (embedded if "input" in body else reranked)(data)

    refused = client(served).post(path, json=body)
    assert refused.status_code == 404 and "http.vendor_models" in refused.text
    taken = client(served, vendor_models=True)
    assert taken.post(path, json=body).status_code == 200
    own = taken.post(path, json={**body, "model": "my-model"})
    assert own.status_code == 404 and "vendor" not in own.text


def test_unreadable_bodies_have_the_format_of_the_route():
    http, json_type = client(max_body_bytes=4096), {"content-type": "application/json"}
    surrogates = (b'{"input":"\\ud800"}', b'{"input":"a","model":"\\ud800"}', b'{"input":"a","\\ud800":1}')
    invalid = [(400, content, json_type) for content in (b"{", *surrogates)]
    for status, content, headers in (*invalid, (413, b" " * 5000, json_type), (415, b"{}", {})):
        reply = http.post("/v1/embeddings", content=content, headers=headers)
        assert (reply.status_code, reply.json()["error"]["type"]) == (status, "invalid_request_error")
