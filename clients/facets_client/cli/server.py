"""``facets models``, ``health``, ``status``, ``backup`` and ``serve``."""

import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.filesize import decimal
from rich.table import Table

from facets_client.cli.failures import CommandError, ExitCode, Failure
from facets_client.cli.output import add_row, print_json, stdout, table
from facets_client.cli.settings import settings_of
from facets_client.core.extras import INSTALL_SERVER
from facets_client.core.results import ServerStatus
from facets_client.generated.types import Collection, Model

_NOT_SERVED = "SERVICE_UNKNOWN"


def models(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(help="One model, with its limits.", show_default=False)] = None,
) -> None:
    """List the server's models, or show one with every limit.

    \b
    Examples:
      facets models
      facets models facets-en
      facets --json models
    """
    settings = settings_of(context)
    with settings.connect() as client:
        found = [client.model(name)] if name is not None else client.models()
    if settings.json:
        print_json(found[0] if name is not None else {"models": found})
        return
    columns = ("model", "task", "space", "facets", "dim", "words", "max tokens", "revision")
    shown = table(*columns, right=("facets", "dim"))
    for model in found:
        label = f"{model.name} (default)" if model.is_default else model.name
        add_row(
            shown,
            label,
            model.task,
            model.space,
            model.num_facets,
            model.dim,
            model.vocabulary_size,
            model.max_tokens,
            model.revision[:12],
        )
    stdout().print(shown)
    if name is not None:
        limits = table("limit", "value", right=("value",))
        for field, value in asdict(found[0].limits).items():
            add_row(limits, field.removeprefix("max_").replace("_", " "), value)
        stdout().print(limits)


def health(context: typer.Context) -> None:
    """Say whether the server and each of its services are serving; exit code 3 when one is not.

    A service without a model of its task is not served, which is no fault as long as another one is.

    \b
    Examples:
      facets health
      facets --target search.example.org:50051 health
    """
    settings = settings_of(context)
    with settings.connect() as client:
        statuses = client.health()
    if settings.json:
        print_json({"target": settings.target, "services": statuses})
    else:
        shown = table("service", "status")
        for service, status in statuses.items():
            add_row(shown, service or "server", "(not served)" if status == _NOT_SERVED else status)
        stdout().print(shown)
    answering = {service: status for service, status in statuses.items() if status != _NOT_SERVED}
    if not any(answering) or any(status != "SERVING" for status in answering.values()):
        raise typer.Exit(ExitCode.UNAVAILABLE)


def status(context: typer.Context) -> None:
    """Show how the server is: version, load, models, collections, disk, last backup.

    \b
    Examples:
      facets status
      facets --json status
    """
    settings = settings_of(context)
    with settings.connect() as client:
        found, models, collections = client.status(), client.models(), client.list_collections()
        services = client.health()
    if settings.json:
        shown = {"target": settings.target, **asdict(found), "services": services}
        print_json({**shown, "models": models, "collections": collections})
        return
    overview = table("server", settings.target)
    for label, value in _overview(found, services):
        add_row(overview, label, value)
    stdout().print(overview)
    stdout().print(_models(models, found.num_waiting))
    if collections:
        stdout().print(_collections(collections))


def backup(context: typer.Context) -> None:
    """Let the server copy its data into its folder of backups and compare the copy; exit code 1 when it is damaged.

    The server's settings backup_dir and backup_keep say where they go and how many stay.

    \b
    Examples:
      facets backup
      facets --json backup
    """
    settings = settings_of(context)
    with settings.connect() as client:
        taken = client.take_backup()
    if settings.json:
        print_json(taken)
    else:
        state = "is damaged" if taken.problems else "was compared with its checksums"
        stdout().print(f"{taken.backup.folder}: {decimal(taken.backup.num_bytes)}, {state}", *taken.problems, sep="\n")
        for folder in taken.removed_folders:
            stdout().print(f"{folder} removed")
    if taken.problems:
        raise typer.Exit(1)


def _overview(found: ServerStatus, services: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    now = datetime.now(tz=UTC)
    unwell = [name for name, state in services.items() if name and state not in ("SERVING", _NOT_SERVED)]
    yield "state", services.get("", "UNKNOWN") + (f": not serving {', '.join(unwell)}" if unwell else "")
    yield "version", found.version
    yield "up for", _duration(now - found.start_time)
    yield "calls now", f"{found.num_running} worked on, {found.num_queued} waiting, {found.num_streams} streams"
    yield "calls so far", ", ".join(f"{number} {code}" for code, number in found.num_requests.items()) or "none"
    yield "disk", ", ".join(f"{part} {decimal(number)}" for part, number in found.disk_bytes.items() if number)
    yield "disk left", decimal(found.free_bytes) if found.free_bytes else "not known"
    backup = found.last_backup_time
    yield "last backup", "never" if backup is None else f"{_duration(now - backup)} ago ({backup:%Y-%m-%d %H:%M} UTC)"


def _models(models: Sequence[Model], num_waiting: Mapping[str, int]) -> Table:
    shown = table("model", "task", "revision", "waiting", right=("waiting",))
    for model in models:
        label = f"{model.name} (default)" if model.is_default else model.name
        add_row(shown, label, model.task, model.revision[:12], num_waiting.get(model.name, 0))
    return shown


def _collections(collections: Sequence[Collection]) -> Table:
    numbers = ("documents", "vectors", "index on disk", "damaged")
    shown = table("collection", "model", "index", *numbers, right=numbers)
    for one in collections:
        size = decimal(one.snapshot_bytes)
        add_row(shown, one.name, one.model, one.index_kind, one.num_documents, one.num_vectors, size, one.num_damaged)
    return shown


def _duration(time: timedelta) -> str:
    """The two largest units of a time: ``3 h 20 min``.

    Example:
        >>> _duration(timedelta(days=2, hours=3, minutes=5)), _duration(timedelta(seconds=-1))
        ('2 d 3 h', '0 s')
    """
    left = max(0, int(time.total_seconds()))
    parts: list[str] = []
    for unit, seconds in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        number, left = divmod(left, seconds)
        if number or parts:
            parts.append(f"{number} {unit}")
    return " ".join(parts[:2]) or "0 s"


_SERVER = "facets_server"  # the package whose program is started

# Options of the server are handed on as they are.
FOREIGN_OPTIONS = {"allow_extra_args": True, "ignore_unknown_options": True}


def serve(context: typer.Context) -> None:
    """Start a server here, with the options of facets-server, until Ctrl-C.

    It listens on 127.0.0.1:50051 and keeps documents in ./facets-data unless told otherwise; facets-server --help
    lists every option. Needs the server and its models on this machine.

    \b
    Examples:
      facets serve
      facets serve --port 50052 --data-dir ~/facets-data
      facets serve --model facets-passages-en
    """
    if importlib.util.find_spec(_SERVER) is None:
        sentence = f"the server is not installed: {INSTALL_SERVER}"
        raise CommandError(Failure(sentence=sentence, exit_code=ExitCode.USAGE, code="FAILED_PRECONDITION"))
    # In the place of this process: signals and the exit code are the server's own.
    os.execv(sys.executable, [sys.executable, "-P", "-m", _SERVER, *context.args])
