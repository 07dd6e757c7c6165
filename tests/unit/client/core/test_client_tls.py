"""Encrypted connections: trusted by a certificate of one's own, refused otherwise."""

import shutil
import subprocess

import grpc
import pytest
from facets_client import DeadlineExceededError, TlsConfig, UnavailableError
from fake_server import FakeServer
from fake_world import NUM_FACETS


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


@pytest.mark.parametrize("tls", [True, False])
def test_untrusted_or_no_encryption(make_client, tls_target, tls):
    with pytest.raises((UnavailableError, DeadlineExceededError)):
        make_client(tls_target, tls=tls, timeout_s=2).embed(["text"])


def test_key_without_certificate():
    with pytest.raises(ValueError, match="belong together"):
        TlsConfig(private_key=b"key")
