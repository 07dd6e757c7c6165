"""Whom the server believes when a call says on whose behalf it comes: gateways that know a secret."""

import hmac
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from facets.errors import ConfigError
from facets_server.runtime.config import HttpConfig
from facets_server.runtime.errors import UnauthenticatedError
from facets_server.runtime.messages import metadata_of

__all__ = ["ADDRESS_METADATA", "TOKEN_METADATA", "GatewayTrust", "gateway_tokens", "read_token"]

TOKEN_METADATA = "x-facets-gateway-token"
ADDRESS_METADATA = "x-facets-gateway-caller"
_TOKEN = re.compile(r"[\x21-\x7e]{16,1000}")
_LOCAL_SOCKET = "unix"  # peers of the socket that is there for our gateway alone

Context = Any  # grpc.aio.ServicerContext


def gateway_tokens(http: HttpConfig) -> list[str]:
    """The secrets of gateways: one made for the server's own, then that of the file, for one elsewhere.

    Raises:
        ConfigError: The file cannot be read, or holds no secret.
    """
    tokens = [secrets.token_urlsafe(32)]
    return tokens if http.token_file is None else [*tokens, read_token(http.token_file)]


def read_token(file: Path) -> str:
    """The secret in a file.

    Raises:
        ConfigError: It cannot be read, or holds none.
    """
    try:
        token = file.read_text(encoding="ascii").strip()
    except OSError as error:
        raise ConfigError(f"http.token_file {file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"http.token_file {file} is not ASCII") from error
    if not _TOKEN.fullmatch(token):
        raise ConfigError(f"http.token_file {file} holds no secret, expected 16 to 1000 characters without spaces")
    return token


class GatewayTrust:
    """The secrets of gateways."""

    def __init__(self, tokens: Sequence[str]) -> None:
        """Believes whoever knows one of the tokens."""
        self._tokens = tuple(token.encode() for token in tokens)

    def caller_of(self, context: Context) -> str:
        """The address of who asks, without its port.

        Raises:
            UnauthenticatedError: The call comes over the socket of the gateway, but not from the gateway.
        """
        peer = str(context.peer())
        sent = metadata_of(context, TOKEN_METADATA).encode()
        if sent and any(hmac.compare_digest(sent, token) for token in self._tokens):
            return metadata_of(context, ADDRESS_METADATA) or "gateway"
        if peer.startswith(_LOCAL_SOCKET):
            raise UnauthenticatedError("this socket is for the gateway of the server, expected its token")
        return peer.rpartition(":")[0]
