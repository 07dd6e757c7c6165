"""What happens around every call: key, request id, admission, error table, metrics and one line in the log.

Handlers of ``facets.v1`` get a ``CallContext`` in place of gRPC's context and may raise any exception.
"""

import hmac
import logging
import re
import time
import traceback
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message

from facets.errors import FacetsError, InvalidInputError
from facets_server.runtime.admission import Admission
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import UnauthenticatedError, code_of, grpc_status_of, reason_of
from facets_server.runtime.metrics import CallMetrics

__all__ = ["CallInterceptor", "KeyInterceptor"]

logger = logging.getLogger(__name__)

_OUR_PACKAGE = "/facets.v1."
_HEALTH = "/grpc.health.v1.Health/"
_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")
_LONGEST_DEADLINE_S = 365 * 24 * 3600.0  # gRPC returns a huge number when the caller has set none

Handler = Any  # grpc.RpcMethodHandler; its four behaviours have four types
Continuation = Callable[[grpc.HandlerCallDetails], Handler]


class _Undecodable:
    """Stands for a request whose bytes are not the message of its method."""


class KeyInterceptor(grpc.ServerInterceptor):
    """Lets calls in that carry ``authorization: Bearer KEY`` with a known key; health needs none."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self._keys = tuple(key.encode() for key in keys)

    def intercept_service(self, continuation: Continuation, details: grpc.HandlerCallDetails) -> Handler:
        """Passes the call on or answers UNAUTHENTICATED."""
        handler = continuation(details)
        if handler is None or details.method.startswith(_HEALTH) or self._knows(details):
            return handler

        def refuse(_: object, context: grpc.ServicerContext) -> None:
            error = UnauthenticatedError("the call needs metadata 'authorization: Bearer KEY' with a known key")
            context.abort_with_status(grpc_status_of(error))

        kind = ("stream" if handler.request_streaming else "unary") + "_" + (
            "stream" if handler.response_streaming else "unary"
        )  # fmt: skip
        return getattr(grpc, f"{kind}_rpc_method_handler")(refuse)

    def _knows(self, details: grpc.HandlerCallDetails) -> bool:
        sent = dict(details.invocation_metadata).get("authorization", "")
        scheme, _, key = str(sent).partition(" ")
        known = [hmac.compare_digest(key.strip().encode(), ours) for ours in self._keys]
        return scheme.lower() == "bearer" and any(known)


class CallInterceptor(grpc.ServerInterceptor):
    """Admission, errors, metrics and log of the calls of ``facets.v1``."""

    def __init__(self, admission: Admission, metrics: CallMetrics) -> None:
        self._admission = admission
        self._metrics = metrics

    def intercept_service(self, continuation: Continuation, details: grpc.HandlerCallDetails) -> Handler:
        """Wraps the handler of the method; other packages (health, reflection) are passed on."""
        handler = continuation(details)
        if handler is None or not details.method.startswith(_OUR_PACKAGE):
            return handler
        decode = _lenient(handler.request_deserializer)
        if handler.request_streaming:
            return grpc.stream_stream_rpc_method_handler(
                self._stream(details.method, handler.stream_stream), decode, handler.response_serializer
            )
        return grpc.unary_unary_rpc_method_handler(
            self._unary(details.method, handler.unary_unary), decode, handler.response_serializer
        )

    def _unary(self, method: str, handle: Callable[[Any, CallContext], Message]) -> Callable[..., Message]:
        def run(request: Message, context: grpc.ServicerContext) -> Message:
            with self._around(method, context) as call, self._admission.permit(call):
                return handle(_checked(request), call)

        return run

    def _stream(
        self, method: str, handle: Callable[[Iterator[Any], CallContext], Iterator[Message]]
    ) -> Callable[..., Iterator[Message]]:
        def run(requests: Iterator[Message], context: grpc.ServicerContext) -> Iterator[Message]:
            with self._around(method, context) as call, self._admission.stream_slot():
                yield from handle(map(_checked, requests), call)

        return run

    @contextmanager
    def _around(self, method: str, context: grpc.ServicerContext) -> Iterator[CallContext]:
        """Makes the CallContext; turns what is raised inside into a status, counts and logs the call."""
        call = _call_of(method, context)
        code, reason = grpc.StatusCode.CANCELLED, ""  # holds when gRPC closes an unfinished stream
        try:
            yield call
            code = grpc.StatusCode.OK
        except Exception as error:
            code, reason = code_of(error), reason_of(error)
            if not isinstance(error, FacetsError):
                # Neither the message nor the source lines of the exception's values: they may hold texts.
                stack = "".join(traceback.format_tb(error.__traceback__))
                logger.error("%s %s: %s\n%s", call.request_id, method, type(error).__name__, stack)
            context.abort_with_status(grpc_status_of(error, request_id=call.request_id))
        finally:
            seconds = time.monotonic() - call.started
            self._metrics.ended(method, code.name, seconds)
            logger.info(
                "%s %s %s%s items=%d queue_ms=%.1f inference_ms=%.1f total_ms=%.1f",
                call.request_id, method, code.name, f" {reason}" if reason else "",
                call.num_items, call.queue_ms, call.inference_ms, seconds * 1000,
            )  # fmt: skip


def _call_of(method: str, context: grpc.ServicerContext) -> CallContext:
    sent = str(dict(context.invocation_metadata()).get("x-request-id", ""))
    request_id = sent if _REQUEST_ID.fullmatch(sent) else uuid.uuid4().hex
    context.set_trailing_metadata((("x-request-id", request_id),))
    remaining = context.time_remaining()
    has_deadline = remaining is not None and remaining < _LONGEST_DEADLINE_S
    call = CallContext(
        method=method,
        request_id=request_id,
        deadline=time.monotonic() + remaining if has_deadline else None,
        is_active=context.is_active,
    )
    context.add_callback(call.end)
    return call


def _lenient(decode: Callable[[bytes], Message]) -> Callable[[bytes], Message | _Undecodable]:
    """GRPC answers INTERNAL when decoding raises; bytes from outside that are no message are the caller's fault."""

    def run(data: bytes) -> Message | _Undecodable:
        try:
            return decode(data)
        except DecodeError:
            return _Undecodable()

    return run


def _checked(request: Message | _Undecodable) -> Message:
    if isinstance(request, _Undecodable):
        raise InvalidInputError("the request cannot be decoded: expected a protobuf message with UTF-8 strings")
    return request
