"""Who is told of each call: traces and the access log, as far as they are on.

The access log is a line of JSON for each call, written by a thread of its own; never a text, never a key. Traces are
OpenTelemetry's: a span for each call, under the caller's own, and one below it for each stage. Spans are made when a
call has ended, of what its stages have noted, so that work does not wait for them; only what decides about sampling
happens at its beginning. Nothing of OpenTelemetry is imported unless traces are on.
"""

import json
import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import QueueHandler, QueueListener, WatchedFileHandler
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Gauge

from facets.errors import ConfigError
from facets.extras import require_extra
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import ObservabilityConfig
from facets_server.runtime.messages import metadata_of

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_MOST_WAITING = 10_000  # lines; when the disk does not keep up, further ones are lost and counted
_SERVICE = "facets-server"
_CLOSE_S = 2.0  # to send the last spans; a collector that does not answer must not hold up the end
_EXPORT_S = 2.0
# Codes that are the server's fault, by OpenTelemetry's conventions for RPC.
_FAULTS = {"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"}


class _Lines(QueueHandler):
    """Hands lines over without ever waiting."""

    num_lost = 0

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging calls it
        self.num_lost += 1


class _File(WatchedFileHandler):
    """Opens the file again when it was moved away (logrotate); what cannot be written is counted, not printed."""

    num_lost = 0

    def _open(self) -> TextIOWrapper:
        """Only the server's user may read it: it tells who called, from where and what for."""
        handle = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return os.fdopen(handle, "a", encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging calls it
        self.num_lost += 1
        self._drop_stream()

    def close(self) -> None:
        try:
            super().close()
        except OSError:  # a full disk; the lines that it refused were counted
            self._drop_stream()

    def _drop_stream(self) -> None:
        """Forgets what the stream could not write, else it would try it again with every line; the next one opens."""
        stream, self.stream = self.stream, None
        if stream is not None:
            with suppress(OSError):
                stream.close()


class AccessLog:
    """Writes calls to a file."""

    def __init__(self, path: str) -> None:
        """Opens the file and starts the thread.

        Args:
            path: Lines are added to this file; ``"-"``: standard output.

        Raises:
            ConfigError: It cannot be written.
        """
        try:
            self._file = None if path == "-" else _File(path, encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"access_log {path} cannot be written: {error.strerror}") from error
        sink: logging.Handler = self._file if self._file is not None else logging.StreamHandler(sys.stdout)
        lines: queue.Queue[logging.LogRecord] = queue.Queue(_MOST_WAITING)
        self._lines = _Lines(lines)
        self._listener = QueueListener(lines, sink)
        self._sink = sink
        self._listener.start()

    @property
    def num_lost(self) -> int:
        """Lines that could not be written."""
        return self._lines.num_lost + (0 if self._file is None else self._file.num_lost)

    def write(self, call: CallContext, code: str, reason: str, seconds: float) -> None:
        """Notes a call that has ended; does not wait."""
        line = json.dumps(_fields(call, code, reason, seconds), ensure_ascii=True, allow_nan=False)
        self._lines.handle(logging.LogRecord("access", logging.INFO, "", 0, line, None, None))

    def close(self) -> None:
        """Writes what is left and closes the file."""
        self._listener.stop()
        self._sink.close()


def _fields(call: CallContext, code: str, reason: str, seconds: float) -> Mapping[str, object]:
    fields: dict[str, object] = {
        "time": datetime.now(tz=UTC).isoformat(timespec="milliseconds"),
        "request_id": call.request_id,
        "trace_id": call.trace_id,
        "rpc": call.method,
        "status": code,
        "reason": reason,
        "caller": call.caller,
        "peer": call.peer,
        "items": call.num_items,
        "request_bytes": call.request_bytes,
        "reply_bytes": call.reply_bytes,
        "total_ms": round(seconds * 1000, 3),
        "stages_ms": {name: round(spent * 1000, 3) for name, spent in call.stages.seconds().items()},
    }
    return {name: value for name, value in fields.items() if value != ""}


class Tracing:
    """Makes spans of calls."""

    def __init__(self, provider: "TracerProvider") -> None:
        """Sends nothing yet.

        Args:
            provider: Where spans go, and which are sampled; closed by ``close``.
        """
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider = provider
        self._trace = trace
        self._tracer = provider.get_tracer(_SERVICE)
        self._propagator = TraceContextTextMapPropagator()

    def begin(self, call: CallContext, *, traceparent: str, tracestate: str) -> None:
        """Opens the span of a call.

        Args:
            call: Gets the span and its trace id.
            traceparent: W3C trace context of the caller; empty, or none at all: a trace of its own.
            tracestate: What belongs to it.
        """
        carrier = {"traceparent": traceparent, "tracestate": tracestate}
        service, _, method = call.method[1:].rpartition("/")
        span = self._tracer.start_span(
            f"{service}/{method}",
            context=self._propagator.extract(carrier),
            kind=self._trace.SpanKind.SERVER,
            start_time=_wall_ns(call.started),
            attributes={"rpc.system": "grpc", "rpc.service": service, "rpc.method": method},
        )
        call.span = span
        call.trace_id = f"{span.get_span_context().trace_id:032x}"

    def end(self, call: CallContext, code: str, reason: str) -> None:
        """Closes the span of a call and makes those of its stages."""
        span = call.span
        if span is None or not span.is_recording():
            return
        context = self._trace.set_span_in_context(span)
        for stage in tuple(call.stages.kept):
            below = self._tracer.start_span(stage.name, context=context, start_time=_wall_ns(stage.started))
            if stage.num_items:
                below.set_attribute("facets.items", stage.num_items)
            below.end(end_time=_wall_ns(stage.started + stage.seconds))
        span.set_attributes(
            {
                "rpc.response.status_code": code,
                "facets.request_id": call.request_id,
                "facets.caller": call.caller,
                "facets.items": call.num_items,
                "facets.request_bytes": call.request_bytes,
                "facets.reply_bytes": call.reply_bytes,
            }
        )
        if code in _FAULTS:
            span.set_status(self._trace.StatusCode.ERROR, reason or code)
        span.end()

    def close(self) -> None:
        """Sends what is left, if that does not take long."""
        closing = threading.Thread(target=self._provider.shutdown, name="tracing-end", daemon=True)
        closing.start()
        closing.join(_CLOSE_S)


def _wall_ns(monotonic_s: float) -> int:
    """A time by ``time.monotonic()`` in nanoseconds since 1970."""
    return time.time_ns() - time.monotonic_ns() + int(monotonic_s * 1e9)


def _make_tracing(config: ObservabilityConfig) -> Tracing | None:
    """Traces that go where the settings say; None: nowhere.

    Raises:
        ImportError: The extra ``tracing`` is not installed.
    """
    if not config.traces_endpoint:
        return None
    require_extra("tracing", "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.grpc")
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio

    provider = TracerProvider(
        resource=Resource.create({"service.name": _SERVICE}),
        sampler=ParentBasedTraceIdRatio(config.traces_share),
        shutdown_on_exit=False,  # close does it, within its time
    )
    is_plain = not config.traces_endpoint.startswith("https://")
    exporter = OTLPSpanExporter(endpoint=config.traces_endpoint, insecure=is_plain, timeout=_EXPORT_S)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Tracing(provider)


@dataclass(frozen=True, slots=True)
class Observers:
    """Traces and access log of one server.

    Attributes:
        tracing: None: off.
        access_log: None: off.
    """

    tracing: Tracing | None
    access_log: AccessLog | None

    def begin(self, call: CallContext, context: Any) -> None:
        """Told of a call whose headers have come, with its context of grpc.aio."""
        if self.tracing is not None:
            parent, state = metadata_of(context, "traceparent"), metadata_of(context, "tracestate")
            self.tracing.begin(call, traceparent=parent, tracestate=state)

    def end(self, call: CallContext, code: str, reason: str, seconds: float) -> None:
        """Told of a call that has ended."""
        if self.tracing is not None:
            self.tracing.end(call, code, reason)
        if self.access_log is not None:
            self.access_log.write(call, code, reason, seconds)

    def close(self) -> None:
        """Writes and sends what is left."""
        if self.access_log is not None:
            self.access_log.close()
        if self.tracing is not None:
            self.tracing.close()


def make_observers(
    config: ObservabilityConfig, registry: CollectorRegistry, tracing: Tracing | None = None
) -> Observers | None:
    """What the settings ask for; None: nothing, so that calls cost nothing more.

    Args:
        config: Checked settings.
        registry: Gets the number of lines that could not be written.
        tracing: Instead of the one that the settings ask for.

    Raises:
        ConfigError: The access log cannot be written.
        ImportError: The extra ``tracing`` is not installed.
    """
    tracing = tracing or _make_tracing(config)
    access_log = AccessLog(config.access_log) if config.access_log else None
    if access_log is not None:
        lost = Gauge("facets_access_log_lost_lines", "Lines that could not be written", registry=registry)
        lost.set_function(lambda: access_log.num_lost)
    return Observers(tracing, access_log) if tracing or access_log else None
