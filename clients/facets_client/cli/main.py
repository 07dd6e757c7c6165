"""The ``facets`` command: its global options, its subcommands, its exit codes."""

import gc
import importlib
import io
import itertools
import os
import signal
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn, cast

import typer
from typer import Option
from typer.core import TyperGroup

from facets_client.cli.background import background_server, is_default_target_up
from facets_client.cli.failures import CommandError, ExitCode, command_error, need_command, server_failure
from facets_client.cli.output import say
from facets_client.cli.settings import Settings, settings_of, those_that_exist
from facets_client.core.channel import DEFAULT_TARGET, TlsConfig
from facets_client.core.extras import DISTRIBUTION, version_of
from facets_client.errors import FacetsClientError, OddFilterWarning

_TARGET_HELP = f"Server.  [default: {DEFAULT_TARGET} if one listens there, else the background server]"
_EPILOG = """
Without a server, the first command that needs one starts it in the background, for you alone; it ends after ten minutes
without calls, or with facets stop. Its documents are in ~/.local/share/facets (FACETS_SERVER_DATA_DIR sets another
folder).

With --json an error is one JSON object on standard error: {"error": {"code", "message", "exit_code", "field",
"hint", ...}}.

Exit codes: 0 done; 1 done, but some records were rejected; 2 wrong usage or input; 3 server unreachable, not
serving or overloaded; 4 server error; 5 key missing or refused; 130 interrupted.

Environment: FACETS_TARGET, FACETS_API_KEY, FACETS_CA_CERT, FACETS_CLIENT_CERT, FACETS_COLLECTION,
FACETS_SERVER_DATA_DIR, FACETS_SERVER_IDLE_S, NO_COLOR, XDG_DATA_HOME.
"""


# Module and name of each command or group of commands: only the module of the one that is called is imported.
_COMMANDS = {
    "index": "documents.index:index",
    "search": "documents.search:search",
    "rerank": "documents.search:rerank",
    "export": "documents.export:export",
    "delete": "documents.collections:delete_documents",
    "documents": "documents.collections:documents_app",
    "collections": "documents.collections:collections_app",
    "diagnose": "documents.collections:diagnose",
    "encode": "documents.index:encode",
    "embed": "texts:embed",
    "explain": "texts:explain",
    "similarity": "texts:similarity",
    "summarize": "texts:summarize",
    "topics": "texts:topics",
    "relations": "relations:relations",
    "entail": "relations:entail",
    "recommend": "papers:app",
    "mcp": "mcp:mcp",
    "serve": "server:serve_app",
    "stop": "server:stop",
    "status": "server:status",
    "health": "server:health",
    "models": "server:models",
    "backup": "server:backup",
}


class _Group(TyperGroup):
    """Accepts global options anywhere, and ends every failure with one message and an exit code."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = dict.fromkeys(_COMMANDS)  # type: ignore[assignment]  # get_command imports them

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in _COMMANDS and self.commands[cmd_name] is None:
            module, _, name = _COMMANDS[cmd_name].partition(":")
            command = getattr(importlib.import_module(f"facets_client.cli.{module}"), name)
            if not isinstance(command, typer.Typer):
                function, command = command, typer.Typer(add_completion=False)
                command.command()(function)
            command.rich_markup_mode = None
            self.commands[cmd_name] = typer.main.get_command(command)
            self.commands[cmd_name].name = cmd_name
        return super().get_command(ctx, cmd_name)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        takes_value = {name: not option.is_flag for option in cast(list[Any], self.params) for name in option.opts}
        return super().parse_args(ctx, _global_options_first(args, takes_value))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except FacetsClientError as error:
            settings = settings_of(ctx)
            failure = server_failure(error, settings.server)
            if error.resource_type == "collection":
                with settings.connect() as client:
                    failure.hint += f"; {those_that_exist(client)}"
            raise failure from error

    def main(self, args: Sequence[str] | None = None, *others: Any, **kwargs: Any) -> NoReturn:
        arguments = list(sys.argv[1:] if args is None else args)
        kwargs["standalone_mode"] = False
        try:
            code = super().main(arguments, *others, **kwargs)
            sys.stdout.flush()
            sys.exit(code or ExitCode.OK)
        except BrokenPipeError:  # as in facets ... | head
            # Discards buffered output, so that the interpreter does not report an error at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(ExitCode.BROKEN_PIPE)
        except (Exception, KeyboardInterrupt) as error:
            _fail(error, arguments)


def _global_options_first(arguments: Sequence[str], takes_value: Mapping[str, bool]) -> list[str]:
    """Moves global options from after the subcommand to before it."""
    first: list[str] = []
    others: list[str] = []
    remaining = iter(arguments)
    for argument in remaining:
        name, has_value, _ = argument.partition("=")
        if name not in takes_value:
            others.append(argument)
            if argument == "--":
                break
            continue
        first.append(argument)
        if takes_value[name] and not has_value:
            value = next(remaining, None)
            if value is None:
                raise typer.BadParameter(f"option {name} expects a value, got none")
            first.append(value)
    return [*first, *others, *remaining]


def _fail(error: BaseException, arguments: Sequence[str]) -> NoReturn:
    failure = command_error(error)
    if failure is None:
        raise error
    is_json = "--json" in itertools.takewhile(lambda argument: argument != "--", arguments)
    say(failure.as_json() if is_json else f"facets: {failure.as_text()}")
    sys.exit(failure.exit_code)


app = typer.Typer(
    name="facets",
    cls=_Group,
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=_EPILOG,
)


@app.callback()
def _global(
    context: typer.Context,
    target: Annotated[str | None, Option(envvar="FACETS_TARGET", help=_TARGET_HELP)] = None,
    json: Annotated[bool, Option("--json", help="Print JSON instead of tables.")] = False,
    quiet: Annotated[bool, Option("--quiet", help="Print only results and errors.")] = False,
    timeout_s: Annotated[float | None, Option(help="Seconds per request.  [default: 30; 120 for long ones]")] = None,
    api_key: Annotated[str | None, Option(envvar="FACETS_API_KEY", help="API key, if the server requires one.")] = None,
    tls: Annotated[bool, Option("--tls", help="Use TLS and trust public CAs.")] = False,
    ca_cert: Annotated[Path | None, Option(envvar="FACETS_CA_CERT", help="Use TLS and trust this CA (PEM).")] = None,
    client_cert: Annotated[
        Path | None,
        Option(envvar="FACETS_CLIENT_CERT", help="Use TLS with this certificate and its key, in one PEM file."),
    ] = None,
    version: Annotated[bool, Option("--version", help="Show the version.", is_eager=True)] = False,
) -> None:
    """Embed, explain, compare, summarize, index and search texts, with several vectors for each text.

    Global options are accepted before and after the subcommand.

    \b
    Examples:
      facets index articles.jsonl.gz --collection news --create
      facets search "who won the cup" --collection news --top-k 10
    """
    if version:
        typer.echo(f"facets {version_of(DISTRIBUTION) or '(not installed)'}")
        raise typer.Exit
    need_command(context)
    background = None
    if target is None and not (tls or ca_cert or client_cert or os.name == "nt" or is_default_target_up()):
        background = background_server(os.environ)
    trusted, own = (file.read_bytes() if file else None for file in (ca_cert, client_cert))
    context.obj = Settings(
        target=target or (background.target if background else DEFAULT_TARGET),
        background=background,
        json=json,
        timeout_s=timeout_s,
        api_key=api_key or None,
        tls=TlsConfig(root_certificates=trusted, private_key=own, certificate_chain=own) if trusted or own else tls,
        quiet=quiet,
    )
    warnings.simplefilter("ignore" if json or quiet else "always", OddFilterWarning)
    warnings.formatwarning = lambda message, *_, **__: f"facets: warning: {message}\n"


def interrupt_again(dropped: Any) -> None:
    """Hook for uncatchable exceptions: sends an interrupt again if a finalizer swallowed it."""
    if issubclass(dropped.exc_type, KeyboardInterrupt):
        again = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(dropped)


def main() -> None:
    """Entry point of the console script."""
    gc.freeze()  # the imported modules stay: looking through them takes a tenth of a short command
    try:
        sys.unraisablehook = interrupt_again
        if sys.stdout is None:  # closed by the caller
            _fail(CommandError("standard output is closed, expected somewhere to write to"), sys.argv[1:])
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # for terminals that are not UTF-8
        app()
    except KeyboardInterrupt as error:  # before the command began
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _fail(error, sys.argv[1:])
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to interrupt
