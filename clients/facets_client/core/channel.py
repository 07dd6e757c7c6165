"""How a client reaches its server: target, TLS, API key, timeouts, and the rpc that takes a request."""

import functools
import json
import re
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import grpc
from facets_proto.v1 import documents_pb2, models_pb2, papers_pb2, relations_pb2, texts_pb2
from facets_proto.v1.services import SERVICES as SERVICES
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2

from facets_client.core.retry import RETRY_POLICY

RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)

DEFAULT_PORT = 50051
DEFAULT_TARGET = f"localhost:{DEFAULT_PORT}"

# Other name resolvers of gRPC; their names do not end in a port.
_OTHER_SCHEMES = ("unix:", "unix-abstract:", "vsock:", "xds:", "ipv4:", "ipv6:")
_ADDRESS = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%[A-Za-z0-9._-]+)?\])(?::(\d+))?")


def parse_target(text: str) -> str:
    """The target in the form that gRPC expects, always with a port.

    Args:
        text: ``HOST``, ``HOST:PORT``, ``[IPV6]:PORT``, ``dns:///HOST:PORT``, ``unix:PATH`` or another name that gRPC
            resolves. The default port is 50051.

    Raises:
        ValueError: The text is none of these.

    Example:
        >>> parse_target("example.org"), parse_target("::1")
        ('example.org:50051', '[::1]:50051')
    """
    scheme, is_url, rest = text.partition("://")
    if is_url and scheme in ("http", "https", "grpc", "grpcs"):
        tls = ", with TLS switched on" if scheme in ("https", "grpcs") else ""
        raise ValueError(f"target must not be a URL, got {text!r}: try {rest.split('/')[0] or DEFAULT_TARGET!r}{tls}")
    if text.startswith(_OTHER_SCHEMES):
        return text
    prefix, address = "", text
    if text.startswith("dns:"):
        address = text.rpartition("/")[2] if "/" in text else text.removeprefix("dns:")
        prefix = text.removesuffix(address)
    if address.count(":") > 1 and not address.startswith("["):
        address = f"[{address}]"
    match = _ADDRESS.fullmatch(address)
    port = int(match[2] or DEFAULT_PORT) if match else 0
    if not match or not 0 < port < 2**16:
        expected = f"HOST or HOST:PORT with a port of 1 to 65535, like {DEFAULT_TARGET} or [::1]:{DEFAULT_PORT}"
        raise ValueError(f"target must be {expected}, got {text!r}")
    return f"{prefix}{match[1]}:{port}"


DEFAULT_TIMEOUT_S = 30.0
# Rpcs that may take longer than the default on a busy machine. A retry would only add to the server's work; the first
# call to a collection of papers waits until the server has read all of them.
TIMEOUTS_S = {
    name: 120.0
    for name in (
        "facets.v1.CollectionService.MapCollection",
        "facets.v1.CollectionService.ReindexCollection",
        "facets.v1.DocumentService.UpsertStream",
        "facets.v1.ModelService.TakeBackup",
        "facets.v1.RecommendationService.AddAuthors",
        "facets.v1.RecommendationService.AddPapers",
        "facets.v1.RecommendationService.RankPapers",
        "facets.v1.RecommendationService.RecommendBulk",
    )
}


class Rpc(NamedTuple):
    """An rpc by its full name, ``facets.v1.EmbeddingService.Embed``, and its path on the wire."""

    name: str
    path: str


def rpc_of(request: type[Message]) -> Rpc:
    """The rpc that takes a request of this class; each rpc has its own request class.

    Raises:
        TypeError: No rpc takes it.
    """
    method = _methods().get(request.DESCRIPTOR.full_name)
    if method is None:
        raise TypeError(f"no rpc takes {request.__name__}")
    service = method.containing_service.full_name
    return Rpc(method.full_name, f"/{service}/{method.name}")


@functools.cache
def _methods() -> dict[str, MethodDescriptor]:
    """Name of a request message -> the method that takes it."""
    methods: dict[str, MethodDescriptor] = {}
    for module in (documents_pb2, models_pb2, papers_pb2, relations_pb2, texts_pb2, health_pb2):
        for service in module.DESCRIPTOR.services_by_name.values():
            for method in service.methods:
                methods.setdefault(method.input_type.full_name, method)  # in health, Check comes before Watch
    return methods


# Replies may exceed gRPC's default of 4 MiB: facets of a full batch, pages with facets.
MAX_REPLY_BYTES = 256 * 2**20
# Larger requests are not kept for a retry; they are sent once.
MAX_RETRY_BYTES = 64 * 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class TlsConfig:
    """Certificates, as PEM bytes.

    Attributes:
        root_certificates: CAs to trust; None: gRPC's own list.
        private_key: Key of the client, for servers that ask for a client certificate.
        certificate_chain: Certificate of the client.
        server_name: Name in the server's certificate when it differs from the target; empty: the target.
    """

    root_certificates: bytes | None = None
    private_key: bytes | None = None
    certificate_chain: bytes | None = None
    server_name: str = ""

    def __post_init__(self) -> None:
        if (self.private_key is None) != (self.certificate_chain is None):
            raise ValueError("private_key and certificate_chain belong together, got one of them")


class Connection:
    """Validated settings of a client, blocking or asynchronous.

    Args:
        target: Address of the server; see ``parse_target``.
        timeout_s: Seconds for one request, retries included; None: the default of each rpc.
        api_key: API key, for servers that require one.
        tls: False: no encryption; True: TLS with gRPC's own trusted roots; or certificates.

    Raises:
        ValueError: For a target, timeout or key that cannot work.
    """

    def __init__(self, target: str, *, timeout_s: float | None, api_key: str | None, tls: bool | TlsConfig) -> None:
        if timeout_s is not None and not 0 < timeout_s < 1e9:
            raise ValueError(f"timeout_s must be a positive number of seconds, got {timeout_s}")
        if api_key is not None and not (api_key and api_key.isascii() and api_key.isprintable()):
            raise ValueError("api_key must be printable ASCII and not empty")
        self.target = parse_target(target)
        self._timeout_s = timeout_s
        self._metadata = (("authorization", f"Bearer {api_key}"),) if api_key else ()
        self._tls = TlsConfig() if tls is True else (tls or None)

    def open_channel(self, library: Any, *, retried: bool) -> Any:
        """Opens a channel.

        Args:
            library: ``grpc`` or ``grpc.aio``.
            retried: Whether gRPC retries failed calls. It must not on channels for streams: it may send the second
                message of a stream while it repeats the first one, and then aborts the process
                (https://github.com/grpc/grpc/issues/40283).
        """
        options: list[tuple[str, str | int]] = [
            ("grpc.max_receive_message_length", MAX_REPLY_BYTES),
            ("grpc.primary_user_agent", "facets-client"),
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

    def timeout_s(self, request: type[Message]) -> float:
        """Seconds for one request of this class."""
        return TIMEOUTS_S.get(rpc_of(request).name, DEFAULT_TIMEOUT_S) if self._timeout_s is None else self._timeout_s

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Metadata of one call: the API key, and the caller's trace context if the program uses OpenTelemetry."""
        if "opentelemetry.trace" not in sys.modules:
            return self._metadata
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        carrier: dict[str, str] = {}
        TraceContextTextMapPropagator().inject(carrier)
        return (*self._metadata, *carrier.items())
