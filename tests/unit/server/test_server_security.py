from dataclasses import replace

import grpc
import pytest
from facets_proto.v1 import models_pb2, models_pb2_grpc
from facets_server.config import SecurityConfig, ServerConfig
from grpc_health.v1 import health_pb2, health_pb2_grpc

from facets.errors import ConfigError


@pytest.fixture
def keyed(make_server, tmp_path):
    file = tmp_path / "keys"
    file.write_text("first-key\nsecond-key\n")
    return make_server(config=replace(ServerConfig(), security=SecurityConfig(api_keys_file=file)))


@pytest.mark.parametrize("key", ["first-key", "second-key"])
def test_known_keys_are_let_in(keyed, key):
    stub = models_pb2_grpc.ModelServiceStub(keyed.channel)
    reply = stub.ListModels(models_pb2.ListModelsRequest(), timeout=10, metadata=(("authorization", f"Bearer {key}"),))
    assert len(reply.models) == 1


@pytest.mark.parametrize(
    "metadata", [(), (("authorization", "Bearer wrong"),), (("authorization", "Basic first-key"),)]
)
def test_others_are_not(keyed, metadata):
    stub = models_pb2_grpc.ModelServiceStub(keyed.channel)
    with pytest.raises(grpc.RpcError) as raised:
        stub.ListModels(models_pb2.ListModelsRequest(), timeout=10, metadata=metadata)
    assert raised.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_health_needs_no_key(keyed):
    stub = health_pb2_grpc.HealthStub(keyed.channel)
    assert stub.Check(health_pb2.HealthCheckRequest(), timeout=10).status == health_pb2.HealthCheckResponse.SERVING


def test_an_empty_key_file_is_an_error(make_server, tmp_path):
    file = tmp_path / "keys"
    file.write_text("\n")
    with pytest.raises(ConfigError, match="holds no key"):
        make_server(config=replace(ServerConfig(), security=SecurityConfig(api_keys_file=file)))
