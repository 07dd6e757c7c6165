"""A server on localhost:0 around a fake model."""

import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest
from facets_proto.v1 import documents_pb2_grpc, models_pb2_grpc, relations_pb2_grpc, texts_pb2_grpc
from facets_server.runtime.app import FacetsServer
from facets_server.runtime.config import AdmissionConfig, BatcherConfig, LimitsConfig, ServerConfig
from facets_server.runtime.metrics import BatchMetrics
from facets_server.runtime.models import ServedModel
from facets_server.runtime.observability import Tracing
from facets_server.texts.served import ServedSentences
from grpc_health.v1 import health_pb2_grpc
from prometheus_client import CollectorRegistry
from server_fakes import FakeModel

from facets.documents import CollectionEngine, EngineConfig


@dataclass
class Running:
    """A server, what it serves, and its services as a caller has them."""

    server: FacetsServer
    model: FakeModel
    engine: CollectionEngine
    channel: grpc.Channel
    config: ServerConfig
    others: list[FakeModel] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.collections = documents_pb2_grpc.CollectionServiceStub(self.channel)
        self.documents = documents_pb2_grpc.DocumentServiceStub(self.channel)
        self.embedding = texts_pb2_grpc.EmbeddingServiceStub(self.channel)
        self.health = health_pb2_grpc.HealthStub(self.channel)
        self.models = models_pb2_grpc.ModelServiceStub(self.channel)
        self.relations = relations_pb2_grpc.RelationServiceStub(self.channel)

    def metric(self, name: str, **labels: str) -> float:
        return self.server.registry.get_sample_value(name, labels) or 0.0


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Starts servers: ``make_server(admission=..., models=[...])``; all are stopped at the end."""
    yield from _servers(tmp_path)


@pytest.fixture(scope="module")
def make_module_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Running]]:
    """``make_server`` for servers that the tests of a module share."""
    yield from _servers(tmp_path_factory.mktemp("servers"))


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost, signed by itself, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


@pytest.fixture
def running(make_server: Callable[..., Running]) -> Running:
    return make_server()


@pytest.fixture(scope="module")
def shared(make_module_server: Callable[..., Running]) -> Running:
    """A server for tests that leave it as it was."""
    return make_module_server()


def _servers(folder: Path) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def make(
        *,
        models: Sequence[FakeModel] = (),
        data_dir: Path | None = None,
        admission: AdmissionConfig | None = None,
        limits: LimitsConfig | None = None,
        batcher: BatcherConfig | None = None,
        config: ServerConfig | None = None,
        max_database_bytes: int | None = None,
        others: Sequence[ServedModel] = (),
        tracing: Tracing | None = None,
    ) -> Running:
        config = (config or ServerConfig()).replaced(
            host="127.0.0.1",
            port=0,
            data_dir=data_dir or folder / f"data{len(started)}",
            admission=admission or AdmissionConfig(max_concurrent_requests=80, max_queued_requests=16),
            limits=limits or LimitsConfig(),
            batcher=batcher or BatcherConfig(),
        )
        served = list(models) or [FakeModel()]
        engine = CollectionEngine.open(
            config.data_dir, EngineConfig(background=False, max_database_bytes=max_database_bytes)
        )
        registry = CollectorRegistry()
        metrics = BatchMetrics(registry)
        texts = [ServedSentences(model, config.batcher, metrics) for model in served]
        server = FacetsServer([*texts, *others], engine, config, registry=registry, tracing=tracing)
        channel = grpc.insecure_channel(f"127.0.0.1:{server.port}")
        running = Running(server, served[0], engine, channel, config, served[1:])
        started.append(running)
        server.start()
        return running

    make.started = started  # type: ignore[attr-defined]
    yield make
    for running in started:
        running.model.gate.set()
        running.channel.close()
        running.server.stop(0.2)
        running.engine.close()
