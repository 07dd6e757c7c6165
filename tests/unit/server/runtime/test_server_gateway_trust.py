"""Whom the server believes on whose behalf a call comes."""

from pathlib import Path

import pytest
from facets_server.runtime.config import HttpConfig
from facets_server.runtime.errors import UnauthenticatedError
from facets_server.runtime.keys import ADDRESS_METADATA, TOKEN_METADATA, GatewayTrust, gateway_tokens

from facets.errors import ConfigError


class FakeContext:
    def __init__(self, peer: str, **metadata: str) -> None:
        self._peer = peer
        self._metadata = tuple((name.replace("_", "-"), value) for name, value in metadata.items())

    def peer(self) -> str:
        return self._peer

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return self._metadata


TOKEN = "t" * 20


def caller(peer: str, token: str = "", address: str = "ipv4:192.0.2.9") -> str:
    metadata = {TOKEN_METADATA.replace("-", "_"): token, ADDRESS_METADATA.replace("-", "_"): address}
    return GatewayTrust([TOKEN]).caller_of(FakeContext(peer, **metadata))


def test_callers_are_known_by_their_address_without_port():
    assert caller("ipv4:192.0.2.1:4000") == "ipv4:192.0.2.1"


def test_gateways_say_for_whom_they_call():
    assert caller("ipv4:192.0.2.1:4000", TOKEN) == "ipv4:192.0.2.9"


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1]])
def test_nobody_else_is_believed(token):
    assert caller("ipv4:192.0.2.1:4000", token) == "ipv4:192.0.2.1"


@pytest.mark.parametrize("peer", ["unix:", "unix-abstract:x"])
def test_the_socket_of_the_gateway_is_for_the_gateway(peer):
    with pytest.raises(UnauthenticatedError, match="for the gateway"):
        caller(peer)
    assert caller(peer, TOKEN) == "ipv4:192.0.2.9"


def test_each_server_makes_a_secret_of_its_own(tmp_path: Path):
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert gateway_tokens(HttpConfig()) != gateway_tokens(HttpConfig())
    assert gateway_tokens(HttpConfig(token_file=file))[1:] == [TOKEN]


@pytest.mark.parametrize(("text", "match"), [("", "no secret"), ("short", "no secret"), ("\xe4" * 20, "ASCII")])
def test_files_without_a_secret_are_refused(tmp_path: Path, text, match):
    file = tmp_path / "token"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=match):
        gateway_tokens(HttpConfig(token_file=file))
    with pytest.raises(ConfigError, match="cannot be read"):
        gateway_tokens(HttpConfig(token_file=tmp_path / "nothing"))
