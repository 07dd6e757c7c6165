"""Who is told of each call: traces and the access log, as far as they are on."""

from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry, Gauge

from facets_server.runtime.access_log import AccessLog
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import ObservabilityConfig
from facets_server.runtime.messages import metadata_of
from facets_server.runtime.tracing import Tracing, make_tracing

__all__ = ["Observers", "make_observers"]


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
    tracing = tracing or make_tracing(config)
    access_log = AccessLog(config.access_log) if config.access_log else None
    if access_log is not None:
        lost = Gauge("facets_access_log_lost_lines", "Lines that could not be written", registry=registry)
        lost.set_function(lambda: access_log.num_lost)
    return Observers(tracing, access_log) if tracing or access_log else None
