"""The errors of the server, and the table from error class to gRPC status (AIP-193).

Only messages of ``FacetsError`` reach the caller. Any other exception is a bug of the server: INTERNAL with a fixed
text; the log gets the stack but not the exception's message, which may hold a user's text.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import grpc
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from facets import errors
from facets.errors import ErrorPath, FacetsError, InvalidFieldsError, InvalidInputError, NotFoundError

DOMAIN = "facets.dev"
INTERNAL_TEXT = "internal error"
# A status travels in HTTP/2 headers, which gRPC drops above 8 KiB. There the message is percent-encoded (three bytes
# for each byte that is not ASCII), and the details repeat it.
_MAX_MESSAGE_BYTES = 600
_MAX_FIELD_BYTES = 200
_MAX_VIOLATIONS_BYTES = 2400
_NOT_READY_RETRY_S = 1.0


class DeadlineExceededError(FacetsError):
    """The deadline of the call passed before the work was done; the work was dropped."""


class CallCancelledError(FacetsError):
    """The caller cancelled the call; the work was dropped."""


class UnauthenticatedError(FacetsError):
    """The call carries no key, or an unknown one."""


class PermissionDeniedError(FacetsError):
    """The key of the call does not allow it."""


class SequenceGapError(FacetsError):
    """A batch of a stream is missing; resume after the last acknowledged batch."""


class ModelFailureError(FacetsError):
    """The model failed on these texts or returned numbers that are not finite."""


_Code = grpc.StatusCode
_INTERNAL = (_Code.INTERNAL, "INTERNAL")
# First match wins: a subclass stands before its base.
_TABLE: dict[type[FacetsError], tuple[grpc.StatusCode, str]] = {
    InvalidInputError: (_Code.INVALID_ARGUMENT, "INVALID_INPUT"),
    NotFoundError: (_Code.NOT_FOUND, "NOT_FOUND"),
    errors.ConflictError: (_Code.ALREADY_EXISTS, "ALREADY_EXISTS"),
    SequenceGapError: (_Code.OUT_OF_RANGE, "SEQUENCE_GAP"),
    errors.OverloadedError: (_Code.RESOURCE_EXHAUSTED, "OVERLOADED"),
    errors.NotReadyError: (_Code.UNAVAILABLE, "NOT_READY"),
    DeadlineExceededError: (_Code.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"),
    CallCancelledError: (_Code.CANCELLED, "CANCELLED"),
    UnauthenticatedError: (_Code.UNAUTHENTICATED, "UNAUTHENTICATED"),
    PermissionDeniedError: (_Code.PERMISSION_DENIED, "PERMISSION_DENIED"),
    errors.ModelMismatchError: (_Code.FAILED_PRECONDITION, "MODEL_MISMATCH"),
    errors.DiskFullError: (_Code.RESOURCE_EXHAUSTED, "DISK_FULL"),
    errors.DamagedError: (_Code.DATA_LOSS, "STORAGE_DAMAGED"),
    errors.StoreClosedError: (_Code.UNAVAILABLE, "STORE_CLOSED"),
    errors.StoreGoneError: (_Code.DATA_LOSS, "STORE_GONE"),
    errors.WritesLostError: (_Code.DATA_LOSS, "WRITES_LOST"),
    errors.StoreInUseError: (_Code.FAILED_PRECONDITION, "STORE_IN_USE"),
    errors.StoreFormatError: (_Code.FAILED_PRECONDITION, "STORE_FORMAT"),
    errors.IndexAwayError: (_Code.UNAVAILABLE, "INDEX_AWAY"),
    errors.StorageError: (_Code.UNAVAILABLE, "STORAGE_FAILED"),
    errors.IndexFormatError: (_Code.DATA_LOSS, "INDEX_DAMAGED"),
    errors.CheckpointError: (_Code.FAILED_PRECONDITION, "CHECKPOINT_DAMAGED"),
    errors.ConfigError: (_Code.FAILED_PRECONDITION, "MISCONFIGURED"),
}


@dataclass(frozen=True)
class _Status(grpc.Status):
    code: grpc.StatusCode
    details: str
    trailing_metadata: tuple[tuple[str, str | bytes], ...]


def status_row(error: BaseException) -> tuple[grpc.StatusCode, str]:
    """Status code and ErrorInfo reason of an error; they hold no user text, so they may be logged."""
    return next((row for kind, row in _TABLE.items() if isinstance(error, kind)), _INTERNAL)


def status_of(error: BaseException, *, request_id: str = "") -> status_pb2.Status:
    """Any exception as google.rpc.Status with its details; ErrorInfo.metadata holds the request id, if any."""
    code, reason = row = status_row(error)
    message = INTERNAL_TEXT if row is _INTERNAL else _shortened(str(error), _MAX_MESSAGE_BYTES)
    info = error_details_pb2.ErrorInfo(reason=reason, domain=DOMAIN)
    if request_id:
        info.metadata["request_id"] = request_id
    details: list[Message] = [info]
    if isinstance(error, InvalidInputError):
        details += _bad_request(error)
    elif isinstance(error, NotFoundError) and error.resource_type:
        name = _shortened(error.resource_name, _MAX_FIELD_BYTES)
        details.append(error_details_pb2.ResourceInfo(resource_type=error.resource_type, resource_name=name))
    retry_after_s = _retry_after_s(error)
    if retry_after_s is not None:
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.FromMilliseconds(round(retry_after_s * 1000))
        details.append(retry)
    status = status_pb2.Status(code=code.value[0], message=message)
    for detail in details:
        status.details.add().Pack(detail)
    return status


def grpc_status_of(error: BaseException, *, request_id: str = "") -> grpc.Status:
    """The error as a gRPC status, with the pushback that gRPC's retry policy reads."""
    status = rpc_status.to_status(status_of(error, request_id=request_id))
    metadata = tuple(status.trailing_metadata)
    retry_after_s = _retry_after_s(error)
    if retry_after_s is not None:
        metadata += (("grpc-retry-pushback-ms", str(round(retry_after_s * 1000))),)
    elif status.code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        metadata += (("grpc-retry-pushback-ms", "-1"),)  # a full disk: an immediate retry would fail, too
    if request_id:
        metadata += (("x-request-id", request_id),)
    return _Status(status.code, status.details, metadata)


def _retry_after_s(error: BaseException) -> float | None:
    if isinstance(error, errors.OverloadedError):
        return error.retry_after_s
    return _NOT_READY_RETRY_S if isinstance(error, errors.NotReadyError) else None


def _bad_request(error: InvalidInputError) -> list[Message]:
    detail = error_details_pb2.BadRequest()
    for violation in error.errors if isinstance(error, InvalidFieldsError) else (error,):
        if violation.path and detail.ByteSize() < _MAX_VIOLATIONS_BYTES:
            detail.field_violations.add(
                field=_shortened(violation.field, _MAX_FIELD_BYTES),
                description=_shortened(violation.rule, _MAX_MESSAGE_BYTES),
            )
    return [detail] if detail.field_violations else []


def _shortened(text: str, max_bytes: int) -> str:
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= max_bytes:
        return encoded.decode()
    tail = max_bytes // 3
    head = max_bytes - tail - len(" ... ")
    return f"{encoded[:head].decode('utf-8', 'ignore')} ... {encoded[-tail:].decode('utf-8', 'ignore')}"


ITEM = -1  # in the path of a field: the index of the item that the library was given
FieldNames = Mapping[str, ErrorPath]  # argument of the library -> path in the request; others keep their names


@contextmanager
def in_request(fields: FieldNames, *, start: int = 0) -> Iterator[None]:
    """Translates the paths of errors from arguments of the library to fields of the request.

    ``start`` is the index in the request of the first item that the library was given: with
    ``{"premises": ("pairs", ITEM, "premise")}`` and ``start=256``, premises[3] becomes pairs[259].premise.
    """
    try:
        yield
    except InvalidInputError as error:
        raise error.at(_moved(error.path, fields, start)) from error


def _moved(path: ErrorPath, fields: FieldNames, start: int) -> ErrorPath:
    if not path or path[0] not in fields:
        return path
    moved: list[str | int] = []
    rest = list(path[1:])
    for part in fields[str(path[0])]:
        if part != ITEM:
            moved.append(part)
        elif rest and isinstance(rest[0], int):
            moved.append(rest[0] + start)
            del rest[0]
        else:  # the error is about the whole list
            break
    return (*moved, *rest)
