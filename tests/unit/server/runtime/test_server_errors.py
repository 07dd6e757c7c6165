import logging
import queue

import grpc
import numpy as np
import pytest
from facets_proto.v1 import common_pb2, documents_pb2, filters_pb2, models_pb2, texts_pb2
from facets_server.runtime.config import AdmissionConfig
from facets_server.runtime.errors import status_of, status_row
from server_failures import Failure, failure
from server_fakes import FakeModel
from waiting import wait_until

from facets import errors

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND


@pytest.fixture(scope="module")
def embed(shared):
    return shared.embedding.Embed


@pytest.fixture(scope="module")
def documents(shared):
    shared.collections.CreateCollection(documents_pb2.CreateCollectionRequest(name="news"), timeout=60)
    return shared.documents


@pytest.mark.parametrize("text", ["", " ", "\t\n", "\u2003"])
def test_empty_texts_are_named_all_at_once(embed, text):
    found = failure(embed, texts_pb2.EmbedRequest(texts=["cat", text, "dog", text]), INVALID)
    assert found.fields == ["texts[1]", "texts[3]"]
    assert found.details["ErrorInfo"].reason == "INVALID_INPUT"


@pytest.mark.parametrize("texts", [[], ["cat"] * 513, ["x" * 32_769], ["\U0001f600" * 9000]])
def test_too_few_too_many_and_too_long_texts_are_refused(embed, texts):
    found = failure(embed, texts_pb2.EmbedRequest(texts=texts), INVALID)
    assert len(found.fields) == 1


def test_not_found_names_the_resource(shared, embed):
    found = failure(embed, texts_pb2.EmbedRequest(texts=["cat"], model="nope"), NOT_FOUND)
    assert (found.details["ResourceInfo"].resource_type, found.details["ResourceInfo"].resource_name) == (
        "model",
        "nope",
    )
    found = failure(shared.collections.GetCollection, documents_pb2.GetCollectionRequest(name="nope"), NOT_FOUND)
    assert found.details["ResourceInfo"].resource_type == "collection"


def array(shape, data, dtype=common_pb2.DATA_TYPE_FLOAT32):
    return common_pb2.FacetArray(shape=shape, dtype=dtype, data=data)


@pytest.mark.parametrize(
    "facets",
    [
        array((1, 32), np.full(32, np.nan, "<f4").tobytes()),
        array((4_000_000_000, 4_000_000_000), b""),
        array((), bytes(4)),
        array((32,), bytes(128)),
        array((0, 32), b""),
    ],
)
def test_bad_vectors_are_refused_in_search_and_upsert(documents, facets):
    found = failure(
        documents.Search,
        documents_pb2.SearchRequest(collection="news", queries=[documents_pb2.SearchQuery(facet_embeddings=facets)]),
    )
    assert found.code == INVALID
    assert found.fields[0].startswith("queries[0].facet_embeddings")
    message = documents_pb2.Document(id="x", text="cat", facet_embeddings=facets)
    found = failure(documents.Upsert, documents_pb2.UpsertRequest(collection="news", documents=[message]), INVALID)
    assert found.fields[0].startswith("documents[0].facet_embeddings")


@pytest.mark.parametrize(
    "settings",
    [
        {"top_k": 0},
        {"queries": []},
        {"where": filters_pb2.Filter()},
        {"queries": [documents_pb2.SearchQuery(text="a")] * 2, "top_k": 600, "evidence": True},
    ],
)
def test_bad_searches_are_refused(documents, settings):
    settings = {"queries": [documents_pb2.SearchQuery(text="cat")], **settings}
    found = failure(documents.Search, documents_pb2.SearchRequest(collection="news", **settings), INVALID)
    assert found.fields


def test_bytes_that_are_no_message_or_no_utf8_are_the_callers_fault(shared):
    raw = shared.channel.unary_unary("/facets.v1.EmbeddingService/Embed")
    for data in (b"\xff\xff\xff", b"\x0a\x02\xc3\x28"):
        failure(raw, data, INVALID)


def test_our_own_bugs_say_nothing_and_log_no_text(shared, embed, caplog):
    shared.model.poison = "wine"
    with caplog.at_level(logging.INFO):
        found = failure(embed, texts_pb2.EmbedRequest(texts=["wine"]))
    shared.model.poison = ""
    assert (found.code, found.message) == (grpc.StatusCode.INTERNAL, "internal error")
    assert found.details["ErrorInfo"].reason == "INTERNAL"
    assert "wine" not in caplog.text
    assert "RuntimeError" in caplog.text


def test_texts_are_never_logged(embed, caplog):
    with caplog.at_level(logging.DEBUG):
        embed(texts_pb2.EmbedRequest(texts=["the secret guitar"]), timeout=60)
        failure(embed, texts_pb2.EmbedRequest(texts=["guitar"], model="piano"))
    assert "guitar" not in caplog.text
    assert "piano" not in caplog.text
    assert "/facets.v1.EmbeddingService/Embed OK items=1" in caplog.text


def test_the_request_id_is_echoed_or_made(embed):
    request = texts_pb2.EmbedRequest(texts=["cat"])
    _, call = embed.with_call(request, timeout=60, metadata=(("x-request-id", "abc-1"),))
    assert dict(call.trailing_metadata())["x-request-id"] == "abc-1"
    _, call = embed.with_call(request, timeout=60, metadata=(("x-request-id", "with space"),))
    assert len(dict(call.trailing_metadata())["x-request-id"]) == 32
    found = failure(embed, texts_pb2.EmbedRequest(), metadata=(("x-request-id", "abc-2"),))
    assert found.details["ErrorInfo"].metadata["request_id"] == "abc-2"
    assert found.trailing_metadata["x-request-id"] == "abc-2"


def test_overload_is_reported_with_the_time_to_retry(make_server):
    running = make_server(admission=AdmissionConfig(max_concurrent_requests=1, max_queued_requests=1))
    running.model.hold()
    request = texts_pb2.EmbedRequest(texts=["cat"])
    waiting = []
    for done in ("facets_running_requests", "facets_queued_requests"):
        waiting.append(running.embedding.Embed.future(request, timeout=30))
        wait_until(lambda name=done: running.metric(name) == 1)
    found = failure(running.embedding.Embed, request, grpc.StatusCode.RESOURCE_EXHAUSTED)
    delay = found.details["RetryInfo"].retry_delay
    assert delay.ToMilliseconds() > 0
    assert found.trailing_metadata["grpc-retry-pushback-ms"] == str(delay.ToMilliseconds())
    running.model.gate.set()
    assert all(call.result() for call in waiting)
    assert running.metric("facets_requests_total", method="/facets.v1.EmbeddingService/Embed", code="OK") == 2


def test_a_full_server_refuses_before_it_reads(make_server):
    running = make_server(admission=AdmissionConfig(max_concurrent_requests=1, max_queued_requests=0))
    running.model.hold()
    first = running.embedding.Embed.future(texts_pb2.EmbedRequest(texts=["cat"]), timeout=30)
    assert running.model.started.wait(30)
    never = queue.Queue()
    silent = running.channel.stream_stream("/facets.v1.EmbeddingService/Embed")(iter(never.get, None), timeout=30)
    try:
        assert silent.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "RetryInfo" in Failure(silent).details
    finally:
        never.put(None)
        running.model.gate.set()
    first.result()


def test_models_are_listed_with_every_limit(make_server):
    running = make_server(models=[FakeModel("z"), FakeModel("b"), FakeModel("a")])
    listed = running.models.ListModels(models_pb2.ListModelsRequest(), timeout=60).models
    assert [(model.name, model.is_default) for model in listed] == [("z", True), ("a", False), ("b", False)]
    limits = running.models.GetModel(models_pb2.GetModelRequest(name="a"), timeout=60).model.limits
    values = {field.name: getattr(limits, field.name) for field in models_pb2.Limits.DESCRIPTOR.fields}
    assert all(value > 0 for value in values.values())
    assert values["max_evidence_hits"] == running.config.limits.max_evidence_hits


def test_every_library_error_has_a_code_of_its_own_kind():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.FacetsError)]
    kinds.remove(errors.FacetsError)
    for kind in kinds:
        code = status_row(kind.__new__(kind))[0]
        assert code is not grpc.StatusCode.INTERNAL, kind
    assert status_row(ValueError("x"))[0] is grpc.StatusCode.INTERNAL
    assert status_of(ValueError("secret")).message == "internal error"


@pytest.mark.parametrize("name", ["n" * 20_000, "\U0001f600" * 5_000])
def test_an_error_with_a_huge_name_still_arrives(running, name):
    running.collections.CreateCollection(documents_pb2.CreateCollectionRequest(name="huge"))
    batch = [documents_pb2.Document(id=f"{i}", text="x") for i in range(9)]
    for document in batch:
        document.payload[name] = float("nan")
    found = failure(running.documents.Upsert, documents_pb2.UpsertRequest(collection="huge", documents=batch), INVALID)
    assert "must be a finite number" in found.message
    assert found.fields[0].startswith("documents[0].payload.")
    found = failure(running.documents.CountDocuments, documents_pb2.CountDocumentsRequest(collection=name), NOT_FOUND)
    assert "does not exist" in found.message
    assert found.details["ResourceInfo"].resource_name.startswith(name[:10])


@pytest.mark.parametrize("token", ["nonsense", "!!", "YXQ6eA=="])
def test_foreign_page_tokens_are_refused(shared, documents, token):
    failure(shared.collections.ListCollections, documents_pb2.ListCollectionsRequest(page_token=token), INVALID)
    failure(documents.ListDocuments, documents_pb2.ListDocumentsRequest(collection="news", page_token=token), INVALID)


def test_messages_over_the_limit_are_refused_and_the_connection_stays(shared):
    raw = shared.channel.unary_unary("/facets.v1.EmbeddingService/Embed")
    with pytest.raises(grpc.RpcError) as raised:
        raw(bytes(shared.config.limits.max_message_bytes + 1), timeout=60)
    assert raised.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    failure(raw, b"", INVALID)


def test_compressed_messages_are_refused(embed):
    with pytest.raises(grpc.RpcError) as raised:
        embed(texts_pb2.EmbedRequest(texts=["cat"]), compression=grpc.Compression.Gzip, timeout=60)
    assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED
