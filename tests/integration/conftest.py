"""The server under test: a process of our own, or the one at ``FACETS_TARGET`` (a container, for instance)."""

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
import toy_paper_fixtures
from facets_proto.v1 import documents_pb2, documents_pb2_grpc, models_pb2, models_pb2_grpc
from relation_toys import make_toy_relation_checkpoint
from server_process import SHIPPED_MODEL, ServerProcess, make_toy_checkpoint, wait_until_serving

TARGET = os.environ.get("FACETS_TARGET", "")
papers_model = toy_paper_fixtures.folder


@pytest.fixture(scope="session")
def toy_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_toy_checkpoint(tmp_path_factory.mktemp("models") / "toy")


@pytest.fixture(scope="session")
def relation_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_toy_relation_checkpoint(tmp_path_factory.mktemp("relations") / "toy-relations")


@pytest.fixture(scope="session")
def toy_target(
    tmp_path_factory: pytest.TempPathFactory, toy_model: Path, relation_model: Path, papers_model: Path
) -> Iterator[str]:
    """``HOST:PORT`` of a server of our own with toy models for sentences, relations and papers."""
    if TARGET:
        pytest.skip("needs a server of its own, and FACETS_TARGET names another")
    arguments = ["--model", str(relation_model), "--model", str(papers_model)]
    with ServerProcess(tmp_path_factory.mktemp("toys") / "data", toy_model, arguments=arguments) as server:
        yield server.target


@pytest.fixture(scope="session")
def model_path(toy_model: Path) -> Path:
    """The shipped default model, or the toy one where it is not there."""
    return SHIPPED_MODEL if (SHIPPED_MODEL / "model.safetensors").is_file() else toy_model


@pytest.fixture(scope="session")
def server_target(tmp_path_factory: pytest.TempPathFactory, model_path: Path) -> Iterator[str]:
    """``HOST:PORT`` of a running server."""
    if TARGET:
        yield TARGET
        return
    with ServerProcess(tmp_path_factory.mktemp("shared") / "data", model_path, forked=False) as server:
        yield server.target


@pytest.fixture(scope="session")
def channel(server_target: str) -> Iterator[grpc.Channel]:
    options = [
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        ("grpc.enable_retries", 0),
    ]
    with grpc.insecure_channel(server_target, options=options) as channel:
        wait_until_serving(channel)
        yield channel


@pytest.fixture
def collection(channel: grpc.Channel) -> Iterator[str]:
    """A new collection of the server's default model, deleted afterwards; one of passages may be served beside it."""
    stub = documents_pb2_grpc.CollectionServiceStub(channel)
    name = f"test-{uuid.uuid4().hex[:12]}"
    default = models_pb2_grpc.ModelServiceStub(channel).GetModel(models_pb2.GetModelRequest(), timeout=30).model
    stub.CreateCollection(documents_pb2.CreateCollectionRequest(name=name, model=default.name), timeout=30)
    yield name
    stub.DeleteCollection(documents_pb2.DeleteCollectionRequest(name=name), timeout=60)


@pytest.fixture
def spawn(tmp_path: Path, toy_model: Path) -> Iterator[Callable[..., ServerProcess]]:
    """Starts server processes that the test may kill; their default data directory stays the same."""
    if TARGET:
        pytest.skip("needs a server process of its own, and FACETS_TARGET names one that runs elsewhere")
    started: list[ServerProcess] = []

    def start(**settings: object) -> ServerProcess:
        server = ServerProcess(
            settings.pop("data_dir", tmp_path / "data"),  # type: ignore[arg-type]
            settings.pop("model", toy_model),  # type: ignore[arg-type]
            **settings,  # type: ignore[arg-type]
        )
        started.append(server)
        return server.wait_until_serving()

    yield start
    for server in started:
        server.__exit__()
