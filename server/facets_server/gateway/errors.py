"""Errors of the gateway; gRPC codes map to HTTP statuses as in the Connect protocol."""

import base64
import math
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import Any, TypeVar

import grpc
from google.protobuf import json_format
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from starlette.responses import JSONResponse, Response

from facets.errors import FacetsError
from facets_server.runtime.errors import DOMAIN, status_of, status_row

Code = grpc.StatusCode
MessageT = TypeVar("MessageT", bound=Message)

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")  # of the running request
CLIENT_GONE = 499  # the client closed the connection before the reply
_HTTP_STATUS = {
    Code.CANCELLED: CLIENT_GONE,
    Code.INVALID_ARGUMENT: 400,
    Code.FAILED_PRECONDITION: 400,
    Code.OUT_OF_RANGE: 400,
    Code.UNAUTHENTICATED: 401,
    Code.PERMISSION_DENIED: 403,
    Code.NOT_FOUND: 404,
    Code.ALREADY_EXISTS: 409,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.UNIMPLEMENTED: 501,
    Code.UNAVAILABLE: 503,
    Code.DEADLINE_EXCEEDED: 504,
}  # others: 500
_REASONS = {  # of the gateway's own errors; others: their code
    Code.INVALID_ARGUMENT: "INVALID_INPUT",
    Code.RESOURCE_EXHAUSTED: "OVERLOADED",
    Code.UNAVAILABLE: "NOT_READY",
}
_MESSAGE_TOO_LARGE = "larger than max"  # gRPC's own wording


class CallError(Exception):
    """A failed call. Every route turns it into a reply in its own format.

    ``details`` are those of the gRPC status: ErrorInfo, BadRequest, RetryInfo. ``field`` is the wrong field of the
    request; empty: not known.
    """

    def __init__(
        self,
        code: grpc.StatusCode,
        message: str,
        *,
        details: Iterable[AnyMessage] = (),
        http_status: int | None = None,
        headers: Mapping[str, str] | None = None,
        field: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = tuple(details)
        self.http_status = http_status or _HTTP_STATUS.get(code, 500)
        self.headers = dict(headers or {})
        violations = self._detail(BadRequest()).field_violations
        self.field = field or (violations[0].field if violations else "")
        retry_after_s = self._detail(RetryInfo()).retry_delay.ToTimedelta().total_seconds()
        if retry_after_s or code is Code.UNAVAILABLE:
            self.headers.setdefault("Retry-After", str(max(1, math.ceil(retry_after_s))))
        if code is Code.UNAUTHENTICATED:
            self.headers["WWW-Authenticate"] = "Bearer"

    @classmethod
    def of_grpc(cls, error: Any) -> "CallError":
        """The error of a failed gRPC call (``grpc.RpcError``), with the details from its trailing metadata."""
        metadata: Iterable[tuple[str, Any]] = error.trailing_metadata() or ()
        packed = next((value for name, value in metadata if name == "grpc-status-details-bin"), b"")
        details = tuple(Status.FromString(packed).details)
        code = error.code()
        message = error.details() or code.name.lower().replace("_", " ")
        if code is Code.CANCELLED:  # the server was busy or stopped: the gateway cancels only for clients that are gone
            code, message = Code.UNAVAILABLE, "the server dropped the call: try again"
        elif code is Code.UNAVAILABLE and not details:
            message = "the server cannot be reached"  # gRPC's text names internal addresses
        elif code is Code.DEADLINE_EXCEEDED and not details:
            message = "the deadline passed before the work was done"
        is_too_large = code is Code.RESOURCE_EXHAUSTED and _MESSAGE_TOO_LARGE in message
        return cls(code, message, details=details, http_status=413 if is_too_large else None)

    @classmethod
    def of_facets(cls, error: FacetsError) -> "CallError":
        """The error that the gRPC server would send for ``error``."""
        status = status_of(error)
        return cls(status_row(error)[0], status.message, details=status.details)

    def to_json(self) -> dict[str, object]:
        """The error in the JSON of the Connect protocol."""
        code = "canceled" if self.code is Code.CANCELLED else self.code.name.lower()
        details, info = list(self.details), self._detail(ErrorInfo(reason=_REASONS.get(self.code, self.code.name)))
        if not info.metadata:  # an error of the gateway itself
            info.domain, info.metadata["request_id"] = DOMAIN, REQUEST_ID.get()
            packed = AnyMessage()
            packed.Pack(info)
            details = [packed, *(detail for detail in details if detail.TypeName() != packed.TypeName())]
        return {"code": code, "message": self.message, "details": list(map(_detail_json, details))}

    def response(self) -> Response:
        """The reply of a Connect route."""
        return JSONResponse(self.to_json(), status_code=self.http_status, headers=self.headers)

    def _detail(self, empty: MessageT) -> MessageT:
        """The detail of this type, or the empty one."""
        any(detail.Unpack(empty) for detail in self.details)
        return empty


def bad_request(
    message: str, *, http_status: int = 400, field: str = "", headers: Mapping[str, str] | None = None
) -> CallError:
    """An error of the caller that the gateway itself found."""
    return CallError(Code.INVALID_ARGUMENT, message, http_status=http_status, headers=headers, field=field)


def _detail_json(detail: AnyMessage) -> dict[str, object]:
    value = base64.b64encode(detail.value).decode().rstrip("=")
    debug = {name: part for name, part in json_format.MessageToDict(detail).items() if not name.startswith("@")}
    return {"type": detail.TypeName(), "value": value, "debug": debug}
