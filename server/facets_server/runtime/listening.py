"""Ports, and the certificates of those that speak TLS."""

import secrets
import ssl
from ipaddress import ip_address
from pathlib import Path

import grpc

from facets.errors import ConfigError
from facets_server.runtime.config import SecurityConfig, ServerConfig

__all__ = ["bind", "exposure", "is_loopback", "local_address", "options"]

_MAX_PENDING_CALLS = 4096  # of all connections, that the loop has not yet looked at; some may hold 64 KiB each


def options(config: ServerConfig) -> list[tuple[str, int]]:
    """How gRPC treats connections."""
    return [
        ("grpc.max_receive_message_length", config.limits.max_message_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.so_reuseport", 0),  # else two servers share one port in silence
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1),
        # Else gRPC ends calls as CANCELLED, without a word of ours, as soon as 1,000 wait to be looked at.
        ("grpc.max_concurrent_streams", config.admission.max_calls_per_connection),
        ("grpc.server.max_pending_requests", _MAX_PENDING_CALLS),
        ("grpc.server.max_pending_requests_hard_limit", 2 * _MAX_PENDING_CALLS),
    ]


def bind(server: grpc.aio.Server, config: ServerConfig) -> int:
    """Adds the port of the settings to a server; returns its number.

    Raises:
        ConfigError: The port is in use, or certificates cannot be read.
    """
    address = f"{config.host}:{config.port}"
    try:
        if config.security.tls_certificate is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, _credentials(config.security))
    except RuntimeError as error:
        raise ConfigError(f"port {config.port} on {config.host} cannot be used: is another server on it?") from error
    if port == 0:
        raise ConfigError(f"port {config.port} on {config.host} cannot be used: is another server on it?")
    return port


def local_address() -> str:
    """A new address that only processes of this machine can reach, without a file."""
    return f"unix-abstract:facets-{secrets.token_hex(16)}"


def exposure(config: ServerConfig) -> list[str]:
    """What everybody who reaches the server may do, as warnings; none while it listens on this machine only."""
    if is_loopback(config.host):
        return []
    warnings = []
    if config.security.api_keys_file is None and config.security.tls_client_ca is None:
        warnings.append(
            f"NO KEYS: whoever reaches {config.host}:{config.port} can read, change and delete everything; "
            "set security.api_keys_file, or host = 127.0.0.1"
        )
    if config.security.tls_certificate is None:
        warnings.append(
            f"NO TLS: texts and keys cross the network of {config.host}:{config.port} in the clear; "
            "set security.tls_certificate and tls_key, or host = 127.0.0.1"
        )
    return warnings


def is_loopback(host: str) -> bool:
    """True for names and addresses that only this machine can reach."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False  # a name: who knows where it leads


def _credentials(security: SecurityConfig) -> grpc.ServerCredentials:
    assert security.tls_certificate is not None and security.tls_key is not None
    pair = (_read(security.tls_key, "tls_key"), _read(security.tls_certificate, "tls_certificate"))
    client_ca = None if security.tls_client_ca is None else _read(security.tls_client_ca, "tls_client_ca")
    _check(security)
    return grpc.ssl_server_credentials([pair], client_ca, require_client_auth=client_ca is not None)


def _check(security: SecurityConfig) -> None:
    """GRPC takes any bytes, and then nobody can connect."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    assert security.tls_certificate is not None
    try:
        context.load_cert_chain(security.tls_certificate, security.tls_key, password=lambda: "")
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            f"tls_certificate {security.tls_certificate} and tls_key {security.tls_key} are not a certificate and its "
            f"unencrypted key in PEM: {_reason(error)}"
        ) from error
    if security.tls_client_ca is None:
        return
    try:
        context.load_verify_locations(security.tls_client_ca)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            f"tls_client_ca {security.tls_client_ca} holds no certificate in PEM: {_reason(error)}"
        ) from error


def _reason(error: Exception) -> str:
    return (getattr(error, "reason", None) or str(error)).replace("_", " ").lower()


def _read(file: Path, setting: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{setting} {file} cannot be read: {error.strerror}") from error
