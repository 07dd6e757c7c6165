"""Keys of several roles and of some collections."""

import grpc
import pytest
from facets_proto.v1 import documents_pb2, documents_pb2_grpc, models_pb2, models_pb2_grpc, texts_pb2, texts_pb2_grpc
from facets_server.runtime.config import SecurityConfig, ServerConfig
from facets_server.runtime.keys import RIGHTS, read_keys
from proto_files import SERVICES

from facets.errors import ConfigError

LINES = """# comment
reader read
writer write
old-key
bound-reader read news
bound-writer write news wiki
boss admin news
"""
EVERYBODY = {"reader", "writer", "old-key", "bound-reader", "bound-writer", "boss"}


@pytest.fixture
def keyed(make_server, tmp_path):
    file = tmp_path / "keys"
    file.write_text(LINES)
    running = make_server(config=ServerConfig(security=SecurityConfig(api_keys_file=file)))
    for name in ("news", "wiki", "other"):
        running.engine.create_collection(name, model="fake", model_revision="r1", num_facets=3, dim=32)
    return running


def allowed(call, request):
    """The keys with which a call is let in."""
    keys = set()
    for key in EVERYBODY:
        try:
            call(request, timeout=60, metadata=(("authorization", f"Bearer {key}"),))
        except grpc.RpcError as error:
            assert error.code() is grpc.StatusCode.PERMISSION_DENIED, key
        else:
            keys.add(key)
    return keys


def upsert(collection):
    document = documents_pb2.Document(id="1", text="cat")
    return documents_pb2.UpsertRequest(collection=collection, documents=[document])


def test_each_role_may_do_what_the_ones_before_may(keyed):
    documents = documents_pb2_grpc.DocumentServiceStub(keyed.channel)
    collections = documents_pb2_grpc.CollectionServiceStub(keyed.channel)
    embed = texts_pb2_grpc.EmbeddingServiceStub(keyed.channel).Embed
    models = models_pb2_grpc.ModelServiceStub(keyed.channel).ListModels
    everywhere = {"reader", "writer", "old-key"}
    assert allowed(embed, texts_pb2.EmbedRequest(texts=["cat"])) == EVERYBODY
    assert allowed(models, models_pb2.ListModelsRequest()) == EVERYBODY
    assert allowed(documents.Upsert, upsert("news")) == {"writer", "old-key", "bound-writer", "boss"}
    assert allowed(documents.Upsert, upsert("wiki")) == {"writer", "old-key", "bound-writer"}
    assert allowed(documents.CountDocuments, documents_pb2.CountDocumentsRequest(collection="news")) == EVERYBODY
    assert allowed(documents.CountDocuments, documents_pb2.CountDocumentsRequest(collection="other")) == everywhere
    assert allowed(collections.ListCollections, documents_pb2.ListCollectionsRequest()) == everywhere
    assert allowed(collections.GetCollection, documents_pb2.GetCollectionRequest(name="wiki")) == {
        *everywhere,
        "bound-writer",
    }


def test_only_admins_delete_collections_and_only_their_own(keyed):
    delete = documents_pb2_grpc.CollectionServiceStub(keyed.channel).DeleteCollection
    request = documents_pb2.DeleteCollectionRequest
    with pytest.raises(grpc.RpcError):
        delete(request(name="wiki"), timeout=60, metadata=(("authorization", "Bearer boss"),))
    assert delete(request(name="news"), timeout=60, metadata=(("authorization", "Bearer boss"),))
    for key in ("writer", "bound-writer", "reader"):
        with pytest.raises(grpc.RpcError) as raised:
            delete(request(name="wiki"), timeout=60, metadata=(("authorization", f"Bearer {key}"),))
        assert raised.value.code() is grpc.StatusCode.PERMISSION_DENIED


def test_a_stream_opens_only_collections_of_its_key(keyed):
    stub = documents_pb2_grpc.DocumentServiceStub(keyed.channel)
    metadata = (("authorization", "Bearer bound-writer"),)

    def opening(collection):
        return iter([documents_pb2.UpsertStreamRequest(open=documents_pb2.UpsertStreamOpen(collection=collection))])

    assert next(stub.UpsertStream(opening("wiki"), timeout=60, metadata=metadata)).opened.resume_token
    with pytest.raises(grpc.RpcError) as raised:
        next(stub.UpsertStream(opening("other"), timeout=60, metadata=metadata))
    assert raised.value.code() is grpc.StatusCode.PERMISSION_DENIED


def test_every_method_has_a_right():
    methods = {f"/{service.full_name}/{method.name}" for service in SERVICES for method in service.methods}
    assert set(RIGHTS) == methods


def test_a_line_that_is_no_key_is_an_error_that_does_not_show_it(tmp_path):
    file = tmp_path / "keys"
    file.write_text("good\nsecret wrong\n")
    with pytest.raises(ConfigError, match="line 2") as raised:
        read_keys(file)
    assert "secret" not in str(raised.value) and "wrong" not in str(raised.value)
