"""gRPC statuses as exceptions of the client."""

from contextlib import suppress

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from facets_client.errors import CLASS_OF_CODE, FacetsClientError, FieldViolation


def client_error(error: grpc.RpcError, *, target: str = "", timeout_s: float = 0.0) -> FacetsClientError:
    """The exception for a failed call to ``target`` within ``timeout_s``; raise it ``from`` the error."""
    assert isinstance(error, grpc.Call | grpc.aio.AioRpcError)
    status = None
    with suppress(DecodeError, ValueError):  # a proxy wrote something else there
        status = rpc_status.from_call(error)  # type: ignore[arg-type]  # both have its methods
    text = error.details() or "no details"
    if target and text.lower() == "deadline exceeded":
        text = f"no answer from the server at {target} within {timeout_s:g} s: is it running and reachable?"
    return _error(error.code(), text, status or status_pb2.Status())


def status_error(status: status_pb2.Status) -> FacetsClientError:
    """The exception for a status inside a reply; UNKNOWN for a code that gRPC does not know."""
    code = next((code for code in grpc.StatusCode if code.value[0] == status.code), grpc.StatusCode.UNKNOWN)
    return _error(code, status.message, status)


def _error(code: grpc.StatusCode, message: str, status: status_pb2.Status) -> FacetsClientError:
    info = error_details_pb2.ErrorInfo()
    bad_request = error_details_pb2.BadRequest()
    retry = error_details_pb2.RetryInfo()
    resource = error_details_pb2.ResourceInfo()
    for detail in status.details:
        for target in (info, bad_request, retry, resource):
            detail.Unpack(target)
    return CLASS_OF_CODE.get(code, FacetsClientError)(
        code,
        message,
        reason=info.reason,
        metadata=dict(info.metadata),
        field_violations=tuple(FieldViolation(item.field, item.description) for item in bad_request.field_violations),
        retry_after_s=retry.retry_delay.ToTimedelta().total_seconds() if retry.HasField("retry_delay") else None,
        request_id=info.metadata.get("request_id", ""),
        resource_type=resource.resource_type,
    )
