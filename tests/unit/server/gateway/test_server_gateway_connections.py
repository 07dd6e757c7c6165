"""Connections that are slow, silent or too many, and bodies that are large or invalid."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from facets_proto.v1 import texts_pb2
from facets_server.gateway.errors import CallError
from facets_server.gateway.request_body import BodyReader
from facets_server.runtime.config import SecurityConfig, ServerConfig
from server_gateway_fakes import listening
from starlette.requests import Request
from waiting import wait_until

HALF_HEAD = b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Le"
HEAD = (
    b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
)
CLOSING = HEAD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
EMBED = b"/facets.v1.EmbeddingService/Embed"
LIVE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def connected(port: int, sent: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.sendall(sent)
    return connection


def all_of(connection: socket.socket) -> bytes:
    parts = []
    with connection:
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize(
    ("sent", "reply"),
    [
        (b"", b""),
        (HALF_HEAD, b"HTTP/1.1 408 "),
        (HEAD + b'{"input":', b"HTTP/1.1 408 "),
        (HEAD.replace(b"application/json", b"text/plain"), b"HTTP/1.1 415 "),  # the body never comes
        (b"hello\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000, b"HTTP/1.1 400 "),
    ],
    ids=["nothing", "half a head", "half a body", "no body", "junk", "long head"],
)
def test_incomplete_and_invalid_requests_end_soon(sent, reply):
    with listening(read_timeout_s=0.3) as port:
        assert all_of(connected(port, sent))[: len(reply) or None] == reply


def test_single_bytes_do_not_extend_the_timeout():
    with listening(read_timeout_s=0.3) as port, connected(port) as connection:
        connection.settimeout(0.05)
        reply = b""
        for _ in range(200):
            with suppress(TimeoutError):
                connection.sendall(b"G")
                reply = reply or connection.recv(100)
            if reply:
                break
    assert reply.startswith(b"HTTP/1.1 4")


CHECK = HEAD.replace(b"/v1/embeddings", b"/grpc.health.v1.Health/Check")


@pytest.mark.parametrize("sent", [b"", HALF_HEAD, CHECK + b"{", HEAD + b"{"], ids=["none", "head", "health", "body"])
def test_new_connections_replace_silent_ones(sent):
    with listening(max_connections=4, read_timeout_s=60.0) as port:
        silent = [connected(port, sent) for _ in range(20)]
        time.sleep(0.2)  # all of it has been read
        assert all_of(connected(port, LIVE)).startswith(b"HTTP/1.1 200 ")
        for connection in silent:
            connection.close()


def test_new_connections_leave_running_calls(make_server):
    running = make_server()
    running.model.hold()
    body = b'{"texts":["cat"]}'
    head = b"\r\n".join([b"POST " + EMBED + b" HTTP/1.1", *HEAD.split(b"\r\n")[1:]]).replace(b"100", b"%d" % len(body))
    with listening(target=f"127.0.0.1:{running.server.port}", max_connections=4, read_timeout_s=60.0) as port:
        calling = connected(port, head + body)
        wait_until(lambda: running.metric("facets_running_requests") == 1)
        silent = [connected(port, CHECK + b"{") for _ in range(20)]
        assert all_of(connected(port, LIVE)).startswith(b"HTTP/1.1 200 ")
        running.model.gate.set()
        assert calling.recv(100).startswith(b"HTTP/1.1 200 ")
        for connection in (calling, *silent):
            connection.close()


def test_bodies_read_at_once_share_a_limit():
    body = b"[" + b" " * 98 + b"]"
    with listening(max_memory_bytes=240, read_timeout_s=60.0) as port:
        half = connected(port, HEAD + body[:90])
        replies: list[bytes] = []
        # Until the first bytes of the other have been read, this one is answered.
        wait_until(lambda: replies.append(all_of(connected(port, CLOSING + body))) or b" 429 " in replies[-1])
        assert b"retry-after: 1" in replies[-1].lower()
        half.sendall(body[90:])
        assert half.recv(100).startswith(b"HTTP/1.1 400 ")
        half.close()


def posted(port: int, body: bytes, *headers: bytes, path: bytes = EMBED) -> bytes:
    lines = [b"POST " + path + b" HTTP/1.1", b"Host: localhost", b"Connection: close", *headers]
    kind = b"application/x-ndjson" if b"Stream" in path else b"application/json"
    lines += [b"Content-Type: " + kind, b"Content-Length: %d" % len(body), b"", b""]
    connection = connected(port)
    connection.settimeout(120)
    try:
        connection.sendall(b"\r\n".join(lines) + body)
    except (BrokenPipeError, ConnectionResetError):
        pass  # answered before all of it was read
    return all_of(connection)


def test_bodies_are_read_only_with_a_known_key(tmp_path):
    file = tmp_path / "keys"
    file.write_text("good read\n")
    with listening(security=SecurityConfig(api_keys_file=file)) as port:
        for path in (EMBED, b"/v1/embeddings", b"/facets.v1.DocumentService/UpsertStream"):
            reply = posted(port, b"{" * 1000, b"Authorization: Bearer bad", path=path)
            assert b" 401 " in reply[:20] and b"www-authenticate: bearer" in reply.lower()
        assert b" 400 " in posted(port, b"{" * 1000, b"Authorization: Bearer good")[:20]
        health = posted(port, b" " * 5000, path=b"/grpc.health.v1.Health/Check")  # needs no key
        assert b" 413 " in health[:20] and b"4096 bytes" in health


def test_streams_rejected_by_the_server_have_its_status(make_server, tmp_path):
    file = tmp_path / "keys"
    file.write_text("reader read\n")
    server = make_server(config=ServerConfig(security=SecurityConfig(api_keys_file=file))).server
    body = b'{"open":{"collection":"wiki"}}\n' * 3
    with listening(target=f"127.0.0.1:{server.port}") as port, ThreadPoolExecutor(8) as pool:
        path = b"/facets.v1.DocumentService/UpsertStream"
        for status, *headers in ((401, b"Authorization: Bearer bad"), (403, b"Authorization: Bearer reader")):
            replies = [pool.submit(posted, port, body, *headers, path=path) for _ in range(30)]
            assert {int(reply.result().split()[1]) for reply in replies} == {status}


@pytest.mark.parametrize("is_stream", [False, True])
def test_work_for_a_closed_connection_ends_within_a_second(make_server, is_stream):
    running = make_server()
    running.embedding.Embed(texts_pb2.EmbedRequest(texts=["cat"]))  # imports
    running.model.hold()
    path, metric = (EMBED + b"Stream", "facets_open_streams") if is_stream else (EMBED, "facets_running_requests")
    head = [b"POST " + path + b" HTTP/1.1", b"Host: localhost", b"Content-Length: %d" % (2**40 if is_stream else 17)]
    head += [b"Content-Type: application/" + (b"x-ndjson" if is_stream else b"json"), b"", b""]
    with listening(target=f"127.0.0.1:{running.server.port}") as port:
        # More than the gateway reads ahead: then it can only ask whether the client is there.
        body = b'{"request":{"texts":["cat"]}}\n' * 20_000 if is_stream else b'{"texts":["cat"]}'
        connection = connected(port, b"\r\n".join(head) + body)
        wait_until(lambda: running.metric(metric) == 1)
        connection.close()
        wait_until(lambda: running.metric(metric) == 0, timeout_s=2.0)
    running.model.gate.set()


def test_requests_with_two_lengths_are_rejected():
    smuggled = b"5\r\nabcde\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with listening() as port:
        reply = posted(port, smuggled, b"Transfer-Encoding: chunked")
    assert reply.startswith(b"HTTP/1.1 400 ") and reply.count(b"HTTP/1.1 ") == 1
    assert b"expected one of them" in reply


def read_lines(reader: BodyReader, *parts: bytes) -> AsyncIterator[bytes]:
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    messages.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive():
        return messages.pop(0)

    return reader.lines(Request({"type": "http", "method": "POST", "path": "/", "headers": []}, receive), bytes)


async def listed(lines: AsyncIterator[bytes]) -> list[bytes]:
    return [line async for line in lines]


def test_lines_take_linear_time():
    reader = BodyReader(2**25, 30, max_total_bytes=2**28)
    begin = time.process_time()
    (line,) = asyncio.run(listed(read_lines(reader, b"x" * 2**23, *[b"y"] * 2000, b"\n")))
    assert len(line) == 2**23 + 2000
    assert asyncio.run(listed(read_lines(reader, b"\n\na", b"b\n \n\nc\nd"))) == [b"ab", b"c", b"d"]
    assert time.process_time() - begin < 2  # 2,000 copies of 8 MiB take longer


def test_callers_take_turns_for_conversions():
    reader, converted = BodyReader(2**25, 30, max_total_bytes=2**28), []

    def convert(data: bytes) -> None:
        time.sleep(0.05)
        converted.append(data[:1])

    async def run():
        scopes = [{"type": "http", "path": "/", "headers": [], "client": (name, 1)} for name in "aaaaaab"]
        await asyncio.gather(*(reader.converted(Request(s), convert, s["client"][0].encode() * 2**17) for s in scopes))

    asyncio.run(run())
    assert converted.index(b"b") <= 1


def test_incomplete_lines_share_the_limit():
    reader = BodyReader(100, 30, max_total_bytes=150)

    async def run():
        first = read_lines(reader, b"x" * 90, b"\n", b"y")
        assert await anext(first) == b"x" * 90  # held until the next one is requested
        with pytest.raises(CallError, match="bodies of other requests"):
            await anext(read_lines(reader, b"z" * 90))
        assert await listed(first) == [b"y"]
        assert await listed(read_lines(reader, b"z" * 90)) == [b"z" * 90]

    asyncio.run(run())
