"""Every rpc over HTTP: JSON as in the Connect protocol, protobuf, streams of lines, errors."""

import base64
import json
import time

import grpc
import pytest
from facets_client.core.channel import rpcs
from facets_proto.v1 import common_pb2, texts_pb2
from facets_server.gateway.errors import CallError
from facets_server.gateway.protobuf_json import parse_json
from google.rpc import error_details_pb2
from hypothesis import given, settings
from hypothesis import strategies as st
from server_gateway_fakes import browser

from facets.errors import InvalidInputError, OverloadedError

EMBED = "/facets.v1.EmbeddingService/Embed"
STREAM = "/facets.v1.EmbeddingService/EmbedStream"
SEARCH = "/facets.v1.DocumentService/Search"
UPSERT = "/facets.v1.DocumentService/Upsert"
REPLY = texts_pb2.EmbedResponse(
    facet_embeddings=common_pb2.FacetArray(shape=[1], dtype="DATA_TYPE_FLOAT32", data=b"\x00\x01\x02\x03")
)
JSON_TYPE = {"content-type": "application/json"}
LINES_TYPE = {"content-type": "application/x-ndjson"}
SECRET = "a very private sentence"


def echo(data: bytes) -> texts_pb2.EmbedStreamResponse:
    return texts_pb2.EmbedStreamResponse(sequence=texts_pb2.EmbedStreamRequest.FromString(data).sequence)


def lines(*messages: object) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def test_json_is_converted_both_ways():
    page = browser({EMBED: REPLY})
    body = {"texts": ["cat"], "includeSpans": True, "include_vectors": True, "dtype": "DATA_TYPE_FLOAT16"}
    reply = page.client.post(EMBED, json=body)
    assert (reply.status_code, reply.headers["content-type"]) == (200, "application/json")
    expected = texts_pb2.EmbedRequest(
        texts=["cat"], include_spans=True, include_vectors=True, dtype="DATA_TYPE_FLOAT16"
    )
    assert texts_pb2.EmbedRequest.FromString(page.upstream.calls[0][1]) == expected
    embeddings = reply.json()["facetEmbeddings"]
    assert embeddings["dtype"] == "DATA_TYPE_FLOAT32"
    assert base64.b64decode(embeddings["data"]) == b"\x00\x01\x02\x03"
    assert page.client.post(EMBED, json={"texts": ["cat " * 50_000]}).status_code == 200  # converted in a thread


def test_protobuf_bodies_pass_unchanged():
    page = browser({EMBED: REPLY})
    sent = texts_pb2.EmbedRequest(texts=["cat"]).SerializeToString()
    reply = page.client.post(EMBED, content=sent, headers={"content-type": "application/proto"})
    assert reply.headers["content-type"] == "application/proto"
    assert page.upstream.calls[0][1] == sent
    assert texts_pb2.EmbedResponse.FromString(reply.content) == REPLY


def test_only_key_request_id_trace_and_address_are_forwarded():
    page = browser({EMBED: REPLY}, timeout_s=7.0)
    forwarded = {
        "authorization": "Bearer k",
        "x-request-id": "mine-1",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "tracestate": "a=b",
    }
    others = {"connect-timeout-ms": "1500", "x-facets-gateway-caller": "forged", "x-forwarded-for": "198.51.100.1"}
    reply = page.client.post(EMBED, json={}, headers={**forwarded, **others})
    caller = page.upstream.calls[0][2]
    assert dict(caller.metadata) == {**forwarded, "x-facets-gateway-caller": "ipv4:192.0.2.7"}
    assert (caller.timeout_s, reply.headers["x-request-id"]) == (1.5, "mine-1")
    page.client.post(EMBED, json={})
    assert page.upstream.calls[1][2].timeout_s == 7.0


@pytest.mark.parametrize(
    ("headers", "status", "message"),
    [
        ({"connect-timeout-ms": "12345678901"}, 400, "connect-timeout-ms"),
        ({"authorization": "Bearer \xe4".encode("latin-1")}, 400, "authorization"),
        ({"authorization": "Bearer " + "x" * 8000}, 431, "authorization"),
        ({"content-type": "text/plain"}, 415, "expected application/json or application/proto"),
        ({"content-encoding": "gzip"}, 415, "expected identity"),
    ],
)
def test_invalid_headers_are_named(headers, status, message):
    page = browser({EMBED: REPLY})
    reply = page.client.post(EMBED, content=b"{}", headers={**JSON_TYPE, **headers})
    assert (reply.status_code, page.upstream.calls) == (status, [])
    assert message in reply.json()["message"]


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        (EMBED, b"", "is not JSON"),
        (EMBED, b"null", "not a JSON object"),
        (EMBED, b"\xff{}", "is not UTF-8"),
        (EMBED, b'{"texts": ["a"], "texts": ["b"]}', "the same name twice"),
        (EMBED, b'{"num_words": NaN}', "NaN is not a JSON number"),
        (EMBED, b'{"text": "a"}', "the body has no field 'text', expected some of texts, model"),
        (EMBED, b'{"texts": ["\\ud800"]}', "surrogate"),
        (EMBED, b'{"\\ud800": ["a"]}', "surrogate"),
        (EMBED, b'{"dtype": "\\ud800"}', "surrogate"),
        (SEARCH, b'{"queries": [{"text": "a", "\\ud800": 1}]}', "surrogate"),
        (EMBED, b'{"texts": ' + b"[" * 100_000, "nested too deeply"),
        (EMBED, b'{"dtype": ' + b"9" * 5000 + b"}", "value has 5000 digits"),
        (EMBED, b'{"dtype": 99999999999999}', "dtype"),
        (EMBED, b'{"texts": "a"}', "texts must be a list"),
        (EMBED, b'{"texts": ["a", 1]}', "texts[1] must be a string"),
        (EMBED, b'{"includeSpans": "true"}', "includeSpans must be true or false"),
        (SEARCH, b'{"topK": "x"}', "topK must be a whole number"),
        (SEARCH, b'{"topK": 1.5}', "topK must be a whole number"),
        (SEARCH, b'{"diversify": "much"}', "diversify must be a number"),
        (SEARCH, b'{"queries": [1]}', "queries[0] must be an object"),
        (SEARCH, b'{"queries": [[{"text": "a"}]]}', "queries[0] must be an object"),
        (SEARCH, b'{"queries": [["drums"]]}', "queries[0] is a list, expected an object"),
        (
            SEARCH,
            b'{"where": ' + b'{"noneOf": {"filters": [' * 60 + b"{}" + b"]}}" * 60 + b"}",
            "deeper than 32 levels",
        ),
        (
            UPSERT,
            b'{"documents": [{"payload": {"a": ' + b"[" * 90 + b"]" * 90 + b"}}]}",
            "documents[0].payload is nested",
        ),
        (EMBED, b'{"%s": 1}' % (b"x" * 10_000), "expected some of"),
        (SEARCH, b'{"queries": ["drums"]}', "queries[0] is a string, expected an object with some of text, facet"),
        (SEARCH, b'{"where": {"allOf": {"filters": [{"owner": 1}]}}}', "where.allOf.filters[0] has no field 'owner'"),
        (SEARCH, b'{"queries": [{"text": "a", "\\n\\"x\\" at \\"y": 1}]}', "queries[0]"),
    ],
)
def test_invalid_bodies_get_one_sentence(path, body, message):
    page = browser()
    reply = page.client.post(path, content=body, headers=JSON_TYPE)
    assert (reply.status_code, reply.json()["code"], page.upstream.calls) == (400, "invalid_argument", [])
    assert message in reply.json()["message"]
    assert "\n" not in reply.json()["message"] and len(reply.json()["message"]) < 400


def test_values_are_counted_outside_strings_and_only_up_to_the_limit():
    texts = {"texts": ['a", [{:\\' * 100_000, *"bc"]}
    page = browser({EMBED: REPLY})
    assert page.client.post(EMBED, json=texts).status_code == 200
    assert list(texts_pb2.EmbedRequest.FromString(page.upstream.calls[0][1]).texts) == texts["texts"]
    for body in (b'["a"' + b',"a"' * 4_000_000 + b"]", b'{"a":' * 3_000_000):
        started = time.process_time()
        with pytest.raises(CallError, match="more than 262144 values"):
            parse_json(body)
        assert time.process_time() - started < 0.2


def test_unknown_paths_are_404_and_other_methods_405():
    client = browser().client
    assert client.post("/facets.v1.EmbeddingService/Nothing", json={}).json()["code"] == "unimplemented"
    reply = client.post("/nothing", json={})
    assert (reply.status_code, reply.json()["code"]) == (404, "not_found")
    reply = client.get(EMBED)
    assert (reply.status_code, reply.headers["allow"]) == (405, "POST")


STATUSES = {
    "CANCELLED": 499, "INVALID_ARGUMENT": 400, "DEADLINE_EXCEEDED": 504, "NOT_FOUND": 404, "ALREADY_EXISTS": 409,
    "PERMISSION_DENIED": 403, "RESOURCE_EXHAUSTED": 429, "FAILED_PRECONDITION": 400, "OUT_OF_RANGE": 400,
    "UNIMPLEMENTED": 501, "INTERNAL": 500, "UNAVAILABLE": 503, "UNAUTHENTICATED": 401,
}  # fmt: skip


@pytest.mark.parametrize("code", STATUSES)
def test_codes_map_to_the_statuses_of_the_connect_protocol(code):
    reply = browser({EMBED: CallError(grpc.StatusCode[code], "why")}).client.post(EMBED, json={})
    assert reply.status_code == STATUSES[code]
    error = reply.json()
    assert (error["code"], error["message"]) == ("canceled" if code == "CANCELLED" else code.lower(), "why")
    assert (reply.headers.get("www-authenticate") == "Bearer") == (code == "UNAUTHENTICATED")


def test_the_words_of_grpc_about_the_network_are_not_shown():
    for code, words in (("DEADLINE_EXCEEDED", "deadline passed before"), ("UNAVAILABLE", "cannot be reached")):
        error = grpc.aio.AioRpcError(grpc.StatusCode[code], *[grpc.aio.Metadata()] * 2, "Stream removed (unix:/tmp/x)")
        message = browser({EMBED: CallError.of_grpc(error)}).client.post(EMBED, json={}).json()["message"]
        assert words in message and "removed" not in message


def test_calls_that_fail_for_a_moment_say_when_to_retry():
    dropped = grpc.aio.AioRpcError(grpc.StatusCode.CANCELLED, grpc.aio.Metadata(), grpc.aio.Metadata(), "CANCELLED")
    reply = browser({EMBED: CallError.of_grpc(dropped)}).client.post(EMBED, json={})
    assert (reply.status_code, reply.json()["code"], reply.headers["retry-after"]) == (503, "unavailable", "1")
    full = CallError.of_facets(OverloadedError("full", retry_after_s=2.2))
    reply = browser({EMBED: full}).client.post(EMBED, json={})
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "3")


def test_error_details_are_bytes_and_json():
    error = CallError.of_facets(InvalidInputError("is empty", path=("texts", 0)))
    client = browser({EMBED: error}).client
    details = client.post(EMBED, json={}).json()["details"]
    assert [detail["type"] for detail in details] == ["google.rpc.ErrorInfo", "google.rpc.BadRequest"]
    assert details[0]["debug"]["reason"] == "INVALID_INPUT"
    padded = details[1]["value"] + "=" * (-len(details[1]["value"]) % 4)
    assert error_details_pb2.BadRequest.FromString(base64.b64decode(padded)).field_violations[0].field == "texts[0]"
    own = [client.post(EMBED, content=content, headers={**JSON_TYPE, "x-request-id": "r7"}) for content in ("{", "{}")]
    own.append(client.get("/nothing", headers={"x-request-id": "r7"}))
    infos = [reply.json()["details"][0]["debug"] for reply in own]
    assert [info["reason"] for info in infos] == ["INVALID_INPUT", "INVALID_INPUT", "NOT_FOUND"]
    assert {(info["domain"], info["metadata"]["request_id"]) for info in infos} == {("facets.dev", "r7")}


def test_the_log_names_route_and_status_and_never_quote_the_caller(caplog):
    caplog.set_level("INFO")
    page = browser({EMBED: REPLY, SEARCH: RuntimeError(SECRET)})
    page.client.post(EMBED, json={"texts": [SECRET]}, headers={"x-request-id": "r7"})
    page.client.get(f"/{SECRET}")
    reply = page.client.post(SEARCH, json={"collection": SECRET})
    assert (reply.status_code, reply.json()["message"]) == (500, "internal error")
    assert f"r7 HTTP {EMBED} 200" in caplog.text and "RuntimeError" in caplog.text
    assert SECRET not in caplog.text
    assert "HTTP pages 404" in caplog.text


def test_bodies_have_a_size_limit():
    page = browser({EMBED: REPLY}, max_body_bytes=4096)
    assert page.client.post(EMBED, json={"texts": ["x" * 4000]}).status_code == 200
    reply = page.client.post(EMBED, json={"texts": ["x" * 5000]})
    assert (reply.status_code, reply.json()["code"]) == (413, "resource_exhausted")
    assert "4096 bytes" in reply.json()["message"] and reply.headers["connection"] == "close"


def test_streams_are_one_message_per_line_both_ways():
    body = lines({"sequence": 1}, {"sequence": "2"}) + b"\n" + b'{"sequence": 3}'
    reply = browser({STREAM: echo}).client.post(STREAM, content=body, headers=LINES_TYPE)
    assert reply.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in reply.text.splitlines()] == [{"sequence": str(n)} for n in (1, 2, 3)]


def test_streams_that_fail_before_the_first_reply_have_a_status():
    error = CallError(grpc.StatusCode.UNAUTHENTICATED, "no key")
    reply = browser({STREAM: error}).client.post(STREAM, content=lines({}), headers=LINES_TYPE)
    assert (reply.status_code, reply.json()["code"]) == (401, "unauthenticated")
    assert browser().client.post(STREAM, json={}).status_code == 415
    client = browser({STREAM: echo}, max_body_bytes=4096).client
    assert client.post(STREAM, content=b'{"sequence": "' + b"1" * 5000, headers=LINES_TYPE).status_code == 413


def test_streams_that_fail_later_end_with_an_error_line():
    def answer(data: bytes) -> texts_pb2.EmbedStreamResponse | CallError:
        reply = echo(data)
        return CallError(grpc.StatusCode.UNAVAILABLE, "going down") if reply.sequence == 2 else reply

    client = browser({STREAM: answer}).client
    reply = client.post(STREAM, content=lines({"sequence": 1}, {"sequence": 2}, {"sequence": 3}), headers=LINES_TYPE)
    assert reply.status_code == 200
    error = json.loads(reply.text.splitlines()[-1])["error"]
    assert (error["code"], error["message"]) == ("unavailable", "going down")
    reply = client.post(STREAM, content=lines({"sequence": 1}) + b"{nonsense}\n", headers=LINES_TYPE)
    first, last = (json.loads(line) for line in reply.text.splitlines())
    assert (first, last["error"]["code"]) == ({"sequence": "1"}, "invalid_argument")


NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
NAMES = ("input", "inputs", "query", "texts", "documents", "model", "facets", "dimensions", "normalize", "top_n")
COMPATIBLE = ("/v1/embeddings", "/embed", "/rerank", "/v1/rerank")


@pytest.fixture(scope="module")
def client():
    return browser({path: rpc.reply() for path, rpc in rpcs().items()}).client


@settings(max_examples=60)
@given(path=st.sampled_from([*rpcs(), *COMPATIBLE]), data=st.data())
def test_any_body_is_answered_or_rejected_but_never_an_internal_error(client, path, data):
    rpc = rpcs().get(path)
    names = NAMES if rpc is None else [field.json_name for field in rpc.descriptor.input_type.fields]
    values = data.draw(st.dictionaries(st.sampled_from([*names, "none"]), VALUES, max_size=4) | VALUES)
    if path in COMPATIBLE[:2] and isinstance(values, dict):
        values["dimensions"] = 0  # the empty reply of this fake has no vectors
    headers = {"content-type": "application/x-ndjson" if rpc and rpc.is_stream else "application/json"}
    for content in (json.dumps(values), data.draw(st.binary(max_size=100))):
        assert client.post(path, content=content, headers=headers).status_code in (200, 400)
    if rpc and not rpc.is_stream:
        headers = {"content-type": "application/proto"}
        assert client.post(path, content=data.draw(st.binary(max_size=100)), headers=headers).status_code in (200, 400)
