"""TLS of the gateway: the certificates of the server, and those of callers where the server asks for them."""

import ssl
from pathlib import Path

import httpx
import pytest
from facets_server.runtime.config import SecurityConfig
from server_gateway_fakes import listening


def get(port: int, context: ssl.SSLContext | bool, scheme: str = "https") -> httpx.Response:
    return httpx.get(f"{scheme}://localhost:{port}/healthz", verify=context, trust_env=False, timeout=60)


def test_the_server_s_certificates_are_used_and_those_of_callers_are_asked_for(pair: tuple[Path, Path]) -> None:
    certificate, key = pair
    context = ssl.create_default_context(cafile=str(certificate))
    with listening(security=SecurityConfig(tls_certificate=certificate, tls_key=key)) as port:
        assert get(port, context).status_code == 200
        with pytest.raises(httpx.ConnectError):
            get(port, True)
        with pytest.raises(httpx.TransportError):
            get(port, False, scheme="http")
    security = SecurityConfig(tls_certificate=certificate, tls_key=key, tls_client_ca=certificate)
    with listening(security=security) as port:
        with pytest.raises(httpx.TransportError):
            get(port, context)
        context.load_cert_chain(certificate, key)
        assert get(port, context).status_code == 200
