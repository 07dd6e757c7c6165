"""Ports and sockets: where the server listens, with which certificates."""

import socket
import urllib.request
from urllib.parse import quote

import grpc
import pytest
from facets_client.cli.main import app
from facets_proto.v1 import models_pb2, models_pb2_grpc
from facets_server.runtime.config import HttpConfig, SecurityConfig, ServerConfig
from facets_server.runtime.hosts import exposure
from typer.testing import CliRunner

from facets.errors import ConfigError


def test_tls_serves_only_clients_that_trust_the_certificate_and_show_their_own(make_server, pair, tmp_path):
    certificate, key = pair
    (tmp_path / "own.pem").write_bytes(certificate.read_bytes() + key.read_bytes())
    trusting = ["--ca-cert", str(certificate)]
    showing = [*trusting, "--client-cert", str(tmp_path / "own.pem")]
    for client_ca, refused, served in ((None, [], trusting), (certificate, trusting, showing)):
        security = SecurityConfig(tls_certificate=certificate, tls_key=key, tls_client_ca=client_ca)
        port = make_server(config=ServerConfig(security=security)).server.port
        asked = ["models", "--target", f"localhost:{port}", "--timeout-s"]
        assert CliRunner().invoke(app, [*asked, "60", *served]).exit_code == 0
        assert CliRunner().invoke(app, [*asked, "2", *refused]).exit_code == 3


@pytest.mark.parametrize("setting", ["tls_certificate", "tls_key", "tls_client_ca"])
@pytest.mark.parametrize("content", [None, b"junk", b"-----BEGIN CERTIFICATE-----\njunk\n-----END CERTIFICATE-----\n"])
def test_junk_in_place_of_a_certificate_is_an_error_that_names_the_setting(
    make_server, tmp_path, pair, setting, content
):
    junk = tmp_path / "junk.pem"
    if content is not None:
        junk.write_bytes(content)
    files = {"tls_certificate": pair[0], "tls_key": pair[1], setting: junk}
    with pytest.raises(ConfigError, match=f"{setting} {junk}"):
        make_server(config=ServerConfig(security=SecurityConfig(**files)))


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "10.1.2.3", "facets.example.org"])
def test_interfaces_without_keys_or_tls_are_warned_of_unless_local(host, tmp_path):
    assert not any(exposure(ServerConfig(host=local)) for local in ("127.0.0.1", "localhost", "[::1]"))
    assert [warning[:7] for warning in exposure(ServerConfig(host=host))] == ["NO KEYS", "NO TLS:"]
    files = {name: tmp_path / name for name in ("tls_certificate", "tls_key", "api_keys_file")}
    assert exposure(ServerConfig(host=host, security=SecurityConfig(**files))) == []


def test_metrics_are_served_on_the_host_only(make_server):
    port = make_server(config=ServerConfig(metrics_port=0)).server.metrics_port
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as reply:
        assert b"facets_requests" in reply.read()
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.2", port), timeout=10):
        pass


def test_a_server_that_cannot_be_made_leaves_no_port_open(make_server):
    with socket.create_server(("127.0.0.1", 0)) as busy, socket.create_server(("127.0.0.1", 0)) as free:
        ports = busy.getsockname()[1], free.getsockname()[1]
        free.close()
        with pytest.raises(ConfigError, match="metrics_port"):
            make_server(config=ServerConfig(metrics_port=ports[0], http=HttpConfig(port=ports[1])))
        socket.create_server(("127.0.0.1", ports[1])).close()


def test_a_socket_serves_this_user_only(make_server, tmp_path):
    path = tmp_path / "a folder" / "server.sock"
    path.parent.mkdir()
    server = make_server(config=ServerConfig(socket=path)).server
    assert path.stat().st_mode & 0o777 == 0o700
    with grpc.insecure_channel(f"unix:{quote(str(path))}") as channel:
        assert models_pb2_grpc.ModelServiceStub(channel).ListModels(models_pb2.ListModelsRequest(), timeout=60).models
    server.stop(0.0)
    assert not path.exists()


def test_a_socket_without_a_folder_is_an_error(make_server, tmp_path):
    with pytest.raises(ConfigError, match=r"server\.sock cannot be used"):
        make_server(config=ServerConfig(socket=tmp_path / "no" / "server.sock"))


def test_a_socket_is_for_grpc_alone(tmp_path):
    with pytest.raises(ConfigError, match=r"socket must be unset where http\.port is on"):
        ServerConfig(socket=tmp_path / "server.sock", http=HttpConfig(port=0))


def test_calls_of_unknown_methods_are_refused_and_the_server_goes_on(make_server):
    channel = make_server().channel
    for path in (b"/\xff/\xfe", "/facets.v1.ModelService/Unknown", "/"):
        call = channel.unary_unary(path)
        with pytest.raises(grpc.RpcError) as raised:
            call(b"", timeout=60)
        assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert models_pb2_grpc.ModelServiceStub(channel).ListModels(models_pb2.ListModelsRequest(), timeout=60).models
