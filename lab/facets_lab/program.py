"""Runs a command-line program whose commands are functions of the rooms; an error is one line."""

import json
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from typing import Any

import typer

from facets.errors import FacetsError


def run_program(
    name: str,
    commands: Mapping[str, tuple[str, str]],
    arguments: Sequence[str] | None = None,
    *,
    help: str,
    log_level: int = logging.INFO,
) -> int:
    """Runs a program and returns its exit code: 0, 1 after a one-line error, 2 for wrong usage.

    A command is ``(room.module:function, summary)``. Only the module of the given one is imported; what its function
    returns is printed as JSON. ``arguments`` None: those of this process.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    program = typer.Typer(no_args_is_help=True, help=help, rich_markup_mode=None)
    program.callback()(lambda: None)  # so that typer keeps the name of an only command
    logging.basicConfig(format="%(levelname)s %(message)s")
    logging.getLogger("facets_lab").setLevel(log_level)
    try:
        for command, (place, summary) in commands.items():
            function = _printing(place) if given[:1] == [command] else lambda: None
            program.command(command, short_help=summary)(function)
        program(given, prog_name=name)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except (FacetsError, ImportError) as error:
        typer.echo(f"error: {error}", err=True)
        return 1
    return 0


def _printing(place: str) -> Callable[..., None]:
    module, _, name = place.partition(":")
    function = getattr(import_module(f"facets_lab.{module}"), name)

    @wraps(function)
    def command(**options: Any) -> None:
        report = function(**options)
        if report is not None:
            typer.echo(json.dumps(report, indent=2, allow_nan=False))

    return command
