"""Whatever is sent, the answer is the caller's mistake or a reply: never an error of ours."""

import json

import pytest
from facets_proto.v1 import common_pb2, models_pb2, texts_pb2
from facets_server.gateway.transcoding import rpcs
from hypothesis import given, settings
from hypothesis import strategies as st
from server_gateway_fakes import browser

EMBED = "/facets.v1.EmbeddingService/Embed"
LIST = "/facets.v1.ModelService/ListModels"
ANSWERS = {path: rpc.reply() for path, rpc in rpcs().items()}
NAMES = ("input", "inputs", "model", "facets", "dimensions", "encoding_format", "normalize", "truncate", "user")
JSON_TYPE = {"content-type": "application/json"}
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


def embedded(data: bytes) -> texts_pb2.EmbedResponse:
    num = len(texts_pb2.EmbedRequest.FromString(data).texts)
    facets = common_pb2.FacetArray(shape=[num, 1, 1], dtype="DATA_TYPE_FLOAT32", data=bytes(4 * num))
    vectors = common_pb2.FacetArray(shape=[num, 1], dtype="DATA_TYPE_FLOAT32", data=bytes(4 * num))
    return texts_pb2.EmbedResponse(facet_embeddings=facets, vectors=vectors)


@pytest.fixture(scope="module")
def client():
    """Of a gateway whose server embeds; it decodes what it gets."""
    listed = models_pb2.ListModelsResponse(models=[models_pb2.Model(name="m", task="passages")])
    return browser({**ANSWERS, EMBED: embedded, LIST: listed}).client


@pytest.mark.parametrize("path", ["/v1/embeddings", "/embed"])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_fields_of_any_kind(client, path, data):
    body = data.draw(st.dictionaries(st.sampled_from(NAMES), VALUES) | VALUES)
    reply = client.post(path, content=json.dumps(body), headers=JSON_TYPE)
    assert reply.status_code in (200, 400)
    assert reply.json()


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_messages_of_any_kind(client, data):
    path = data.draw(st.sampled_from(sorted(path for path, rpc in rpcs().items() if not rpc.is_stream)))
    names = [field.json_name for field in rpcs()[path].descriptor.input_type.fields] or ["none"]
    body = data.draw(st.dictionaries(st.sampled_from(names), VALUES))
    assert client.post(path, json=body).status_code in (200, 400)


@pytest.fixture(scope="module")
def passed_on():
    """A client of a gateway whose server takes any bytes."""
    return browser(ANSWERS).client


@settings(max_examples=40, deadline=None)
@given(path=st.sampled_from(sorted(ANSWERS)), body=st.binary(max_size=200))
def test_bytes_of_any_kind(passed_on, path, body):
    types = ("application/x-ndjson",) if rpcs()[path].is_stream else ("application/json", "application/proto")
    for content_type in types:
        for encoding in ("identity", "gzip"):
            headers = {"content-type": content_type, "content-encoding": encoding}
            assert passed_on.post(path, content=body, headers=headers).status_code in (200, 400)


@settings(max_examples=30, deadline=None)
@given(values=st.lists(VALUES, max_size=4))
def test_lines_of_any_kind(client, values):
    body = "\n".join(map(json.dumps, values)).encode()
    headers = {"content-type": "application/x-ndjson"}
    reply = client.post("/facets.v1.EmbeddingService/EmbedStream", content=body, headers=headers)
    assert reply.status_code in (200, 400)
