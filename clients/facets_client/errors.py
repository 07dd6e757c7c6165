"""Exceptions of the client.

One exception per status worth catching. Each is raised ``from`` its ``grpc.RpcError``, which stays in ``__cause__``.
Wrong arguments that the client notices before a call are ``TypeError`` and ``ValueError``.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import grpc


class FieldViolation(NamedTuple):
    """One field of a request that breaks its rule."""

    field: str  # path of the field, e.g. texts[3]
    description: str  # the rule and the value that breaks it


@dataclass(eq=False, repr=False)
class FacetsClientError(Exception):
    """A call to the server failed."""

    code: grpc.StatusCode
    details: str  # the server's message: what was wrong, what was expected, what it got
    reason: str = ""  # stable machine-readable word, e.g. TEXT_TOO_LONG
    metadata: dict[str, str] = field(default_factory=dict)  # details of the reason, e.g. {"limit": "512"}
    field_violations: tuple[FieldViolation, ...] = ()  # fields that break their rules
    retry_after_s: float | None = None  # seconds that the server asks to wait; None: it did not say
    request_id: str = ""  # identifies the call in the server's log
    resource_type: str = ""  # of a missing resource: model, collection, paper, ...

    def __post_init__(self) -> None:
        super().__init__(f"{self.code.name}: {self.details}")


class InvalidArgumentError(FacetsClientError, ValueError):
    """The request breaks a documented rule. Permanent: change the input, see ``field_violations``."""


class NotFoundError(FacetsClientError, LookupError):
    """The model, collection or document does not exist."""


class AlreadyExistsError(FacetsClientError):
    """The name is taken; nothing was changed."""


class FailedPreconditionError(FacetsClientError):
    """The resource is in a state that forbids the call (a folder in use, another model); nothing was changed."""


class UnauthenticatedError(FacetsClientError):
    """The server requires an API key; the call had none or a wrong one."""


class PermissionDeniedError(FacetsClientError):
    """The API key does not allow this call."""


class OverloadedError(FacetsClientError):
    """The server is full. Transient: wait ``retry_after_s``; no part of the request was executed."""


class UnavailableError(FacetsClientError):
    """The server cannot be reached, is starting or stopping, or dropped the call. Transient: try again later."""


class DeadlineExceededError(FacetsClientError):
    """No answer within the timeout. Transient, or the request is too large for its timeout."""


class ServerError(FacetsClientError):
    """The server failed (a bug, a damaged store, a full disk). See its log for ``request_id``."""


# ``FacetsClientError`` itself for rarer codes.
CLASS_OF_CODE: dict[grpc.StatusCode, type[FacetsClientError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgumentError,
    grpc.StatusCode.OUT_OF_RANGE: InvalidArgumentError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.ALREADY_EXISTS: AlreadyExistsError,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPreconditionError,
    grpc.StatusCode.UNAUTHENTICATED: UnauthenticatedError,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDeniedError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: OverloadedError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.CANCELLED: UnavailableError,  # by the server, or because the client was closed
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceededError,
    grpc.StatusCode.INTERNAL: ServerError,
    grpc.StatusCode.ABORTED: ServerError,  # the store could not write
    grpc.StatusCode.UNKNOWN: ServerError,
    grpc.StatusCode.DATA_LOSS: ServerError,
}


class OddFilterWarning(UserWarning):
    """A filter may find nothing: no document has its field, or the field has values of another type."""
