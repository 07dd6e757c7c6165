"""How a command fails: one sentence for a person or one JSON object for a program, and an exit code."""

import json
import re
from dataclasses import dataclass, field
from enum import IntEnum

import typer

from facets_client.errors import (
    AlreadyExistsError,
    DeadlineExceededError,
    FacetsClientError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OverloadedError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnavailableError,
)

_GRPC_PREFIX = re.compile(r"failed to connect to all addresses; last error: [A-Z]+: ")


class ExitCode(IntEnum):
    """Exit codes of the command."""

    OK = 0
    REJECTED = 1  # done, but some records were rejected
    USAGE = 2  # wrong usage or input
    UNAVAILABLE = 3  # server unreachable, not serving or overloaded
    SERVER = 4  # server error
    DENIED = 5  # key missing or refused
    INTERRUPTED = 130  # Ctrl-C
    BROKEN_PIPE = 141  # the reader of the output has exited


@dataclass(eq=False)
class CommandError(Exception):
    """Ends a command: what to tell the user."""

    message: str
    code: str = "INVALID_ARGUMENT"  # name of a gRPC status
    exit_code: ExitCode = ExitCode.USAGE
    hint: str = ""  # what to do about it, unless the message says so
    fields: dict[str, object] = field(default_factory=dict)  # further fields of the JSON object

    def as_text(self) -> str:
        """One line."""
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def as_json(self) -> str:
        """One JSON object on one line."""
        required = {"code": self.code, "message": self.message, "exit_code": int(self.exit_code)}
        optional = {**self.fields, "hint": self.hint}
        return json.dumps({"error": required | {name: value for name, value in optional.items() if value}})


def need_command(context: typer.Context) -> None:
    """Ends a group of commands that is called without one, with its help."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(ExitCode.USAGE)


def command_error(error: BaseException) -> CommandError | None:
    """What to tell the user about an exception; None for a bug in the command."""
    match error:
        case CommandError():
            return error
        case typer.TyperException():
            parameter = getattr(error, "param", None)
            option = parameter.opts[0] if parameter is not None and parameter.opts else ""
            return CommandError(
                error.format_message() or "no command given: see facets --help", fields={"field": option}
            )
        case UnicodeEncodeError():
            return CommandError(f"expected texts and names in UTF-8, got {str(error.object)[:60]!r}")
        case OSError() if not isinstance(error, BrokenPipeError):
            file = f"{error.filename}: " if error.filename else ""
            return CommandError(f"{file}{error.strerror or error}")
        case ValueError() | TypeError() | ImportError():
            return CommandError(str(error), hint=getattr(error, "hint", ""))  # InputError has one
        case KeyboardInterrupt():
            return CommandError("interrupted", "CANCELLED", ExitCode.INTERRUPTED)
        case typer.Abort():
            return CommandError("stopped: nothing was done", "CANCELLED")
        case _:
            return None


_EXIT_CODES = {
    ExitCode.USAGE: (InvalidArgumentError, NotFoundError, AlreadyExistsError, FailedPreconditionError),
    ExitCode.UNAVAILABLE: (UnavailableError, OverloadedError, DeadlineExceededError),
    ExitCode.DENIED: (UnauthenticatedError, PermissionDeniedError),
}
_HINTS: tuple[tuple[type[FacetsClientError], str], ...] = (
    (UnavailableError, "facets serve starts one; --target or FACETS_TARGET says where it is"),
    (OverloadedError, "try again later"),
    (DeadlineExceededError, "facets health says whether a server is there"),
    (UnauthenticatedError, "--api-key or FACETS_API_KEY gives the key"),
)


def server_failure(error: FacetsClientError, server: str) -> CommandError:
    """What to tell the user about an error of a server, given in words: what it refused, or why it did not answer."""
    violations = [violation._asdict() for violation in error.field_violations]
    exit_code = next((code for code, kinds in _EXIT_CODES.items() if isinstance(error, kinds)), ExitCode.SERVER)
    if error.reason == "DISK_FULL":  # same status as an overload, but a retry does not help
        exit_code = ExitCode.SERVER
    message = without_grpc_prefix(error.details)
    if isinstance(error, UnavailableError):
        message = f"{server} is not available: {message}"
    elif isinstance(error, DeadlineExceededError):
        message = f"no answer from {server} in time (see --timeout-s)"
    elif exit_code is ExitCode.UNAVAILABLE:
        message = f"{server} is overloaded: {message}"
    elif exit_code is ExitCode.SERVER:
        request = f" (request {error.request_id})" if error.request_id else ""
        message = f"{server} failed: {message}{request}"
    fields: dict[str, object] = {
        "reason": error.reason,
        "field": violations[0]["field"] if violations else "",
        "field_violations": violations,
        **{name: getattr(error, name) for name in ("metadata", "retry_after_s", "request_id")},
    }
    hint = next((hint for kind, hint in _HINTS if isinstance(error, kind)), "")
    if isinstance(error, NotFoundError):
        hint = f"asked {server}"
    return CommandError(message, error.code.name, exit_code, hint, fields)


def without_grpc_prefix(details: str) -> str:
    """The message of a server or of gRPC itself, on one line, without gRPC's prefix."""
    return _GRPC_PREFIX.sub("", " ".join(details.split()).rstrip("."))
