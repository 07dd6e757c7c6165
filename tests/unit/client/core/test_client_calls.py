"""Every method of both clients against the fake server."""

import grpc
import numpy as np
import pytest
from facets_client import (
    DeadlineExceededError,
    Document,
    InvalidArgumentError,
    NotFoundError,
    OverloadedError,
    ServerError,
    UnauthenticatedError,
    UnavailableError,
)
from facets_client.core.channel import SERVICES
from facets_client.filters import AllOf, AnyOf, Contains, Equals, Exists, NoneOf, OneOf, Range
from facets_proto.v1 import documents_pb2
from fake_world import DIM, NUM_FACETS, fake_facets, status_of


def documents(number, **payload):
    return [Document(f"d{i:03}", f"text number {i}", {"n": i, **payload}) for i in range(number)]


def test_embed_splits_into_requests_and_keeps_the_order(client, world):
    texts = [f"text {i}" for i in range(10)]
    embeddings = client.embed(texts)
    assert embeddings.facet_embeddings.shape == (10, NUM_FACETS, DIM)
    assert embeddings.facet_embeddings.dtype == np.float32
    np.testing.assert_array_equal(np.asarray(embeddings), np.stack([fake_facets(text) for text in texts]))
    assert [stats.num_tokens for stats in embeddings.token_stats] == [2] * 10
    assert world.count("Embed") == 3  # 4 + 4 + 2
    assert world.count("GetModel") == 1
    assert embeddings.timings.total_ms == pytest.approx(3.0)
    client.embed(texts)
    assert world.count("GetModel") == 1  # asked once


def test_one_vector_a_text_comes_in_parts_too(client):
    texts = [f"text {i}" for i in range(9)]
    vectors = client.embed_vectors(texts)
    assert vectors.shape == (9, DIM)
    assert np.allclose(vectors[7], fake_facets("text 7").mean(0))


def test_embed_splits_by_bytes(client, world):
    world.max_texts, world.max_text_bytes = 1_000, 10_000
    client.embed(["x" * 9_000] * 20)
    assert [len(request.texts) for method, request in world.calls if method == "Embed"] == [6, 6, 6, 2]


def test_embed_in_half_precision(client):
    array = client.embed(["a", "b"], dtype="float16").facet_embeddings
    assert array.dtype == np.float16
    np.testing.assert_allclose(array, np.stack([fake_facets("a"), fake_facets("b")]), rtol=1e-3)
    array[0, 0, 0] = 1.0  # the caller's own


def test_error_of_a_later_request_names_the_text_by_its_place_in_the_whole(client):
    texts = ["good"] * 6 + ["REFUSE"] + ["good"]
    with pytest.raises(InvalidArgumentError, match=r"texts\[6\]") as caught:
        client.embed(texts)
    error = caught.value
    assert error.code is grpc.StatusCode.INVALID_ARGUMENT
    assert error.reason == "INVALID_INPUT"
    assert [violation.field for violation in error.field_violations] == ["texts[6]"]
    assert isinstance(error, ValueError)
    assert isinstance(error.__cause__, grpc.RpcError)


def test_no_texts_at_all(client):
    with pytest.raises(ValueError, match="texts is empty"):
        client.embed([])


def test_embed_stream_keeps_the_order_and_its_window(client, world):
    texts = [f"text {i}" for i in range(50)]
    arrays = list(client.embed_stream(iter(texts), batch_size=3))
    np.testing.assert_array_equal(np.stack(arrays), np.stack([fake_facets(text) for text in texts]))
    assert world.count("EmbedStream.request") == 17


def test_embed_stream_reads_no_further_than_its_window(client, world):
    taken = []

    def source():
        for i in range(1_000):
            taken.append(i)
            yield f"text {i}"

    stream = client.embed_stream(source(), batch_size=2)
    next(stream)
    assert len(taken) <= 2 * (world.window + 1)
    getattr(stream, "close", lambda: None)()


def test_embed_stream_error_names_the_text(client):
    texts = ["good"] * 7 + ["REFUSE"]
    with pytest.raises(InvalidArgumentError, match=r"texts\[7\]"):
        list(client.embed_stream(texts, batch_size=3))


def test_embed_stream_of_nothing(client):
    assert list(client.embed_stream([])) == []


def test_an_exception_of_the_input_comes_through(client):
    def source():
        yield "good"
        raise RuntimeError("my own")

    with pytest.raises(RuntimeError, match="my own"):
        list(client.embed_stream(source(), batch_size=1))


def test_stream_without_answer_times_out(make_client, world):
    world.silent = True
    with pytest.raises(DeadlineExceededError):
        list(make_client(timeout_s=0.3).embed_stream(["text"]))


def test_explain(client):
    explanations = client.explain(["a longer text"] * 5, num_words=2)
    assert len(explanations) == 5
    first = explanations[0]
    assert [(token.text, token.start, token.end) for token in first.tokens] == [
        ("a", 0, 1),
        ("longer", 2, 8),
        ("text", 9, 13),
    ]
    assert [facet.facet for facet in first.facets] == list(range(NUM_FACETS))
    assert len(first.facets[0].words) == 2
    assert first.token_stats.truncated
    assert first.facets[2].tokens[0].token == 2


def test_score(client, world):
    pairs = [(f"a {i}", f"b {i}") for i in range(9)] + [("same", "same")]
    scores = client.similarity(pairs, method="sif", attention=True, explain=True, calibrated=True)
    assert len(scores.pairs) == 10
    assert scores.pairs[-1].score == pytest.approx(1.0)
    assert scores.pairs[-1].calibrated_score == pytest.approx(1.0)
    assert scores.pairs[0].matches[0].first_words[0].word == "dog"
    assert scores.pairs[0].first_tokens[0].text == "a 0"
    assert not scores.pairs[0].second_tokens[0].known
    assert (scores.method, scores.attention) == ("sif", True)
    out_of_five = client.similarity(pairs[-1:], calibrated=True, score_range="0..5")
    assert out_of_five.pairs[0].calibrated_score == pytest.approx(5.0)
    assert world.count("Score") == 4


def test_score_without_extras(client):
    scores = client.similarity([("a", "b")])
    assert scores.method == "codebook"
    assert scores.pairs[0].calibrated_score is None
    assert scores.pairs[0].matches == ()


def test_summarize_text_and_sentences(client):
    one, other = client.summarize(["One. Two. Three. Four.", ["A", "B"]], num_sentences=2)
    assert one.text == "One. Two."
    assert one.num_sentences_in_document == 4
    assert [sentence.text for sentence in other.sentences] == ["A", "B"]
    with pytest.raises(ValueError, match="exclude"):
        client.summarize(["One."], num_sentences=1, max_words=5)


def test_collections(client, world):
    made = client.create_collection("second")
    assert (made.name, made.num_facets, made.dim) == ("second", NUM_FACETS, DIM)
    assert made.create_time.tzinfo is not None
    for name in "abc":
        client.create_collection(name)
    assert [item.name for item in client.list_collections()] == ["a", "b", "c", "news", "second"]
    client.upsert("a", documents(3))
    assert client.get_collection("a").num_documents == 3
    assert client.delete_collection("a").num_documents == 3
    with pytest.raises(NotFoundError, match="'a' does not exist"):
        client.get_collection("a")


def test_reindex_goes_on_until_it_is_done(client, world):
    client.upsert("news", documents(5))
    steps = list(client.reindex_collection("news", model="other"))
    assert [(step.num_encoded, step.done) for step in steps] == [(2, False), (4, False), (5, True)]
    assert (steps[0].collection.model, steps[-1].collection.model) == ("fake", "other")
    assert world.calls[-1][1].model == "other"


def test_upsert_get_list_count_delete(client, world):
    payload = {"tags": ["x", 1, True, None], "deep": {"year": 1999, "share": 0.5}, "name": "\u00fc\u4e2d"}
    written = client.upsert("news", documents(20, **payload))
    assert written.num_documents == 20
    assert world.count("Upsert") == 3  # 8 + 8 + 4
    assert client.count_documents("news") == 20
    found = client.get_documents("news", ["d005", "nope", "d001"], include_facets=True)
    assert [document.id for document in found.documents] == ["d005", "d001"]
    assert found.missing_ids == ("nope",)
    assert found.documents[0].payload == {"n": 5, **payload}
    assert isinstance(found.documents[0].payload["n"], int)
    np.testing.assert_array_equal(found.documents[1].facet_embeddings, fake_facets("text number 1"))
    listed = list(client.list_documents("news"))
    assert [document.id for document in listed] == [f"d{i:03}" for i in range(20)]
    assert world.count("ListDocuments") == 7
    assert listed[0].facet_embeddings is None
    deleted = client.delete_documents("news", ["d000", "nope"])
    assert deleted.num_documents == 1
    assert client.delete_documents("news", where=Equals("n", 3)).num_documents == 19
    assert world.calls[-1][1].where.field.equals.number_value == 3


def test_upsert_with_own_facets(client, world):
    facets = fake_facets("elsewhere")
    client.upsert("news", [Document("a", "text", facet_embeddings=facets.astype(np.float64))])
    sent = world.documents["news"]["a"].facet_embeddings
    assert list(sent.shape) == [NUM_FACETS, DIM]
    np.testing.assert_array_equal(np.frombuffer(sent.data, "<f4").reshape(sent.shape), facets)


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        ({"x": float("nan")}, "finite"),
        ({"x": [1, {"y": float("inf")}]}, "finite"),
        ({"x": 2**53 + 1}, "2\\*\\*53"),
        ({"x": 10**400}, "2\\*\\*53"),
        ({"x": {1: 2}}, "key of type int"),
        ({"x": object()}, "object"),
        ({"x": "\ud800"}, "surrogate"),
    ],
)
def test_payload_that_cannot_be_carried_without_loss(client, world, payload, problem):
    with pytest.raises((ValueError, TypeError), match=problem):
        client.upsert("news", [Document("a", "text", payload)])
    assert world.count("Upsert") == 0


def test_payload_that_is_too_deep(client):
    payload = {}
    for _ in range(40):
        payload = {"x": payload}
    with pytest.raises(ValueError, match="20 levels"):
        client.upsert("news", [Document("a", "text", payload)])


def test_upsert_stream_acknowledges_each_batch(client, world):
    good = documents(20)
    good[5] = Document("bad", "REFUSE")
    acks = list(client.upsert_stream("news", iter(good), batch_size=8))
    assert [ack.sequence for ack in acks] == [1, 2, 3]
    assert [ack.num_upserted for ack in acks] == [7, 8, 4]
    (rejected,) = acks[0].rejected
    assert (rejected.position, rejected.id, rejected.code) == (5, "bad", "INVALID_ARGUMENT")
    assert (rejected.reason, rejected.message) == ("INVALID_INPUT", "text is refused")
    assert len(world.documents["news"]) == 19


def test_upsert_stream_goes_on_with_its_token(client, world):
    world.break_after_acks.append(1)
    acks = []
    with pytest.raises(UnavailableError):
        for ack in client.upsert_stream("news", documents(20), batch_size=5):
            acks.append(ack)
    # The connection may break before the client has read the one ack; then it starts again.
    assert len(acks) <= 1
    token = acks[0].resume_token if acks else ""
    rest = client.upsert_stream("news", documents(20)[5 * len(acks) :], batch_size=5, resume_token=token)
    assert [ack.sequence for ack in rest] == list(range(len(acks) + 1, 5))
    assert len(world.documents["news"]) == 20


def test_search(client, world):
    client.upsert("news", documents(10))
    queries = ["text number 3", "text number 7", "text number 1"]
    found = client.search("news", queries, top_k=2, evidence=True)
    assert [hits[0].id for hits in found] == ["d003", "d007", "d001"]
    assert [len(hits) for hits in found] == [2, 2, 2]
    assert found[0].hits[0].score == pytest.approx(1.0)
    assert found[0].hits[0].payload == {"n": 3}
    assert found[0].hits[0].evidence[0].second_facet == 2
    assert found.exhaustive and found.index_kind == "exact"
    assert world.count("Search") == 2  # 2 + 1


def test_search_with_evidence_stays_within_its_limit(client, world):
    world.max_evidence_hits = 10
    client.search("news", ["a", "b", "c"], top_k=10, evidence=True)
    client.search("news", ["a", "b", "c"], top_k=10)
    assert [len(request.queries) for method, request in world.calls if method == "Search"] == [1, 1, 1, 2, 1]


def test_search_with_facets_and_filter(client, world):
    where = AllOf(
        (
            Equals("a", "x"),
            OneOf("b", [1, True, None]),
            AnyOf((Range("c", gte=1, lt=2), Range("d", gt="2020-01-01"))),
            NoneOf((Exists("e"), Contains("f", "y"))),
        )
    )
    client.search("news", [fake_facets("x")], where=where, exact=True, min_revision=7)
    request = world.calls[-1][1]
    assert list(request.queries[0].facet_embeddings.shape) == [NUM_FACETS, DIM]
    assert request.exact and request.min_revision == 7
    conditions = request.where.all_of.filters
    assert conditions[0].field.equals.string_value == "x"
    assert [value.WhichOneof("kind") for value in conditions[1].field.one_of.values] == [
        "number_value",
        "bool_value",
        "null_value",
    ]
    number, text = conditions[2].any_of.filters
    assert (number.field.range.gte, number.field.range.lt) == (1, 2)
    assert not number.field.range.HasField("gt")
    assert text.field.string_range.gt == "2020-01-01"
    assert conditions[3].none_of.filters[0].field.exists is True
    assert conditions[3].none_of.filters[1].field.contains.string_value == "y"


def test_models_and_health(client, server):
    (model,) = client.models()
    assert (model.name, model.normalization, model.is_default) == ("fake", "none", True)
    assert model.limits.max_texts_per_request == 4
    assert client.model("fake") == model
    with pytest.raises(NotFoundError):
        client.model("nope")
    server.serve_health(["", *SERVICES[:2]])
    health = client.health()
    assert [health[service] for service in ("", *SERVICES[:2])] == ["SERVING"] * 3
    assert health[SERVICES[-1]] == "SERVICE_UNKNOWN"


@pytest.mark.parametrize(
    "status",
    [
        status_of(grpc.StatusCode.UNAVAILABLE, "starting"),
        status_of(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", retry_after_s=0.1),
        status_of(grpc.StatusCode.CANCELLED, "given up by a busy server"),
    ],
)
def test_transient_failures_are_tried_again(client, world, status):
    world.faults["Embed"].extend([status, status])
    assert client.embed(["text"]).facet_embeddings.shape == (1, NUM_FACETS, DIM)
    assert world.count("Embed") == 3


def test_a_call_that_the_server_drops_every_time_is_unavailable(client, world):
    world.faults["Embed"].extend([status_of(grpc.StatusCode.CANCELLED, "dropped")] * 10)
    with pytest.raises(UnavailableError, match="dropped") as caught:
        client.embed(["text"])
    assert (world.count("Embed"), caught.value.code) == (5, grpc.StatusCode.CANCELLED)


def test_a_server_that_wants_no_retry_gets_none(client, world):
    world.faults["Embed"].append(status_of(grpc.StatusCode.UNAVAILABLE, "stopping"))
    world.pushback_ms = "-1"
    with pytest.raises(UnavailableError, match="stopping"):
        client.embed(["text"])
    assert world.count("Embed") == 1


def test_trying_again_ends(client, world):
    status = status_of(
        grpc.StatusCode.RESOURCE_EXHAUSTED, "full", reason="OVERLOADED", retry_after_s=2.5, request_id="r1"
    )
    world.faults["Embed"].extend([status] * 10)
    with pytest.raises(OverloadedError, match="full") as caught:
        client.embed(["text"])
    assert world.count("Embed") == 5
    assert caught.value.retry_after_s == pytest.approx(2.5)
    assert (caught.value.reason, caught.value.request_id) == ("OVERLOADED", "r1")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (grpc.StatusCode.INTERNAL, ServerError),
        (grpc.StatusCode.ABORTED, ServerError),
        (grpc.StatusCode.INVALID_ARGUMENT, InvalidArgumentError),
    ],
)
def test_permanent_failures_are_not_tried_again(client, world, code, expected):
    world.faults["Embed"].append(status_of(code, "no"))
    with pytest.raises(expected):
        client.embed(["text"])
    assert world.count("Embed") == 1


def test_api_key(make_client, world):
    world.api_key = "secret"
    with pytest.raises(UnauthenticatedError):
        make_client().embed(["text"])
    with pytest.raises(UnauthenticatedError):
        make_client(api_key="wrong").embed(["text"])
    client = make_client(api_key="secret")
    client.embed(["text"])
    assert len(list(client.embed_stream(["text"]))) == 1


def test_no_server(make_client):
    with pytest.raises((UnavailableError, DeadlineExceededError)):
        make_client("localhost:1", timeout_s=0.5).embed(["text"])


@pytest.mark.parametrize(
    "arguments", [{"target": ""}, {"target": "a b:1"}, {"timeout_s": 0}, {"api_key": "\n"}, {"api_key": ""}]
)
def test_wrong_settings(make_client, arguments):
    with pytest.raises(ValueError, match="must be"):
        make_client(**arguments)


def test_search_mode_is_sent_and_checked(client, world):
    client.search("news", ["x"])
    assert world.calls[-1][1].mode == documents_pb2.SEARCH_MODE_HYBRID
    client.search("news", ["x"], mode="lexical")
    assert world.calls[-1][1].mode == documents_pb2.SEARCH_MODE_LEXICAL
    num_calls = len(world.calls)
    with pytest.raises(ValueError, match="mode"):
        client.search("news", ["x"], mode="magic")
    assert len(world.calls) == num_calls
