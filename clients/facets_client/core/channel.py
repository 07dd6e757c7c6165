"""How a client reaches its server: target, TLS, API key, timeouts, and the rpc that takes a request."""

import functools
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import grpc
from facets_proto.v1 import documents_pb2, models_pb2, papers_pb2, relations_pb2, texts_pb2
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2

from facets_client.core.requests import shown
from facets_client.errors import UnavailableError

DEFAULT_PORT = 50051
DEFAULT_TARGET = f"localhost:{DEFAULT_PORT}"

# Other name resolvers of gRPC; their names do not end in a port.
_OTHER_SCHEMES = ("unix:", "unix-abstract:", "vsock:", "xds:", "ipv4:", "ipv6:")
_DNS = re.compile(r"((?:dns:(?://[^/]*/)?)?)(.*)", re.DOTALL)
_ADDRESS = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%[A-Za-z0-9._-]+)?\])(?::(\d+))?")


def parse_target(text: str) -> str:
    """The target as gRPC takes it, with a port, such as ``[::1]:50051`` for ``::1``; ValueError if it cannot be one."""
    if not isinstance(text, str):
        raise TypeError(f"target must be a str like {DEFAULT_TARGET!r}, got {shown(text)}")
    scheme, is_url, rest = text.partition("://")
    if is_url and scheme in ("http", "https", "grpc", "grpcs"):
        tls = ", with TLS switched on" if scheme in ("https", "grpcs") else ""
        raise ValueError(f"target must not be a URL, got {text!r}: try {rest.split('/')[0] or DEFAULT_TARGET!r}{tls}")
    if text.startswith(_OTHER_SCHEMES):
        return text
    prefix, address = _DNS.fullmatch(text).groups()  # type: ignore[union-attr]  # it matches any text
    if address.count(":") > 1 and not address.startswith("["):
        address = f"[{address}]"
    match = _ADDRESS.fullmatch(address)
    port = int(match[2] or DEFAULT_PORT) if match else 0
    if not match or not 0 < port < 2**16:
        expected = f"HOST or HOST:PORT with a port of 1 to 65535, like {DEFAULT_TARGET} or [::1]:{DEFAULT_PORT}"
        raise ValueError(f"target must be {expected}, got {text!r}")
    return f"{prefix}{match[1]}:{port}"


DEFAULT_TIMEOUT_S = 30.0
# Rpcs that may take longer on a busy machine: a retry would only add to the server's work. The first call to a
# collection of papers waits until the server has read all of them.
SLOW_TIMEOUT_S = 120.0
SLOW_RPCS = frozenset(
    "MapCollection ReindexCollection UpsertStream TakeBackup AddAuthors AddPapers RankPapers RecommendBulk".split()
)


_FILES = (documents_pb2, models_pb2, papers_pb2, relations_pb2, texts_pb2)
_SERVICES = [service for file in _FILES for service in file.DESCRIPTOR.services_by_name.values()]
SERVICES = tuple(service.full_name for service in _SERVICES)


class Rpc(NamedTuple):
    """An rpc: its path (``/facets.v1.EmbeddingService/Embed``), descriptor, message classes, if it streams."""

    path: str
    descriptor: MethodDescriptor
    request: type[Message]
    reply: type[Message]
    is_stream: bool


@functools.cache
def rpcs() -> Mapping[str, Rpc]:
    """All rpcs by path: those of our services, and health's ``Check``."""
    methods = [method for service in _SERVICES for method in service.methods]
    methods.append(health_pb2.DESCRIPTOR.services_by_name["Health"].methods_by_name["Check"])
    found = {}
    for method in methods:
        path = f"/{method.containing_service.full_name}/{method.name}"
        request, reply = map(GetMessageClass, (method.input_type, method.output_type))
        found[path] = Rpc(path, method, request, reply, method.client_streaming or method.server_streaming)
    return found


def rpc_of(request: type[Message]) -> Rpc:
    """The rpc that takes a request of this class; each rpc has its own request class."""
    return next(rpc for rpc in rpcs().values() if rpc.request is request)


# Only transient failures of calls that had no effect (AIP-194). gRPC waits longer when the server asks for it
# (grpc-retry-pushback-ms) and stops at the deadline of the call. A CANCELLED that the client did not cause comes from
# gRPC itself or a proxy that gave up a call before a busy server had begun it.
RETRY_PAUSES_S = (0.3, 0.6, 1.2, 2.4)  # before each further attempt; gRPC allows five attempts
RETRY_POLICY: dict[str, object] = {
    "maxAttempts": len(RETRY_PAUSES_S) + 1,
    "initialBackoff": f"{RETRY_PAUSES_S[0]}s",
    "maxBackoff": "5s",
    "backoffMultiplier": 2,
    "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED", "CANCELLED"],
}
# gRPC's default of 4 MiB is too small for the facets of a full batch.
MAX_REPLY_BYTES = 256 * 2**20
# Larger requests are not kept for a retry; they are sent once.
MAX_RETRY_BYTES = 64 * 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class TlsConfig:
    """Certificates, as PEM bytes."""

    root_certificates: bytes | None = None  # CAs to trust; None: gRPC's own list
    private_key: bytes | None = None  # of the client, for servers that ask for a client certificate
    certificate_chain: bytes | None = None  # of the client
    server_name: str = ""  # name in the server's certificate; empty: the target

    def __post_init__(self) -> None:
        if (self.private_key is None) != (self.certificate_chain is None):
            raise ValueError("private_key and certificate_chain belong together, got one of them")


class Connection:
    """Settings of a client, see ``FacetsClient``; ValueError for a target, timeout or key that cannot work."""

    def __init__(
        self,
        target: str,
        *,
        timeout_s: float | None,
        api_key: str | None,
        tls: bool | TlsConfig,
        metadata: Sequence[tuple[str, str]],
    ) -> None:
        if timeout_s is not None and not 0 < timeout_s < 1e9:
            raise ValueError(f"timeout_s must be a positive number of seconds, got {timeout_s}")
        if api_key is not None and not (api_key and api_key.isascii() and api_key.isprintable()):
            raise ValueError("api_key must be printable ASCII and not empty")
        self.target = parse_target(target)
        self.is_closed = False
        self._timeout_s = timeout_s
        self._metadata = (*metadata, *((("authorization", f"Bearer {api_key}"),) if api_key else ()))
        self._tls = TlsConfig() if tls is True else (tls or None)

    def open_channel(self, library: Any, *, retried: bool) -> Any:
        """Opens a channel of ``grpc`` or ``grpc.aio``, on which gRPC retries failed calls or not.

        It must not retry streams: it may send the second message of a stream while it repeats the first one, and then
        aborts the process (https://github.com/grpc/grpc/issues/40283).
        """
        options: list[tuple[str, str | int]] = [
            ("grpc.max_receive_message_length", MAX_REPLY_BYTES),
            ("grpc.primary_user_agent", "facets-client"),
            # A server that has just started is found by the next attempt, not seconds later.
            ("grpc.initial_reconnect_backoff_ms", 200),
            ("grpc.max_reconnect_backoff_ms", 1000),
        ]
        if retried:
            names = [{"service": service} for service in SERVICES]
            service_config = {"methodConfig": [{"name": names, "retryPolicy": RETRY_POLICY}]}
            options.append(("grpc.service_config", json.dumps(service_config)))
            options.append(("grpc.per_rpc_retry_buffer_size", MAX_RETRY_BYTES))
        else:
            options.append(("grpc.enable_retries", 0))
        if self._tls is None:
            return library.insecure_channel(self.target, options)
        if self._tls.server_name:
            options.append(("grpc.ssl_target_name_override", self._tls.server_name))
        credentials = grpc.ssl_channel_credentials(
            self._tls.root_certificates, self._tls.private_key, self._tls.certificate_chain
        )
        return library.secure_channel(self.target, credentials, options)

    def method(self, channel: Any, request: type[Message], *, is_stream: bool = False) -> Any:
        """The method of a channel that takes requests of this class; UnavailableError once the client is closed."""
        if self.is_closed:
            raise UnavailableError(grpc.StatusCode.UNAVAILABLE, f"the client of {self.target} is closed: make another")
        rpc = rpc_of(request)
        return (channel.stream_stream if is_stream else channel.unary_unary)(
            rpc.path, request_serializer=request.SerializeToString, response_deserializer=rpc.reply.FromString
        )

    def timeout_s(self, request: type[Message]) -> float:
        """Seconds for one request of this class."""
        if self._timeout_s is not None:
            return self._timeout_s
        return SLOW_TIMEOUT_S if rpc_of(request).descriptor.name in SLOW_RPCS else DEFAULT_TIMEOUT_S

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Metadata of one call: the client's own, and the caller's trace context if the program uses OpenTelemetry."""
        if "opentelemetry.trace" not in sys.modules:
            return self._metadata
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        carrier: dict[str, str] = {}
        TraceContextTextMapPropagator().inject(carrier)
        return (*self._metadata, *carrier.items())
