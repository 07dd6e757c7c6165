"""``facets serve``: the server's program, where it is installed."""

import importlib.util
import os
import sys

import typer

from facets_client.cli.failures import CommandError, ExitCode, Failure
from facets_client.core.distribution import INSTALL_SERVER

__all__ = ["FOREIGN_OPTIONS", "serve"]

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
