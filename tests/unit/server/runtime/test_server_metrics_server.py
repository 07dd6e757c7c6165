"""The port of the metrics, within its bounds."""

import http.client
import socket

import pytest
from facets_server.runtime import metrics_server
from facets_server.runtime.config import HttpConfig, ServerConfig
from facets_server.runtime.metrics_server import MetricsServer
from prometheus_client import CollectorRegistry, Counter

from facets.errors import ConfigError


@pytest.fixture
def make_server():
    made = []

    def make(host="127.0.0.1", **settings):
        registry = CollectorRegistry()
        Counter("facets_things", "Things", ["name"], registry=registry).labels("one").inc()
        config = ServerConfig(host=host, metrics_port=0, http=HttpConfig(**settings))
        made.append(MetricsServer(registry, config))
        return made[-1]

    yield make
    for server in made:
        server.close()


def get(server, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("GET", "/metrics", headers=headers)
    reply = connection.getresponse()
    return reply.status, reply.read()


def test_metrics_are_there(make_server):
    server = make_server()
    assert get(server)[0] == 200 and b'facets_things_total{name="one"} 1.0' in get(server)[1]
    with pytest.raises(ConfigError, match="metrics_port"):
        MetricsServer(CollectorRegistry(), ServerConfig(metrics_port=server.port))


def test_requests_by_other_names_are_refused(make_server):
    server = make_server(allowed_hosts=("metrics.example",))
    for name, status in (("metrics.example:80", 200), ("10.1.2.3:9", 200), ("evil.example", 421), ("", 421)):
        assert get(server, Host=name)[0] == status


def test_silent_connections_end_and_do_not_keep_others_out(make_server, monkeypatch):
    monkeypatch.setattr(metrics_server, "MAX_CONNECTIONS", 4)
    server = make_server()
    silent = [socket.create_connection(("127.0.0.1", server.port), timeout=4) for _ in range(6)]
    assert get(server)[0] == 200
    assert [connection.recv(100) for connection in silent[:3]] == [b""] * 3
    for connection in silent:
        connection.close()


def test_half_a_request_ends(make_server, monkeypatch):
    monkeypatch.setattr(metrics_server, "TIMEOUT_S", 0.3)
    with socket.create_connection(("127.0.0.1", make_server().port), timeout=4) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 408 ")
