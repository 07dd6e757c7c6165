"""What the two programs share: errors in one line, the exit code."""

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
    """Runs a program and returns its exit code: 0, 1 after an error of one line, 2 for wrong usage.

    Args:
        name: As users type it.
        commands: By name; their help and completion come from their signatures.
        arguments: Of the command line; None: those of this process.
        help: What the program is for, in a sentence.
        log_level: Of our own messages on standard error; those of libraries are warnings.
    """
    program = typer.Typer(no_args_is_help=True, help=help, rich_markup_mode=None)
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
