"""Where a server is, as people write it."""

import re

__all__ = ["DEFAULT_PORT", "DEFAULT_TARGET", "parse_target"]

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
