import shutil
import subprocess

import grpc
import pytest
from facets_proto.v1 import models_pb2, models_pb2_grpc
from facets_server.runtime.config import SecurityConfig, ServerConfig
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


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_tls_serves_only_those_who_trust_the_certificate(make_server, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
         "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    security = SecurityConfig(tls_certificate=certificate, tls_key=key)
    running = make_server(config=ServerConfig(security=security))
    credentials = grpc.ssl_channel_credentials(certificate.read_bytes())
    target = f"localhost:{running.server.port}"
    with grpc.secure_channel(target, credentials) as channel:
        stub = models_pb2_grpc.ModelServiceStub(channel)
        assert stub.ListModels(models_pb2.ListModelsRequest(), timeout=60).models
    with grpc.insecure_channel(target) as channel:
        stub = models_pb2_grpc.ModelServiceStub(channel)
        with pytest.raises(grpc.RpcError) as raised:
            stub.ListModels(models_pb2.ListModelsRequest(), timeout=60)
        assert raised.value.code() == grpc.StatusCode.UNAVAILABLE


def test_a_missing_certificate_is_an_error(make_server, tmp_path):
    security = SecurityConfig(tls_certificate=tmp_path / "no.pem", tls_key=tmp_path / "no.key")
    with pytest.raises(ConfigError, match="cannot be read"):
        make_server(config=ServerConfig(security=security))
