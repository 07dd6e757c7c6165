"""Handles what all calls share: key, request id, message, admission, worker thread, errors, metrics and the log.

Handlers run in worker threads with a ``CallContext``, may block and may raise any exception. A handler that only waits
for a model returns a ``Pending``. A worker thread waits for it, or, for a small request, the event loop does,
which saves two thread switches and half of the call's processor time.
"""

import asyncio
import logging
import time
import traceback
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from facets.errors import FacetsError
from facets_server.runtime.admission import Admission
from facets_server.runtime.call_context import CallContext, Stages, valid_request_id
from facets_server.runtime.config import LimitsConfig
from facets_server.runtime.errors import CallCancelledError, grpc_status_of, status_row
from facets_server.runtime.fair_queue import Pending, without_turn
from facets_server.runtime.heavy import HeavyWork
from facets_server.runtime.keys import Key, Keys, caller_of, collection_of
from facets_server.runtime.message_limits import MessageLimits, memory_of, parsed
from facets_server.runtime.messages import WaitLimit, first_message, metadata_of, next_message
from facets_server.runtime.metrics import CallMetrics
from facets_server.runtime.observability import AccessLog, Tracing
from facets_server.runtime.rooms import QUICK_CALLS, Service

logger = logging.getLogger(__name__)

MAX_QUICK_BYTES = 2048  # largest request that the event loop decodes
_MAX_DEADLINE_S = 365 * 24 * 3600.0  # gRPC returns a huge number for calls without a deadline

ResultT = TypeVar("ResultT")
Handler = Any  # grpc.RpcMethodHandler; its four behaviours have four types
Context = Any  # grpc.aio.ServicerContext


class Calls:
    """Turns handlers that block into coroutines for gRPC's asyncio server."""

    def __init__(
        self,
        admission: Admission,
        metrics: CallMetrics,
        limits: LimitsConfig,
        *,
        keys: Keys | None,
        tracing: Tracing | None,
        access_log: AccessLog | None,
    ) -> None:
        """Starts no thread yet; without ``keys``, callers need no key."""
        config = admission.config
        self._admission, self._metrics = admission, metrics
        self._limits = MessageLimits(limits)
        self._keys, self._tracing, self._access_log = keys, tracing, access_log
        self._first = WaitLimit("a message", most=config.max_streams, timeout_s=config.message_timeout_s)
        self._next = WaitLimit("a message", most=config.max_streams, timeout_s=config.stream_idle_s)
        num_threads = config.max_concurrent_requests + config.max_streams  # admission lets in no more
        self._workers = ThreadPoolExecutor(num_threads, thread_name_prefix="call")
        self._heavy = HeavyWork()
        self._quick: Mapping[str, Service] = {}

    def wrapped(self, services: Sequence[Service]) -> dict[str, Handler]:
        """Handlers for the asyncio server, by full name of the method, from those of services, which may block."""
        self._quick = {path: service for service in services for path in QUICK_CALLS if path in service.handlers}
        return {
            path: self._wrapped(path, handler) for service in services for path, handler in service.handlers.items()
        }

    def close(self) -> None:
        """Ends the idle workers; does not wait for the others."""
        self._workers.shutdown(wait=False, cancel_futures=True)

    def _wrapped(self, method: str, handler: Handler) -> Handler:
        async def behave(_: object, context: Context) -> Any:
            return await self._observed(method, handler, context)

        if handler.request_streaming:
            return grpc.stream_stream_rpc_method_handler(behave)
        # A stream of requests for gRPC, so that we read the message, within bounds.
        return grpc.stream_unary_rpc_method_handler(behave)

    async def _unary(self, handler: Handler, context: Context, call: CallContext) -> Any:
        key = self._authenticated(context, call)
        self._admission.permits.check_room(call)
        data = await first_message(context, self._first)
        call.request_bytes = len(data)
        with self._admission.memory.taken(call, memory_of(len(data))) as held:
            held.callback(lambda: call.memory.close())
            decode = partial(self._decoded, handler, key, call)
            service, quick = self._quick.get(call.method), None
            if service is not None and len(data) <= MAX_QUICK_BYTES:
                request = decode(data)
                quick = request if service.servicer().is_quick(request) else None
            permit = await self._admission.admit(call)
            permit.push(held.pop_all())
        if quick is not None:
            with permit:
                return await _answer_on_loop(handler, quick, call)
        return await _on_worker(self._workers, partial(self._answer, handler, data, decode, call), permit.close)

    async def _stream(self, handler: Handler, context: Context, call: CallContext) -> None:
        key = self._authenticated(context, call)
        first = await next_message(context, self._first)
        loop = asyncio.get_running_loop()

        def on_loop(coroutine: Coroutine[Any, Any, ResultT]) -> ResultT:
            try:
                with without_turn():
                    return asyncio.run_coroutine_threadsafe(coroutine, loop).result()
            except (grpc.aio.BaseError, CancelledError) as error:
                raise CallCancelledError("the caller cancelled the stream") from error

        def messages() -> Iterator[Message]:
            data = first
            while data is not None:
                yield self._decoded(handler, key, call, data, is_of_stream=True)
                data = on_loop(next_message(context, self._next))
            if call.over.done():
                raise CallCancelledError("the caller cancelled the stream")

        def serve() -> None:
            with self._admission.turns.taken(call):
                for reply in handler.stream_stream(messages(), call):
                    answer = handler.response_serializer(reply)
                    call.reply_bytes += len(answer)
                    on_loop(context.write(answer))

        place = self._admission.stream_slot(call)
        place.callback(lambda: call.memory.close())
        await _on_worker(self._workers, serve, place.close)

    def _decoded(
        self, handler: Handler, key: Key | None, call: CallContext, data: bytes, is_of_stream: bool = False
    ) -> Message:
        """Counts, then decodes a message. Its memory is ``call.memory``; one of a stream waits for room."""
        num_values = self._limits.num_values(handler.request_deserializer, data)
        call.memory.close()
        if is_of_stream:
            call.request_bytes += len(data)
            with without_turn():
                call.memory = self._admission.memory.taken(call, memory_of(len(data), num_values), waits=True)
        else:  # has the memory of its bytes
            call.memory = self._admission.memory.taken(call, memory_of(0, num_values))
        message: Message = parsed(handler.request_deserializer, data)
        if key is not None and (collection := collection_of(call.method, message)):
            key.check_collection(collection)
        return message

    def _answer(self, handler: Handler, data: bytes, decode: Callable[[bytes], Message], call: CallContext) -> bytes:
        with self._admission.turns.taken(call), self._heavy.of(call):
            reply = handler.unary_unary(decode(data), call)
            answer = bytes(handler.response_serializer(reply() if isinstance(reply, Pending) else reply))
        call.reply_bytes += len(answer)
        return answer

    def _authenticated(self, context: Context, call: CallContext) -> Key | None:
        call.caller = caller_of(context)
        if self._keys is None:
            return None
        key = self._keys.find(metadata_of(context, "authorization"))
        call.caller, call.weight = key.caller, key.weight
        key.check_method(call.method)
        return key

    async def _observed(self, method: str, handler: Handler, context: Context) -> Any:
        run = self._stream if handler.request_streaming else self._unary
        call = _call_of(method, context, self._metrics)
        if self._tracing is not None:
            self._tracing.begin(call, context)
        code, reason = grpc.StatusCode.CANCELLED, ""  # kept if the caller disconnects
        try:
            try:
                reply = await run(handler, context, call)
                code = grpc.StatusCode.OK
                return reply
            except Exception as error:
                code, reason = status_row(error)
                if not isinstance(error, FacetsError):
                    # The stack without the message of the exception, which may hold user text.
                    stack = "".join(traceback.format_tb(error.__traceback__))
                    logger.error("%s %s: %s\n%s", call.request_id, method, type(error).__name__, stack)
                status = grpc_status_of(error, request_id=call.request_id)
                traceback.clear_frames(error.__traceback__)  # some refer to the error, and would keep the request
            # Not above: what it raises would keep the error, the frames that it has seen, and so the message in memory.
            await context.abort_with_status(status)
        finally:
            call.end()
            seconds = time.monotonic() - call.started
            self._metrics.ended(method, code.name, seconds)
            if self._tracing is not None:
                self._tracing.end(call, code.name, reason)
            if self._access_log is not None:
                self._access_log.write(call, code.name, reason, seconds)
            logger.info(
                "%s %s %s%s items=%d queue_ms=%.1f inference_ms=%.1f total_ms=%.1f",
                call.request_id, method, code.name, f" {reason}" if reason else "",
                call.num_items, call.queue_ms, call.inference_ms, seconds * 1000,
            )  # fmt: skip


async def _on_worker(workers: ThreadPoolExecutor, work: Callable[[], Any], when_done: Callable[[], None]) -> Any:
    """Runs work in a thread; ``when_done`` runs when it ends, even if the caller has disconnected."""
    future = workers.submit(work)
    future.add_done_callback(lambda _: when_done())
    try:
        return await asyncio.wrap_future(future)
    finally:
        del future  # else an error and the frames that it keeps refer to each other, and the message stays in memory


async def _answer_on_loop(handler: Handler, request: Message, call: CallContext) -> bytes:
    pending: Pending[Any] = handler.unary_unary(request, call)
    await pending.waiter.ended()
    answer = bytes(handler.response_serializer(pending.finish()))
    call.reply_bytes += len(answer)
    return answer


def _call_of(method: str, context: Context, metrics: CallMetrics) -> CallContext:
    request_id = valid_request_id(metadata_of(context, "x-request-id"))
    context.set_trailing_metadata((("x-request-id", request_id),))
    remaining = context.time_remaining()
    has_deadline = remaining is not None and remaining < _MAX_DEADLINE_S
    return CallContext(
        method=method,
        request_id=request_id,
        peer=context.peer(),
        deadline=time.monotonic() + remaining if has_deadline else None,
        stages=Stages(metrics.stage),
    )
