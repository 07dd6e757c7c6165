"""Global settings of the ``facets`` command, its exit codes, and errors as sentences."""

import re
from dataclasses import dataclass
from enum import IntEnum

import typer

from facets_client.client import FacetsClient
from facets_client.core.channel import TlsConfig
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
class Settings:
    """What the global options say."""

    target: str
    json: bool
    timeout_s: float | None
    api_key: str | None
    tls: bool | TlsConfig

    def connect(self) -> FacetsClient:
        """A client; close it."""
        return FacetsClient(self.target, timeout_s=self.timeout_s, api_key=self.api_key, tls=self.tls)


def settings_of(context: typer.Context) -> Settings:
    """The global settings of a command."""
    settings = context.obj
    assert isinstance(settings, Settings)
    return settings


_EXIT_CODES: tuple[tuple[type[FacetsClientError], ExitCode], ...] = (
    (InvalidArgumentError, ExitCode.USAGE),
    (NotFoundError, ExitCode.USAGE),
    (AlreadyExistsError, ExitCode.USAGE),
    (FailedPreconditionError, ExitCode.USAGE),
    (UnavailableError, ExitCode.UNAVAILABLE),
    (OverloadedError, ExitCode.UNAVAILABLE),
    (DeadlineExceededError, ExitCode.UNAVAILABLE),
    (UnauthenticatedError, ExitCode.DENIED),
    (PermissionDeniedError, ExitCode.DENIED),
)


def exit_code_of(error: FacetsClientError) -> ExitCode:
    """The exit code that stands for an error."""
    if error.reason == _DISK_FULL:
        return ExitCode.SERVER
    return next((code for kind, code in _EXIT_CODES if isinstance(error, kind)), ExitCode.SERVER)


def sentence_of(error: FacetsClientError, target: str) -> str:
    """An error of the server at ``target`` as one sentence for a person."""
    details = " ".join(error.details.split()).rstrip(".")
    if isinstance(error, UnavailableError):
        return f"the server at {target} is not available: {_GRPC_NOISE.sub('', details)}"
    if isinstance(error, OverloadedError) and error.reason != _DISK_FULL:
        return f"the server at {target} is overloaded: {details}"
    if isinstance(error, DeadlineExceededError):
        return f"no answer from the server at {target} in time (see --timeout-s): {details}"
    if exit_code_of(error) is ExitCode.SERVER:
        request = f" (request {error.request_id})" if error.request_id else ""
        return f"the server failed: {details}{request}"
    return details
