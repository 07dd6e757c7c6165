"""A gateway beside a server, started by hand: another process, or another machine."""

import asyncio
import logging
from pathlib import Path

import grpc
from prometheus_client import CollectorRegistry, start_http_server

from facets.errors import ConfigError
from facets_server.gateway.serving import Gateway, listen
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.gateway_trust import read_token
from facets_server.runtime.listening import exposure

__all__ = ["run_beside"]

logger = logging.getLogger(__name__)

_DEFAULT_PORT = 8080


def run_beside(target: str, config: ServerConfig, *, ca_file: Path | None) -> None:
    """Serves until SIGTERM or SIGINT.

    Args:
        target: ``HOST:PORT`` of the gRPC server.
        config: Settings of the gateway; its port is 8080 where none is set.
        ca_file: Certificates to trust, PEM; None: the server speaks no TLS.

    Raises:
        ConfigError: A port or a file cannot be used.
    """
    http = config.http if config.http.port >= 0 else config.http.model_copy(update={"port": _DEFAULT_PORT})
    token = "" if http.token_file is None else read_token(http.token_file)
    registry = CollectorRegistry()
    gateway = Gateway(target, config, token=token, credentials=_credentials(ca_file), registry=registry)
    with listen(config.host, http) as bound:
        if config.metrics_port >= 0:
            _serve_metrics(config, registry)
        for warning in exposure(config):
            logger.warning("%s", warning)
        logger.info("HTTP on port %d of %s, for the server at %s", bound.getsockname()[1], config.host, target)
        asyncio.run(gateway.serve_until_signal(bound))


def _serve_metrics(config: ServerConfig, registry: CollectorRegistry) -> None:
    try:
        start_http_server(config.metrics_port, addr=config.host.strip("[]"), registry=registry)
    except OSError as error:
        problem = f"metrics_port {config.metrics_port} on {config.host} cannot be used: {error.strerror}"
        raise ConfigError(problem) from error


def _credentials(ca_file: Path | None) -> grpc.ChannelCredentials | None:
    if ca_file is None:
        return None
    try:
        return grpc.ssl_channel_credentials(ca_file.read_bytes())
    except OSError as error:
        raise ConfigError(f"--target-ca {ca_file} cannot be read: {error.strerror}") from error
