"""The errors of the server and the one table from error class to gRPC status (AIP-193).

Details of every error: exactly one ErrorInfo (reason, domain ``facets.dev``); BadRequest for bad fields,
ResourceInfo for missing things, RetryInfo when trying again later helps. Only messages of ``FacetsError``
reach the caller. Everything else is our own bug: INTERNAL with a fixed text, and the log gets the stack but
not the exception's message, which may hold a caller's words.

The library words an error with the path of its own arguments. A request has other names for the same things, and a
long one is worked on in parts; what is called what is said once for each rpc, as data:

    FIELDS = {"premises": ("pairs", ITEM, "premise")}

    with in_request(FIELDS, start=256):   # premises[3] of the library -> pairs[259].premise
        ...
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from facets.errors import (
    CheckpointError,
    ConfigError,
    ConflictError,
    DamagedError,
    DiskFullError,
    ErrorPath,
    FacetsError,
    IndexAwayError,
    IndexFormatError,
    InvalidInputError,
    NotFoundError,
    NotReadyError,
    OverloadedError,
    StorageError,
    StoreClosedError,
    StoreGoneError,
    StoreInUseError,
    WritesLostError,
)

DOMAIN = "facets.dev"
INTERNAL_TEXT = "internal error"
# A status travels in HTTP/2 headers of at most 8 KiB, which gRPC drops whole when they are longer; there a message
# is percent-encoded (three bytes for each that is not ASCII) and the details hold it once more.
_MAX_MESSAGE_BYTES = 600
_MAX_FIELD_BYTES = 200
_MAX_VIOLATIONS_BYTES = 2400
_MAX_VIOLATIONS = 8
_NOT_READY_RETRY_S = 1.0


class DeadlineExceededError(FacetsError):
    """The caller's deadline passed before the work was done; it was dropped."""


class CallCancelledError(FacetsError):
    """The caller cancelled; the work was dropped."""


class UnauthenticatedError(FacetsError):
    """The call carries no key or one that the server does not know."""


class PermissionDeniedError(FacetsError):
    """The key of the call is known, but not good for it."""


class SequenceGapError(FacetsError):
    """A batch of a stream is not the one after the last; resume from the last acknowledged one."""


class ModelMismatchError(FacetsError):
    """A collection was made with another revision of its model: its embeddings do not compare with new ones."""


class ModelFailureError(FacetsError):
    """The model failed on these texts or returned numbers that are not finite."""


class InvalidFieldsError(InvalidInputError):
    """Several fields of one request break their rules.

    Attributes:
        errors: One a field, in the order of the request.
    """

    def __init__(self, errors: Sequence[InvalidInputError]) -> None:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        super().__init__(errors[0].rule + more, path=errors[0].path)
        self.errors = tuple(errors)


@dataclass(frozen=True, slots=True)
class _Row:
    error: type[FacetsError]
    code: grpc.StatusCode
    reason: str


# First match wins: a subclass stands before its base.
_TABLE = (
    _Row(InvalidInputError, grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT"),
    _Row(NotFoundError, grpc.StatusCode.NOT_FOUND, "NOT_FOUND"),
    _Row(ConflictError, grpc.StatusCode.ALREADY_EXISTS, "ALREADY_EXISTS"),
    _Row(SequenceGapError, grpc.StatusCode.OUT_OF_RANGE, "SEQUENCE_GAP"),
    _Row(OverloadedError, grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED"),
    _Row(NotReadyError, grpc.StatusCode.UNAVAILABLE, "NOT_READY"),
    _Row(DeadlineExceededError, grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"),
    _Row(CallCancelledError, grpc.StatusCode.CANCELLED, "CANCELLED"),
    _Row(UnauthenticatedError, grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED"),
    _Row(PermissionDeniedError, grpc.StatusCode.PERMISSION_DENIED, "PERMISSION_DENIED"),
    _Row(ModelMismatchError, grpc.StatusCode.FAILED_PRECONDITION, "MODEL_MISMATCH"),
    _Row(DiskFullError, grpc.StatusCode.RESOURCE_EXHAUSTED, "DISK_FULL"),
    _Row(DamagedError, grpc.StatusCode.DATA_LOSS, "STORAGE_DAMAGED"),
    _Row(StoreClosedError, grpc.StatusCode.UNAVAILABLE, "STORE_CLOSED"),
    _Row(StoreGoneError, grpc.StatusCode.DATA_LOSS, "STORE_GONE"),
    _Row(WritesLostError, grpc.StatusCode.DATA_LOSS, "WRITES_LOST"),
    _Row(StoreInUseError, grpc.StatusCode.UNAVAILABLE, "STORE_IN_USE"),
    _Row(IndexAwayError, grpc.StatusCode.UNAVAILABLE, "INDEX_AWAY"),
    _Row(StorageError, grpc.StatusCode.UNAVAILABLE, "STORAGE_FAILED"),
    _Row(IndexFormatError, grpc.StatusCode.DATA_LOSS, "INDEX_DAMAGED"),
    _Row(CheckpointError, grpc.StatusCode.FAILED_PRECONDITION, "CHECKPOINT_DAMAGED"),
    _Row(ConfigError, grpc.StatusCode.FAILED_PRECONDITION, "MISCONFIGURED"),
)
_INTERNAL = _Row(FacetsError, grpc.StatusCode.INTERNAL, "INTERNAL")


class _Status(grpc.Status):
    """What ``ServicerContext.abort_with_status`` takes."""

    def __init__(
        self, code: grpc.StatusCode, details: str, trailing_metadata: tuple[tuple[str, str | bytes], ...]
    ) -> None:
        self.code = code
        self.details = details
        self.trailing_metadata = trailing_metadata


def code_of(error: BaseException) -> grpc.StatusCode:
    """The canonical code of an error."""
    return _row_of(error).code


def reason_of(error: BaseException) -> str:
    """The ErrorInfo reason of an error; free of caller's words, so it may be logged."""
    return _row_of(error).reason


def status_of(error: BaseException, *, request_id: str = "") -> status_pb2.Status:
    """The error as google.rpc.Status with its details.

    Args:
        error: Any exception; those that are not in the table become INTERNAL with a fixed text.
        request_id: Stands in ErrorInfo.metadata when not empty.
    """
    row = _row_of(error)
    message = INTERNAL_TEXT if row is _INTERNAL else _shortened(str(error), _MAX_MESSAGE_BYTES)
    info = error_details_pb2.ErrorInfo(reason=row.reason, domain=DOMAIN)
    if request_id:
        info.metadata["request_id"] = request_id
    details: list[Message] = [info]
    if isinstance(error, InvalidInputError):
        details += _bad_request(error)
    elif isinstance(error, NotFoundError) and error.resource_type:
        details.append(
            error_details_pb2.ResourceInfo(
                resource_type=error.resource_type, resource_name=_shortened(error.resource_name, _MAX_FIELD_BYTES)
            )
        )
    retry_after_s = _retry_after_s(error)
    if retry_after_s is not None:
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(round(retry_after_s * 1000))
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    return status_pb2.Status(code=row.code.value[0], message=message, details=[_pack(d) for d in details])


def grpc_status_of(error: BaseException, *, request_id: str = "") -> grpc.Status:
    """The error as gRPC's own status; overload also says to gRPC's retry policy how long to wait."""
    status = rpc_status.to_status(status_of(error, request_id=request_id))
    metadata = tuple(status.trailing_metadata)
    retry_after_s = _retry_after_s(error)
    if retry_after_s is not None:
        metadata += (("grpc-retry-pushback-ms", str(round(retry_after_s * 1000))),)
    elif status.code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        metadata += (("grpc-retry-pushback-ms", "-1"),)  # a full disk: trying again at once is no use
    if request_id:
        metadata += (("x-request-id", request_id),)
    return _Status(status.code, status.details, metadata)


def _row_of(error: BaseException) -> _Row:
    return next((row for row in _TABLE if isinstance(error, row.error)), _INTERNAL)


def _retry_after_s(error: BaseException) -> float | None:
    if isinstance(error, OverloadedError):
        return error.retry_after_s
    return _NOT_READY_RETRY_S if isinstance(error, NotReadyError) else None


def _bad_request(error: InvalidInputError) -> list[Message]:
    errors = error.errors if isinstance(error, InvalidFieldsError) else (error,)
    detail = error_details_pb2.BadRequest()
    for one in errors[:_MAX_VIOLATIONS]:
        if one.path and detail.ByteSize() < _MAX_VIOLATIONS_BYTES:
            detail.field_violations.add(
                field=_shortened(one.field, _MAX_FIELD_BYTES), description=_shortened(one.rule, _MAX_MESSAGE_BYTES)
            )
    return [detail] if detail.field_violations else []


def _shortened(text: str, max_bytes: int) -> str:
    """The beginning and the end of a text that is longer than ``max_bytes`` in UTF-8, else the text."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= max_bytes:
        return text
    tail = max_bytes // 3
    head = max_bytes - tail - len(" ... ")
    return f"{encoded[:head].decode('utf-8', 'ignore')} ... {encoded[-tail:].decode('utf-8', 'ignore')}"


def _pack(message: Message) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(message)
    return packed


class _Item(Enum):
    ITEM = auto()


ITEM = _Item.ITEM
"""In the path of a field: the place of the item that the library was given."""

FieldNames = Mapping[str, tuple[str | int | _Item, ...]]
"""Argument of the library -> path of the field; an argument that is not named keeps its name."""


@contextmanager
def in_request(fields: FieldNames, *, start: int = 0) -> Iterator[None]:
    """Words errors about arguments of the library as errors about fields of the request.

    Args:
        fields: What is called what.
        start: Place in the request of the first item that the library was given.
    """
    try:
        yield
    except InvalidFieldsError as error:
        raise InvalidFieldsError([one.at(_moved(one.path, fields, start)) for one in error.errors]) from error
    except InvalidInputError as error:
        raise error.at(_moved(error.path, fields, start)) from error


def _moved(path: ErrorPath, fields: FieldNames, start: int) -> ErrorPath:
    if not path or path[0] not in fields:
        return path
    moved: list[str | int] = []
    rest = list(path[1:])
    for part in fields[str(path[0])]:
        if part is not ITEM:
            moved.append(part)
        elif rest and isinstance(rest[0], int):
            moved.append(rest[0] + start)
            del rest[0]
        else:  # about all the items
            break
    return (*moved, *rest)
