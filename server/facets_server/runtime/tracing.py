"""OpenTelemetry traces: a span for each call, under the caller's own, and one below it for each stage.

Spans are made when a call has ended, of what its stages have noted, so that work does not wait for them; only what
decides about sampling happens at its beginning. Nothing of OpenTelemetry is imported unless traces are on.
"""

import threading
import time
from typing import TYPE_CHECKING

from facets.extras import require_extra
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import ObservabilityConfig

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

__all__ = ["Tracing", "make_tracing"]

_SERVICE = "facets-server"
_CLOSE_S = 2.0  # to send the last spans; a collector that does not answer must not hold up the end
_EXPORT_S = 2.0
# Codes that are the server's fault, by OpenTelemetry's conventions for RPC.
_FAULTS = {"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"}


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


def make_tracing(config: ObservabilityConfig) -> Tracing | None:
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
