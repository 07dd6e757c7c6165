"""Bearer keys: who may call, what for, and on which collections.

A file of keys has one a line: ``KEY [read|write|admin] [COLLECTION ...]``. A key alone may do everything; names of
collections bind it to these. Lines that begin with ``#`` and a blank are comments.
"""

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from facets.errors import ConfigError
from facets_server.runtime.errors import PermissionDeniedError, UnauthenticatedError

__all__ = ["Key", "Keys", "Role", "read_keys"]


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
    """

    caller: str
    role: Role = Role.ADMIN
    collections: frozenset[str] = frozenset()

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

    def __init__(self, keys: Iterable[tuple[str, Role, frozenset[str]]]) -> None:
        self._keys = {
            _digest(key): Key(f"key-{_digest(key).hex()[:8]}", role, collections) for key, role, collections in keys
        }

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
    keys = [_key(parts, f"{file}, line {number}") for number, parts in lines if parts and parts[0] != "#"]
    if not keys:
        raise ConfigError(f"api_keys_file {file} holds no key, expected one a line")
    return Keys(keys)


def _key(parts: list[str], where: str) -> tuple[str, Role, frozenset[str]]:
    key, role, *collections = [*parts, "admin"] if len(parts) == 1 else parts
    if role.upper() not in Role.__members__:  # not the word: it may be a part of a key
        raise ConfigError(f"api_keys_file {where}: expected read, write or admin after the key")
    return key, Role[role.upper()], frozenset(collections)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
