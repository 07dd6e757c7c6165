"""``facets models`` and ``facets health``."""

from dataclasses import asdict
from typing import Annotated

import typer

from facets_client.cli.failures import ExitCode
from facets_client.cli.output import add_row, print_json, stdout, table
from facets_client.cli.settings import settings_of

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
