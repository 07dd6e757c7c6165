"""``facets-server``: reads the settings, opens data and models, serves until SIGTERM; and upkeep commands.

Exit codes: 0 after a clean stop; 1 when data or a model cannot be opened or a package is missing; 2 when an argument or
setting is invalid or the port is in use. Each failure is one sentence on standard error.
"""

import fcntl
import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

import facets
from facets.errors import CheckpointError, ConfigError, ConflictError, InvalidInputError, NotFoundError, StorageError
from facets.extras import quick_imports, require_extra

if TYPE_CHECKING:
    from facets_server.runtime.config import ServerConfig

logger = logging.getLogger("facets_server")

# A thread that returns from native code asks the running one for the interpreter so soon. With Python's 5 ms, a search,
# which calls hundreds of such functions, takes several times as long beside other work.
_SWITCH_S = 0.0005
# Objects between two collections of garbage. Calls that are answered leave none; with Python's 700 the collector took a
# tenth of the processor beside 64 callers.
_COLLECT_EVERY = 10_000
_MIN_DRAIN_S = 1.0
_MAX_CLOSING_S = 2.0
_NO_SETTINGS = ("config", "version", "http_port", "model")  # options that have not the name of a setting
_SIGNALS = frozenset((signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
EXIT_OK, EXIT_CANNOT_OPEN, EXIT_BAD_SETTING = 0, 1, 2
_MODULES = ("torch", "faiss", "spacy", "pydantic", "grpc_health", "grpc_reflection", "prometheus_client")

DataDir = Annotated[Path | None, typer.Option(help="Folder of the documents (default ./facets-data).")]
app = typer.Typer(rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]})


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the server; returns the exit code."""
    try:
        app(argv, prog_name="facets-server")
    except SystemExit as error:  # the parser has printed what is wrong with the arguments
        return error.code if isinstance(error.code, int) else EXIT_BAD_SETTING
    return EXIT_OK


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"facets-server {facets.__version__}")
        raise typer.Exit


@app.callback(
    invoke_without_command=True,
    epilog="Every setting can also be in the configuration file (port = 50051) or in the environment "
    "(FACETS_SERVER_PORT=50051); flags win over the environment, the environment over the file.",
)
def serve(
    context: typer.Context,
    *,
    port: Annotated[int | None, typer.Option(help="Port of the gRPC server (default 50051; 0: any free one).")] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on (default 127.0.0.1, local).")] = None,
    socket: Annotated[
        Path | None, typer.Option(help="Unix socket to listen on instead, for your own programs; without HTTP.")
    ] = None,
    data_dir: DataDir = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|PATH",
            help="Shipped model, checkpoint folder, or sentence-transformers:NAME for any encoder; repeat for more, "
            "the first of each task is that task's default (default: the shipped models).",
        ),
    ] = None,
    allow_downloads: Annotated[
        bool | None, typer.Option("--allow-downloads", help="Download encoders that are not in the local cache.")
    ] = None,
    trust_remote_code: Annotated[
        bool | None, typer.Option("--trust-remote-code", help="Run the Python code that an encoder brings.")
    ] = None,
    backend: Annotated[str | None, typer.Option(help="Runs encoders: torch, onnx or openvino (default torch).")] = None,
    config: Annotated[Path | None, typer.Option(help="Configuration file (TOML).")] = None,
    http_port: Annotated[int | None, typer.Option(help="Port of HTTP: JSON, playground (default: off).")] = None,
    metrics_port: Annotated[int | None, typer.Option(help="Port of Prometheus metrics (default: off).")] = None,
    log_level: Annotated[str | None, typer.Option(help="DEBUG, INFO, WARNING or ERROR (default INFO).")] = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Serve facet embeddings, similarity, summaries, relations, recommendations and search over gRPC."""
    if context.invoked_subcommand is not None:
        return
    flags = {name: value for name, value in context.params.items() if name not in _NO_SETTINGS}
    flags |= {"http.port": http_port, "models": tuple(model) if model else None}
    try:
        require_extra("server", *_MODULES)
        from facets_server.runtime.config import load_config

        settings = load_config(config, os.environ, flags)
        logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
        for package in ("facets", "facets_server"):  # other packages only when they warn
            logging.getLogger(package).setLevel(settings.log_level)
        sys.setswitchinterval(_SWITCH_S)
        gc.set_threshold(_COLLECT_EVERY)
        _serve(settings)
    except (ConfigError, ConflictError, InvalidInputError) as error:
        _fail(error, EXIT_BAD_SETTING)
    except (StorageError, CheckpointError, NotFoundError, ImportError) as error:
        _fail(error, EXIT_CANNOT_OPEN)


ConfigFile = Annotated[Path | None, typer.Option(help="Configuration file (TOML) that names the folder.")]


@app.command()
def backup(
    destination: Annotated[Path | None, typer.Argument(help="A new folder (default: one in backup_dir).")] = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
) -> None:
    """Copy the data directory, even while a server is running, and verify the checksums of the copy.

    Without a folder, the copy goes into the folder that the setting backup_dir names; backup_keep limits the copies.
    Exit code 1 when the copy is damaged.
    """

    def work(upkeep: ModuleType, settings: "ServerConfig") -> bool:
        upkeep.check_store(settings)
        if destination is not None:
            return bool(upkeep.back_up_directory(settings.data_dir, destination, typer.echo))
        return not upkeep.take_backup(settings, typer.echo).problems

    _upkeep(work, data_dir, config)


@app.command()
def restore(
    source: Annotated[Path, typer.Argument(help="Folder that backup wrote.")],
    data_dir: DataDir = None,
    config: ConfigFile = None,
) -> None:
    """Put a backup into an empty data directory; no server may be using it."""
    _upkeep(lambda upkeep, settings: upkeep.restore_directory(source, settings.data_dir, typer.echo), data_dir, config)


@app.command()
def verify(
    folder: Annotated[Path | None, typer.Argument(help="A data directory or a backup (default: --data-dir).")] = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
) -> None:
    """Verify the checksums of a backup or of a data directory, even while a server is running.

    Prints a line for each damaged part. Exit code 1 when something is damaged.
    """
    if folder is not None and data_dir is not None:
        _fail(ConfigError(f"expected a folder or --data-dir, got both: {folder} and {data_dir}"), EXIT_BAD_SETTING)
    _upkeep(lambda upkeep, settings: upkeep.verify_directory(folder or settings.data_dir, typer.echo), data_dir, config)


@app.command()
def doctor(data_dir: DataDir = None, config: ConfigFile = None) -> None:
    """Check whether a server with these settings would start; changes nothing.

    Prints a line for each part: data directory, PostgreSQL, port, index, security, models. Exit code 1 for a problem.
    """

    def work(upkeep: ModuleType, settings: "ServerConfig") -> bool:
        from facets_server.runtime.doctor import examine

        return examine(settings, typer.echo)

    _upkeep(work, data_dir, config)


@app.command()
def migrate(data_dir: DataDir = None, config: ConfigFile = None) -> None:
    """Move the documents of a data directory into the PostgreSQL that the setting engine.store names.

    No server may be using the directory. After an interruption, run the same command again.
    """
    _upkeep(lambda upkeep, settings: upkeep.migrate_directory(settings, typer.echo), data_dir, config)


def _upkeep(
    work: Callable[[ModuleType, "ServerConfig"], bool | None], data_dir: Path | None, config: Path | None
) -> None:
    """Runs a command that maintains a data directory; ``work`` returns False when something is damaged."""
    try:
        require_extra("server", *_MODULES)
        from facets_server.runtime import upkeep
        from facets_server.runtime.config import load_config

        is_whole = work(upkeep, load_config(config, os.environ, {"data_dir": data_dir}))
    except (ConfigError, ConflictError, NotFoundError) as error:
        _fail(error, EXIT_BAD_SETTING)
    except (StorageError, ImportError) as error:
        _fail(error, EXIT_CANNOT_OPEN)
    if is_whole is False:
        raise typer.Exit(EXIT_CANNOT_OPEN)


def _serve(config: "ServerConfig") -> None:
    from facets_server.runtime.hosts import listen

    if config.socket is None:
        listen(config.host, config.port, "port").close()  # before data and models are opened
    # Importing these takes seconds; --help and invalid settings are handled first.
    with quick_imports():
        from prometheus_client import CollectorRegistry

        from facets.documents import CollectionEngine
        from facets_server.runtime.app import FacetsServer
        from facets_server.runtime.hosts import exposure
        from facets_server.runtime.memory import bound_heaps
        from facets_server.runtime.metrics import BatchMetrics
        from facets_server.runtime.rooms import load_models

    bound_heaps()
    shutdown = _Shutdown(config.drain_s)
    for warning in exposure(config):
        logger.warning("%s", warning)
    # The device of searches defaults to that of the models.
    settings = config.engine.replaced(device=config.device) if config.engine.device == "cpu" else config.engine
    with CollectionEngine.open(config.data_dir, settings) as engine:
        registry = CollectorRegistry()
        models = load_models(config, BatchMetrics(registry), engine.shared_database)
        server = FacetsServer(models, engine, config, registry=registry)
        try:
            server.start()
            address = config.socket or f"{config.host}:{server.port}"
            logger.info("documents in %s", config.data_dir.absolute())
            logger.info("serving %s on %s", ", ".join(model.name for model in models), address)
            if server.http_port is not None:
                logger.info("HTTP on port %d of %s", server.http_port, config.host)
            if server.metrics_port is not None:
                logger.info("metrics on http://%s:%s/metrics", config.host, server.metrics_port)
            if config.socket is not None and config.idle_s:
                lock = config.socket.with_suffix(".lock")
                watch = partial(_end_when_idle, server.idle_s, config.idle_s, lock)
                threading.Thread(target=watch, name="idle", daemon=True).start()
            shutdown.wait()
            logger.info("shutting down: at most %.0f s for running calls", config.drain_s)
        finally:
            server.stop(shutdown.grace_s)
    logger.info("stopped")
    shutdown.end()


def _end_when_idle(idle_s: Callable[[], float], max_idle_s: float, lock_file: Path) -> None:
    """Ends the server once no call has come for ``max_idle_s``.

    A ``facets`` command holds the lock, shared, while it uses the server. This process holds it, alone, until it has
    ended, so a command that comes meanwhile waits and then starts another server.
    """
    with lock_file.open("ab") as lock:
        while True:
            time.sleep(min(1.0, max_idle_s / 4))
            if idle_s() < max_idle_s:
                continue
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            logger.info("no call for %g s", max_idle_s)
            os.kill(os.getpid(), signal.SIGTERM)
            threading.Event().wait()


class _Shutdown:
    """Waits for SIGTERM, SIGINT or SIGHUP; then the process ends within ``drain_s`` seconds, whatever still runs.

    The kernel may deliver a signal to any thread, which does not wake the main thread, the only one that runs Python's
    handlers. So a thread reads what the interpreter writes for each signal, whichever thread gets it.
    """

    def __init__(self, drain_s: float) -> None:
        """Handles the signals; called by the main thread."""
        self._drain_s = max(drain_s, _MIN_DRAIN_S)
        self._signalled = threading.Event()
        self._deadline = float("inf")
        self._read, self._written = socket.socketpair()
        self._written.setblocking(False)
        signal.set_wakeup_fd(self._written.fileno(), warn_on_full_buffer=False)
        for number in _SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores it
                signal.signal(number, lambda number, frame: None)
        # Started now: later the system may refuse another thread.
        threading.Thread(target=self._watch, name="shutdown", daemon=True).start()

    def wait(self) -> None:
        self._signalled.wait()

    @property
    def grace_s(self) -> float:
        """Seconds left for running calls; some time is reserved for closing files."""
        closing_s = min(_MAX_CLOSING_S, self._drain_s / 4)
        return max(0.0, self._deadline - closing_s - time.monotonic()) if self._signalled.is_set() else 0.0

    def end(self) -> None:
        """Ends the process once everything is closed: the interpreter's own shutdown may take seconds."""
        if self._signalled.is_set():
            logging.shutdown()
            sys.stdout.flush()
            os._exit(0)

    def _watch(self) -> None:
        while _SIGNALS.isdisjoint(self._read.recv(64)):
            pass
        self._deadline = time.monotonic() + self._drain_s
        # The kernel ends the process even if Python no longer runs.
        signal.setitimer(signal.ITIMER_REAL, self._drain_s + _MIN_DRAIN_S)
        self._signalled.set()
        time.sleep(self._drain_s)
        logger.warning("ending with calls still running after %.0f s: acknowledged writes are on disk", self._drain_s)
        os._exit(0)


def _fail(error: Exception, code: int) -> None:
    typer.echo(f"facets-server: {error}", err=True)
    raise typer.Exit(code)


if __name__ == "__main__":
    sys.exit(main())
