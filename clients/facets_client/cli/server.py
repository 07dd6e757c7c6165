"""``facets models``, ``health``, ``status``, ``backup``, ``serve`` and ``stop``."""

import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.filesize import decimal
from typer import Argument

from facets_client.cli.background import background_server
from facets_client.cli.failures import CommandError, ExitCode
from facets_client.cli.output import print_json, print_table, stdout
from facets_client.cli.settings import ask, settings_of
from facets_client.core.extras import INSTALL_LOCAL
from facets_client.generated.types import ServerStatus, TakenBackup

_NOT_SERVED = "SERVICE_UNKNOWN"
serve_app = typer.Typer(add_completion=False)


def models(
    context: typer.Context, name: Annotated[str | None, Argument(help="Model to show, with its limits.")] = None
) -> None:
    """List the server's models, or show one with every limit."""
    ask(
        context,
        lambda client: client.models() if name is None else client.model(name),
        as_json=lambda found: {"models": found} if name is None else found,
    )


def health(context: typer.Context) -> None:
    """Show whether the server and its services are serving.

    The exit code is 3 if one is not. A service with no model for its task is not served; that is fine as long as
    another service is.
    """
    settings = settings_of(context)
    with settings.connect(starts=False) as client:
        statuses = client.health()
    if settings.json:
        print_json({"target": settings.target, "services": statuses})
    else:
        rows = [
            (service or "server", "(not served)" if status == _NOT_SERVED else status)
            for service, status in statuses.items()
        ]
        print_table(("service", "status"), rows)
    served = {service: status for service, status in statuses.items() if status != _NOT_SERVED}
    if not any(served) or any(status != "SERVING" for status in served.values()):
        raise typer.Exit(ExitCode.UNAVAILABLE)


def status(context: typer.Context) -> None:
    """Show version, load, disk and last backup."""
    settings = settings_of(context)
    with settings.connect(starts=False) as client:
        found, services = client.status(), client.health()
    if settings.json:
        print_json({"target": settings.target, "services": services, **asdict(found)})
    else:
        print_table(("server", settings.server), list(_overview(found, services)))


def _overview(found: ServerStatus, services: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    now = datetime.now(tz=UTC)
    failing = [name for name, state in services.items() if name and state not in ("SERVING", _NOT_SERVED)]
    yield "state", services.get("", "UNKNOWN") + (f": not serving {', '.join(failing)}" if failing else "")
    yield "data directory", found.data_dir
    yield "version", found.version
    yield "up for", _duration(now - found.start_time)
    yield "calls now", f"{found.num_running} running, {found.num_queued} waiting, {found.num_streams} streams"
    waiting = ", ".join(f"{model} {number}" for model, number in found.model_queues.items() if number)
    yield "waiting", waiting or "nothing"
    yield "calls so far", ", ".join(f"{number} {code}" for code, number in found.request_counts.items()) or "none"
    yield "disk", ", ".join(f"{part} {decimal(number)}" for part, number in found.disk_uses.items() if number)
    yield "disk left", decimal(found.free_bytes) if found.free_bytes else "unknown"
    backup = found.last_backup_time
    yield "last backup", "never" if backup is None else f"{_duration(now - backup)} ago ({backup:%Y-%m-%d %H:%M} UTC)"


def _duration(time: timedelta) -> str:
    """Such as ``2 d 3 h`` or ``5 min``."""
    minutes = max(0, int(time.total_seconds() // 60))
    days, hours = minutes // 1440, minutes // 60 % 24
    return f"{days} d {hours} h" if days else f"{hours} h {minutes % 60} min" if hours else f"{minutes} min"


def backup(context: typer.Context) -> None:
    """Back up the server's data and verify the copy.

    The exit code is 1 if the copy is damaged. The server's settings backup_dir and backup_keep say where backups go
    and how many are kept.
    """
    if ask(context, lambda client: client.take_backup(), _print_backup).problems:
        raise typer.Exit(1)


def _print_backup(taken: TakenBackup) -> None:
    state = "is damaged" if taken.problems else "was compared with its checksums"
    stdout().print(f"{taken.backup.folder}: {decimal(taken.backup.num_bytes)}, {state}", *taken.problems, sep="\n")
    for folder in taken.removed_folders:
        stdout().print(f"{folder} removed")


@serve_app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def serve(context: typer.Context) -> None:
    """Start a server on this machine.

    It takes the options of facets-server and runs until Ctrl-C. By default it listens on 127.0.0.1:50051 and keeps
    documents in ./facets-data; facets-server --help lists every option. Needs the server and its models on this
    machine.

    \b
    Examples:
      facets serve
      facets serve --port 50052 --data-dir ~/facets-data
    """
    if importlib.util.find_spec("facets_server") is None:
        message = f"the server is not installed: {INSTALL_LOCAL}"
        raise CommandError(message, "FAILED_PRECONDITION")
    # Replaces this process, so that signals reach the server and its exit code is the command's.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "facets_server", *context.args])


def stop(context: typer.Context) -> None:
    """Stop the background server, after its running calls.

    Documents stay. The next command that needs the server starts it again, and so does a facets index that still runs.

    \b
    Examples:
      facets stop
    """
    background = background_server(os.environ)
    has_run = background.stop()
    settings_of(context).done({"stopped": has_run}, f"{background} {'has ended' if has_run else 'was not running'}")
