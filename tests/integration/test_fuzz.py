"""Any message of any rpc: the server answers or refuses, and never with a status that means a fault of its own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from facets_client.core.channel import Rpc, rpcs
from facets_proto.v1 import documents_pb2, documents_pb2_grpc
from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from server_process import ServerProcess

# Names that exist make deep calls likely; the rest is hostile.
TEXTS = ["fuzz", "toy", "", " ", "A dog barks at the house.", "$ARG1 met $ARG2", "d1", "n"]
TEXTS += ["\u0000", "\U0001f408", "x" * 5000, "../a"]
NUMBERS = {
    "integer": [0, 1, 2, 1000, 2**31 - 1],
    "real": [0.0, 0.5, -1.0, 1e308, float("inf"), float("nan")],
    "bytes": [b"", b"\x00" * 128, b"\xff\xff\xc0\x7f"],
}
SERVER_FAULTS = {
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
}
MAX_DEPTH = 4


def values(field: FieldDescriptor, depth: int) -> st.SearchStrategy[Any]:
    kinds = FieldDescriptor
    if field.type == kinds.TYPE_MESSAGE:
        return messages(field.message_type, depth + 1)
    if field.type == kinds.TYPE_STRING:
        return st.sampled_from(TEXTS)
    if field.type == kinds.TYPE_BYTES:
        return st.sampled_from(NUMBERS["bytes"])
    if field.type == kinds.TYPE_BOOL:
        return st.booleans()
    if field.type == kinds.TYPE_ENUM:
        return st.sampled_from([*(value.number for value in field.enum_type.values), 77])
    return st.sampled_from(NUMBERS["real" if field.type in (kinds.TYPE_DOUBLE, kinds.TYPE_FLOAT) else "integer"])


@st.composite
def messages(draw: st.DrawFn, kind: Any, depth: int = 0) -> Message:
    message = message_factory.GetMessageClass(kind)()
    for field in kind.fields if depth < MAX_DEPTH else ():
        if kind.GetOptions().map_entry or not draw(st.booleans()):
            continue
        if field.message_type and field.message_type.GetOptions().map_entry:
            continue
        if not field.is_repeated:
            value = draw(values(field, depth))
            if field.message_type:
                getattr(message, field.name).CopyFrom(value)
            else:
                setattr(message, field.name, value)
        else:
            getattr(message, field.name).extend(draw(st.lists(values(field, depth), max_size=3)))
    return message


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, toy_model: Path, relation_model: Path, papers_model: Path
) -> Iterator[ServerProcess]:
    arguments = ["--model", str(relation_model), "--model", str(papers_model)]
    with ServerProcess(tmp_path_factory.mktemp("fuzz") / "data", toy_model, arguments=arguments) as server:
        request = documents_pb2.CreateCollectionRequest(name="fuzz", model="toy")
        documents_pb2_grpc.CollectionServiceStub(server.channel).CreateCollection(request, timeout=60)
        yield server


@pytest.mark.parametrize("rpc", rpcs().values(), ids=lambda rpc: rpc.path)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_message_makes_the_server_fail(server: ServerProcess, rpc: Rpc, data: st.DataObject) -> None:
    message = data.draw(messages(rpc.request.DESCRIPTOR))
    try:
        if rpc.is_stream:
            call = server.channel.stream_stream(rpc.path, request_serializer=lambda sent: sent.SerializeToString())
            for _ in call(iter([message]), timeout=60):
                pass
        else:
            call = server.channel.unary_unary(rpc.path, request_serializer=lambda sent: sent.SerializeToString())
            call(message, timeout=60)
    except grpc.RpcError as error:
        assert error.code() not in SERVER_FAULTS, f"{error.code()}: {error.details()}"
    assert server.process.poll() is None, server.log()
