"""What happens around every call: key, request id, message, admission, worker, errors, metrics, one line in the log.

Handlers of ``facets.v1`` run on worker threads, get a ``CallContext`` in place of gRPC's context, may block and may
raise any exception. Until the message of a call has come and admission has let it in, the call holds no thread.

Small calls that a model answers never hold one. A handler of such a method gives a ``PendingReply`` in place of its
reply: the work is in the model's queue, and the reply is made when the model has answered. Whoever called the handler
waits: a worker thread for a large request, the event loop itself for a small one, which saves two changes of threads
and half of a call's processor time.
"""

import asyncio
import logging
import random
import re
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import grpc
from google.protobuf.message import Message

from facets.errors import FacetsError
from facets.language.interruption import interrupted_by
from facets_server.runtime.admission import Admission
from facets_server.runtime.call_context import CallContext, Stages
from facets_server.runtime.errors import code_of, grpc_status_of, reason_of
from facets_server.runtime.fair_queue import Waiter
from facets_server.runtime.keys import GatewayTrust, Key, Keys, collection_of, right_of
from facets_server.runtime.limits import AdmissionConfig
from facets_server.runtime.messages import StreamBridge, WaitLimit, decoded, first_message, metadata_of, next_message
from facets_server.runtime.metrics import CallMetrics
from facets_server.runtime.observers import Observers

logger = logging.getLogger(__name__)

MAX_QUICK_BYTES = 2048  # of a request: what is read on the event loop keeps no other call for long
_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")
_LONGEST_DEADLINE_S = 365 * 24 * 3600.0  # gRPC returns a huge number when the caller has set none

Handler = Any  # grpc.RpcMethodHandler; its four behaviours have four types
Context = Any  # grpc.aio.ServicerContext
IsQuick = Callable[[Any], bool]  # a request of no more than MAX_QUICK_BYTES -> whether beginning it never waits


@runtime_checkable
class HasQuickCalls(Protocol):
    """A servicer with such methods.

    Attributes:
        quick_calls: Name of each -> which of its small requests never wait for a lock or a disk when they begin.
    """

    quick_calls: Mapping[str, IsQuick]


@dataclass(frozen=True, slots=True)
class PendingReply:
    """A reply for which a model is still at work.

    Attributes:
        waiter: Ends when the model has answered or the call has ended.
        finish: Makes the message after that; raises what the model raised.
    """

    waiter: Waiter
    finish: Callable[[], Any]

    def result(self) -> Any:
        """Waits for the reply; raises what ``Waiter.wait`` raises."""
        self.waiter.wait()
        return self.finish()


class Calls:
    """Turns handlers that block into handlers of the front."""

    def __init__(
        self,
        admission: Admission,
        metrics: CallMetrics,
        *,
        config: AdmissionConfig,
        keys: Keys | None,
        trust: GatewayTrust,
        observers: Observers | None = None,
    ) -> None:
        """Starts no thread yet.

        Args:
            admission: Who may be worked on.
            metrics: Where calls are counted.
            config: Limits of waiting for messages.
            keys: Who may call; None: everybody.
            trust: Whom to believe on whose behalf he calls.
            observers: Traces and access log; None: neither.
        """
        self._admission = admission
        self._metrics = metrics
        self._keys = keys
        self._trust = trust
        self._observers = observers
        self._first = WaitLimit(
            "a message",
            most=config.max_silent_calls,
            timeout_s=config.message_timeout_s,
            most_slow=config.max_slow_calls,
        )
        self._next = WaitLimit("a message", most=config.max_streams, timeout_s=config.stream_idle_s)
        self._workers = ThreadPoolExecutor(config.max_concurrent_requests, thread_name_prefix="call")
        self._stream_workers = ThreadPoolExecutor(config.max_streams, thread_name_prefix="stream")
        self._quick: Mapping[str, IsQuick] = {}

    def wrapped(
        self, handlers: Mapping[str, Handler], quick: Mapping[str, IsQuick] | None = None
    ) -> dict[str, Handler]:
        """Full name of each method -> its handler for the front.

        Args:
            handlers: The same with behaviours that block, one message or a stream in, the same out.
            quick: Full name of methods that give a ``PendingReply`` -> which of their small requests may be begun on
                the event loop.
        """
        self._quick = quick or {}
        return {method: self._wrapped(method, handler) for method, handler in handlers.items()}

    def close(self) -> None:
        """Ends the workers that are not at work; does not wait for the others."""
        for workers in (self._workers, self._stream_workers):
            workers.shutdown(wait=False, cancel_futures=True)

    def _wrapped(self, method: str, handler: Handler) -> Handler:
        if handler.request_streaming:
            return grpc.stream_stream_rpc_method_handler(self._behaviour(self._stream, method, handler))
        # For gRPC a stream of requests: then reading the message is ours, and its time is bounded.
        return grpc.stream_unary_rpc_method_handler(self._behaviour(self._unary, method, handler))

    def _behaviour(self, run: Callable[..., Any], method: str, handler: Handler) -> Callable[..., Any]:
        """A coroutine function of the form that gRPC looks for."""

        async def behave(_: object, context: Context) -> Any:
            return await self._around(run, method, handler, context)

        return behave

    async def _unary(self, method: str, handler: Handler, context: Context, call: CallContext) -> Any:
        key = self._key_of(method, context, call)
        self._admission.check_room(call)
        data = await first_message(context, self._first)
        call.request_bytes = len(data)
        decode = _permitted(method, handler.request_deserializer, key)
        quick = self._quick_request(method, data, decode)
        permit = await self._admission.admit(call, len(data))
        if quick is not None:
            with permit:
                return await _answer_here(handler, quick, call)
        work = partial(_answer, handler, data, decode, call)
        return await self._at_work(self._workers, work, when_done=permit.release)

    def _quick_request(self, method: str, data: bytes, decode: Callable[[bytes], Message]) -> Message | None:
        """The request, when it can be answered on the event loop."""
        is_quick = self._quick.get(method)
        if is_quick is None or len(data) > MAX_QUICK_BYTES:
            return None
        request = decode(data)
        return request if is_quick(request) else None

    async def _stream(self, method: str, handler: Handler, context: Context, call: CallContext) -> None:
        key = self._key_of(method, context, call)
        data = await next_message(context, self._first)  # None: the caller has closed its side at once
        bridge = StreamBridge(context, call, self._next)
        with ExitStack() as stack:
            stack.enter_context(self._admission.stream_slot(call))
            release = stack.pop_all().close
        decode = _permitted(method, handler.request_deserializer, key)
        requests = bridge.messages(data, partial(_counted, decode, call))
        work = partial(_serve_stream, handler, requests, bridge, call)
        await self._at_work(self._stream_workers, work, when_done=release)

    async def _at_work(
        self, workers: ThreadPoolExecutor, work: Callable[[], Any], *, when_done: Callable[[], None]
    ) -> Any:
        """Runs work on a thread; when the caller goes, what the work holds is released by its end all the same."""
        future = workers.submit(work)
        future.add_done_callback(lambda _: when_done())
        return await asyncio.wrap_future(future)

    def _key_of(self, method: str, context: Context, call: CallContext) -> Key | None:
        """The key of a call, checked; names the caller."""
        call.caller = self._trust.caller_of(context)
        if self._keys is None:
            return None
        key = self._keys.find(metadata_of(context, "authorization"))
        call.caller, call.weight = key.caller, key.weight
        right = right_of(method)
        key.check_role(right.role, of_server=right.of_server)
        return key

    async def _around(self, run: Callable[..., Any], method: str, handler: Handler, context: Context) -> Any:
        """Makes the CallContext; turns what is raised inside into a status, counts and logs the call."""
        call = _call_of(method, context, self._metrics)
        if self._observers is not None:
            self._observers.begin(call, context)
        code, reason = grpc.StatusCode.CANCELLED, ""  # holds when the caller goes
        try:
            reply = await run(method, handler, context, call)
            code = grpc.StatusCode.OK
            return reply
        except Exception as error:
            code, reason = code_of(error), reason_of(error)
            if not isinstance(error, FacetsError):
                # Neither the message nor the source lines of the exception's values: they may hold texts.
                stack = "".join(traceback.format_tb(error.__traceback__))
                logger.error("%s %s: %s\n%s", call.request_id, method, type(error).__name__, stack)
            await context.abort_with_status(grpc_status_of(error, request_id=call.request_id))
        finally:
            call.end()
            seconds = time.monotonic() - call.started
            self._metrics.ended(method, code.name, seconds)
            if self._observers is not None:
                self._observers.end(call, code.name, reason, seconds)
            logger.info(
                "%s %s %s%s items=%d queue_ms=%.1f inference_ms=%.1f total_ms=%.1f",
                call.request_id, method, code.name, f" {reason}" if reason else "",
                call.num_items, call.queue_ms, call.inference_ms, seconds * 1000,
            )  # fmt: skip


def _permitted(method: str, decode: Callable[[bytes], Message], key: Key | None) -> Callable[[bytes], Message]:
    """Bytes -> a message whose collection the key is good for."""

    def run(data: bytes) -> Message:
        message = decoded(decode, data)
        if key is not None and (collection := collection_of(method, message)):
            key.check_collection(collection)
        return message

    return run


def _counted(decode: Callable[[bytes], Message], call: CallContext, data: bytes) -> Message:
    """A message of a stream, whose bytes are counted."""
    call.request_bytes += len(data)
    return decode(data)


def _answer(handler: Handler, data: bytes, decode: Callable[[bytes], Message], call: CallContext) -> bytes:
    call.check()
    with interrupted_by(call.check):
        reply = handler.unary_unary(decode(data), call)
        answer = bytes(handler.response_serializer(reply.result() if isinstance(reply, PendingReply) else reply))
    call.reply_bytes += len(answer)
    return answer


async def _answer_here(handler: Handler, request: Message, call: CallContext) -> bytes:
    """The same on the event loop, which stays free while the model works."""
    with interrupted_by(call.check):
        pending: PendingReply = handler.unary_unary(request, call)
    await pending.waiter.ended()
    answer = bytes(handler.response_serializer(pending.finish()))
    call.reply_bytes += len(answer)
    return answer


def _serve_stream(handler: Handler, requests: Iterator[Message], bridge: StreamBridge, call: CallContext) -> None:
    replies: Iterator[Message] = handler.stream_stream(requests, call)
    with interrupted_by(call.check):
        for reply in replies:
            answer = handler.response_serializer(reply)
            call.reply_bytes += len(answer)
            bridge.send(answer)


def _call_of(method: str, context: Context, metrics: CallMetrics) -> CallContext:
    sent = metadata_of(context, "x-request-id")
    request_id = sent if _REQUEST_ID.fullmatch(sent) else f"{random.getrandbits(128):032x}"
    context.set_trailing_metadata((("x-request-id", request_id),))
    remaining = context.time_remaining()
    has_deadline = remaining is not None and remaining < _LONGEST_DEADLINE_S
    return CallContext(
        method=method,
        request_id=request_id,
        peer=context.peer(),
        deadline=time.monotonic() + remaining if has_deadline else None,
        stages=Stages(metrics.stage),
    )
