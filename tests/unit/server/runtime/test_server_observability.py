"""Traces and the access log of real calls."""

import json
import time

import grpc
import pytest
from facets_proto.v1 import texts_pb2
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import ObservabilityConfig, SecurityConfig, ServerConfig
from facets_server.runtime.observability import AccessLog, Tracing
from waiting import wait_until

from facets.errors import ConfigError

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


@pytest.fixture
def exporter():
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter):
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(exporter))
    return made


def embed(running, *texts, metadata=()):
    return running.embedding.Embed(texts_pb2.EmbedRequest(texts=texts), metadata=metadata)


def spans(exporter, name, number=1):
    """The finished spans of calls of that name, and all spans below them."""
    wait_until(lambda: sum(span.name.endswith(name) for span in exporter.get_finished_spans()) >= number)
    found = exporter.get_finished_spans()
    calls = [span for span in found if span.name.endswith(name)]
    ids = {span.context.span_id for span in calls}
    return calls, [span for span in found if span.parent is not None and span.parent.span_id in ids]


def test_a_call_has_a_span_below_the_caller_s_and_one_a_stage(make_server, provider, exporter):
    running = make_server(tracing=Tracing(provider))
    embed(running, "a cat", "a dog", metadata=(("traceparent", TRACEPARENT),))
    [call], stages = spans(exporter, "EmbeddingService/Embed")
    assert f"{call.context.trace_id:032x}" == TRACE
    assert f"{call.parent.span_id:016x}" == PARENT
    assert call.attributes["facets.items"] == 2
    assert call.attributes["facets.request_bytes"] > 0 < call.attributes["facets.reply_bytes"]
    assert call.attributes["rpc.response.status_code"] == "OK"
    seen = [(span.name, span.attributes.get("facets.items")) for span in stages]
    assert [stage for stage in seen if stage != ("queue", None)] == [("tokenize", 2), ("batch", 2), ("model", 2)]
    assert seen[0] == ("queue", None)  # for a permit; others are waits for a turn
    assert all(span.start_time <= span.end_time for span in (call, *stages))
    assert "cat" not in "".join(span.to_json() for span in (call, *stages))


def test_a_fault_of_the_server_is_an_error_of_the_span_and_a_caller_s_is_none(make_server, provider, exporter):
    from opentelemetry.trace import StatusCode

    running = make_server(tracing=Tracing(provider))
    with pytest.raises(grpc.RpcError):
        embed(running)
    running.model.poison = "cat"
    with pytest.raises(grpc.RpcError):
        embed(running, "a cat")
    calls, _ = spans(exporter, "EmbeddingService/Embed", 2)
    assert [call.status.status_code for call in calls] == [StatusCode.UNSET, StatusCode.ERROR]


def lines(path, number):
    wait_until(lambda: path.exists() and len(path.read_text().splitlines()) >= number)
    return [json.loads(line) for line in path.read_text().splitlines()]


def with_log(path, **settings):
    return ServerConfig(observability=ObservabilityConfig(access_log=str(path)), **settings)


def test_the_access_log_has_a_line_for_each_call(make_server, tmp_path):
    path = tmp_path / "access.jsonl"
    running = make_server(config=with_log(path))
    forged = 'x", "status": "OK'
    embed(running, "a cat", "a dog", metadata=(("x-request-id", "mine"),))
    with pytest.raises(grpc.RpcError):
        embed(running, metadata=(("x-request-id", forged),))
    good, bad = lines(path, 2)
    assert good["request_id"] == "mine" and good["status"] == "OK" and "reason" not in good
    assert good["rpc"] == "/facets.v1.EmbeddingService/Embed" and good["items"] == 2
    assert good["request_bytes"] > 0 and good["reply_bytes"] > 0 and "trace_id" not in good
    assert list(good["stages_ms"]) == ["queue", "tokenize", "batch", "model"]
    assert good["peer"].startswith("ipv4:127.0.0.1:") and good["caller"] == "ipv4:127.0.0.1"
    assert (bad["status"], bad["reason"]) == ("INVALID_ARGUMENT", "INVALID_INPUT")
    assert bad["request_id"] != forged
    assert "cat" not in path.read_text()


def test_the_access_log_names_keys_without_telling_them(make_server, tmp_path):
    (tmp_path / "keys").write_text("secretkey read\n")
    path = tmp_path / "access.jsonl"
    running = make_server(config=with_log(path, security=SecurityConfig(api_keys_file=tmp_path / "keys")))
    embed(running, "a cat", metadata=(("authorization", "Bearer secretkey"),))
    with pytest.raises(grpc.RpcError):
        embed(running, "a cat", metadata=(("authorization", "Bearer otherkey"),))
    known, unknown = lines(path, 2)
    assert known["status"] == "OK" and known["caller"]
    assert unknown["status"] == "UNAUTHENTICATED"
    assert "secretkey" not in path.read_text() and "otherkey" not in path.read_text()


def test_a_log_moved_away_from_a_full_disk_is_written_again(tmp_path):
    path = tmp_path / "access.jsonl"
    path.symlink_to("/dev/full")
    log = AccessLog(str(path))
    log.write(CallContext(method="/a/lost"), "OK", "", 0.1)
    time.sleep(0.2)  # until it is lost
    path.unlink()
    log.write(CallContext(method="/a/kept"), "OK", "", 0.1)
    assert lines(path, 1)[0]["rpc"] == "/a/kept"
    log.close()


def test_a_log_that_was_moved_away_is_opened_again_for_its_owner_only(tmp_path):
    with pytest.raises(ConfigError, match=r"access_log .* cannot be written: No such file"):
        AccessLog(str(tmp_path / "missing" / "access.jsonl"))
    path = tmp_path / "access.jsonl"
    log = AccessLog(str(path))
    log.write(CallContext(method="/a/first"), "OK", "", 0.1)
    assert lines(path, 1)[0]["rpc"] == "/a/first"
    path.rename(tmp_path / "old.jsonl")
    log.write(CallContext(method="/a/second"), "OK", "", 0.1)
    assert lines(path, 1)[0]["rpc"] == "/a/second"
    assert path.stat().st_mode & 0o777 == 0o600
    log.close()
