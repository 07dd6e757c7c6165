"""Pages, probes, names of hosts, other origins."""

import pytest
from facets_server.gateway.app import PLAYGROUND
from facets_server.gateway.failures import CallFailedError
from grpc import StatusCode
from grpc_health.v1 import health_pb2
from server_gateway_fakes import browser

CHECK = "/grpc.health.v1.Health/Check"
SERVING = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)
NOT_SERVING = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.NOT_SERVING)
PAGE = "https://page.example"


def test_the_gateway_lives_whatever_the_server_does():
    page = browser()
    assert page.client.get("/healthz").json() == {"status": "ok"}
    assert page.upstream.asked == []


@pytest.mark.parametrize(
    ("answer", "status"),
    [(SERVING, 200), (NOT_SERVING, 503), (CallFailedError(StatusCode.UNAVAILABLE, "it cannot be reached"), 503)],
)
@pytest.mark.parametrize("path", ["/readyz", "/health"])
def test_readiness_is_that_of_the_server(path, answer, status):
    assert browser({CHECK: answer}).client.get(path).status_code == status


def test_the_page_may_load_its_own_files_only():
    reply = browser().client.get("/")
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
    assert reply.headers["x-content-type-options"] == "nosniff"


def test_files_have_types_that_browsers_run():
    expected = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
    client = browser().client
    for path in PLAYGROUND.rglob("*"):
        if path.suffix in expected:
            reply = client.get(f"/{path.relative_to(PLAYGROUND)}")
            assert reply.headers["content-type"] == expected[path.suffix], path
            assert reply.headers["content-security-policy"]


def test_files_that_have_not_changed_are_not_sent_again():
    client = browser().client
    etag = client.get("/style.css").headers["etag"]
    reply = client.get("/style.css", headers={"if-none-match": etag})
    assert (reply.status_code, reply.content) == (304, b"")


@pytest.mark.parametrize("path", ["/../pages.py", "/%2e%2e/pages.py", "/js/..%2f..%2fpages.py", "/nothing.js", "/js"])
def test_files_elsewhere_are_not_found(path):
    assert browser().client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("localhost:8080", 200),
        ("127.0.0.1:8080", 200),
        ("[::1]:8080", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("[::1].evil.com", 421),
        ("[::1]evil.com", 421),
        ("[::1]:80.evil.com", 421),
        ("127.0.0.1:80:80", 421),
        ("127.0.0.1.evil.com:80", 421),
        ("", 421),
    ],
)
def test_on_this_machine_only_its_own_names_are_answered(host, status):
    assert browser().client.get("/healthz", headers={"host": host}).status_code == status


def test_elsewhere_any_name_is_answered_unless_some_are_set():
    assert browser(host="0.0.0.0").client.get("/healthz", headers={"host": "a.example"}).status_code == 200
    named = browser(host="0.0.0.0", allowed_hosts=("a.example",)).client
    assert named.get("/healthz", headers={"host": "a.example:80"}).status_code == 200
    assert named.get("/healthz", headers={"host": "b.example"}).status_code == 421
    assert browser(allowed_hosts=("*",)).client.get("/healthz", headers={"host": "b"}).status_code == 200


PREFLIGHT = {"origin": PAGE, "access-control-request-method": "POST", "access-control-request-headers": "content-type"}


def test_pages_of_other_origins_may_not_call():
    client = browser().client
    assert "access-control-allow-origin" not in client.get("/healthz", headers={"origin": PAGE}).headers
    assert client.options("/v1/embeddings", headers=PREFLIGHT).status_code == 405


def test_pages_of_origins_that_are_set_may_call():
    client = browser(cors_origins=(PAGE,)).client
    reply = client.options("/v1/embeddings", headers=PREFLIGHT)
    assert (reply.status_code, reply.headers["access-control-allow-origin"]) == (200, PAGE)
    assert client.get("/healthz", headers={"origin": PAGE}).headers["access-control-allow-origin"] == PAGE
    other = client.get("/healthz", headers={"origin": "https://other.example"})
    assert "access-control-allow-origin" not in other.headers
