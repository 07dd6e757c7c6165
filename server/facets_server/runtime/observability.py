"""Traces and the access log, both off by default.

The access log has a line of JSON per call, written by a separate thread; it never holds a user's text or a key. Traces
use OpenTelemetry: one span per call, under the caller's span, with a child span for each stage, made when the call has
ended.
"""

import json
import logging
import os
import queue
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import QueueListener, WatchedFileHandler
from typing import TYPE_CHECKING, Any

from facets.errors import ConfigError
from facets.extras import require_extra
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import ObservabilityConfig
from facets_server.runtime.messages import metadata_of

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_MAX_WAITING_LINES = 10_000  # when the disk is too slow, further lines are dropped
_SERVICE = "facets-server"
_CLOSE_S = 2.0  # for the last spans; a collector that does not answer must not delay the shutdown
_EXPORT_S = 2.0
# Codes that are the server's fault, by OpenTelemetry's conventions for RPC.
_FAULTS = {"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"}


class _LogFile(WatchedFileHandler):
    """Reopens the file after logrotate has moved it."""

    def _open(self) -> TextIOWrapper:
        """Opens the file so that only the server's user may read it: it holds names and addresses of callers."""
        handle = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return os.fdopen(handle, "a", encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging calls it
        """Drops the line, and the buffer, which else fails again; the next line opens the file."""
        stream, self.stream = self.stream, None
        if stream is not None:
            with suppress(OSError):
                stream.close()


class AccessLog:
    """Writes finished calls to a file; drops the lines for which the disk is too slow or full."""

    def __init__(self, path: str) -> None:
        """Opens the file for appending (``"-"``: standard output) and starts the thread; raises ConfigError."""
        try:
            self._file = logging.StreamHandler(sys.stdout) if path == "-" else _LogFile(path, encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"access_log {path} cannot be written: {error.strerror}") from error
        self._lines: queue.Queue[logging.LogRecord] = queue.Queue(_MAX_WAITING_LINES)
        self._listener = QueueListener(self._lines, self._file)
        self._listener.start()

    def write(self, call: CallContext, code: str, reason: str, seconds: float) -> None:
        """Logs a call that has ended; does not wait."""
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
        line = json.dumps({name: value for name, value in fields.items() if value != ""}, allow_nan=False)
        with suppress(queue.Full):
            self._lines.put_nowait(logging.LogRecord("access", logging.INFO, "", 0, line, None, None))

    def close(self) -> None:
        """Writes the remaining lines and closes the file."""
        self._listener.stop()
        with suppress(OSError):  # a full disk
            self._file.close()


class Tracing:
    """Creates OpenTelemetry spans for calls."""

    def __init__(self, provider: "TracerProvider") -> None:
        """Uses a provider, which decides about sampling and export; ``close`` shuts it down."""
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider = provider
        self._trace = trace
        self._tracer = provider.get_tracer(_SERVICE)
        self._propagator = TraceContextTextMapPropagator()

    def begin(self, call: CallContext, context: Any) -> None:
        """Opens the span of a call under the W3C trace context in its metadata, if any."""
        service, _, method = call.method[1:].rpartition("/")
        carrier = {name: metadata_of(context, name) for name in ("traceparent", "tracestate")}
        call.span = self._tracer.start_span(
            f"{service}/{method}",
            context=self._propagator.extract(carrier),
            kind=self._trace.SpanKind.SERVER,
            start_time=_wall_ns(call.started),
            attributes={"rpc.system": "grpc", "rpc.service": service, "rpc.method": method},
        )
        call.trace_id = f"{call.span.get_span_context().trace_id:032x}"

    def end(self, call: CallContext, code: str, reason: str) -> None:
        """Closes the span of a call and makes those of its stages."""
        span = call.span
        if span is None or not span.is_recording():
            return
        context = self._trace.set_span_in_context(span)
        for stage in tuple(call.stages.kept):
            child = self._tracer.start_span(stage.name, context=context, start_time=_wall_ns(stage.started))
            if stage.num_items:
                child.set_attribute("facets.items", stage.num_items)
            child.end(end_time=_wall_ns(stage.started + stage.seconds))
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
        """Sends the last spans, within a few seconds."""
        closing = threading.Thread(target=self._provider.shutdown, name="tracing-end", daemon=True)
        closing.start()
        closing.join(_CLOSE_S)


def _wall_ns(monotonic_s: float) -> int:
    """A time of ``time.monotonic()`` as nanoseconds since 1970."""
    return time.time_ns() - time.monotonic_ns() + int(monotonic_s * 1e9)


def make_tracing(config: ObservabilityConfig) -> Tracing:
    """Creates the tracing that the settings configure; raises ImportError without the extra ``tracing``."""
    require_extra("tracing", "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.grpc")
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio

    provider = TracerProvider(
        resource=Resource.create({"service.name": _SERVICE}),
        sampler=ParentBasedTraceIdRatio(config.traces_share),
        shutdown_on_exit=False,  # close does it, within its time limit
    )
    is_plain = not config.traces_endpoint.startswith("https://")
    exporter = OTLPSpanExporter(endpoint=config.traces_endpoint, insecure=is_plain, timeout=_EXPORT_S)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Tracing(provider)
