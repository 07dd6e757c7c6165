"""``facets doctor``: what is here, what is missing, and what to do about it."""

from dataclasses import asdict

import typer
from rich.text import Text

from facets_client.cli.diagnosis import Finding, examine_machine, worst_of
from facets_client.cli.failures import of_server
from facets_client.cli.output import clean, print_json, stdout
from facets_client.cli.profiles import config_file, read_profile
from facets_client.cli.settings import Settings, settings_of
from facets_client.core.target import DEFAULT_TARGET
from facets_client.errors import DeadlineExceededError, FacetsClientError, UnavailableError

_ANSWER_S = 3.0  # for a server that is asked in passing
_PROBLEM_CODE = 1
_STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}


def doctor(context: typer.Context) -> None:
    """Check this installation and its server, and say what to do; exit code 1 when there is a problem.

    Looks at Python, versions, optional parts, models, disk, memory, GPU, the configuration file and the server. A
    warning is about what only some need; nothing is changed.

    \b
    Examples:
      facets doctor
      facets --target search.example.org:50051 doctor
      facets --json doctor
    """
    settings = settings_of(context)
    findings = [*examine_machine(), _configuration(settings), _server(settings)]
    status = worst_of(findings)
    if settings.json:
        print_json({"status": status, "checks": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            _show(finding)
    if status == "problem":
        raise typer.Exit(_PROBLEM_CODE)


def _show(finding: Finding) -> None:
    line = Text(f"{finding.status:8}", style=_STYLES[finding.status])
    line.append(f" {finding.name:14} {clean(finding.message)}", style="default")
    stdout().print(line, soft_wrap=True)
    if finding.advice:
        stdout().print(Text(f"{'':24}{clean(finding.advice)}", style="default"), soft_wrap=True)


def _configuration(settings: Settings) -> Finding:
    file = config_file()
    try:
        profile = read_profile(None)
    except (OSError, ValueError) as error:
        return Finding("configuration", "problem", str(error), f"mend or remove {file}")
    if not file.is_file():
        return Finding("configuration", "ok", f"no {file}: options and environment say all")
    if profile.api_key and file.stat().st_mode & 0o077:
        return Finding("configuration", "warning", f"others may read {file}", f"chmod 600 {file}")
    return Finding("configuration", "ok", f"{file}, profile {profile.name or '(none by default)'}")


def _server(settings: Settings) -> Finding:
    """Whether the server answers; that none runs on this machine is no fault unless one was named."""
    is_default = settings.target == DEFAULT_TARGET
    try:
        with settings.connect(timeout_s=_ANSWER_S) as client:
            statuses = client.health()
    except FacetsClientError as error:
        message = of_server(error, settings.target).sentence
        if not isinstance(error, UnavailableError | DeadlineExceededError):
            return Finding("server", "problem", message, "check the address, the key and --tls")
        if is_default:
            return Finding("server", "warning", message, "facets serve starts one")
        return Finding("server", "problem", message, "check the address, the port, --tls and the firewall")
    if statuses.get("") != "SERVING":
        return Finding("server", "problem", f"{settings.target} is not serving", "read its log; facets health has more")
    return Finding("server", "ok", f"{settings.target} is serving")
