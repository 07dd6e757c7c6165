"""Every rpc over HTTP: JSON as the Connect protocol has it, protobuf, and streams of lines."""

import base64
import gzip
import json

import grpc
import pytest
from facets_proto.v1 import common_pb2, texts_pb2
from facets_server.gateway.failures import CallFailedError, failure_of
from facets_server.gateway.transcoding import rpcs
from facets_server.runtime.errors import status_of
from google.rpc import error_details_pb2
from proto_files import SERVICES
from server_gateway_fakes import browser

from facets.errors import InvalidInputError, OverloadedError

EMBED = "/facets.v1.EmbeddingService/Embed"
STREAM = "/facets.v1.EmbeddingService/EmbedStream"
REPLY = texts_pb2.EmbedResponse(
    facet_embeddings=common_pb2.FacetArray(shape=[1], dtype="DATA_TYPE_FLOAT32", data=b"\x00\x01\x02\x03")
)
JSON_TYPE = {"content-type": "application/json"}
LINES_TYPE = {"content-type": "application/x-ndjson"}
PACKED = gzip.compress(b"{}", mtime=0)
SECRET = "a very private sentence"


def echo(data: bytes) -> texts_pb2.EmbedStreamResponse:
    return texts_pb2.EmbedStreamResponse(sequence=texts_pb2.EmbedStreamRequest.FromString(data).sequence)


def test_every_rpc_is_a_route():
    ours = {f"/{service.full_name}/{method.name}" for service in SERVICES for method in service.methods}
    assert set(rpcs()) == ours | {"/grpc.health.v1.Health/Check"}


def test_json_becomes_the_message_and_the_reply_becomes_json():
    page = browser({EMBED: REPLY})
    reply = page.client.post(EMBED, json={"texts": ["cat"], "includeSpans": True, "dtype": "DATA_TYPE_FLOAT16"})
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "application/json"
    ((_, data, _),) = page.upstream.asked
    expected = texts_pb2.EmbedRequest(texts=["cat"], include_spans=True, dtype="DATA_TYPE_FLOAT16")
    assert texts_pb2.EmbedRequest.FromString(data) == expected
    embeddings = reply.json()["facetEmbeddings"]
    assert embeddings["dtype"] == "DATA_TYPE_FLOAT32"
    assert base64.b64decode(embeddings["data"]) == b"\x00\x01\x02\x03"


def test_names_of_the_proto_file_are_read_too():
    page = browser({EMBED: REPLY})
    assert page.client.post(EMBED, json={"texts": ["cat"], "include_spans": True}).status_code == 200
    assert texts_pb2.EmbedRequest.FromString(page.upstream.asked[0][1]).include_spans


def test_large_bodies_are_converted_as_well():
    page = browser({EMBED: REPLY})
    assert page.client.post(EMBED, json={"texts": ["cat " * 50_000]}).status_code == 200


def test_protobuf_bodies_are_passed_on_as_they_are():
    page = browser({EMBED: REPLY})
    sent = texts_pb2.EmbedRequest(texts=["cat"]).SerializeToString()
    reply = page.client.post(EMBED, content=sent, headers={"content-type": "application/proto"})
    assert reply.headers["content-type"] == "application/proto"
    assert page.upstream.asked[0][1] == sent
    assert texts_pb2.EmbedResponse.FromString(reply.content) == REPLY


def test_key_request_id_trace_and_address_are_forwarded_and_nothing_else():
    page = browser({EMBED: REPLY})
    headers = {
        "authorization": "Bearer k",
        "x-request-id": "mine-1",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "tracestate": "a=b",
        "connect-timeout-ms": "1500",
        "connect-protocol-version": "1",
        "x-facets-gateway-token": "forged",
        "x-facets-gateway-caller": "forged",
        "x-forwarded-for": "198.51.100.1",
        "cookie": "c=1",
    }
    reply = page.client.post(EMBED, json={}, headers=headers)
    caller = page.upstream.asked[0][2]
    assert dict(caller.metadata) == {
        "authorization": "Bearer k",
        "x-request-id": "mine-1",
        "traceparent": headers["traceparent"],
        "tracestate": "a=b",
        "x-facets-gateway-caller": "ipv4:192.0.2.7",
    }
    assert caller.timeout_s == 1.5
    assert reply.headers["x-request-id"] == "mine-1"


def test_calls_without_a_timeout_have_the_one_of_the_settings():
    page = browser({EMBED: REPLY}, timeout_s=7.0)
    page.client.post(EMBED, json={})
    assert page.upstream.asked[0][2].timeout_s == 7.0


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"connect-timeout-ms": "soon"}, "connect-timeout-ms"),
        ({"connect-timeout-ms": "12345678901"}, "connect-timeout-ms"),
        ({"connect-protocol-version": "2"}, "connect-protocol-version"),
        ({"authorization": "Bearer \xe4".encode("latin-1")}, "authorization"),
    ],
)
def test_headers_that_are_wrong_are_named(headers, message):
    reply = browser({EMBED: REPLY}).client.post(EMBED, json={}, headers=headers)
    assert reply.status_code == 400
    assert reply.json()["code"] == "invalid_argument"
    assert message in reply.json()["message"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"[]", "no JSON object"),
        (b"null", "no JSON object"),
        (b"\xff{}", "is not UTF-8"),
        (b'{"texts": ["a"], "texts": ["b"]}', "stands twice"),
        (b'{"num_words": NaN}', "NaN is no number"),
        (b'{"text": "a"}', "the body has no field 'text', expected some of texts, model"),
        (b'{"texts": "a"}', "texts"),
        (b'{"texts": [1]}', "texts"),
        (b'{"dtype": "FLOAT"}', "dtype"),
        (b'{"normalize": "yes"}', "normalize"),
        (b'{"texts": ["\\ud800"]}', "surrogate"),
        (b'{"texts": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"dtype": ' + b"9" * 5000 + b"}", "JSON"),
        (b'{"dtype": 99999999999999}', "dtype"),
    ],
)
def test_bodies_that_are_no_such_message_are_refused_with_one_sentence(body, message):
    page = browser({EMBED: REPLY})
    reply = page.client.post(EMBED, content=body, headers=JSON_TYPE)
    assert reply.status_code == 400
    assert reply.json()["code"] == "invalid_argument"
    assert message in reply.json()["message"]
    assert "\n" not in reply.json()["message"]
    assert page.upstream.asked == []


def test_headers_that_are_too_long_to_forward_are_431():
    page = browser()
    reply = page.client.post(EMBED, json={"texts": ["a"]}, headers={"authorization": "Bearer " + "x" * 8000})
    assert (reply.status_code, page.upstream.asked) == (431, [])


def test_long_words_of_the_caller_are_not_repeated():
    reply = browser().client.post(EMBED, json={"x" * 10_000: 1})
    assert reply.status_code == 400
    assert len(reply.json()["message"]) < 400


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/x-www-form-urlencoded", "application/grpc"])
def test_content_types_that_a_page_elsewhere_may_send_are_refused(content_type):
    reply = browser().client.post(EMBED, content=b"{}", headers={"content-type": content_type})
    assert reply.status_code == 415
    assert reply.headers["accept-post"] == "application/json or application/proto"
    assert "expected application/json" in reply.json()["message"]


def test_rpcs_and_paths_that_are_not_there_are_404():
    page = browser()
    assert page.client.post("/facets.v1.EmbeddingService/Nothing", json={}).json()["code"] == "unimplemented"
    reply = page.client.post("/nothing", json={})
    assert (reply.status_code, reply.json()["code"]) == (404, "not_found")


def test_other_methods_are_405_and_say_which_is_right():
    reply = browser().client.get(EMBED)
    assert (reply.status_code, reply.headers["allow"]) == (405, "POST")
    assert browser().client.post("/healthz", json={}).status_code == 405


@pytest.mark.parametrize(
    ("code", "status", "name"),
    [
        ("CANCELLED", 499, "canceled"),
        ("UNKNOWN", 500, "unknown"),
        ("INVALID_ARGUMENT", 400, "invalid_argument"),
        ("DEADLINE_EXCEEDED", 504, "deadline_exceeded"),
        ("NOT_FOUND", 404, "not_found"),
        ("ALREADY_EXISTS", 409, "already_exists"),
        ("PERMISSION_DENIED", 403, "permission_denied"),
        ("RESOURCE_EXHAUSTED", 429, "resource_exhausted"),
        ("FAILED_PRECONDITION", 400, "failed_precondition"),
        ("ABORTED", 409, "aborted"),
        ("OUT_OF_RANGE", 400, "out_of_range"),
        ("UNIMPLEMENTED", 501, "unimplemented"),
        ("INTERNAL", 500, "internal"),
        ("UNAVAILABLE", 503, "unavailable"),
        ("DATA_LOSS", 500, "data_loss"),
        ("UNAUTHENTICATED", 401, "unauthenticated"),
    ],
)
def test_codes_become_the_statuses_of_the_connect_protocol(code, status, name):
    reply = browser({EMBED: CallFailedError(grpc.StatusCode[code], "so it is")}).client.post(EMBED, json={})
    assert reply.status_code == status
    assert reply.json() == {"code": name, "message": "so it is"}
    assert (reply.headers.get("www-authenticate") == "Bearer") == (status == 401)


def test_a_call_that_the_server_drops_is_503_and_may_be_tried_again():
    dropped = grpc.aio.AioRpcError(grpc.StatusCode.CANCELLED, grpc.aio.Metadata(), grpc.aio.Metadata(), "CANCELLED")
    reply = browser({EMBED: failure_of(dropped)}).client.post(EMBED, json={})
    assert (reply.status_code, reply.json()["code"], reply.headers["retry-after"]) == (503, "unavailable", "1")


def test_details_of_errors_are_given_as_bytes_and_in_words():
    status = status_of(InvalidInputError("is empty", path=("texts", 0)), request_id="r1")
    failure = CallFailedError(grpc.StatusCode.INVALID_ARGUMENT, status.message, details=status.details)
    details = browser({EMBED: failure}).client.post(EMBED, json={}).json()["details"]
    assert [detail["type"] for detail in details] == ["google.rpc.ErrorInfo", "google.rpc.BadRequest"]
    assert details[0]["debug"]["reason"] == "INVALID_INPUT"
    padded = details[1]["value"] + "=" * (-len(details[1]["value"]) % 4)
    assert error_details_pb2.BadRequest.FromString(base64.b64decode(padded)).field_violations[0].field == "texts[0]"


def test_overload_says_when_to_come_back():
    status = status_of(OverloadedError("full", retry_after_s=2.2))
    failure = CallFailedError(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", details=status.details)
    reply = browser({EMBED: failure}).client.post(EMBED, json={})
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "3")


def test_bugs_are_internal_errors_without_words_of_the_caller(caplog):
    page = browser({EMBED: RuntimeError(SECRET)})
    reply = page.client.post(EMBED, json={"texts": [SECRET]})
    assert (reply.status_code, reply.json()) == (500, {"code": "internal", "message": "internal error"})
    assert "RuntimeError" in caplog.text
    assert SECRET not in caplog.text


def test_log_and_metrics_name_the_route_and_the_status(caplog):
    caplog.set_level("INFO")
    page = browser({EMBED: REPLY})
    page.client.post(EMBED, json={"texts": [SECRET]}, headers={"x-request-id": "r7"})
    page.client.get(f"/{SECRET}")
    assert f"r7 HTTP {EMBED} 200" in caplog.text
    assert SECRET not in caplog.text
    assert page.metric("facets_http_requests_total", route=EMBED, status="200") == 1
    assert page.metric("facets_http_requests_total", route="pages", status="404") == 1
    assert page.metric("facets_http_request_seconds_count", route=EMBED) == 1
    assert page.metric("facets_http_running_requests") == 0


def test_bodies_over_the_limit_are_413():
    page = browser({EMBED: REPLY}, max_body_bytes=4096)
    reply = page.client.post(EMBED, json={"texts": ["x" * 5000]})
    assert (reply.status_code, reply.json()["code"]) == (413, "resource_exhausted")
    assert "4096 bytes" in reply.json()["message"]
    assert reply.headers["connection"] == "close"
    assert page.client.post(EMBED, json={"texts": ["x" * 4000]}).status_code == 200


def test_messages_that_the_server_finds_too_large_are_413():
    failure = CallFailedError(grpc.StatusCode.RESOURCE_EXHAUSTED, "too large", status=413)
    assert browser({EMBED: failure}).client.post(EMBED, json={}).status_code == 413


def packed(body: bytes) -> dict:
    return {"content": body, "headers": {**JSON_TYPE, "content-encoding": "gzip"}}


def test_gzip_is_unpacked_within_the_limit():
    page = browser({EMBED: REPLY}, max_body_bytes=4096)
    assert page.client.post(EMBED, **packed(gzip.compress(b'{"texts":["cat"]}'))).status_code == 200
    assert texts_pb2.EmbedRequest.FromString(page.upstream.asked[0][1]).texts == ["cat"]
    bomb = gzip.compress(b" " * 50_000_000)
    assert page.client.post(EMBED, **packed(bomb)).status_code == 413


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"filter": {}}, "the body has no field 'filter', expected some of collection, queries, topK, where, "),
        ({"queries": ["drums"]}, "queries[0] is a string, expected an object with fields of text, facetEmbeddings"),
        ({"where": {"field": "owner"}}, "where.field is a string, expected an object with fields of field, equals, "),
        (
            {"where": {"allOf": {"filters": [{"owner": "Jo"}]}}},
            "where.allOf.filters[0] has no field 'owner', expected ",
        ),
        ({"queries": [{"text": "a", '\n"x" at "y': 1}]}, "queries[0]"),
    ],
)
def test_what_a_search_cannot_have_is_said_with_what_it_can(body, message):
    page = browser({})
    reply = page.client.post("/facets.v1.DocumentService/Search", content=json.dumps(body), headers=JSON_TYPE)
    assert reply.status_code == 400 and message in reply.json()["message"] and "\n" not in reply.json()["message"]


@pytest.mark.parametrize(
    ("body", "encoding", "status"),
    [
        (b"{}", "gzip", 400),
        (PACKED[:-6], "gzip", 400),
        (PACKED + PACKED, "gzip", 400),
        (b"{}", "br", 415),
    ],
    ids=["plain", "cut", "twice", "unknown"],
)
def test_bodies_that_are_not_packed_as_they_say_are_refused(body, encoding, status):
    reply = browser({EMBED: REPLY}).client.post(
        EMBED, content=body, headers={**JSON_TYPE, "content-encoding": encoding}
    )
    assert reply.status_code == status
    assert "\n" not in reply.json()["message"]


def lines(*messages: object) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def test_streams_are_a_message_a_line_both_ways():
    page = browser({STREAM: echo})
    body = lines({"sequence": 1}, {"sequence": "2"}) + b"\n" + b'{"sequence": 3}'
    reply = page.client.post(STREAM, content=body, headers=LINES_TYPE)
    assert reply.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in reply.text.splitlines()] == [{"sequence": str(n)} for n in (1, 2, 3)]


def test_streams_that_fail_at_once_have_a_status():
    failure = CallFailedError(grpc.StatusCode.UNAUTHENTICATED, "no key")
    reply = browser({STREAM: failure}).client.post(STREAM, content=lines({}), headers=LINES_TYPE)
    assert (reply.status_code, reply.json()["code"]) == (401, "unauthenticated")


def test_streams_that_fail_later_end_with_the_error():
    def answer(data: bytes) -> texts_pb2.EmbedStreamResponse | CallFailedError:
        reply = echo(data)
        return CallFailedError(grpc.StatusCode.UNAVAILABLE, "going down") if reply.sequence == 2 else reply

    reply = browser({STREAM: answer}).client.post(
        STREAM, content=lines({"sequence": 1}, {"sequence": 2}, {"sequence": 3}), headers=LINES_TYPE
    )
    assert reply.status_code == 200
    last = json.loads(reply.text.splitlines()[-1])
    assert last == {"error": {"code": "unavailable", "message": "going down"}}


def test_a_line_that_is_wrong_is_named_after_the_replies_to_those_before():
    body = lines({"sequence": 1}) + b"{nonsense}\n"
    reply = browser({STREAM: echo}).client.post(STREAM, content=body, headers=LINES_TYPE)
    first, last = (json.loads(line) for line in reply.text.splitlines())
    assert first == {"sequence": "1"}
    assert last["error"]["code"] == "invalid_argument"


def test_a_line_over_the_limit_is_413():
    page = browser({STREAM: echo}, max_body_bytes=4096)
    reply = page.client.post(STREAM, content=b'{"sequence": "' + b"1" * 5000, headers=LINES_TYPE)
    assert reply.status_code == 413
    assert page.upstream.asked == []


def test_streams_take_lines_only():
    assert browser().client.post(STREAM, json={}).status_code == 415
