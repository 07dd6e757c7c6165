"""What the operations and the upsert stream of documents send and make of the answers."""

import numpy as np
import pytest
from facets_client import Document, FacetsClient
from facets_client.core.commands import Call, Emit, HalfClose, Receive, Send, TakeInput
from facets_client.core.requests import ENVELOPE_BYTES
from facets_client.documents.operations import DocumentOperations
from facets_client.generated.types import Span
from facets_proto.v1 import documents_pb2, models_pb2
from fake_server import DIM, NUM_FACETS

ANSWER = "It rained. The cup was won by <Ajax of Amsterdam> in May. Nobody was surprised."


def test_documents_not_read_to_their_end_are_reported_by_their_place_in_the_whole(client, world):
    world.max_documents, world.max_tokens = 2, 3
    texts = ["one", "two", "three", "a b c d e", "four", "a b c d"]
    written = client.upsert("news", [Document(f"d{i}", text) for i, text in enumerate(texts)])
    assert written.num_documents == 6
    assert [(item.position, item.id) for item in written.truncated] == [(3, "d3"), (5, "d5")]
    stats = written.truncated[0].token_stats
    assert (stats.num_tokens, stats.num_tokens_in_text, stats.truncated) == (3, 5, True)


def test_acks_of_a_stream_name_documents_not_read_to_their_end(client, world):
    world.max_tokens = 3
    acks = list(client.upsert_stream("news", [Document("a", "b"), Document("c", "a b c d e")], batch_size=2))
    assert [item.id for ack in acks for item in ack.truncated] == ["c"]


def test_facets_of_the_caller_travel_with_their_spans(client, world):
    facets = np.ones((NUM_FACETS, DIM), np.float32)
    spans = [Span(0, 3), None, Span(4, 9)]
    client.upsert("news", [Document("own", "one words", facet_embeddings=facets, facet_spans=spans)])
    stored = world.documents["news"]["own"]
    assert [(span.start, span.end) for span in stored.facet_spans] == [(0, 3), (0, 0), (4, 9)]
    assert client.get_documents("news", ["own"]).documents[0].facet_spans == tuple(spans)


def test_search_sends_what_is_asked_of_the_hits(client, world):
    client.search("news", ["x"], min_confidence=0.25, diversify=0.5, model="other")
    client.search("news", ["x"])
    asked, plain = (request for name, request in world.calls if name == "Search")
    assert (asked.min_confidence, asked.diversify, asked.model) == (0.25, 0.5, "other")
    assert not plain.HasField("min_confidence") and not plain.diversify and not plain.model


@pytest.fixture
def answered(server, world):
    with FacetsClient(server.target) as client:
        texts = {"cup": ANSWER, "far": "Nothing <of> it.", "none": "plain"}
        client.upsert("news", [Document(name, text, {"title": f"The {name}"}) for name, text in texts.items()])
    world.confidences |= {"cup": 0.9, "far": 0.04}


def test_hits_have_confidence_and_the_part_that_answers(client, answered):
    hits = {hit.id: hit for hit in client.search("news", ["x"])[0].hits}
    span = hits["cup"].answer
    assert ANSWER[span.start : span.end] == "Ajax of Amsterdam"
    assert hits["cup"].confidence == 0.9 and hits["cup"].matched_spans == (Span(span.start, span.start + 4),)
    assert hits["none"].confidence is None and hits["none"].answer is None


def test_batches_of_long_documents_are_small_enough_to_be_read_in_a_minute(client, world):
    world.max_message_bytes, world.max_text_bytes, world.max_documents = 16 * 2**20, 2**20, 64
    documents = [Document(f"d{i}", "word " * 80_000) for i in range(6)]
    acks = list(client.upsert_stream("news", documents, batch_size=64))
    assert [ack.num_upserted for ack in acks] == [2, 2, 2]


WINDOW = 2


def test_no_more_batches_are_under_way_than_the_window_allows_when_a_batch_is_cut_by_its_bytes():
    left = [Document(f"d{i}", "x" * 900) for i in range(20)]
    limits = models_pb2.Limits(max_message_bytes=ENVELOPE_BYTES + 2000, max_documents_per_upsert=8)
    opened = documents_pb2.UpsertStreamOpened(resume_token="t", max_unacked_batches=WINDOW)
    replies = [documents_pb2.UpsertStreamResponse(opened=opened)]
    steps = DocumentOperations().upsert_stream("news", left, batch_size=8)
    sent, under_way, num_acks, ends = [], -1, 0, 0  # the first message opens the stream
    answer = None
    try:
        while True:
            step = steps.send(answer)
            answer = None
            if isinstance(step, Call):
                answer = models_pb2.GetModelResponse(model=models_pb2.Model(limits=limits))
            elif isinstance(step, TakeInput):
                answer, left = left[: step.num_items], left[step.num_items :]
            elif isinstance(step, Receive):
                under_way -= bool(sent)
                answer = replies.pop(0)
            elif isinstance(step, Send):
                under_way += 1
                assert under_way <= WINDOW
                if step.message.HasField("batch"):
                    sent += [document.id for document in step.message.batch.documents]
                    ack = documents_pb2.UpsertStreamAck(sequence=step.message.batch.sequence)
                    replies.append(documents_pb2.UpsertStreamResponse(ack=ack))
            num_acks += isinstance(step, Emit)
            ends += isinstance(step, HalfClose)
    except StopIteration:
        pass
    assert sent == [f"d{i}" for i in range(20)]
    assert (num_acks, ends, under_way, replies) == (10, 1, 0, [])
