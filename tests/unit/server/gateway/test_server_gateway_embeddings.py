"""The routes of OpenAI and of TEI."""

import base64

import grpc
import numpy as np
import pytest
from facets_proto.v1 import common_pb2, models_pb2, texts_pb2
from facets_server.gateway.failures import CallFailedError
from facets_server.runtime.errors import status_of
from server_gateway_fakes import browser

from facets.errors import InvalidInputError, OverloadedError

EMBED = "/facets.v1.EmbeddingService/Embed"
LIST = "/facets.v1.ModelService/ListModels"
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
    """Text i has the vector (i + 1, 0, 0, 0) and two facets, of which the last text lacks one."""
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


def page(embed: object = embedded, **settings: object):
    return browser({EMBED: embed, LIST: MODELS}, **settings)


def test_openai_gets_one_vector_a_text():
    client = page().client
    reply = client.post("/v1/embeddings", json={"input": ["cat", "dog"], "model": "short"}).json()
    assert reply == {
        "object": "list",
        "data": [
            {"object": "embedding", "index": 0, "embedding": [1, 0, 0, 0]},
            {"object": "embedding", "index": 1, "embedding": [2, 0, 0, 0]},
        ],
        "model": "short",
        "usage": {"prompt_tokens": 10, "total_tokens": 10},
    }


def test_openai_takes_one_text_and_the_model_for_passages_where_none_is_named():
    reply = page().client.post("/v1/embeddings", json={"input": "cat", "user": "me", "dimensions": DIM}).json()
    assert reply["model"] == "long"
    assert len(reply["data"]) == 1


def test_openai_gets_base64_of_little_endian_numbers():
    reply = page().client.post("/v1/embeddings", json={"input": "cat", "encoding_format": "base64"}).json()
    found = np.frombuffer(base64.b64decode(reply["data"][0]["embedding"]), dtype="<f4")
    assert found.tolist() == [1, 0, 0, 0]


def test_openai_gets_facets_when_asked_for_without_those_that_a_text_lacks():
    reply = page().client.post("/v1/embeddings", json={"input": ["cat", "dog"], "facets": True}).json()
    assert reply["data"][0]["facets"] == [[1, 0, 0, 0], [0, 0, 0, 1]]
    assert reply["data"][1]["facets"] == [[2, 0, 0, 0]]
    assert reply["data"][1]["facet_spans"] == [[0, 3]]


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({}, "input", "missing or empty"),
        ({"input": []}, "input", "missing or empty"),
        ({"input": None}, "input", "missing or empty"),
        ({"input": {"a": 1}}, "input", "is of type dict, expected a text"),
        ({"input": 5}, "input", "is of type int, expected a text"),
        ({"input": [1, 2]}, "input", "has tokens"),
        ({"input": [[1, 2]]}, "input", "has tokens"),
        ({"input": ["a", 1.5]}, "input[1]", "no text"),
        ({"input": "a", "model": 3}, "model", "no text"),
        ({"input": "a", "encoding_format": "int8"}, "encoding_format", "float, base64"),
        ({"input": "a", "dimensions": 3}, "dimensions", f"expected {DIM}"),
        ({"input": "a", "dimensions": "3"}, "dimensions", "whole number"),
        ({"input": "a", "facets": "yes"}, "facets", "true nor false"),
        ({"input": "a", "voice": "low"}, "voice", "not known"),
    ],
)
def test_openai_refusals_name_the_field(body, field, message):
    reply = page().client.post("/v1/embeddings", json=body)
    error = reply.json()["error"]
    assert (reply.status_code, error["type"], error["param"]) == (400, "invalid_request_error", field)
    assert message in error["message"]


def test_openai_refusals_of_the_server_name_the_field_of_the_route():
    status = status_of(InvalidInputError("is empty, expected at least one word", path=("texts", 0)))
    failure = CallFailedError(grpc.StatusCode.INVALID_ARGUMENT, status.message, details=status.details)
    error = page(failure).client.post("/v1/embeddings", json={"input": ""}).json()["error"]
    assert (error["param"], error["message"]) == ("input[0]", "input[0] is empty, expected at least one word")


def test_openai_unknown_model_is_404():
    failure = CallFailedError(grpc.StatusCode.NOT_FOUND, "no model is named gpt")
    reply = page(failure).client.post("/v1/embeddings", json={"input": "a", "model": "gpt"})
    assert reply.status_code == 404
    assert reply.json()["error"] == {
        "message": "no model is named gpt",
        "type": "invalid_request_error",
        "param": "model",
        "code": "model_not_found",
    }


def test_openai_overload_says_when_to_come_back():
    details = status_of(OverloadedError("full", retry_after_s=1.5)).details
    failure = CallFailedError(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", details=details)
    reply = page(failure).client.post("/v1/embeddings", json={"input": "a"})
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "2")
    assert reply.json()["error"]["type"] == "rate_limit_error"


def test_openai_invalid_json_and_large_bodies_have_its_form():
    client = page(max_body_bytes=4096).client
    headers = {"content-type": "application/json"}
    assert client.post("/v1/embeddings", content=b"{", headers=headers).json()["error"]["type"]
    assert client.post("/v1/embeddings", json={"input": "x" * 5000}).status_code == 413
    assert client.post("/v1/embeddings", content=b"{}").status_code == 415


def test_openai_lists_the_models_that_embed():
    data = page().client.get("/v1/models").json()["data"]
    assert [model["id"] for model in data] == ["long", "short"]


def test_tei_gets_vectors_of_unit_length_unless_told_otherwise():
    client = page().client
    texts = {"inputs": ["cat", "dog"]}
    assert client.post("/embed", json=texts).json() == [[1, 0, 0, 0], [1, 0, 0, 0]]
    assert client.post("/embed", json={**texts, "normalize": False}).json() == [[1, 0, 0, 0], [2, 0, 0, 0]]
    one = {"inputs": "cat", "truncate": True, "truncation_direction": "Right", "prompt_name": None}
    assert client.post("/embed", json=one).json() == [[1, 0, 0, 0]]


@pytest.mark.parametrize(
    "body",
    [{}, {"inputs": []}, {"inputs": [1]}, {"inputs": "a", "prompt_name": "query"}, {"inputs": "a", "dimensions": 3}],
)
def test_tei_refusals_have_its_form(body):
    reply = page().client.post("/embed", json=body)
    assert (reply.status_code, reply.json()["error_type"]) == (400, "Validation")


def test_tei_overload_has_its_form():
    failure = CallFailedError(grpc.StatusCode.RESOURCE_EXHAUSTED, "full")
    reply = page(failure).client.post("/embed", json={"inputs": "a"})
    assert (reply.status_code, reply.json()) == (429, {"error": "full", "error_type": "Overloaded"})


def test_tei_info_describes_the_model_of_its_route():
    info = page().client.get("/info").json()
    assert (info["model_id"], info["max_input_length"], info["max_client_batch_size"]) == ("long", 256, 512)
