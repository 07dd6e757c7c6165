"""Whether a server with given settings would start: the command ``facets-server doctor``."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from facets_client import FacetsClient, FacetsClientError
from prometheus_client import CollectorRegistry

from facets import errors
from facets.documents.store import STORE_FILE, examine_postgres
from facets.errors import ConfigError
from facets.index.backends import make_backend
from facets.storage.directory import LOCK, DirectoryLock, DirectoryManifest
from facets_server.runtime.config import SecurityConfig, ServerConfig
from facets_server.runtime.grpc_server import server_credentials
from facets_server.runtime.hosts import listen
from facets_server.runtime.keys import read_keys
from facets_server.runtime.metrics import BatchMetrics, disk_of
from facets_server.runtime.rooms import load_models
from facets_server.runtime.upkeep import Say

_ANSWER_S = 2.0


def examine(config: ServerConfig, say: Say) -> bool:
    """Whether a server with these settings would start; ``say`` gets lines that begin with ``ok`` or ``problem``."""
    url = config.engine.store.get_secret_value()
    checks: dict[str, Callable[[], Iterable[str]]] = {"data": lambda: _examine_directory(config.data_dir, url)}
    if url != "sqlite":
        checks["postgres"] = lambda: examine_postgres(url, config.data_dir)
    if config.socket is None:
        checks["port"] = lambda: _examine_port(config)
    checks |= {
        "index": lambda: _examine_index(config),
        "security": lambda: _examine_security(config.security),
        "models": lambda: [", ".join(model.name for model in load_models(config, BatchMetrics(CollectorRegistry())))],
    }
    is_fine = True
    for name, check in checks.items():
        try:
            for line in check():
                say(f"ok       {name}: {line}")
        except (errors.FacetsError, ImportError) as error:
            say(f"problem  {name}: {error}")
            is_fine = False
    return is_fine


def _examine_port(config: ServerConfig) -> Iterator[str]:
    try:
        listen(config.host, config.port, "port").close()
        yield f"{config.port} on {config.host} is free"
    except ConfigError as error:
        try:
            with FacetsClient(f"{config.host}:{config.port}", timeout_s=_ANSWER_S) as client:
                client.health()
        except FacetsClientError:
            raise error from None
        yield f"a server answers on {config.host}:{config.port}"


def _examine_directory(directory: Path, url: str) -> Iterator[str]:
    free = disk_of(directory if directory.exists() else directory.absolute().parent).free_bytes
    yield f"{directory} {'exists' if directory.exists() else 'will be created'}, {free / 1e9:.1f} GB free"
    if url == "sqlite":
        DirectoryManifest(directory, STORE_FILE).check()
    if (directory / LOCK).exists():
        try:
            DirectoryLock(directory).close()
            yield "no server is using it"
        except errors.StoreInUseError as error:
            yield str(error)


def _examine_index(config: ServerConfig) -> Iterator[str]:
    backend = make_backend(config.engine)
    if backend.dependency:
        backend.check()
    yield config.engine.index.partition("?")[0] + (" answers" if backend.dependency else "")


def _examine_security(security: SecurityConfig) -> Iterator[str]:
    if (file := security.api_keys_file) is not None:
        read_keys(file)
    if security.tls_certificate is not None:
        server_credentials(security)
    yield f"{'no keys' if file is None else file}, {'no TLS' if security.tls_certificate is None else 'TLS'}"
