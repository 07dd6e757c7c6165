import queue

import grpc
import pytest
from facets_proto.v1 import documents_pb2


class Sender:
    """The client's side of an UpsertStream, one request at a time."""

    def __init__(self, running):
        self._requests = queue.Queue()
        self.replies = running.documents.UpsertStream(iter(self._requests.get, None), timeout=30)

    def open(self, token="", collection="news"):
        self._requests.put(
            documents_pb2.UpsertStreamRequest(
                open=documents_pb2.UpsertStreamOpen(collection=collection, resume_token=token)
            )
        )
        return next(self.replies).opened

    def send(self, sequence, documents):
        batch = documents_pb2.UpsertStreamBatch(
            sequence=sequence, documents=[documents_pb2.Document(id=i, text=t) for i, t in documents]
        )
        self._requests.put(documents_pb2.UpsertStreamRequest(batch=batch))

    def batch(self, sequence, documents):
        self.send(sequence, documents)
        return next(self.replies).ack

    def close(self):
        self._requests.put(None)
        return list(self.replies)


@pytest.fixture
def news(running):
    running.collections.CreateCollection(documents_pb2.CreateCollectionRequest(name="news"), timeout=60)
    return running


def count(running):
    return running.engine.count("news").num_documents


def test_batches_are_acknowledged_in_order_and_stored(news):
    sender = Sender(news)
    opened = sender.open()
    assert opened.resume_token
    assert opened.last_acked_sequence == 0
    for sequence in range(1, 21):
        sender.send(sequence, [(f"{sequence}-{i}", "a cat") for i in range(3)])
    acks = [next(sender.replies).ack for _ in range(20)]
    assert [ack.sequence for ack in acks] == list(range(1, 21))
    assert all(ack.num_upserted == 3 for ack in acks)
    assert sender.close() == []
    assert count(news) == 60


def test_resume_goes_on_after_the_last_acknowledged_batch(news):
    first = Sender(news)
    token = first.open().resume_token
    first.batch(1, [("a", "cat")])
    first.batch(2, [("b", "dog")])
    first.replies.cancel()
    second = Sender(news)
    assert second.open(token).last_acked_sequence == 2
    again = second.batch(2, [("b", "dog")])
    assert (again.already_stored, again.num_upserted) == (True, 0)
    assert second.batch(3, [("c", "boat")]).num_upserted == 1
    second.close()
    assert count(news) == 3


def test_bad_documents_are_rejected_and_the_others_stored(news):
    sender = Sender(news)
    sender.open()
    ack = sender.batch(1, [("a", "cat"), ("b", "  "), ("", "dog"), ("a", "dog"), ("n\0l", "dog"), ("c", "boat")])
    assert ack.num_upserted == 2
    assert [rejected.position for rejected in ack.rejected_documents] == [1, 2, 3, 4]
    assert all(r.error.code == grpc.StatusCode.INVALID_ARGUMENT.value[0] for r in ack.rejected_documents)
    assert "documents[3]" in ack.rejected_documents[2].error.message
    assert sender.batch(2, [("d", "dog")]).num_upserted == 1
    sender.close()
    assert count(news) == 3


@pytest.mark.parametrize("sequences", [[2], [1, 3], [1, 1]])
def test_a_gap_ends_the_stream_and_keeps_what_was_stored(news, sequences):
    sender = Sender(news)
    token = sender.open().resume_token
    for sequence in sequences:
        sender.send(sequence, [(f"{sequence}", "cat")])
    with pytest.raises(grpc.RpcError) as raised:
        list(sender.replies)
    assert raised.value.code() == grpc.StatusCode.OUT_OF_RANGE
    again = Sender(news)
    assert again.open(token).last_acked_sequence == len(sequences) - 1
    again.close()


def test_opening_twice_leaves_only_the_second_connection_writing(news):
    first = Sender(news)
    token = first.open().resume_token
    second = Sender(news)
    second.open(token)
    assert second.batch(1, [("a", "cat")]).num_upserted == second.batch(2, [("a", "dog")]).num_upserted == 1
    with pytest.raises(grpc.RpcError) as raised:
        first.batch(1, [("a", "cat")])
    assert raised.value.code() == grpc.StatusCode.ALREADY_EXISTS
    [stored] = news.engine.get("news", ["a"]).documents
    assert stored.text == "dog", "a batch that came late took the place of a newer one"
    second.close()


@pytest.mark.parametrize(
    ("token", "collection", "code"),
    [("no-such-token", "news", grpc.StatusCode.NOT_FOUND), ("", "no-such-collection", grpc.StatusCode.NOT_FOUND)],
)
def test_opening_with_a_wrong_name_fails(news, token, collection, code):
    sender = Sender(news)
    with pytest.raises(grpc.RpcError) as raised:
        sender.open(token, collection)
    assert raised.value.code() == code


def test_draining_ends_an_idle_stream_after_its_acks(news):
    sender = Sender(news)
    token = sender.open().resume_token
    sender.batch(1, [("a", "cat")])
    news.server.stop(5)
    with pytest.raises(grpc.RpcError) as raised:
        next(sender.replies)
    assert raised.value.code() == grpc.StatusCode.UNAVAILABLE
    assert token
    assert count(news) == 1


def test_a_collection_made_again_gets_nothing_from_streams_into_the_old_one(news):
    sender = Sender(news)
    sender.open()
    assert sender.batch(1, [("a", "a cat")]).num_upserted == 1
    news.collections.DeleteCollection(documents_pb2.DeleteCollectionRequest(name="news"), timeout=60)
    news.collections.CreateCollection(documents_pb2.CreateCollectionRequest(name="news"), timeout=60)
    with pytest.raises(grpc.RpcError) as raised:
        sender.batch(2, [("b", "a dog")])
    assert raised.value.code() is grpc.StatusCode.NOT_FOUND
    assert count(news) == 0
