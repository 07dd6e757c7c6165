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


def test_files_have_fixed_types_and_a_strict_policy():
    client = browser().client
    expected = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
    files = {f"/{path.relative_to(PLAYGROUND)}": expected.get(path.suffix) for path in PLAYGROUND.rglob("*.*")}
    for path, content_type in {**files, "/": "text/html; charset=utf-8"}.items():
        if content_type is not None:
            headers = client.get(path).headers
            assert headers["content-type"] == content_type, path
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
            assert headers["x-content-type-options"] == "nosniff"


def test_unchanged_files_are_not_sent_again():
    client = browser().client
    etag = client.get("/style.css").headers["etag"]
    reply = client.get("/style.css", headers={"if-none-match": etag})
    assert (reply.status_code, reply.content) == (304, b"")


@pytest.mark.parametrize("path", ["/../app.py", "/%2e%2e/app.py", "/js/..%2f..%2fapp.py", "/nothing.js", "/js"])
def test_files_outside_the_folder_are_not_found(path):
    assert browser().client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8080", 200),
        ("127.0.0.1:8080", 200),
        ("[::1]:8080", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("[::1].evil.com", 421),
        ("127.0.0.1:80:80", 421),
        ("", 421),
    ],
)
def test_a_local_gateway_answers_only_to_local_hosts(host, status):
    assert browser().client.get("/healthz", headers={"host": host}).status_code == status


@pytest.mark.parametrize(
    ("settings", "host", "status"),
    [
        ({"host": "0.0.0.0"}, "a.example", 200),
        ({"host": "0.0.0.0", "allowed_hosts": ("a.example",)}, "a.example:80", 200),
        ({"host": "0.0.0.0", "allowed_hosts": ("a.example",)}, "b.example", 421),
        ({"allowed_hosts": ("*",)}, "b", 200),
    ],
)
def test_other_gateways_answer_to_allowed_hosts(settings, host, status):
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
