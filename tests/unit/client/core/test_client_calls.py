"""What every method does: cut long inputs, retry, time out, name errors, reject bad arguments before sending."""

import asyncio
import functools
import itertools
import socket
from datetime import date

import grpc
import numpy as np
import pytest
from facets_client import (
    AsyncFacetsClient,
    Author,
    DeadlineExceededError,
    Document,
    FacetsClient,
    InvalidArgumentError,
    NewAuthor,
    OverloadedError,
    Paper,
    PaperOptions,
    ServerError,
    UnauthenticatedError,
    UnavailableError,
)
from facets_client.core.channel import rpc_of
from facets_client.filters import AllOf, Equals, OneOf, Range
from facets_proto.v1 import models_pb2
from fake_server import DIM, NUM_FACETS, fake_facets, status_of

TEXTS = [f"text {i}" for i in range(10)]
PAPERS = [Paper("a title")]
NESTED = functools.reduce(lambda where, _: AllOf([where]), range(200), Equals("n", 1))


def test_a_long_input_is_cut_and_the_replies_are_joined_in_order(client, world):
    world.faults["Embed"].append(status_of(grpc.StatusCode.ABORTED, "no"))
    with pytest.raises(ServerError):  # not retried
        client.embed(["text"])
    assert world.count("Embed") == 1
    world.calls.clear()
    embeddings = client.embed(TEXTS)
    assert (embeddings.facet_embeddings.shape, embeddings.facet_embeddings.dtype) == ((10, NUM_FACETS, DIM), np.float32)
    np.testing.assert_array_equal(np.asarray(embeddings), np.stack([fake_facets(text) for text in TEXTS]))
    assert [stats.num_tokens for stats in embeddings.token_stats] == [2] * 10
    assert embeddings.timings.total_ms == pytest.approx(3.0)
    client.embed(TEXTS)
    assert (world.count("Embed"), world.count("GetModel")) == (6, 1)  # 4 + 4 + 2 texts; the limits are read once


def test_requests_are_cut_by_bytes(client, world):
    world.max_texts, world.max_text_bytes = 1_000, 10_000
    client.embed(["x" * 9_000] * 20)
    assert [len(request.texts) for method, request in world.calls if method == "Embed"] == [6, 6, 6, 2]


def test_many_small_values_of_payloads_are_spread_over_requests(client, world):
    world.max_message_bytes = 2**24
    documents = [Document(f"d{i}", "text", {"x": [True] * 60_000}) for i in range(4)]
    assert [ack.num_upserted for ack in client.upsert_stream("news", documents)] == [2, 2]


class Recorder(FacetsClient):
    """Records requests instead of sending them; replies are empty."""

    def _call(self, request):
        if isinstance(request, models_pb2.GetModelRequest):
            limits = {"max_texts_per_request": 4, "max_pairs_per_request": 4, "max_slots_per_request": 2}
            limits |= {"max_patterns_per_request": 4, "max_relation_scores": 20, "max_evidence_hits": 30}
            limits |= {"max_relation_characters": 6_000}
            return models_pb2.GetModelResponse(model=models_pb2.Model(limits=models_pb2.Limits(**limits)))
        self.requests.append(request)
        return rpc_of(type(request)).reply()


PATTERNS = [f"$ARG1 {i} $ARG2" for i in range(5)]


@pytest.mark.parametrize(
    ("call", "field", "counts"),
    [
        (lambda client: client.extract_relations(TEXTS, gazetteer_names=["a"]), "texts", [4, 4, 2]),
        (lambda client: client.extract_relations(["a" * 900] * 3, gazetteer_names=["a"]), "texts", [2, 1]),
        (lambda client: client.fill_slots([("a", "b")] * 3, TEXTS), "slots", [2, 1]),
        (lambda client: client.fill_slots([("a", "b")] * 3, TEXTS), "texts", [10, 10]),  # each slot from all texts
        (lambda client: client.score_relations(PATTERNS), "patterns", [4, 1]),  # how many relations is not known here
        (lambda client: client.score_relations(PATTERNS, top_k=5), "patterns", [4, 1]),
        (lambda client: client.score_relations(PATTERNS, relations=["a"] * 20), "patterns", [1] * 5),
        (lambda client: client.detect_entailment(list(itertools.pairwise(PATTERNS))), "pairs", [4]),
        (lambda client: client.recommend_citations(PAPERS * 5, PaperOptions(evidence=True)), "papers", [4, 1]),
        (lambda client: client.recommend_citations(PAPERS * 5, PaperOptions(top_k=2)), "papers", [4, 1]),
        (lambda client: client.add_authors([NewAuthor(Author("a"), PAPERS * 2)] * 3), "authors", [2, 1]),
    ],
)
def test_requests_are_cut_within_their_limits(call, field, counts):
    with Recorder("localhost:1") as client:
        client.requests = []
        call(client)
    assert [len(getattr(request, field)) for request in client.requests] == counts


def test_an_error_of_a_later_part_names_the_item_by_its_index_in_the_whole(client):
    with pytest.raises(InvalidArgumentError, match=r"texts\[6\]") as caught:
        client.embed(["good"] * 6 + ["REFUSE"] + ["good"])
    error = caught.value
    assert (error.code, error.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")
    assert [violation.field for violation in error.field_violations] == ["texts[6]"]
    assert isinstance(error, ValueError) and isinstance(error.__cause__, grpc.RpcError)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda client: client.embed([]), ValueError, "texts is empty, expected at least one"),
        (lambda client: client.embed("oops"), TypeError, r"texts must be a sequence, got one str: try \['oops'\]"),
        (lambda client: list(client.embed_stream("oops")), TypeError, "texts must be a sequence, got one str"),
        (lambda client: list(client.embed_stream([7])), TypeError, r"texts\[0\] must be str, got int 7"),
        (lambda client: client.embed(["a", None]), TypeError, r"texts\[1\] must be str, got NoneType"),
        (lambda client: client.embed(["a", "\ud800"]), ValueError, r"texts\[1\] must be valid Unicode, got"),
        (lambda client: client.embed(["a"], dtype="int8"), ValueError, "dtype must be one of float32, float16, got"),
        (lambda client: client.explain(["a"], num_words=-1), ValueError, "num_words must not be negative, got -1"),
        (lambda client: client.similarity([("a", "b"), "ab"]), TypeError, r"pairs\[1\] must be a pair, got str 'ab'"),
        (lambda client: client.similarity([("a",)]), ValueError, r"pairs\[0\] must be a pair, got tuple \('a',\)"),
        (lambda client: client.summarize(["One."], num_sentences=1, max_words=5), ValueError, "exclude each other"),
        (lambda client: client.search("c", []), ValueError, "queries is empty"),
        (lambda client: client.search("c", [[0.5]]), TypeError, r"queries\[0\] list is none of text, facet_embeddings"),
        (lambda client: client.search("c", ["a"], where=NESTED), ValueError, "where is nested too deeply"),
        (lambda client: client.search("c", [1]), TypeError, r"queries\[0\] int is none of text, facet_embeddings"),
        (lambda client: client.search("c", ["a"], top_k="3"), TypeError, "top_k must be an integer, got str '3'"),
        (lambda client: client.search("c", ["a"], where={"a": 1}), TypeError, "where must be a filter of .* got {'a'"),
        (lambda client: client.count_documents("c", where=Equals("n", 10**400)), ValueError, "n must fit a double"),
        (lambda client: client.count_documents("c", where=Equals(5, 1)), TypeError, "field must be str, got int 5"),
        (lambda client: client.count_documents("c", where=Equals("n", b"x")), ValueError, "n must be a string"),
        (lambda client: list(client.upsert_stream("news", Document("a", "b"))), TypeError, "got one Document"),
        (lambda client: list(client.upsert_stream("news", [{"id": "a"}])), TypeError, "expected a Document, got dict"),
        (lambda client: client.delete_documents("c"), ValueError, "ids is empty"),
        (
            lambda client: client.extract_relations(["a"], gazetteer_names="b"),
            TypeError,
            "gazetteer_names must be a seq",
        ),
        (lambda client: client.extract_relations(["a"], spans=[]), ValueError, "one list for each of 1 texts, got 0"),
        (
            lambda client: client.extract_relations(["a"], spans=[[(-1, 4)]]),
            ValueError,
            r"texts\[0\] start must not be negative",
        ),
        (lambda client: client.add_relation("a", ["b"], threshold=10**400), ValueError, "threshold must fit a double"),
        (lambda client: client.add_authors([{"name": "a"}]), TypeError, "must be of class NewAuthor, got dict"),
        (lambda client: client.recommend_authors(["a title"]), TypeError, "must be of class Paper, got str"),
        (lambda client: client.recommend_authors([Paper("a", year=2**40)]), ValueError, "year must be -2147483648 to"),
        (
            lambda client: client.recommend_authors(PAPERS, PaperOptions(excluded_ids="b")),
            TypeError,
            "excluded_ids must be",
        ),
        (lambda client: client.rank_papers("authors", ["b"]), ValueError, "expected collection or papers, got neither"),
        (lambda client: OneOf("language", "en"), TypeError, "values must be a sequence"),
        (lambda client: Range("year"), ValueError, "has no bound"),
        (lambda client: Range("year", gte=1, lt=date(2024, 2, 29)), ValueError, "mixes numbers and strings"),
    ],
)
def test_bad_arguments_are_rejected_before_anything_is_sent(client, world, call, error, message):
    with pytest.raises(error, match=message):
        call(client)
    assert {method for method, _ in world.calls} <= {"GetModel", "UpsertStream"} and not world.documents["news"]


STARTING = status_of(grpc.StatusCode.UNAVAILABLE, "starting")
FULL = status_of(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", reason="OVERLOADED", retry_after_s=2.5, request_id="r1")
DROPPED = status_of(grpc.StatusCode.CANCELLED, "dropped by a busy server")


@pytest.mark.parametrize("status", [STARTING, FULL, DROPPED])
def test_transient_failures_are_retried(client, world, status):
    world.faults["Embed"].extend([status, status])
    assert client.embed(["text"]).facet_embeddings.shape == (1, NUM_FACETS, DIM)
    assert world.count("Embed") == 3


@pytest.mark.parametrize(("status", "kind"), [(DROPPED, UnavailableError), (FULL, OverloadedError)])
def test_retries_end_with_the_error_of_the_server(client, world, status, kind):
    world.faults["Embed"].extend([status] * 10)
    with pytest.raises(kind) as caught:
        client.embed(["text"])
    assert (world.count("Embed"), caught.value.code.value[0]) == (5, status.code)
    if status is FULL:
        error = caught.value
        assert (error.retry_after_s, error.reason, error.request_id) == (pytest.approx(2.5), "OVERLOADED", "r1")


def test_a_server_that_forbids_retries_gets_none(client, world):
    world.faults["Embed"].append(status_of(grpc.StatusCode.UNAVAILABLE, "stopping"))
    world.pushback_ms = "-1"
    with pytest.raises(UnavailableError, match="stopping"):
        client.embed(["text"])
    assert world.count("Embed") == 1


def test_the_api_key_is_sent_with_calls_and_streams(make_client, world):
    world.api_key = "secret"
    for key in (None, "wrong"):
        with pytest.raises(UnauthenticatedError):
            make_client(api_key=key).embed(["text"])
    client = make_client(api_key="secret")
    client.embed(["text"])
    assert len(list(client.embed_stream(["text"]))) == 1


def test_a_closed_client_says_so(server):
    async def call_closed():
        async with AsyncFacetsClient(server.target) as client:
            await client.embed(["text"])
        await client.embed(["text"])

    with FacetsClient(server.target) as client:
        client.embed(["text"])
    closed = (lambda: client.embed(["text"]), lambda: client.open_upsert_session("news"))
    for call in (*closed, lambda: asyncio.run(call_closed())):
        with pytest.raises(UnavailableError, match=f"the client of {server.target} is closed"):
            call()


def test_errors_name_the_server_that_is_away():
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and says nothing
        with FacetsClient(f"127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.3) as client:
            with pytest.raises(DeadlineExceededError, match=client.target):
                client.embed(["a dog"])
