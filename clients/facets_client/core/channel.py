"""How a client reaches its server: targets, rpcs, channel options, retries, TLS, keys; and failed calls as exceptions.

The rpcs are those that the descriptors of the protos know, nothing is listed by hand: a request belongs to one rpc
alone and stands in the file of its service, so the class of the request is enough to find where it goes.
"""

import functools
import json
import random
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import grpc
from facets_proto.v1.services import SERVICES as SERVICES
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.descriptor import FileDescriptor, MethodDescriptor
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2

from facets_client.errors import ErrorInfo, FacetsClientError, FieldViolation, error_class

DEFAULT_PORT = 50051
DEFAULT_TARGET = f"localhost:{DEFAULT_PORT}"

_EXPECTED = "expected HOST:PORT, like localhost:50051"
# Resolvers of gRPC whose names end in no port of ours.
_OTHER_SCHEMES = ("unix:", "unix-abstract:", "vsock:", "xds:", "ipv4:", "ipv6:")
_HOST = re.compile(r"[A-Za-z0-9._-]+")
_IPV6 = re.compile(r"[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9._-]+)?")


def parse_target(text: str) -> str:
    """The target as gRPC takes it, always with a port.

    Args:
        text: ``HOST``, ``HOST:PORT``, ``[IPV6]:PORT``, ``dns:///HOST:PORT``, ``unix:PATH`` or another name that gRPC
            resolves. A port that is missing is 50051.

    Raises:
        ValueError: It is none of these.

    Example:
        >>> parse_target("example.org"), parse_target("::1")
        ('example.org:50051', '[::1]:50051')
    """
    if not text or any(character.isspace() for character in text):
        raise ValueError(f"target must be like {DEFAULT_TARGET}, got {text!r}")
    scheme, has_scheme, rest = text.partition("://")
    if has_scheme and scheme in ("http", "https", "grpc", "grpcs"):
        tls = ", with TLS switched on" if scheme in ("https", "grpcs") else ""
        address = rest.split("/")[0] or DEFAULT_TARGET
        raise ValueError(f"target must be no URL, got {text!r}: try {address!r}{tls}")
    if text.startswith(_OTHER_SCHEMES):
        return text
    if text.startswith("dns:"):
        prefix, _, address = text.rpartition("/") if "/" in text else text.partition(":")
        return f"{prefix}{'/' if '/' in text else ':'}{_with_port(address, text)}"
    return _with_port(text, text)


def _with_port(address: str, text: str) -> str:
    if _IPV6.fullmatch(address):
        return f"[{address}]:{DEFAULT_PORT}"
    if address.startswith("["):
        host, closed, port = address[1:].partition("]")
        if not (closed and _IPV6.fullmatch(host)) or (port and not port.startswith(":")):
            raise ValueError(f"target has an IPv6 address that is none, got {text!r}: {_EXPECTED} or [::1]:50051")
        return f"[{host}]:{_port(port[1:], text) if port else DEFAULT_PORT}"
    host, has_port, port = address.partition(":")
    if not _HOST.fullmatch(host):
        raise ValueError(f"target has no host name that can be looked up, got {text!r}: {_EXPECTED}")
    return f"{host}:{_port(port, text) if has_port else DEFAULT_PORT}"


def _port(port: str, text: str) -> int:
    if not (port.isascii() and port.isdecimal() and 0 < int(port) < 2**16):
        raise ValueError(f"port must be 1 to 65535, got {port!r} in target {text!r}")
    return int(port)


RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)

DEFAULT_TIMEOUT_S = 30.0
# What differs from the default. One of these may take long on a busy machine, and asking for it again would only add
# to the work; the first question to a collection of papers waits until the server has read all of them.
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

# Files of messages without a service -> the file of the service whose rpcs take them.
_SERVED_IN = {"facets_proto/v1/diagnosis.proto": "facets_proto/v1/documents.proto"}


@dataclass(frozen=True, slots=True)
class Rpc(Generic[RequestT, ResponseT]):
    """One rpc: where it goes, what it takes, what it gives."""

    name: str  # in full, e.g. facets.v1.EmbeddingService.Embed
    request: type[RequestT]
    response: type[ResponseT]

    @property
    def path(self) -> str:
        """Path of the rpc on the wire."""
        service, _, method = self.name.rpartition(".")
        return f"/{service}/{method}"

    @property
    def codecs(self) -> dict[str, Any]:
        """How messages become bytes and back, as gRPC's calls take it."""
        return {
            "request_serializer": self.request.SerializeToString,
            "response_deserializer": self.response.FromString,
        }

    @property
    def timeout_s(self) -> float:
        """Seconds for one request where the caller has no wish of his own."""
        return TIMEOUTS_S.get(self.name, DEFAULT_TIMEOUT_S)


def rpc_of(request: type[RequestT], response: type[ResponseT]) -> Rpc[RequestT, ResponseT]:
    """The rpc that takes such a request.

    Args:
        request: Class of the request.
        response: Class of the reply, so that its type is known.

    Raises:
        TypeError: No rpc takes the one and gives the other.
    """
    file = request.DESCRIPTOR.file
    served_in = _SERVED_IN.get(file.name)
    method = _methods(file.pool.FindFileByName(served_in) if served_in else file).get(request.DESCRIPTOR.full_name)
    if method is not None and method.output_type is response.DESCRIPTOR:
        return Rpc(method.full_name, request, response)
    raise TypeError(f"no rpc takes {request.__name__} and gives {response.__name__}")


@functools.cache
def _methods(file: FileDescriptor) -> dict[str, MethodDescriptor]:
    """Name of a request -> the method that takes it; of several (health: Check, Watch) the first."""
    found: dict[str, MethodDescriptor] = {}
    for service in file.services_by_name.values():
        for method in service.methods:
            found.setdefault(method.input_type.full_name, method)
    return found


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


def retry_pauses() -> Iterator[float]:
    """Seconds before each further attempt, as the policy has them."""
    first, longest = (float(str(RETRY_POLICY[name])[:-1]) for name in ("initialBackoff", "maxBackoff"))
    for attempt in range(int(str(RETRY_POLICY["maxAttempts"])) - 1):
        yield min(first * float(str(RETRY_POLICY["backoffMultiplier"])) ** attempt, longest) * random.uniform(0.8, 1.2)


def channel_options(tls: TlsConfig | None, *, retried: bool) -> list[tuple[str, str | int]]:
    """Options of a channel.

    Args:
        tls: Certificates.
        retried: Whether gRPC tries failed calls again. It must not where messages follow each other on a stream: it
            may send the second one while it still sends the first one again, and ends the process by that
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
    if tls and tls.server_name:
        options.append(("grpc.ssl_target_name_override", tls.server_name))
    return options


def open_channel(made_by: Any, target: str, tls: TlsConfig | None, *, retried: bool) -> Any:
    """A channel of ``grpc`` or ``grpc.aio``, with ``channel_options``."""
    options = channel_options(tls, retried=retried)
    if tls is None:
        return made_by.insecure_channel(target, options)
    credentials = grpc.ssl_channel_credentials(tls.root_certificates, tls.private_key, tls.certificate_chain)
    return made_by.secure_channel(target, credentials, options)


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


_STATUS_KEY = "grpc-status-details-bin"


def client_error(error: grpc.RpcError) -> FacetsClientError:
    """The exception that stands for a failed call; raise it ``from`` the error."""
    assert isinstance(error, grpc.Call | grpc.aio.AioRpcError)
    status = None
    for key, value in error.trailing_metadata() or ():
        if key == _STATUS_KEY:
            status = _parse_status(value)
    info = error_info(status.details) if status else None
    return error_class(error.code())(error.code(), error.details() or "no details", info=info)


def status_error(status: status_pb2.Status) -> FacetsClientError:
    """The exception that stands for a status inside a reply."""
    code = status_code(status.code)
    return error_class(code)(code, status.message, info=error_info(status.details))


def status_code(number: int) -> grpc.StatusCode:
    """GRPC status of a number of ``google.rpc.Code``; UNKNOWN for a number nobody knows."""
    return next((code for code in grpc.StatusCode if code.value[0] == number), grpc.StatusCode.UNKNOWN)


def _parse_status(value: str | bytes) -> status_pb2.Status | None:
    """The rich status of a failed call; None when a proxy wrote something else there."""
    try:
        return status_pb2.Status.FromString(value if isinstance(value, bytes) else value.encode("latin-1"))
    except DecodeError:
        return None


def error_info(details: Iterable[AnyMessage]) -> ErrorInfo:
    """Reads the details of AIP-193: ErrorInfo, BadRequest, RetryInfo, RequestInfo, ResourceInfo."""
    reason = error_details_pb2.ErrorInfo()
    bad_request = error_details_pb2.BadRequest()
    retry = error_details_pb2.RetryInfo()
    request = error_details_pb2.RequestInfo()
    resource = error_details_pb2.ResourceInfo()
    retry_after_s = None
    for detail in details:
        for target in (reason, bad_request, retry, request, resource):
            if detail.Unpack(target) and target is retry:
                retry_after_s = retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9
    return ErrorInfo(
        reason=reason.reason,
        domain=reason.domain,
        metadata=tuple(sorted(reason.metadata.items())),
        field_violations=tuple(FieldViolation(v.field, v.description) for v in bad_request.field_violations),
        retry_after_s=retry_after_s,
        request_id=request.request_id or reason.metadata.get("request_id", ""),
        resource_type=resource.resource_type,
    )
