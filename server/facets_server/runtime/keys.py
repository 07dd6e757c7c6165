"""API keys with their roles and collections, and who calls: over HTTP, the client of the gateway.

A key file has one key per line: ``KEY [read|write|admin] [weight=N] [COLLECTION ...]``. A key without a role is an
admin key. Lines that begin with ``#`` are comments.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from facets.errors import ConfigError
from facets_server.runtime.errors import PermissionDeniedError, UnauthenticatedError
from facets_server.runtime.messages import metadata_of

ADDRESS_METADATA = "x-facets-gateway-caller"
_WEIGHT, _NUMBER = "weight=", re.compile(r"[0-9]+(\.[0-9]+)?")
_MIN_WEIGHT, _MAX_WEIGHT = 0.01, 100
_LOCAL_SOCKET = "unix"  # prefix of peers that connect over a socket: the server's gateway, or this user's programs

Context = Any  # grpc.aio.ServicerContext


class Role(IntEnum):
    """What a key may do; each role includes the previous ones."""

    READ = 1
    WRITE = 2
    ADMIN = 3


class Right(NamedTuple):
    """What a method requires of a key: the lowest role, and whether the key must be valid for all collections."""

    role: Role
    of_server: bool = False


# Methods that are not in this table require an admin key for all collections.
_METHODS = {
    Right(Role.READ): (
        "ModelService/ListModels ModelService/GetModel EmbeddingService/Embed EmbeddingService/EmbedStream "
        "EmbeddingService/Explain SimilarityService/Score SummarizationService/Summarize TopicService/SuggestTopics "
        "CollectionService/GetCollection CollectionService/DiagnoseCollection CollectionService/MapCollection "
        "DocumentService/GetDocuments DocumentService/CountDocuments DocumentService/ListDocuments "
        "DocumentService/ListSources DocumentService/Search DocumentService/Rerank "
        "RecommendationService/RecommendAuthors RecommendationService/RecommendCitations "
        "RecommendationService/RankPapers RecommendationService/RecommendBulk RecommendationService/FindCandidates "
        "RelationService/ExtractRelations RelationService/FillSlots RelationService/ScoreRelations "
        "RelationService/DetectEntailment RelationService/ListRelations"
    ),
    Right(Role.READ, of_server=True): "ModelService/GetServerStatus CollectionService/ListCollections",
    Right(Role.WRITE): "DocumentService/Upsert DocumentService/UpsertStream DocumentService/DeleteDocuments",
    Right(Role.WRITE, of_server=True): (
        "RecommendationService/AddPapers RecommendationService/AddAuthors RelationService/AddRelation "
        "RelationService/DeleteRelation"
    ),
    Right(Role.ADMIN): (
        "CollectionService/CreateCollection CollectionService/DeleteCollection CollectionService/ReindexCollection"
    ),
    Right(Role.ADMIN, of_server=True): "ModelService/TakeBackup",
}
RIGHTS = {f"/facets.v1.{method}": right for right, methods in _METHODS.items() for method in methods.split()}
RIGHTS["/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"] = Right(Role.READ)


def collection_of(method: str, request: Any) -> str:
    """The collection that a request names; empty: none."""
    if "/facets.v1.CollectionService/" in method:
        return str(getattr(request, "name", ""))
    opening = getattr(request, "open", request)  # UpsertStream names it in its opening message
    return str(getattr(opening, "collection", ""))


@dataclass(frozen=True, slots=True)
class Key:
    """One key."""

    caller: str  # name of the key's holder in limits and logs, never the key itself
    role: Role = Role.ADMIN
    collections: frozenset[str] = frozenset()  # that it may use; empty: all, and the whole server
    weight: float = 1.0  # share of the server under load, relative to other keys

    def check_method(self, method: str) -> None:
        """Raises PermissionDeniedError unless the key may call a method, given by its full name."""
        right = RIGHTS.get(method, Right(Role.ADMIN, of_server=True))
        if self.role < right.role:
            raise PermissionDeniedError(
                f'this key has role "{self.role.name.lower()}"; the call requires "{right.role.name.lower()}"'
            )
        if right.of_server and self.collections:
            raise PermissionDeniedError("this key is limited to some collections; the call concerns the whole server")

    def check_collection(self, name: str) -> None:
        """Raises PermissionDeniedError unless the key may use a collection, whether or not that exists."""
        if self.collections and name not in self.collections:
            raise PermissionDeniedError("this key does not give access to this collection")


class Keys:
    """The keys that a server knows; it holds their digests only."""

    def __init__(self, keys: Iterable[tuple[str, Key]]) -> None:
        self._keys = {_digest(secret): key for secret, key in keys}

    def find(self, authorization: str) -> Key:
        """The key in the metadata ``authorization``: ``Bearer KEY``; raises UnauthenticatedError."""
        scheme, _, secret = authorization.partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise UnauthenticatedError("the call needs metadata 'authorization: Bearer KEY'")
        digest = _digest(secret.strip())
        keys = [key for known, key in self._keys.items() if hmac.compare_digest(digest, known)]
        if not keys:
            raise UnauthenticatedError("the key is unknown: the server's file of keys has no such key")
        return keys[0]


def read_keys(file: Path) -> Keys:
    """Reads a file of keys; raises ConfigError when it cannot be read or holds no key, or a line is not a key."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"api_keys_file {file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"api_keys_file {file} is not UTF-8: byte {error.start} cannot be read") from error
    lines = ((number, line.split()) for number, line in enumerate(text.splitlines(), 1))
    keys = dict[str, Key]()
    for number, parts in lines:
        if parts and parts[0][0] != "#":
            secret, key = _key(parts, f"{file}, line {number}")
            if secret in keys:
                raise ConfigError(f"api_keys_file {file}, line {number}: this key is on an earlier line, too")
            keys[secret] = key
    if not keys:
        raise ConfigError(f"api_keys_file {file} has no key, expected one per line")
    return Keys(keys.items())


def _key(parts: list[str], where: str) -> tuple[str, Key]:
    from facets.documents.encoding import COLLECTION_NAME  # heavy, and the gateway's process reads no keys

    key, role, *rest = [*parts, "admin"] if len(parts) == 1 else parts
    # The messages omit the words: they may be part of a key.
    if key.upper() in Role.__members__ or role.upper() not in Role.__members__:
        raise ConfigError(f"api_keys_file {where}: expected a key, then read, write or admin")
    weight = 1.0
    if rest and rest[0].startswith(_WEIGHT):
        number = rest.pop(0).removeprefix(_WEIGHT)
        if not _NUMBER.fullmatch(number) or not _MIN_WEIGHT <= float(number) <= _MAX_WEIGHT:
            raise ConfigError(f"api_keys_file {where}: weight is a number from {_MIN_WEIGHT} to {_MAX_WEIGHT}")
        weight = float(number)
    if not all(map(COLLECTION_NAME.fullmatch, rest)):
        raise ConfigError(f"api_keys_file {where}: expected weight=N, then names of collections, after the role")
    return key, Key(f"key-{_digest(key).hex()[:8]}", Role[role.upper()], frozenset(rest), weight)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def caller_of(context: Context) -> str:
    """The address of the caller without its port; for a call from the gateway, that of the gateway's client."""
    peer = str(context.peer())
    if peer.startswith(_LOCAL_SOCKET):
        return metadata_of(context, ADDRESS_METADATA) or _LOCAL_SOCKET
    return peer.rpartition(":")[0]
