"""Errors of the gateway; gRPC codes map to HTTP statuses as in the Connect protocol."""

import base64
import math
from collections.abc import Iterable, Sequence
from typing import Any

import grpc
from google.protobuf import json_format
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status
from starlette.responses import JSONResponse, Response

from facets.errors import FacetsError
from facets_server.runtime.errors import code_of, status_of

Code = grpc.StatusCode

CLIENT_GONE = 499  # the client closed the connection before the reply
_HTTP_STATUS = {
    Code.CANCELLED: CLIENT_GONE,
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
_MESSAGE_TOO_LARGE = "larger than max"  # gRPC's own wording
_UNAVAILABLE_RETRY_S = 1.0


class CallError(Exception):
    """A failed call. Every route turns it into a reply in its own format.

    Attributes:
        code: gRPC status code.
        message: One sentence.
        details: Details of the gRPC status: ErrorInfo, BadRequest, RetryInfo.
        http_status: HTTP status of the reply.
        headers: HTTP headers of the reply.
        field: Field of the request that is wrong; empty: not known.
    """

    def __init__(
        self,
        code: grpc.StatusCode,
        message: str,
        *,
        details: Sequence[AnyMessage] = (),
        http_status: int | None = None,
        headers: dict[str, str] | None = None,
        field: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = tuple(details)
        self.http_status = http_status or _HTTP_STATUS[code]
        self.headers = dict(headers or {})
        self.field = field or self._violated_field()
        retry_after_s = self._retry_after_s()
        if retry_after_s is not None:
            self.headers.setdefault("Retry-After", str(max(1, math.ceil(retry_after_s))))
        if code is Code.UNAUTHENTICATED:
            self.headers["WWW-Authenticate"] = "Bearer"

    @classmethod
    def of_grpc(cls, error: Any) -> "CallError":
        """The error of a failed gRPC call (``grpc.RpcError``), with the details from its trailing metadata."""
        metadata: Iterable[tuple[str, Any]] = error.trailing_metadata() or ()
        packed = next((value for name, value in metadata if name == "grpc-status-details-bin"), b"")
        try:
            details = tuple(Status.FromString(packed).details)
        except DecodeError:
            details = ()
        code = error.code()
        message = error.details() or code.name.lower().replace("_", " ")
        if code is Code.CANCELLED:  # the server was busy or stopped: the gateway cancels only for clients that are gone
            code, message = Code.UNAVAILABLE, "the server dropped the call: try again"
        elif code is Code.UNAVAILABLE and not details:
            message = "the server cannot be reached"  # gRPC's text names internal addresses
        is_too_large = code is Code.RESOURCE_EXHAUSTED and _MESSAGE_TOO_LARGE in message
        return cls(code, message, details=details, http_status=413 if is_too_large else None)

    @classmethod
    def of_facets(cls, error: FacetsError) -> "CallError":
        """The error that the gRPC server would send for ``error``."""
        status = status_of(error)
        return cls(code_of(error), status.message, details=status.details)

    def to_json(self) -> dict[str, object]:
        """The error in the JSON of the Connect protocol: ``code``, ``message``, ``details``."""
        code = "canceled" if self.code is Code.CANCELLED else self.code.name.lower()
        error: dict[str, object] = {"code": code, "message": self.message}
        if self.details:
            error["details"] = [_detail_json(detail) for detail in self.details]
        return error

    def response(self) -> Response:
        """The reply of a Connect route."""
        return JSONResponse(self.to_json(), status_code=self.http_status, headers=self.headers)

    def _violated_field(self) -> str:
        bad_request = error_details_pb2.BadRequest()
        for detail in self.details:
            if detail.Unpack(bad_request) and bad_request.field_violations:
                return bad_request.field_violations[0].field
        return ""

    def _retry_after_s(self) -> float | None:
        info = error_details_pb2.RetryInfo()
        for detail in self.details:
            if detail.Unpack(info):
                return info.retry_delay.ToTimedelta().total_seconds()
        return _UNAVAILABLE_RETRY_S if self.code is Code.UNAVAILABLE else None


def bad_request(message: str, *, http_status: int = 400, field: str = "", **headers: str) -> CallError:
    """An error of the caller that the gateway itself found; ``Accept_Post`` in ``headers`` becomes ``Accept-Post``."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return CallError(Code.INVALID_ARGUMENT, message, http_status=http_status, headers=named, field=field)


def internal_error() -> Response:
    """The reply to an unexpected exception. It has a fixed text, because messages may quote the caller's text."""
    return CallError(Code.INTERNAL, "internal error").response()


def _detail_json(detail: AnyMessage) -> dict[str, object]:
    value = base64.b64encode(detail.value).decode().rstrip("=")
    found: dict[str, object] = {"type": detail.TypeName(), "value": value}
    try:
        fields = json_format.MessageToDict(detail)
    except (TypeError, DecodeError):  # unknown type: value holds its bytes
        return found
    found["debug"] = {name: part for name, part in fields.items() if not name.startswith("@")}
    return found
