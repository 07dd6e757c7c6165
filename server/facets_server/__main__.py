"""``facets-server``: reads the settings, opens data and models, serves until SIGTERM.

Exit codes: 0 after a clean stop; 1 when data or a model cannot be opened; 2 when a setting is wrong or the
port is in use. Each failure is one sentence on standard error.
"""

import argparse
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from facets.errors import CheckpointError, ConfigError, FacetsError, NotFoundError, StorageError
from facets.extras import require_extra
from facets_server.runtime.config import ServerConfig, load_config

__all__ = ["main"]

logger = logging.getLogger("facets_server")

EXIT_OK, EXIT_CANNOT_OPEN, EXIT_BAD_SETTING = 0, 1, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the server; returns the exit code."""
    try:
        config = _config(_parser().parse_args(argv))
    except ConfigError as error:
        return _fail(error, EXIT_BAD_SETTING)
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    for package in ("facets", "facets_server"):  # other packages only when they warn
        logging.getLogger(package).setLevel(config.log_level)
    try:
        return _serve(config)
    except ConfigError as error:
        return _fail(error, EXIT_BAD_SETTING)
    except (StorageError, CheckpointError, NotFoundError) as error:
        return _fail(error, EXIT_CANNOT_OPEN)


def _serve(config: ServerConfig) -> int:
    require_extra("server", "torch", "faiss", "spacy", "grpc_health", "grpc_reflection", "prometheus_client")
    _check_port(config)
    # Loading these takes seconds; a wrong setting or --help answers at once.
    from facets.documents import CollectionEngine
    from facets_server.runtime.app import create_server
    from facets_server.runtime.loading import load_models

    stop = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, _setter(stop))
    with CollectionEngine.open(config.data_dir, config.engine) as engine:
        loaded = load_models(config)
        server = create_server(loaded.texts, engine, config, others=loaded.others)
        try:
            if config.metrics_port >= 0:
                server.serve_metrics(config.metrics_port)
                logger.info("metrics on http://%s:%s/metrics", config.host, server.metrics_port)
            server.start()
            names = ", ".join(f"{info.name} ({info.revision[:12]})" for info in server.served_models())
            logger.info("serving %s on %s:%d", names, config.host, server.port)
            stop.wait()
            logger.info("shutting down: at most %.0f s for running calls", config.drain_s)
        finally:
            server.stop(config.drain_s if stop.is_set() else 0.0)
    logger.info("stopped")
    return EXIT_OK


def _setter(stop: threading.Event) -> "signal._HANDLER":
    def handle(number: int, frame: FrameType | None) -> None:
        stop.set()

    return handle


def _check_port(config: ServerConfig) -> None:
    """Finds a busy port before data and models are loaded; binding it later is what decides."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((config.host.strip("[]"), config.port))
        except OSError as error:
            reason = error.strerror or str(error)
            raise ConfigError(f"port {config.port} on {config.host} cannot be used: {reason}") from error


def _config(arguments: argparse.Namespace) -> ServerConfig:
    flags = {
        "host": arguments.host,
        "port": arguments.port,
        "data_dir": arguments.data_dir,
        "models": tuple(arguments.model) if arguments.model else None,
        "metrics_port": arguments.metrics_port,
        "drain_s": arguments.drain_s,
        "log_level": arguments.log_level,
    }
    return load_config(arguments.config, os.environ, flags)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="facets-server",
        description="Serves facet embeddings, similarity, summaries and search over gRPC.",
        epilog="Every setting may also stand in the configuration file (port = 50051) or in the environment "
        "(FACETS_SERVER_PORT=50051); flags win over the environment, the environment over the file.",
    )
    parser.add_argument("--port", type=int, help="port of the gRPC server (default 50051; 0: any free one)")
    parser.add_argument("--host", help="address to listen on (default 0.0.0.0)")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="documents (default ./facets-data)")
    parser.add_argument(
        "--model",
        action="append",
        metavar="NAME|PATH",
        help="shipped model or checkpoint folder; repeat for more, the first of each task is that task's default "
        "(default: the shipped models)",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="configuration file (TOML)")
    parser.add_argument(
        "--metrics-port", type=int, metavar="PORT", help="serve Prometheus metrics on this port (default off)"
    )
    parser.add_argument(
        "--drain-s", type=float, metavar="SECONDS", help="after SIGTERM, time for running calls (default 20)"
    )
    parser.add_argument("--log-level", help="DEBUG, INFO, WARNING or ERROR (default INFO)")
    return parser


def _fail(error: FacetsError, code: int) -> int:
    sys.stderr.write(f"facets-server: {error}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
