"""The port of the metrics, within its bounds."""

import http.client
import socket
import threading
from contextlib import suppress

import pytest
from facets_server.runtime import metrics_server
from facets_server.runtime.metrics_server import MetricsServer
from prometheus_client import CollectorRegistry, Counter

from facets.errors import ConfigError


@pytest.fixture
def make_server(monkeypatch):
    made = []
    monkeypatch.setattr(metrics_server, "ANSWER_TIMEOUT_S", 0.5)

    def make(host="127.0.0.1", timeout_s=60.0, **settings):
        monkeypatch.setattr(metrics_server, "HEAD_TIMEOUT_S", timeout_s)
        registry = CollectorRegistry()
        counter = Counter("facets_things", "Things", ["name"], registry=registry)
        counter.labels("one").inc()
        made.append(MetricsServer(registry, host, 0, **settings))
        return made[-1]

    yield make
    for server in made:
        server.close()


def get(server, path="/metrics", method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request(method, path, headers=headers)
    reply = connection.getresponse()
    return reply.status, reply.read()


def test_metrics_are_there(make_server):
    server = make_server()
    assert get(server) == get(server, "/") and get(server)[0] == 200
    assert b'facets_things_total{name="one"} 1.0' in get(server)[1]
    assert get(server, method="HEAD") == (200, b"")


def test_a_busy_port_is_one_sentence(make_server):
    server = make_server()
    with pytest.raises(ConfigError, match="metrics_port"):
        MetricsServer(CollectorRegistry(), "127.0.0.1", server.port)


@pytest.mark.parametrize("host", ["evil.example", "[::1].evil.com", "127.0.0.1.evil.com", "127.0.0.1:x", ""])
def test_on_loopback_names_of_others_are_refused(make_server, host):
    assert get(make_server(), Host=host)[0] == 421


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9090", "[::1]:9090", "LOCALHOST:1"])
def test_on_loopback_names_of_this_machine_are_answered(make_server, host):
    assert get(make_server(), Host=host)[0] == 200


def test_elsewhere_allowed_names_and_addresses_are_answered(make_server):
    server = make_server("0.0.0.0", allowed_hosts=("metrics.example",))
    assert get(server, Host="metrics.example:80")[0] == get(server, Host="10.1.2.3:9090")[0] == 200
    assert get(server, Host="evil.example")[0] == 421
    assert get(make_server("0.0.0.0"), Host="any.example")[0] == 200


@pytest.mark.parametrize("sent", [b"POST /metrics HTTP/1.1", b"GET /other HTTP/1.1", b"junk", b"GET /metrics HTTP/2"])
def test_other_requests_are_refused(make_server, sent):
    with socket.create_connection(("127.0.0.1", make_server().port), timeout=10) as connection:
        connection.sendall(sent + b"\r\nHost: localhost\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")


def test_a_head_that_does_not_end_or_is_too_long_is_refused(make_server):
    server = make_server(timeout_s=1.0)
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 408 ")
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nX: " + b"x" * metrics_server.MAX_HEAD_BYTES)
        assert connection.recv(100).startswith(b"HTTP/1.1 431 ")


def test_a_client_that_does_not_read_its_answer_is_dropped(make_server, monkeypatch):
    monkeypatch.setattr(metrics_server, "generate_latest", lambda registry: b"x" * 10_000_000)
    server = make_server()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(10)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        threading.Event().wait(2)  # longer than the answer may take
        received = 0
        with suppress(ConnectionResetError):
            while part := connection.recv(65536):
                received += len(part)
    assert 0 < received < 8_000_000
