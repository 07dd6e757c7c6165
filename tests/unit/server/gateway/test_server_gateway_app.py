"""The page, the probes, the Host header, other origins."""

import pytest
from facets_server.gateway.app import PLAYGROUND
from facets_server.gateway.errors import CallError
from grpc import StatusCode
from grpc_health.v1 import health_pb2
from server_gateway_fakes import browser

CHECK = "/grpc.health.v1.Health/Check"
SERVING = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)
NOT_SERVING = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.NOT_SERVING)
PAGE = "https://page.example"


@pytest.mark.parametrize(
    ("answer", "status"),
    [(SERVING, 200), (NOT_SERVING, 503), (CallError(StatusCode.UNAVAILABLE, "it cannot be reached"), 503)],
)
def test_readiness_is_that_of_the_server(answer, status):
    client = browser({CHECK: answer}).client
    assert client.get("/healthz").json() == {"status": "ok"}
    assert [client.get(path).status_code for path in ("/readyz", "/health")] == [status, status]


def test_files_have_fixed_types_a_strict_policy_and_etags():
    client = browser().client
    types = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    files = {f"/{path.relative_to(PLAYGROUND)}": types[path.suffix[1:]] for path in PLAYGROUND.rglob("*.*")}
    for path, content_type in {**files, "/": "text/html"}.items():
        headers = client.get(path).headers
        assert headers["content-type"].partition(";")[0] == content_type, path
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        reply = client.get(path, headers={"if-none-match": headers["etag"]})
        assert (reply.status_code, reply.content) == (304, b"")


@pytest.mark.parametrize("path", ["/../app.py", "/%2e%2e/app.py", "/js/..%2f..%2fapp.py", "/nothing.js", "/js"])
def test_files_outside_the_folder_are_not_found(path):
    assert browser().client.get(path).status_code == 404


ANY, ONE = {"host": "0.0.0.0"}, {"host": "0.0.0.0", "allowed_hosts": ("a.example",)}


@pytest.mark.parametrize(
    ("settings", "host", "status"),
    [
        ({}, "localhost:8080", 200),
        ({}, "127.0.0.1:8080", 200),
        ({}, "[::1]:8080", 200),
        ({}, "evil.example", 421),
        ({}, "localhost.evil.example", 421),
        ({}, "[::1].evil.com", 421),
        ({}, "127.0.0.1:80:80", 421),
        ({}, "", 421),
        (ANY, "a.example", 200),
        (ONE, "a.example:80", 200),
        (ONE, "10.1.2.3:80", 200),
        (ONE, "b.example", 421),
        ({"allowed_hosts": ("*",)}, "b", 200),
    ],
)
def test_a_gateway_answers_only_to_its_hosts(settings, host, status):
    assert browser(**settings).client.get("/healthz", headers={"host": host}).status_code == status


def test_only_configured_origins_may_call():
    preflight = {
        "origin": PAGE,
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }
    closed, opened = browser().client, browser(cors_origins=(PAGE,)).client
    assert "access-control-allow-origin" not in closed.get("/healthz", headers={"origin": PAGE}).headers
    assert closed.options("/v1/embeddings", headers=preflight).status_code == 405
    reply = opened.options("/v1/embeddings", headers=preflight)
    assert (reply.status_code, reply.headers["access-control-allow-origin"]) == (200, PAGE)
    other = opened.get("/healthz", headers={"origin": "https://other.example"})
    assert "access-control-allow-origin" not in other.headers
