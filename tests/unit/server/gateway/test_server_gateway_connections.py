"""Connections that are slow, silent or too many, and bodies that are large or invalid."""

import asyncio
import gzip
import resource
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from facets_server.gateway.errors import CallError
from facets_server.gateway.request_body import BodyReader
from facets_server.gateway.server import listen
from facets_server.runtime.config import HttpConfig, SecurityConfig, ServerConfig
from server_gateway_fakes import listening
from starlette.requests import Request
from waiting import wait_until

from facets.errors import ConfigError

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
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000, b"HTTP/1.1 400 "),
    ],
    ids=["nothing", "half a head", "half a body", "no body", "junk", "TLS", "long head"],
)
def test_incomplete_and_invalid_requests_end_soon(sent, reply):
    with listening(read_timeout_s=0.3) as port:
        assert all_of(connected(port, sent))[: len(reply) or None] == reply


def test_single_bytes_do_not_extend_the_timeout():
    with listening(read_timeout_s=0.5) as port, connected(port) as connection:
        begin = time.monotonic()
        reply = b""
        connection.settimeout(0.05)
        while not reply:
            assert time.monotonic() < begin + 60
            with suppress(TimeoutError):
                connection.sendall(b"G")
                reply = connection.recv(100)
    assert reply.startswith(b"HTTP/1.1 4")


def test_new_connections_replace_silent_ones():
    with listening(max_connections=4, read_timeout_s=60.0) as port:
        silent = [connected(port) for _ in range(20)]
        assert all_of(connected(port, LIVE)).startswith(b"HTTP/1.1 200 ")
        for connection in silent:
            connection.close()


def test_bodies_read_at_once_share_a_limit():
    body = b"[" + b" " * 98 + b"]"
    with listening(max_request_bytes=120, read_timeout_s=60.0) as port:
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


def longest_pause(port: int, until: threading.Event) -> float:
    longest = 0.0
    while not until.is_set():
        begun = time.monotonic()
        assert all_of(connected(port, LIVE)).startswith(b"HTTP/1.1 200 ")
        longest = max(longest, time.monotonic() - begun)
    return longest


def test_bodies_with_many_small_values_do_not_multiply_memory():
    body = b'{"texts":[' + b"[]," * (16 * 2**20 // 3 - 10) + b"[]]}"
    done = threading.Event()
    with listening() as port, ThreadPoolExecutor(13) as pool:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        paused = pool.submit(longest_pause, port, done)
        replies = [future.result() for future in [pool.submit(posted, port, body) for _ in range(12)]]
        done.set()
        assert paused.result() < 5
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert all(b" 400 " in reply[:20] and b" values, the limit is" in reply for reply in replies)
    assert grown < 1_000_000  # KiB, of both sides: the bodies themselves are twelve times 16 MiB


def test_bodies_are_read_only_with_a_known_key(tmp_path):
    file = tmp_path / "keys"
    file.write_text("good read\n")
    with listening(security=SecurityConfig(api_keys_file=file)) as port:
        for path in (EMBED, b"/v1/embeddings", b"/facets.v1.DocumentService/UpsertStream"):
            reply = posted(port, b"{" * 1000, b"Authorization: Bearer bad", path=path)
            assert b" 401 " in reply[:20] and b"www-authenticate: bearer" in reply.lower()
        assert b" 400 " in posted(port, b"{" * 1000, b"Authorization: Bearer good")[:20]


def test_streams_rejected_by_the_server_have_its_status(make_server, tmp_path):
    file = tmp_path / "keys"
    file.write_text("reader read\n")
    server = make_server(config=ServerConfig(security=SecurityConfig(api_keys_file=file))).server
    body = b'{"open":{"collection":"wiki"}}\n' * 3
    with listening(target=f"127.0.0.1:{server.port}") as port, ThreadPoolExecutor(8) as pool:
        for status, *headers in ((401,), (401, b"Authorization: Bearer bad"), (403, b"Authorization: Bearer reader")):
            path = b"/facets.v1.DocumentService/UpsertStream"
            replies = [pool.submit(posted, port, body, *headers, path=path) for _ in range(60)]
            assert {int(reply.result().split()[1]) for reply in replies} == {status}


def test_reading_a_line_byte_by_byte_takes_linear_time():
    reader = BodyReader(2**25, 30, max_total_bytes=2**28)
    took = []
    for size in (2**18, 2**23):  # what has come before

        async def run(size=size):
            parts = [b"x" * size, *[b"y"] * 2000, b"\n"]
            return [len(line) async for line in reader.lines(request_of(parts), bytes)]

        begun = time.process_time()
        assert asyncio.run(run()) == [size + 2000]
        took.append(time.process_time() - begun)
    assert took[1] < took[0] + 1.0  # 2,000 copies of 8 MiB take more


def request_of(parts, *, packed=False):
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    messages.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive():
        return messages.pop(0)

    sent = [(b"content-encoding", b"gzip")] if packed else []
    return Request({"type": "http", "method": "POST", "path": "/", "headers": sent}, receive)


def test_requests_with_two_lengths_are_rejected():
    smuggled = b"5\r\nabcde\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with listening() as port:
        reply = posted(port, smuggled, b"Transfer-Encoding: chunked")
    assert reply.startswith(b"HTTP/1.1 400 ") and reply.count(b"HTTP/1.1 ") == 1
    assert b"expected one of them" in reply


def test_many_empty_lines_are_rejected():
    packed = gzip.compress(b"\n" * 16_000_000)
    assert len(packed) < 20_000
    reader = BodyReader(2**25, 30, max_total_bytes=2**28)

    async def run():
        return [line async for line in reader.lines(request_of([packed], packed=True), bytes)]

    begun = time.process_time()
    with pytest.raises(CallError, match="empty lines in a row"):
        asyncio.run(run())
    assert time.process_time() - begun < 1


def test_empty_lines_are_skipped():
    reader = BodyReader(100, 30, max_total_bytes=100)

    async def run():
        return [line async for line in reader.lines(request_of([b"\n\na", b"b\n \n\nc\nd"]), bytes)]

    assert asyncio.run(run()) == [b"ab", b"c", b"d"]


def test_incomplete_lines_share_the_limit():
    reader = BodyReader(100, 30, max_total_bytes=150)

    async def run():
        first = reader.lines(request_of([b"x" * 90, b"\n", b"y"]), bytes)
        assert await anext(first) == b"x" * 90  # held until the next one is asked for
        with pytest.raises(CallError, match="bodies of other requests"):
            await anext(reader.lines(request_of([b"z" * 90]), bytes))
        assert [line async for line in first] == [b"y"]
        assert [len(line) async for line in reader.lines(request_of([b"z" * 90]), bytes)] == [90]

    asyncio.run(run())


def test_a_used_port_is_a_config_error():
    with listening() as port, pytest.raises(ConfigError, match=f"http.port {port} on 127.0.0.1 cannot be used"):
        listen("127.0.0.1", HttpConfig(port=port))
