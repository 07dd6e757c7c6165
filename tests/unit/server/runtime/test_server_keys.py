"""API keys, their roles and collections, and the trust in gateways."""

import grpc
import pytest
from facets_proto.v1 import documents_pb2, models_pb2, texts_pb2
from facets_server.runtime.config import SecurityConfig, ServerConfig
from facets_server.runtime.errors import UnauthenticatedError
from facets_server.runtime.keys import ADDRESS_METADATA, RIGHTS, Role, caller_of, read_keys
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from proto_files import SERVICES
from server_failures import failure

from facets.errors import ConfigError

LINES = """# comment
reader read
writer write
old-key
bound-reader read news
bound-writer write news wiki
boss admin news
"""
ALL = {"reader", "writer", "old-key", "bound-reader", "bound-writer", "boss"}
UNBOUND = {"reader", "writer", "old-key"}


def authorized(key):
    return (("authorization", f"Bearer {key}"),)


@pytest.fixture
def keyed(make_server, tmp_path):
    file = tmp_path / "keys"
    file.write_text(LINES)
    running = make_server(config=ServerConfig(security=SecurityConfig(api_keys_file=file)))
    for name in ("news", "wiki", "other"):
        running.engine.create_collection(name, model="fake", model_revision="r1", num_facets=3, dim=32)
    return running


def allowed(call, request, keys=ALL):
    """The keys whose call is let in."""
    let_in = set()
    for key in keys:
        try:
            call(request, timeout=60, metadata=authorized(key))
            let_in.add(key)
        except grpc.RpcError as error:
            assert error.code() is grpc.StatusCode.PERMISSION_DENIED, key
    return let_in


def upsert(collection):
    return documents_pb2.UpsertRequest(collection=collection, documents=[documents_pb2.Document(id="1", text="cat")])


def test_roles_and_collections_decide_what_a_key_may_call(keyed):
    count, delete = documents_pb2.CountDocumentsRequest, documents_pb2.DeleteCollectionRequest
    for call, request, expected in (
        (keyed.embedding.Embed, texts_pb2.EmbedRequest(texts=["cat"]), ALL),
        (keyed.documents.Upsert, upsert("news"), {"writer", "old-key", "bound-writer", "boss"}),
        (keyed.documents.Upsert, upsert("wiki"), {"writer", "old-key", "bound-writer"}),
        (keyed.documents.CountDocuments, count(collection="news"), ALL),
        (keyed.documents.CountDocuments, count(collection="other"), UNBOUND),
        (keyed.collections.ListCollections, documents_pb2.ListCollectionsRequest(), UNBOUND),
        (keyed.collections.GetCollection, documents_pb2.GetCollectionRequest(name="wiki"), {*UNBOUND, "bound-writer"}),
    ):
        assert allowed(call, request) == expected, request
    assert allowed(keyed.collections.DeleteCollection, delete(name="wiki"), ALL - {"old-key"}) == set()
    assert allowed(keyed.collections.DeleteCollection, delete(name="news"), {"boss"}) == {"boss"}


def test_a_stream_opens_only_collections_of_its_key(keyed):
    def opened(collection):
        opening = documents_pb2.UpsertStreamRequest(open=documents_pb2.UpsertStreamOpen(collection=collection))
        return next(keyed.documents.UpsertStream(iter([opening]), timeout=60, metadata=authorized("bound-writer")))

    assert opened("wiki").opened.resume_token
    with pytest.raises(grpc.RpcError) as raised:
        opened("other")
    assert raised.value.code() is grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ((), "needs metadata 'authorization: Bearer KEY'"),
        ((("authorization", "Basic reader"),), "needs metadata 'authorization: Bearer KEY'"),
        ((("authorization", "Bearer wrong"),), "the key is unknown"),
    ],
)
def test_unknown_keys_are_refused_except_for_health(keyed, metadata, says):
    asked, code = models_pb2.ListModelsRequest(), grpc.StatusCode.UNAUTHENTICATED
    assert says in failure(keyed.models.ListModels, asked, code, metadata=metadata).message
    with pytest.raises(grpc.RpcError):
        ProtoReflectionDescriptorDatabase(keyed.channel).get_services()
    checked = keyed.health.Check(health_pb2.HealthCheckRequest(), timeout=60)
    assert checked.status == health_pb2.HealthCheckResponse.SERVING


def test_every_method_has_a_right():
    ours = {f"/{service.full_name}/{method.name}" for service in SERVICES for method in service.methods}
    assert set(RIGHTS) == ours | {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}


def keys_of(tmp_path, content):
    file = tmp_path / "keys"
    file.write_bytes(content)
    return read_keys(file)


def test_a_key_file_has_comments_roles_weights_and_collections(tmp_path):
    keys = keys_of(tmp_path, b"\xef\xbb\xbfone\n#secret\ntwo read weight=2.5\nthree write weight=0.5 wiki\n")
    found = [keys.find(f"Bearer {key}") for key in ("one", "two", "three")]
    assert [key.weight for key in found] == [1.0, 2.5, 0.5]
    assert [key.role for key in found] == [Role.ADMIN, Role.READ, Role.WRITE]
    assert found[2].collections == {"wiki"}
    for secret in ("#secret", "secret", "#"):
        with pytest.raises(UnauthenticatedError):
            keys.find(f"Bearer {secret}")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"\n", "has no key"),
        (b"key\xff\n", "not UTF-8"),
        (b"good\nsecret wrong\n", "line 2"),
        (b"secret read\n\nsecret admin\n", "line 3: this key is on an earlier line"),
        (b"good\nread\n", "line 2: expected a key"),
        *(
            (f"secret admin {rest}\n".encode(), "line 1: expected weight=N, then names of collections")
            for rest in ("weight=1 weight=2", "wiki weight=2", "# comment", "UPPER", "../x")
        ),
        *(
            (f"secret read weight={weight}\n".encode(), "line 1: weight is a number from")
            for weight in ("", "0", "nan", "101")
        ),
    ],
)
def test_bad_key_files_are_refused_without_showing_a_key(tmp_path, content, match):
    with pytest.raises(ConfigError, match=match) as raised:
        keys_of(tmp_path, content)
    assert "secret" not in str(raised.value)


class FakeContext:
    def __init__(self, peer, *metadata):
        self._peer, self._metadata = peer, metadata

    def peer(self):
        return self._peer

    def invocation_metadata(self):
        return self._metadata


def test_only_a_gateway_names_the_address_of_its_client():
    named = (ADDRESS_METADATA, "ipv4:192.0.2.9")
    assert caller_of(FakeContext("ipv4:192.0.2.1:4000", named)) == "ipv4:192.0.2.1"
    assert caller_of(FakeContext("unix:", named)) == "ipv4:192.0.2.9"
    assert caller_of(FakeContext("unix:")) == "unix"
