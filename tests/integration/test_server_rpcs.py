"""Streams of a real server, from another process."""

import threading

import grpc
from facets_proto.v1 import texts_pb2, texts_pb2_grpc
from waiting import wait_until


def test_cancelled_streams_leave_no_trace(channel):
    stub = texts_pb2_grpc.EmbeddingServiceStub(channel)
    for _ in range(40):
        stub.EmbedStream(iter(threading.Event().wait, None), timeout=30).cancel()
    requests = [texts_pb2.EmbedStreamRequest(sequence=1, request=texts_pb2.EmbedRequest(texts=["a"]))]

    def is_answered() -> bool:
        """Places of cancelled streams are free again as soon as the server has noticed."""
        try:
            return len(list(stub.EmbedStream(iter(requests), timeout=30))) == 1
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            return False

    wait_until(is_answered)
