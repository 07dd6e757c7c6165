"""Calls that fail, and what they say."""

from collections.abc import Callable
from typing import Any

import grpc
import pytest
from facets_server.runtime.errors import DOMAIN
from google.rpc import error_details_pb2
from grpc_status import rpc_status

KINDS = (
    error_details_pb2.ErrorInfo,
    error_details_pb2.BadRequest,
    error_details_pb2.RetryInfo,
    error_details_pb2.ResourceInfo,
)


class Failure:
    """Code, message, details by type, and names of the bad fields of a failed call."""

    def __init__(self, error: grpc.RpcError) -> None:
        status = rpc_status.from_call(error)
        self.code, self.message, self.trailing_metadata = error.code(), error.details(), dict(error.trailing_metadata())
        self.details: dict[str, Any] = {}
        for packed in status.details:
            for kind in KINDS:
                message = kind()
                if packed.Unpack(message):
                    assert kind.__name__ not in self.details
                    self.details[kind.__name__] = message
        assert self.details["ErrorInfo"].domain == DOMAIN
        violations = self.details["BadRequest"].field_violations if "BadRequest" in self.details else ()
        self.fields = [violation.field for violation in violations]


def failure(call: Callable[..., Any], request: Any, code: grpc.StatusCode | None = None, **settings: object) -> Failure:
    """The failure of a call, which must have the given code, if any."""
    with pytest.raises(grpc.RpcError) as raised:
        call(request, timeout=60, **settings)
    found = Failure(raised.value)
    assert code in (None, found.code), found.message
    return found
