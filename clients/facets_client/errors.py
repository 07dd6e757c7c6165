"""What can go wrong between a program and a Facets server.

One exception per status worth catching. Each is raised ``from`` the ``grpc.RpcError`` it
stands for, so the whole story stays in ``__cause__``. Wrong arguments that the client sees
before it calls the server are ``TypeError`` and ``ValueError``, as everywhere in Python.
"""

from dataclasses import dataclass
from typing import NamedTuple

import grpc


class FieldViolation(NamedTuple):
    """One field of a request that breaks its rule."""

    field: str  # path of the field, e.g. texts[3]
    description: str  # the rule and the value that breaks it


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorInfo:
    """What the server says about an error beside its code and its sentence."""

    reason: str = ""  # stable machine-readable word, e.g. TEXT_TOO_LONG
    domain: str = ""  # who coined the reason, e.g. facets.v1
    metadata: tuple[tuple[str, str], ...] = ()  # details that belong to the reason
    field_violations: tuple[FieldViolation, ...] = ()
    retry_after_s: float | None = None  # how long the server asks to wait
    request_id: str = ""  # finds the call in the server's log
    resource_type: str = ""  # what is not there: model, collection, document, paper, ...


class FacetsClientError(Exception):
    """A call to the server failed.

    Attributes:
        code: gRPC status code.
        details: The server's sentence: what was wrong, what was expected, what it got.
        reason: Stable machine-readable word, e.g. ``TEXT_TOO_LONG``; empty when unknown.
        metadata: Details that belong to the reason, e.g. ``{"limit": "512"}``.
        field_violations: The fields that break their rules; empty when it is not about fields.
        retry_after_s: Seconds the server asks to wait; None when it did not say.
        request_id: Finds the call in the server's log; empty when unknown.
        resource_type: What is not there (``model``, ``collection``, ``paper``, ...); empty for other errors.
    """

    def __init__(self, code: grpc.StatusCode, details: str, *, info: ErrorInfo | None = None) -> None:
        info = info or ErrorInfo()
        super().__init__(f"{code.name}: {details}")
        self.code = code
        self.details = details
        self.reason = info.reason
        self.metadata = dict(info.metadata)
        self.field_violations = info.field_violations
        self.retry_after_s = info.retry_after_s
        self.request_id = info.request_id
        self.resource_type = info.resource_type


class InvalidArgumentError(FacetsClientError, ValueError):
    """The request breaks a documented rule. Permanent: change the input, see ``field_violations``."""


class NotFoundError(FacetsClientError, LookupError):
    """The model, collection or document does not exist."""


class AlreadyExistsError(FacetsClientError):
    """A thing of that name exists already; nothing was changed."""


class FailedPreconditionError(FacetsClientError):
    """The thing is in a state that forbids the call (other model, other dimension); nothing was changed."""


class UnauthenticatedError(FacetsClientError):
    """The server wants an API key and got none, or a wrong one."""


class PermissionDeniedError(FacetsClientError):
    """The API key does not allow this call."""


class OverloadedError(FacetsClientError):
    """The server is full. Transient: wait ``retry_after_s``; nothing of the request was done."""


class UnavailableError(FacetsClientError):
    """The server cannot be reached, is starting, is stopping or has dropped the call. Transient: try again later."""


class DeadlineExceededError(FacetsClientError):
    """No answer within the timeout. Transient, or the request is too big for its timeout."""


class ServerError(FacetsClientError):
    """The server failed (a bug, a damaged store, a full disk). See its log under ``request_id``."""


_BY_CODE: dict[grpc.StatusCode, type[FacetsClientError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgumentError,
    grpc.StatusCode.OUT_OF_RANGE: InvalidArgumentError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.ALREADY_EXISTS: AlreadyExistsError,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPreconditionError,
    grpc.StatusCode.UNAUTHENTICATED: UnauthenticatedError,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDeniedError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: OverloadedError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.CANCELLED: UnavailableError,  # by the other side, or by closing the client
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceededError,
    grpc.StatusCode.INTERNAL: ServerError,
    grpc.StatusCode.ABORTED: ServerError,  # the store could not write
    grpc.StatusCode.UNKNOWN: ServerError,
    grpc.StatusCode.DATA_LOSS: ServerError,
}


def error_class(code: grpc.StatusCode) -> type[FacetsClientError]:
    """Class that stands for a status code; ``FacetsClientError`` itself for the rare ones."""
    return _BY_CODE.get(code, FacetsClientError)


class OddFilterWarning(UserWarning):
    """A filter names a field that no document has, or compares it with a value of another type: it may find nothing."""
