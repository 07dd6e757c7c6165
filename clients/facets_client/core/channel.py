"""How a client reaches its server: channel options, retries, TLS, keys."""

import json
import sys
from dataclasses import dataclass
from typing import Any

import grpc

from facets_client.core.rpc import SERVICES, Rpc
from facets_client.core.target import parse_target

# Replies may be larger than gRPC's 4 MiB: facets of a full batch, pages with facets.
MAX_REPLY_BYTES = 256 * 2**20
# Requests up to this size are kept for a retry; larger ones are sent once.
MAX_RETRY_BYTES = 64 * 2**20

# Only failures that did nothing and may pass (AIP-194). gRPC waits longer when the server asks for it
# (grpc-retry-pushback-ms) and stops at the deadline of the call. CANCELLED, where this side has not cancelled, is how
# gRPC itself and proxies give up calls that a busy server has not begun.
RETRY_POLICY: dict[str, object] = {
    "maxAttempts": 5,  # gRPC's ceiling
    "initialBackoff": "0.2s",
    "maxBackoff": "5s",
    "backoffMultiplier": 2.5,
    "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED", "CANCELLED"],
}


@dataclass(frozen=True, kw_only=True, slots=True)
class TlsConfig:
    """Certificates, as PEM bytes.

    Attributes:
        root_certificates: Whom to trust; None: gRPC's own list.
        private_key: The client's key, for servers that ask for a client certificate.
        certificate_chain: The client's certificate.
        server_name: Name in the server's certificate when it differs from the target; empty: the target.
    """

    root_certificates: bytes | None = None
    private_key: bytes | None = None
    certificate_chain: bytes | None = None
    server_name: str = ""

    def __post_init__(self) -> None:
        if (self.private_key is None) != (self.certificate_chain is None):
            raise ValueError("private_key and certificate_chain belong together, got one of them")


def channel_options(tls: TlsConfig | None) -> list[tuple[str, str | int]]:
    """Options of the channel, the retry policy among them."""
    service_config = {
        "methodConfig": [{"name": [{"service": service} for service in SERVICES], "retryPolicy": RETRY_POLICY}]
    }
    options: list[tuple[str, str | int]] = [
        ("grpc.max_receive_message_length", MAX_REPLY_BYTES),
        ("grpc.per_rpc_retry_buffer_size", MAX_RETRY_BYTES),
        ("grpc.service_config", json.dumps(service_config)),
        ("grpc.primary_user_agent", "facets-client"),
    ]
    if tls and tls.server_name:
        options.append(("grpc.ssl_target_name_override", tls.server_name))
    return options


def credentials(tls: TlsConfig) -> grpc.ChannelCredentials:
    """The certificates as gRPC takes them."""
    return grpc.ssl_channel_credentials(
        root_certificates=tls.root_certificates,
        private_key=tls.private_key,
        certificate_chain=tls.certificate_chain,
    )


def trace_context() -> tuple[tuple[str, str], ...]:
    """The current trace as W3C metadata; nothing where the program does not use OpenTelemetry."""
    if "opentelemetry.trace" not in sys.modules:  # nobody can have begun a trace
        return ()
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return tuple(carrier.items())


@dataclass(frozen=True, slots=True)
class Connection:
    """Checked settings of a client.

    Attributes:
        target: As gRPC takes it, with a port.
        timeout_s: Seconds for one request, its retries included; None: each rpc's own.
        metadata: Sent with every call.
        tls: None: no encryption.
    """

    target: str
    timeout_s: float | None
    metadata: tuple[tuple[str, str], ...]
    tls: TlsConfig | None

    @classmethod
    def of(cls, target: str, *, timeout_s: float | None, api_key: str | None, tls: bool | TlsConfig) -> "Connection":
        """Checks the arguments of a client.

        Raises:
            ValueError: For a target, timeout or key that cannot work.
        """
        if timeout_s is not None and not 0 < timeout_s < 1e9:
            raise ValueError(f"timeout_s must be a positive number of seconds, got {timeout_s}")
        if api_key is not None and not (api_key and api_key.isascii() and api_key.isprintable()):
            raise ValueError("api_key must be printable ASCII and not empty")
        metadata = (("authorization", f"Bearer {api_key}"),) if api_key else ()
        tls_config = TlsConfig() if tls is True else (tls or None)
        return cls(parse_target(target), timeout_s, metadata, tls_config)

    def call_metadata(self) -> tuple[tuple[str, str], ...]:
        """What goes with one call: the metadata of all, and the trace that the caller is in."""
        return self.metadata + trace_context()

    def timeout_of(self, rpc: Rpc[Any, Any]) -> float:
        """Seconds for one request of an rpc."""
        return rpc.timeout_s if self.timeout_s is None else self.timeout_s
