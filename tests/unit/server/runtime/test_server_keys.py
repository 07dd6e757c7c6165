"""Keys, and whom the server believes on whose behalf he calls."""

from pathlib import Path

import grpc
import pytest
from facets_proto.v1 import models_pb2, models_pb2_grpc
from facets_server.runtime.config import HttpConfig, SecurityConfig, ServerConfig
from facets_server.runtime.errors import UnauthenticatedError
from facets_server.runtime.keys import ADDRESS_METADATA, TOKEN_METADATA, GatewayTrust, Role, gateway_tokens, read_keys
from grpc_health.v1 import health_pb2, health_pb2_grpc

from facets.errors import ConfigError


@pytest.fixture
def keyed(make_server, tmp_path):
    file = tmp_path / "keys"
    file.write_text("first-key\nsecond-key\n")
    return make_server(config=ServerConfig(security=SecurityConfig(api_keys_file=file)))


@pytest.mark.parametrize("key", ["first-key", "second-key"])
def test_known_keys_are_let_in(keyed, key):
    stub = models_pb2_grpc.ModelServiceStub(keyed.channel)
    reply = stub.ListModels(models_pb2.ListModelsRequest(), timeout=60, metadata=(("authorization", f"Bearer {key}"),))
    assert len(reply.models) == 1


@pytest.mark.parametrize(
    "metadata", [(), (("authorization", "Bearer wrong"),), (("authorization", "Basic first-key"),)]
)
def test_others_are_not(keyed, metadata):
    stub = models_pb2_grpc.ModelServiceStub(keyed.channel)
    with pytest.raises(grpc.RpcError) as raised:
        stub.ListModels(models_pb2.ListModelsRequest(), timeout=60, metadata=metadata)
    assert raised.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_health_needs_no_key(keyed):
    stub = health_pb2_grpc.HealthStub(keyed.channel)
    assert stub.Check(health_pb2.HealthCheckRequest(), timeout=60).status == health_pb2.HealthCheckResponse.SERVING


def test_an_empty_key_file_is_an_error(make_server, tmp_path):
    file = tmp_path / "keys"
    file.write_text("\n")
    with pytest.raises(ConfigError, match="holds no key"):
        make_server(config=ServerConfig(security=SecurityConfig(api_keys_file=file)))


def test_keys_that_are_not_utf_8_are_an_error(make_server, tmp_path):
    file = tmp_path / "keys"
    file.write_bytes(b"key\xff\n")
    with pytest.raises(ConfigError, match="not UTF-8"):
        make_server(config=ServerConfig(security=SecurityConfig(api_keys_file=file)))


def keys_of(tmp_path, text):
    file = tmp_path / "keys"
    file.write_text(text)
    return read_keys(file)


@pytest.mark.parametrize("line", ["# secret", "#secret", "  #secret read", "##secret admin"])
def test_a_commented_line_is_no_key(tmp_path, line):
    keys = keys_of(tmp_path, f"{line}\ngood read\n")
    for sent in (line.split()[0], "secret", "#secret", "#"):
        with pytest.raises(UnauthenticatedError):
            keys.find(f"Bearer {sent}")
    assert keys.find("Bearer good").role is Role.READ


def test_a_key_may_have_a_weight(tmp_path):
    keys = keys_of(tmp_path, "one\ntwo read weight=2.5\nthree write weight=0.5 wiki\n")
    assert [keys.find(f"Bearer {key}").weight for key in ("one", "two", "three")] == [1.0, 2.5, 0.5]
    assert keys.find("Bearer three").collections == {"wiki"}


@pytest.mark.parametrize("weight", ["", "x", "0", "-1", "1e9", "101", "nan", "inf"])
def test_a_weight_that_is_none_is_an_error(tmp_path, weight):
    with pytest.raises(ConfigError, match="line 1: weight is a number from"):
        keys_of(tmp_path, f"secret read weight={weight}\n")


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
