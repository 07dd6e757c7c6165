"""Targets as people write them, and channels that are encrypted."""

import shutil
import subprocess

import grpc
import pytest
from facets_client import TlsConfig
from facets_client.core.channel import parse_target
from fake_server import NUM_FACETS, FakeServer


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("localhost", "localhost:50051"),
        ("::1", "[::1]:50051"),
        ("fe80::1%eth0", "[fe80::1%eth0]:50051"),
        ("dns:///example.org", "dns:///example.org:50051"),
        ("unix:/run/facets.sock", "unix:/run/facets.sock"),
        ("ipv4:10.0.0.1:80,10.0.0.2:80", "ipv4:10.0.0.1:80,10.0.0.2:80"),
    ],
)
def test_targets(text, target):
    assert parse_target(text) == target
    assert parse_target(target) == target


@pytest.mark.parametrize(
    "text",
    [*("", "a b:1", ":50051", "[::1", "[localhost]:1", "ftp://example.org", "localhost:0", "dns:///example.org:99999")],
)
def test_an_invalid_target_is_explained(text):
    with pytest.raises(ValueError, match=r"HOST:PORT with a port of 1 to 65535, like localhost:50051 .* got"):
        parse_target(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("http://localhost:50051/", "not be a URL, got 'http://localhost:50051/': try 'localhost:50051'$"),
        ("https://example.org", "try 'example.org', with TLS"),
    ],
)
def test_a_url_is_explained(text, hint):
    with pytest.raises(ValueError, match=hint):
        parse_target(text)


@pytest.mark.parametrize(
    "arguments", [{"target": ""}, {"target": "a b:1"}, {"timeout_s": 0}, {"api_key": "\n"}, {"api_key": ""}]
)
def test_settings_that_cannot_work(make_client, arguments):
    with pytest.raises(ValueError, match="must be"):
        make_client(**arguments)
    with pytest.raises(TypeError, match="target must be a str like 'localhost:50051', got NoneType"):
        make_client(None)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Key and self-signed certificate of ``localhost``."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: no certificate to test with")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost"),
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return (folder / "key.pem").read_bytes(), (folder / "cert.pem").read_bytes()


@pytest.fixture
def tls_target(certificate):
    fake = FakeServer(credentials=grpc.ssl_server_credentials([certificate]))
    yield fake.target
    fake.stop()


def test_trusted_certificate(make_client, tls_target, certificate):
    client = make_client(tls_target, tls=TlsConfig(root_certificates=certificate[1]))
    assert client.embed(["text"]).facet_embeddings.shape[1] == NUM_FACETS
    assert len(list(client.embed_stream(["text"]))) == 1
