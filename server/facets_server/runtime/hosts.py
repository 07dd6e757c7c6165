"""Host names and addresses: which ones only this machine can reach, and which ones HTTP requests may use."""

import re
import socket
from ipaddress import ip_address

from facets.errors import ConfigError
from facets_server.runtime.config import ServerConfig

_BACKLOG = 1024
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:\s]+)(?::[0-9]{1,5})?")  # a name or an address, and a port


def exposure(config: ServerConfig) -> list[str]:
    """Warnings about what other machines may do; none if the server listens on this machine only."""
    if config.socket is not None or is_loopback(config.host):
        return []
    warnings = []
    if config.security.api_keys_file is None and config.security.tls_client_ca is None:
        warnings.append(
            f"NO KEYS: every client that reaches {config.host}:{config.port} can read, change and delete everything; "
            "set security.api_keys_file, or host = 127.0.0.1"
        )
    if config.security.tls_certificate is None:
        warnings.append(
            f"NO TLS: texts and keys cross the network of {config.host}:{config.port} unencrypted; "
            "set security.tls_certificate and tls_key, or host = 127.0.0.1"
        )
    return warnings


def listen(host: str, port: int, setting: str, *, timeout_s: float = 30.0) -> socket.socket:
    """Listens on a TCP port (0: any free one); raises ConfigError, which names the setting, if that is impossible.

    Connections whose client is gone, or does not read for ``timeout_s``, are closed.
    """
    name = host.strip("[]")
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    try:
        bound = socket.create_server((name, port), family=family, backlog=_BACKLOG, dualstack_ipv6=name == "::")
    except OSError as error:
        raise ConfigError(f"{setting} {port} on {host} cannot be used: {error.strerror or error}") from error
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(timeout_s * 1000))
    return bound


def is_loopback(host: str) -> bool:
    """True for names and addresses that only this machine can reach."""
    return host == "localhost" or (_is_address(host) and ip_address(host.strip("[]")).is_loopback)


def is_host_of(sent: str, config: ServerConfig) -> bool:
    """Whether to answer an HTTP request for this Host: else web pages could reach the server by their own name.

    If ``http.allowed_hosts`` is empty, a server on loopback accepts the names of this machine, and others any name.
    """
    names = {name.lower() for name in config.http.allowed_hosts}
    only_local = not names and is_loopback(config.host)
    if "*" in names or not (names or only_local):
        return True
    match = _HOST.fullmatch(sent.lower())
    if match is None:
        return False
    return is_loopback(match[1]) if only_local else match[1] in names or _is_address(match[1])


def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
