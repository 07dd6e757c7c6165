"""Failed calls and error statuses inside replies as exceptions of the client."""

from collections.abc import Iterable

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from facets_client.errors import ErrorInfo, FacetsClientError, FieldViolation, error_class

_STATUS_KEY = "grpc-status-details-bin"


def client_error(error: grpc.RpcError) -> FacetsClientError:
    """The exception that stands for a failed call; raise it ``from`` the error."""
    assert isinstance(error, grpc.Call | grpc.aio.AioRpcError)
    status = None
    for key, value in error.trailing_metadata() or ():
        if key == _STATUS_KEY:
            status = _parse_status(value)
    info = error_info(status.details) if status else None
    return error_class(error.code())(error.code(), error.details() or "no details", info=info)


def status_error(status: status_pb2.Status) -> FacetsClientError:
    """The exception that stands for a status inside a reply."""
    code = status_code(status.code)
    return error_class(code)(code, status.message, info=error_info(status.details))


def status_code(number: int) -> grpc.StatusCode:
    """GRPC status of a number of ``google.rpc.Code``; UNKNOWN for a number nobody knows."""
    return next((code for code in grpc.StatusCode if code.value[0] == number), grpc.StatusCode.UNKNOWN)


def _parse_status(value: str | bytes) -> status_pb2.Status | None:
    """The rich status of a failed call; None when a proxy wrote something else there."""
    try:
        return status_pb2.Status.FromString(value if isinstance(value, bytes) else value.encode("latin-1"))
    except DecodeError:
        return None


def error_info(details: Iterable[AnyMessage]) -> ErrorInfo:
    """Reads the details of AIP-193: ErrorInfo, BadRequest, RetryInfo, RequestInfo, ResourceInfo."""
    reason = error_details_pb2.ErrorInfo()
    bad_request = error_details_pb2.BadRequest()
    retry = error_details_pb2.RetryInfo()
    request = error_details_pb2.RequestInfo()
    resource = error_details_pb2.ResourceInfo()
    retry_after_s = None
    for detail in details:
        for target in (reason, bad_request, retry, request, resource):
            if detail.Unpack(target) and target is retry:
                retry_after_s = retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9
    return ErrorInfo(
        reason=reason.reason,
        domain=reason.domain,
        metadata=tuple(sorted(reason.metadata.items())),
        field_violations=tuple(FieldViolation(v.field, v.description) for v in bad_request.field_violations),
        retry_after_s=retry_after_s,
        request_id=request.request_id or reason.metadata.get("request_id", ""),
        resource_type=resource.resource_type,
    )
