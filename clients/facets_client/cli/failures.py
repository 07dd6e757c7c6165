"""Every way in which a command fails: one sentence for a person or one JSON object for a program, and an exit code."""

import json
import re
from dataclasses import dataclass, field, replace
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
from facets_client.load.source import InputError

_DISK_FULL = "DISK_FULL"  # same status as overload, but trying again does not help
_GRPC_NOISE = re.compile(r"failed to connect to all addresses; last error: [A-Z]+: ")


class ExitCode(IntEnum):
    """What the command says to the shell."""

    OK = 0
    REJECTED = 1  # done, but some records were rejected
    USAGE = 2  # wrong usage or input
    UNAVAILABLE = 3  # server unreachable, not serving or overloaded: try again
    SERVER = 4  # the server failed
    DENIED = 5  # key missing or refused
    INTERRUPTED = 130  # Ctrl-C
    BROKEN_PIPE = 141  # nobody reads the output any more


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """What is said about a failure.

    Attributes:
        sentence: For a person.
        exit_code: For the shell.
        code: Name of a gRPC status.
        fields: What else a program gets; empty values are left out.
        hint: What to do about it, where the sentence does not say so.
    """

    sentence: str
    exit_code: ExitCode
    code: str
    fields: dict[str, object] = field(default_factory=dict)
    hint: str = ""

    def as_text(self) -> str:
        """One line."""
        return f"{self.sentence} ({self.hint})" if self.hint else self.sentence

    def as_json(self) -> str:
        """One JSON object on one line."""
        always = {"code": self.code, "message": self.sentence, "exit_code": int(self.exit_code)}
        more = {**self.fields, "hint": self.hint}
        return json.dumps({"error": always | {name: value for name, value in more.items() if value}})


class CommandError(Exception):
    """Ends a command with a failure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.sentence)
        self.failure = failure


def failure_of(error: BaseException) -> Failure | None:
    """The failure that an exception stands for; None for a fault of the command itself."""
    match error:
        case CommandError():
            return error.failure
        case typer.TyperException():
            sentence = error.format_message() or "no command given: see facets --help"
            return _usage(sentence, field=_option_of(error))
        case UnicodeEncodeError():
            return _usage(f"expected texts and names in UTF-8, got {str(error.object)[:60]!r}")
        case OSError() if not isinstance(error, BrokenPipeError):
            where = f"{error.filename}: " if error.filename else ""
            return _usage(f"{where}{error.strerror or error}")
        case InputError():
            return replace(_usage(str(error)), hint=error.hint)
        case ValueError() | TypeError() | ImportError():
            return _usage(str(error))
        case KeyboardInterrupt():
            return Failure(sentence="interrupted", exit_code=ExitCode.INTERRUPTED, code="CANCELLED")
        case typer.Abort():
            return Failure(sentence="stopped: nothing was done", exit_code=ExitCode.USAGE, code="CANCELLED")
        case _:
            return None


def _usage(sentence: str, **fields: object) -> Failure:
    return Failure(sentence=sentence, exit_code=ExitCode.USAGE, code="INVALID_ARGUMENT", fields=fields)


def _option_of(error: Exception) -> str:
    """Name of the option or argument that is wrong; empty when it is about none."""
    parameter = getattr(error, "param", None)
    return parameter.opts[0] if parameter is not None and parameter.opts else ""


def of_server(error: FacetsClientError, target: str) -> Failure:
    """What the server at ``target`` refused, or why there was no answer."""
    violations = [violation._asdict() for violation in error.field_violations]
    return Failure(
        sentence=_sentence_of(error, target),
        exit_code=_exit_code_of(error),
        code=error.code.name,
        fields={
            "reason": error.reason,
            "field": violations[0]["field"] if violations else "",
            "field_violations": violations,
            "metadata": error.metadata,
            "retry_after_s": error.retry_after_s,
            "request_id": error.request_id,
        },
        hint=next((hint for kind, hint in _HINTS if isinstance(error, kind)), ""),
    )


_EXIT_CODES = {
    ExitCode.USAGE: (InvalidArgumentError, NotFoundError, AlreadyExistsError, FailedPreconditionError),
    ExitCode.UNAVAILABLE: (UnavailableError, OverloadedError, DeadlineExceededError),
    ExitCode.DENIED: (UnauthenticatedError, PermissionDeniedError),
}
_HINTS: tuple[tuple[type[FacetsClientError], str], ...] = (
    (UnavailableError, "facets-server starts one; --target or FACETS_TARGET says where it is"),
    (OverloadedError, "try again later"),
    (DeadlineExceededError, "facets health says whether a server is there"),
    (UnauthenticatedError, "--api-key or FACETS_API_KEY gives the key"),
)


def _exit_code_of(error: FacetsClientError) -> ExitCode:
    if error.reason == _DISK_FULL:
        return ExitCode.SERVER
    return next((code for code, kinds in _EXIT_CODES.items() if isinstance(error, kinds)), ExitCode.SERVER)


def without_noise(details: str) -> str:
    """What a server, or gRPC itself, said, on one line without what gRPC puts before it."""
    return _GRPC_NOISE.sub("", " ".join(details.split()).rstrip("."))


def _sentence_of(error: FacetsClientError, target: str) -> str:
    details = without_noise(error.details)
    if isinstance(error, UnavailableError):
        return f"the server at {target} is not available: {details}"
    if isinstance(error, OverloadedError) and error.reason != _DISK_FULL:
        return f"the server at {target} is overloaded: {details}"
    if isinstance(error, DeadlineExceededError):
        return f"no answer from the server at {target} in time (see --timeout-s): {details}"
    if _exit_code_of(error) is ExitCode.SERVER:
        request = f" (request {error.request_id})" if error.request_id else ""
        return f"the server failed: {details}{request}"
    return details
