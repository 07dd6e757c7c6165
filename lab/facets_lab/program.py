"""Runs a command-line program: one-line errors and exit codes."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer

from facets.errors import FacetsError


def run_program(
    name: str,
    commands: Mapping[str, Callable[..., Any]],
    arguments: Sequence[str] | None,
    *,
    help: str,
    log_level: int = logging.WARNING,
) -> int:
    """Runs a program and returns its exit code: 0, 1 after a one-line error, 2 for wrong usage.

    ``arguments`` None: those of this process. ``log_level`` is that of our own messages on standard error.
    """
    program = typer.Typer(no_args_is_help=True, help=help, rich_markup_mode=None)
    program.callback()(lambda: None)  # so that typer keeps the name of an only command
    for command, function in commands.items():
        program.command(command)(function)
    logging.basicConfig(format="%(levelname)s %(message)s")
    logging.getLogger("facets_lab").setLevel(log_level)
    try:
        program(arguments, prog_name=name)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except (FacetsError, ImportError) as error:
        typer.echo(f"error: {error}", err=True)
        return 1
    return 0
