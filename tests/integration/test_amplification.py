"""The worst message of every type, to every rpc: refused in little time and memory, over gRPC and HTTP."""

import http.client
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import grpc
import pytest
from facets_client.core.channel import Rpc, rpcs
from facets_server.runtime.config import MAX_VALUES
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from server_process import ServerProcess, free_port
from test_memory_ceiling import MB, children_of, memory_of

MOST_BYTES, MOST_S = 500 * MB, 5.0  # of memory and time that some messages at once cost the server
INVALID, EXHAUSTED = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED
SMALL_ENDS = {grpc.StatusCode.OK, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION}
HTTP_PORT = free_port()
UNKNOWN = 15_000
TEXTS = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)


def varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def wrapped(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def floods(message: Descriptor, num_items: int, seen: set[str]) -> Iterator[tuple[str, bytes]]:
    """Messages of many of one field's smallest items: of an unknown field, and of each list and message."""
    if message.full_name in seen:
        return
    seen.add(message.full_name)
    yield f"{message.name}: unknown", (varint(UNKNOWN << 3) + b"\0") * (num_items // 2)
    for field in message.fields:
        name, number, inner = f"{message.name}.{field.name}", field.number, field.message_type
        if inner is not None:
            yield name, wrapped(number, b"") * num_items
            yield from ((f"{name} > {what}", wrapped(number, flood)) for what, flood in floods(inner, num_items, seen))
        elif field.is_repeated and field.type in TEXTS:
            yield name, wrapped(number, b"x") * (num_items * 2 // 3)
        elif field.is_repeated:
            yield name, wrapped(number, b"\1" * num_items)


def worst(num_items: int, *, top_only: bool = False) -> Iterator[tuple[Rpc, str, bytes]]:
    """Each flood once, with an rpc that takes it."""
    seen: set[str] = set()
    for rpc in rpcs().values():
        for name, data in floods(rpc.request.DESCRIPTOR, num_items, seen):
            if not top_only or (" > " not in name and "unknown" not in name):
                yield rpc, name, data


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, toy_model: Path, relation_model: Path, papers_model: Path
) -> Iterator[ServerProcess]:
    arguments = ["--model", str(relation_model), "--model", str(papers_model), "--http-port", str(HTTP_PORT)]
    with ServerProcess(tmp_path_factory.mktemp("floods") / "data", toy_model, arguments=arguments) as server:
        yield server


@contextmanager
def little_memory(server: ServerProcess) -> Iterator[None]:
    """Samples the memory of server and gateway within a ``with`` block, and compares its growth with the limit."""
    pids = [server.process.pid, *children_of(server.process.pid)]
    before, most, ended = sum(map(memory_of, pids)), 0, threading.Event()

    def sample() -> None:
        nonlocal most
        while not ended.wait(0.02):
            most = max(most, sum(map(memory_of, pids)))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    assert most - before < MOST_BYTES, f"{(most - before) / MB:.0f} MiB"
    server.wait_until_serving()


def code_of(server: ServerProcess, rpc: Rpc, data: bytes) -> grpc.StatusCode:
    try:
        if rpc.is_stream:
            list(server.channel.stream_stream(rpc.path)(iter([data]), timeout=60))
        else:
            server.channel.unary_unary(rpc.path)(data, timeout=60)
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


@pytest.mark.parametrize("num_items", [MAX_VALUES - 1000, 8 * MB - 100])
def test_no_message_costs_much(server: ServerProcess, num_items: int) -> None:
    is_large = num_items > MAX_VALUES
    allowed = {INVALID, EXHAUSTED} if is_large else {INVALID, EXHAUSTED, *SMALL_ENDS}

    def cost(rpc: Rpc, name: str, data: bytes) -> tuple[float, str, grpc.StatusCode]:
        started = time.monotonic()
        code = code_of(server, rpc, data)
        return time.monotonic() - started, f"{rpc.path}: {name}", code

    with little_memory(server), ThreadPoolExecutor(3) as callers:
        costs = list(callers.map(lambda one: cost(*one), worst(num_items, top_only=is_large)))
    assert len(costs) > 30
    assert not [one for one in costs if one[0] > MOST_S or one[2] not in allowed]


def test_no_body_costs_much(server: ServerProcess) -> None:
    authors = "/facets.v1.RecommendationService/RecommendAuthors"
    bodies = {
        "proto": (authors, "application/proto", b"\x0a\x00" * (8 * MB - 100)),
        "objects": (authors, "application/json", b'{"papers":[' + b"{}," * (5 * MB) + b"{}]}"),
        "depth": (authors, "application/json", b"[" * (16 * MB)),
        "numbers": ("/v1/embeddings", "application/json", b'{"input":[' + b"1," * (7 * MB) + b"1]}"),
    }
    for name, (path, content_type, body) in bodies.items():
        connection = http.client.HTTPConnection("127.0.0.1", HTTP_PORT, timeout=60)
        with little_memory(server), closing(connection):
            started = time.monotonic()
            connection.request("POST", path, body, {"Content-Type": content_type})
            assert connection.getresponse().status == 400, name
            assert time.monotonic() - started < MOST_S, name
