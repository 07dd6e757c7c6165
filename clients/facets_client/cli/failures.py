"""How a command fails: one sentence for a person or one JSON object for a program, and an exit code."""

import json
import re
from dataclasses import dataclass, field
from enum import IntEnum

import typer

from facets_client import errors

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


# Exit code, message and hint for each kind of error of a server.
_FAILURES: dict[type[errors.FacetsClientError], tuple[ExitCode, str, str]] = {
    errors.InvalidArgumentError: (ExitCode.USAGE, "{0}", ""),
    errors.AlreadyExistsError: (ExitCode.USAGE, "{0}", ""),
    errors.FailedPreconditionError: (ExitCode.USAGE, "{0}", ""),
    errors.NotFoundError: (ExitCode.USAGE, "{0}", "asked {1}"),
    errors.UnavailableError: (
        ExitCode.UNAVAILABLE,
        "{1} is not available: {0}",
        "facets serve starts one; --target or FACETS_TARGET says where it is, --tls or --ca-cert that it speaks TLS",
    ),
    errors.OverloadedError: (ExitCode.UNAVAILABLE, "{1} is overloaded: {0}", "try again later"),
    errors.DeadlineExceededError: (
        ExitCode.UNAVAILABLE,
        "no answer from {1} in time (see --timeout-s)",
        "facets health says whether a server is there",
    ),
    errors.UnauthenticatedError: (ExitCode.DENIED, "{0}", "--api-key or FACETS_API_KEY gives the key"),
    errors.PermissionDeniedError: (ExitCode.DENIED, "{0}", ""),
}
_SERVER_FAILURE = (ExitCode.SERVER, "{1} failed: {0}", "")


def server_failure(error: errors.FacetsClientError, server: str) -> CommandError:
    """What to tell the user about an error of a server, given in words: what it refused, or why it did not answer."""
    # A full disk has the status of an overload, but a retry does not help.
    kind = errors.FacetsClientError if error.reason == "DISK_FULL" else type(error)
    exit_code, message, hint = _FAILURES.get(kind, _SERVER_FAILURE)
    message = message.format(without_grpc_prefix(error.details), server)
    if kind is errors.UnavailableError and error.reason:  # it is a server that says so
        hint = ""
    if exit_code is ExitCode.SERVER and error.request_id:
        message += f" (request {error.request_id})"
    violations = [violation._asdict() for violation in error.field_violations]
    fields: dict[str, object] = {
        "reason": error.reason,
        "field": violations[0]["field"] if violations else "",
        "field_violations": violations,
        **{name: getattr(error, name) for name in ("metadata", "retry_after_s", "request_id")},
    }
    return CommandError(message, error.code.name, exit_code, hint.format("", server), fields)


def without_grpc_prefix(details: str) -> str:
    """The message of a server or of gRPC itself, on one line, without gRPC's prefix."""
    return _GRPC_PREFIX.sub("", " ".join(details.split()).rstrip("."))
