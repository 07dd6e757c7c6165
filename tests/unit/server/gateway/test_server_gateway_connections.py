"""Connections that send half of something, or nothing, or that go."""

import json
import socket
import time

import pytest
from server_gateway_fakes import listening
from waiting import wait_until

HALF_HEAD = b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Le"
HEAD = (
    b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
)
CLOSING = HEAD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
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


def test_a_port_that_is_in_use_is_one_sentence():
    from facets_server.gateway.serving import listen
    from facets_server.runtime.config import HttpConfig

    from facets.errors import ConfigError

    with listening() as port, pytest.raises(ConfigError, match=f"http.port {port} on 127.0.0.1 cannot be used"):
        listen("127.0.0.1", HttpConfig(port=port))
