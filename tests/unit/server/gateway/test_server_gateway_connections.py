"""Connections that send half of something, or nothing, or that go."""

import asyncio
import gzip
import json
import resource
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from facets_server.gateway.bodies import BodyReader
from facets_server.gateway.failures import CallFailedError
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


def test_half_a_head_is_answered_with_408_and_the_connection_ends():
    with listening(read_timeout_s=0.2) as port:
        reply = all_of(connected(port, HALF_HEAD))
    head, _, body = reply.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    assert json.loads(body)["code"] == "deadline_exceeded"


def test_silence_ends_the_connection():
    with listening(read_timeout_s=0.2) as port:
        assert all_of(connected(port)) == b""


def test_bytes_one_by_one_do_not_put_the_end_off():
    with listening(read_timeout_s=0.5) as port, connected(port) as connection:
        begin = time.monotonic()
        reply = b""
        connection.settimeout(0.05)
        while not reply:
            assert time.monotonic() < begin + 60
            try:
                connection.sendall(b"G")
                reply = connection.recv(100)
            except TimeoutError:
                pass
    assert reply.startswith(b"HTTP/1.1 4")


def test_half_a_body_is_answered_with_408():
    with listening(read_timeout_s=0.2) as port:
        reply = all_of(connected(port, HEAD + b'{"input":'))
    assert reply.startswith(b"HTTP/1.1 408 ")
    assert b"did not come within 0.2 s" in reply


def test_a_body_that_goes_on_after_the_answer_does_not_hold_the_connection():
    unread = HEAD.replace(b"application/json", b"text/plain")
    with listening(read_timeout_s=0.3) as port:
        assert all_of(connected(port, unread)).startswith(b"HTTP/1.1 415 ")


@pytest.mark.parametrize("junk", [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"hello\r\n\r\n"])
def test_junk_is_answered_with_400(junk):
    with listening() as port:
        assert all_of(connected(port, junk)).startswith(b"HTTP/1.1 400 ")


def test_a_head_without_end_is_answered_with_400():
    with listening() as port:
        reply = all_of(connected(port, b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000))
    assert reply == b"" or reply.startswith(b"HTTP/1.1 4")


def test_silent_connections_give_way_to_others():
    with listening(max_connections=4, read_timeout_s=60.0) as port:
        silent = [connected(port) for _ in range(20)]
        assert all_of(connected(port, LIVE)).startswith(b"HTTP/1.1 200 ")
        for connection in silent:
            connection.close()


def test_bodies_that_are_read_at_once_are_bounded_together():
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


def test_many_bodies_of_many_small_values_cost_no_more_than_their_bytes():
    body = b'{"texts":[' + b"[]," * (16 * 2**20 // 3 - 10) + b"[]]}"
    done = threading.Event()
    with listening() as port, ThreadPoolExecutor(13) as pool:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        paused = pool.submit(longest_pause, port, done)
        replies = [future.result() for future in [pool.submit(posted, port, body) for _ in range(12)]]
        done.set()
        assert paused.result() < 5
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert all(b" 400 " in reply[:20] and b"values, the limit is" in reply for reply in replies)
    assert grown < 1_000_000  # KiB, of both sides: the bodies themselves are twelve times 16 MiB


def test_bodies_are_read_of_known_keys_only(tmp_path):
    file = tmp_path / "keys"
    file.write_text("good read\n")
    with listening(security=SecurityConfig(api_keys_file=file)) as port:
        for path in (EMBED, b"/v1/embeddings", b"/facets.v1.DocumentService/UpsertStream"):
            reply = posted(port, b"{" * 1000, b"Authorization: Bearer bad", path=path)
            assert b" 401 " in reply[:20] and b"www-authenticate: bearer" in reply.lower()
        assert b" 400 " in posted(port, b"{" * 1000, b"Authorization: Bearer good")[:20]


def test_streams_that_the_server_refuses_have_its_status(make_server, tmp_path):
    file = tmp_path / "keys"
    file.write_text("reader read\n")
    server = make_server(config=ServerConfig(security=SecurityConfig(api_keys_file=file))).server
    body = b'{"open":{"collection":"wiki"}}\n' * 3
    with listening(target=f"127.0.0.1:{server.port}") as port, ThreadPoolExecutor(8) as pool:
        for status, *headers in ((401,), (401, b"Authorization: Bearer bad"), (403, b"Authorization: Bearer reader")):
            path = b"/facets.v1.DocumentService/UpsertStream"
            replies = [pool.submit(posted, port, body, *headers, path=path) for _ in range(60)]
            assert {int(reply.result().split()[1]) for reply in replies} == {status}


def test_a_line_that_comes_byte_by_byte_takes_time_in_proportion():
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


def test_a_request_with_two_lengths_is_refused():
    smuggled = b"5\r\nabcde\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with listening() as port:
        reply = posted(port, smuggled, b"Transfer-Encoding: chunked")
    assert reply.startswith(b"HTTP/1.1 400 ") and reply.count(b"HTTP/1.1 ") == 1
    assert b"expected one of them" in reply


def test_lines_of_nothing_are_refused_soon():
    packed = gzip.compress(b"\n" * 16_000_000)
    assert len(packed) < 20_000
    reader = BodyReader(2**25, 30, max_total_bytes=2**28)

    async def run():
        return [line async for line in reader.lines(request_of([packed], packed=True), bytes)]

    begun = time.process_time()
    with pytest.raises(CallFailedError, match="are empty"):
        asyncio.run(run())
    assert time.process_time() - begun < 1


def test_some_empty_lines_are_left_out():
    reader = BodyReader(100, 30, max_total_bytes=100)

    async def run():
        return [line async for line in reader.lines(request_of([b"\n\na", b"b\n \n\nc\nd"]), bytes)]

    assert asyncio.run(run()) == [b"ab", b"c", b"d"]


def test_lines_that_wait_for_their_end_are_bounded_together():
    reader = BodyReader(100, 30, max_total_bytes=150)

    async def run():
        first = reader.lines(request_of([b"x" * 90, b"\n", b"y"]), bytes)
        assert await anext(first) == b"x" * 90  # held until the next one is asked for
        with pytest.raises(CallFailedError, match="other requests"):
            await anext(reader.lines(request_of([b"z" * 90]), bytes))
        assert [line async for line in first] == [b"y"]
        assert [len(line) async for line in reader.lines(request_of([b"z" * 90]), bytes)] == [90]

    asyncio.run(run())


def test_a_port_that_is_in_use_is_one_sentence():
    from facets_server.gateway.serving import listen
    from facets_server.runtime.config import HttpConfig

    from facets.errors import ConfigError

    with listening() as port, pytest.raises(ConfigError, match=f"http.port {port} on 127.0.0.1 cannot be used"):
        listen("127.0.0.1", HttpConfig(port=port))
