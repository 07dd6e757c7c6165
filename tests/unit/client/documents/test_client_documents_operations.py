"""What the operations on documents send, step by step."""

from facets_client import Document
from facets_client.core.commands import Call, Emit, HalfClose, Receive, Send, TakeInput
from facets_client.core.operations import ENVELOPE_BYTES
from facets_client.documents.operations import DocumentOperations
from facets_proto.v1 import documents_pb2, models_pb2

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
