"""What a call that fails becomes: one table from codes of gRPC to those of HTTP, as the Connect protocol has it."""

import base64
import math
from collections.abc import Sequence

import grpc
from google.protobuf import json_format
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status

from facets.errors import FacetsError
from facets_server.runtime.errors import code_of, status_of

Code = grpc.StatusCode

_HTTP_STATUS = {
    Code.CANCELLED: 499,
    Code.UNKNOWN: 500,
    Code.INVALID_ARGUMENT: 400,
    Code.DEADLINE_EXCEEDED: 504,
    Code.NOT_FOUND: 404,
    Code.ALREADY_EXISTS: 409,
    Code.PERMISSION_DENIED: 403,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.FAILED_PRECONDITION: 400,
    Code.ABORTED: 409,
    Code.OUT_OF_RANGE: 400,
    Code.UNIMPLEMENTED: 501,
    Code.INTERNAL: 500,
    Code.UNAVAILABLE: 503,
    Code.DATA_LOSS: 500,
    Code.UNAUTHENTICATED: 401,
}
_TOO_LARGE = "larger than max"  # gRPC's own words, which no table of ours has made


class CallFailedError(Exception):
    """A call has failed; becomes the reply of whatever route it came by.

    Attributes:
        code: Code of gRPC.
        message: One sentence.
        details: As gRPC's status has them: ErrorInfo, BadRequest, RetryInfo.
        status: Status of HTTP where it is not the one of the code; None: that one.
        headers: Of the reply.
    """

    def __init__(
        self,
        code: grpc.StatusCode,
        message: str,
        *,
        details: Sequence[AnyMessage] = (),
        status: int | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = tuple(details)
        self.status = status
        self.headers = headers or {}


def bad_request(message: str, *, status: int | None = None, **headers: str) -> CallFailedError:
    """The caller's mistake, seen by the gateway itself."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return CallFailedError(Code.INVALID_ARGUMENT, message, status=status, headers=named)


def own_failure(error: FacetsError) -> CallFailedError:
    """What the server would say of an error that the gateway has found."""
    status = status_of(error)
    return CallFailedError(code_of(error), status.message, details=status.details)


def failure_of(error: grpc.aio.AioRpcError) -> CallFailedError:
    """What gRPC says of a failed call, with the details that its trailing metadata carries."""
    trailers = error.trailing_metadata() or ()
    packed = next((value for name, value in trailers if name == "grpc-status-details-bin"), b"")
    try:
        details = tuple(Status.FromString(packed.encode() if isinstance(packed, str) else packed).details)
    except DecodeError:
        details = ()  # not of ours
    code = error.code()
    message = error.details() or code.name.lower().replace("_", " ")
    if code is Code.CANCELLED:  # not by us: a busy server, or one that stops
        code, message = Code.UNAVAILABLE, "the server has dropped the call: try again"
    elif code is Code.UNAVAILABLE and not details:
        message = "the server cannot be reached"  # gRPC's text names addresses
    is_too_large = code is Code.RESOURCE_EXHAUSTED and _TOO_LARGE in message
    return CallFailedError(code, message, details=details, status=413 if is_too_large else None)


def http_status_of(failure: CallFailedError) -> int:
    """Status of HTTP."""
    return failure.status or _HTTP_STATUS[failure.code]


def headers_of(failure: CallFailedError) -> dict[str, str]:
    """Headers of the reply: when to come back, what to show."""
    headers = dict(failure.headers)
    retry_after_s = _retry_after_s(failure)
    if retry_after_s is not None:
        headers["Retry-After"] = str(max(1, math.ceil(retry_after_s)))
    if failure.code is Code.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = "Bearer"
    return headers


def connect_error(failure: CallFailedError) -> dict[str, object]:
    """The error in the Connect protocol's JSON: ``code``, ``message``, ``details``."""
    code = "canceled" if failure.code is Code.CANCELLED else failure.code.name.lower()
    error: dict[str, object] = {"code": code, "message": failure.message}
    if failure.details:
        error["details"] = [_detail(detail) for detail in failure.details]
    return error


def _detail(detail: AnyMessage) -> dict[str, object]:
    value = base64.b64encode(detail.value).decode().rstrip("=")
    found: dict[str, object] = {"type": detail.TypeName(), "value": value}
    try:
        found["debug"] = {
            name: part for name, part in json_format.MessageToDict(detail).items() if not name.startswith("@")
        }
    except (TypeError, DecodeError):
        pass  # a kind that we do not know: its bytes are there
    return found


def _retry_after_s(failure: CallFailedError) -> float | None:
    info = error_details_pb2.RetryInfo()
    for detail in failure.details:
        if detail.Unpack(info):
            return float(info.retry_delay.ToTimedelta().total_seconds())
    return 1.0 if failure.code is Code.UNAVAILABLE else None
