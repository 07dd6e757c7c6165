"""``facets-server``: reads the settings, opens data and models, serves until SIGTERM.

Exit codes: 0 after a clean stop; 1 when data or a model cannot be opened or a package is missing; 2 when the usage or a
setting is wrong or the port is in use. Each failure is one sentence on standard error.
"""

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

import facets
from facets.errors import CheckpointError, ConfigError, NotFoundError, StorageError
from facets.extras import require_extra

if TYPE_CHECKING:
    from facets_server.runtime.config import ServerConfig

__all__ = ["main"]

logger = logging.getLogger("facets_server")

EXIT_OK, EXIT_CANNOT_OPEN, EXIT_BAD_SETTING = 0, 1, 2
_MODULES = ("torch", "faiss", "spacy", "pydantic", "grpc_health", "grpc_reflection", "prometheus_client")

app = typer.Typer(rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]})


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the server; returns the exit code."""
    try:
        app(argv, prog_name="facets-server")
    except SystemExit as error:  # of the parser too, which has worded what was wrong with the arguments
        return error.code if isinstance(error.code, int) else EXIT_BAD_SETTING
    return EXIT_OK


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"facets-server {facets.__version__}")
        raise typer.Exit


@app.command(
    epilog="Every setting may also stand in the configuration file (port = 50051) or in the environment "
    "(FACETS_SERVER_PORT=50051); flags win over the environment, the environment over the file."
)
def serve(
    *,
    port: Annotated[int | None, typer.Option(help="Port of the gRPC server (default 50051; 0: any free one).")] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on (default 0.0.0.0).")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder of the documents (default ./facets-data).")] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|PATH",
            help="Shipped model or checkpoint folder; repeat for more, the first of each task is that task's default "
            "(default: the shipped models).",
        ),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Configuration file (TOML).")] = None,
    metrics_port: Annotated[
        int | None, typer.Option(help="Serve Prometheus metrics on this port (default: off).")
    ] = None,
    drain_s: Annotated[
        float | None, typer.Option(help="After SIGTERM, seconds for running calls (default 20).")
    ] = None,
    log_level: Annotated[str | None, typer.Option(help="DEBUG, INFO, WARNING or ERROR (default INFO).")] = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Serve facet embeddings, similarity, summaries, relations, recommendations and search over gRPC."""
    flags = {
        "host": host,
        "port": port,
        "data_dir": data_dir,
        "models": tuple(model) if model else None,
        "metrics_port": metrics_port,
        "drain_s": drain_s,
        "log_level": log_level,
    }
    try:
        require_extra("server", *_MODULES)
        from facets_server.runtime.config import load_config

        settings = load_config(config, os.environ, flags)
        logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
        for package in ("facets", "facets_server"):  # other packages only when they warn
            logging.getLogger(package).setLevel(settings.log_level)
        _serve(settings)
    except ConfigError as error:
        _fail(error, EXIT_BAD_SETTING)
    except (StorageError, CheckpointError, NotFoundError, ImportError) as error:
        _fail(error, EXIT_CANNOT_OPEN)


def _serve(config: "ServerConfig") -> None:
    _check_port(config)
    # Loading these takes seconds; a wrong setting or --help answers at once.
    from prometheus_client import CollectorRegistry

    from facets.documents import CollectionEngine
    from facets_server.runtime.app import create_server
    from facets_server.runtime.loading import load_models
    from facets_server.runtime.metrics import BatchMetrics

    stop = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, _setter(stop))
    with CollectionEngine.open(config.data_dir, config.engine) as engine:
        registry = CollectorRegistry()
        models = load_models(config, BatchMetrics(registry))
        server = create_server(models, engine, config, registry=registry)
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


def _setter(stop: threading.Event) -> "signal._HANDLER":
    def handle(number: int, frame: FrameType | None) -> None:
        stop.set()

    return handle


def _check_port(config: "ServerConfig") -> None:
    """Finds a busy port before data and models are loaded; binding it later is what decides."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((config.host.strip("[]"), config.port))
        except OSError as error:
            reason = error.strerror or str(error)
            raise ConfigError(f"port {config.port} on {config.host} cannot be used: {reason}") from error


def _fail(error: Exception, code: int) -> None:
    typer.echo(f"facets-server: {error}", err=True)
    raise typer.Exit(code)


if __name__ == "__main__":
    sys.exit(main())
