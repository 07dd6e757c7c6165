"""Who calls: bearer keys, what for and on which collections; and gateways, that call on behalf of others.

A file of keys has one a line: ``KEY [read|write|admin] [weight=N] [COLLECTION ...]``. A key alone may do everything;
names of collections bind it to these; a key of weight 2 has twice the share of one of weight 1 where both want more
than there is. Lines that begin with ``#`` are comments. A gateway is believed when it knows
a secret.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from facets.errors import ConfigError
from facets_server.runtime.config import HttpConfig
from facets_server.runtime.errors import PermissionDeniedError, UnauthenticatedError
from facets_server.runtime.messages import metadata_of

TOKEN_METADATA = "x-facets-gateway-token"
ADDRESS_METADATA = "x-facets-gateway-caller"
_WEIGHT, _NUMBER = "weight=", re.compile(r"[0-9]+(\.[0-9]+)?")
_LEAST_WEIGHT, _MOST_WEIGHT = 0.01, 100
_TOKEN = re.compile(r"[\x21-\x7e]{16,1000}")
_LOCAL_SOCKET = "unix"  # peers of the socket that is there for our gateway alone

Context = Any  # grpc.aio.ServicerContext


class Role(IntEnum):
    """What a key is good for; each includes the ones before."""

    READ = 1
    WRITE = 2
    ADMIN = 3


@dataclass(frozen=True, slots=True)
class Key:
    """One key.

    Attributes:
        caller: Name of whoever has it, for limits and the log; not the key.
        role: What it is good for.
        collections: On which collections; empty: on all, and on what belongs to none.
        weight: What its share is measured by.
    """

    caller: str
    role: Role = Role.ADMIN
    collections: frozenset[str] = frozenset()
    weight: float = 1.0

    def check_role(self, role: Role, *, of_server: bool) -> None:
        """Checks that the key is good for a method.

        Args:
            role: What the method needs.
            of_server: Whether it concerns all collections, or models.

        Raises:
            PermissionDeniedError: It is not.
        """
        if self.role < role:
            raise PermissionDeniedError(
                f"the key is good to {self.role.name.lower()}, the call needs {role.name.lower()}"
            )
        if of_server and self.collections:
            raise PermissionDeniedError("the key is good for some collections, the call concerns the whole server")

    def check_collection(self, name: str) -> None:
        """Checks that the key is good for a collection.

        Raises:
            PermissionDeniedError: It is not, whether or not there is such a collection.
        """
        if self.collections and name not in self.collections:
            raise PermissionDeniedError("the key is not good for this collection")


class Keys:
    """The keys that a server knows."""

    def __init__(self, keys: Iterable[tuple[str, Key]]) -> None:
        """Keeps no key, only their digests.

        Args:
            keys: What each is good for.
        """
        self._keys = {_digest(key): good_for for key, good_for in keys}

    def find(self, authorization: str) -> Key:
        """The key that a call carries.

        Args:
            authorization: Value of the metadata ``authorization``: ``Bearer KEY``.

        Raises:
            UnauthenticatedError: There is none, or an unknown one.
        """
        scheme, _, sent = authorization.partition(" ")
        digest = _digest(sent.strip())
        found = [key for ours, key in self._keys.items() if hmac.compare_digest(digest, ours)]
        if scheme.lower() != "bearer" or not found:
            raise UnauthenticatedError("the call needs metadata 'authorization: Bearer KEY' with a known key")
        return found[0]


def read_keys(file: Path) -> Keys:
    """Reads a file of keys.

    Raises:
        ConfigError: It cannot be read, holds no key, or a line is none.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"api_keys_file {file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"api_keys_file {file} is not UTF-8: byte {error.start} cannot be read") from error
    lines = ((number, line.split()) for number, line in enumerate(text.splitlines(), 1))
    keys = [_key(parts, f"{file}, line {number}") for number, parts in lines if parts and parts[0][0] != "#"]
    if not keys:
        raise ConfigError(f"api_keys_file {file} holds no key, expected one a line")
    return Keys(keys)


def _key(parts: list[str], where: str) -> tuple[str, Key]:
    key, role, *rest = [*parts, "admin"] if len(parts) == 1 else parts
    if role.upper() not in Role.__members__:  # not the word: it may be a part of a key
        raise ConfigError(f"api_keys_file {where}: expected read, write or admin after the key")
    weight = 1.0
    if rest and rest[0].startswith(_WEIGHT):
        number = rest.pop(0).removeprefix(_WEIGHT)
        if not _NUMBER.fullmatch(number) or not _LEAST_WEIGHT <= float(number) <= _MOST_WEIGHT:
            raise ConfigError(f"api_keys_file {where}: weight is a number from {_LEAST_WEIGHT} to {_MOST_WEIGHT}")
        weight = float(number)
    return key, Key(f"key-{_digest(key).hex()[:8]}", Role[role.upper()], frozenset(rest), weight)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


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


class Right(NamedTuple):
    """What a method needs.

    Attributes:
        role: The least role of a key.
        of_server: Whether the method concerns all collections, or models: not for keys of some collections.
    """

    role: Role
    of_server: bool = False


_READ, _WRITE, _ADMIN = Right(Role.READ), Right(Role.WRITE), Right(Role.ADMIN)
_READ_ALL, _WRITE_ALL, _ALL = (Right(role, of_server=True) for role in Role)

# By the full name of the method.
RIGHTS = {
    f"/facets.v1.{service}/{method}": right
    for service, methods in {
        "ModelService": {"ListModels": _READ, "GetModel": _READ, "GetServerStatus": _READ_ALL, "TakeBackup": _ALL},
        "EmbeddingService": {"Embed": _READ, "EmbedStream": _READ, "Explain": _READ},
        "SimilarityService": {"Score": _READ},
        "SummarizationService": {"Summarize": _READ},
        "TopicService": {"SuggestTopics": _READ},
        "CollectionService": {
            "CreateCollection": _ADMIN,
            "GetCollection": _READ,
            "ListCollections": _READ_ALL,
            "DeleteCollection": _ADMIN,
            "ReindexCollection": _ADMIN,
            "DiagnoseCollection": _READ,
            "MapCollection": _READ,
        },
        "DocumentService": {
            "Upsert": _WRITE,
            "UpsertStream": _WRITE,
            "GetDocuments": _READ,
            "DeleteDocuments": _WRITE,
            "CountDocuments": _READ,
            "ListDocuments": _READ,
            "Search": _READ,
            "Rerank": _READ,
        },
        "RecommendationService": {
            "RecommendAuthors": _READ,
            "RecommendCitations": _READ,
            "RankPapers": _READ,
            "RecommendBulk": _READ,
            "AddPapers": _WRITE_ALL,
            "AddAuthors": _WRITE_ALL,
            "FindCandidates": _READ,
        },
        "RelationService": {
            "ExtractRelations": _READ,
            "FillSlots": _READ,
            "ScoreRelations": _READ,
            "DetectEntailment": _READ,
            "ListRelations": _READ,
            "AddRelation": _WRITE_ALL,
            "DeleteRelation": _WRITE_ALL,
        },
    }.items()
    for method, right in methods.items()
}


def right_of(method: str) -> Right:
    """What a method needs; one that nobody has thought of needs a key that may do everything."""
    return RIGHTS.get(method, Right(Role.ADMIN, of_server=True))


def collection_of(method: str, request: Any) -> str:
    """The collection that a request names; empty: none."""
    if "/facets.v1.CollectionService/" in method:
        return str(getattr(request, "name", ""))
    opening = getattr(request, "open", request)  # of UpsertStream
    return str(getattr(opening, "collection", ""))
