"""Snapshots of indexes: one file, verified before a byte of it is believed.

Magic, version and header length (``<8sII``); the header, JSON in UTF-8; the row number of every slot, int64
little-endian; what the index wrote; SHA-256 of all that.
"""

import hashlib
import json
import logging
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from facets.errors import IndexFormatError
from facets.index.base import FacetIndex, FacetSource, IndexBackend
from facets.storage import clear_errors, write_atomically

logger = logging.getLogger(__name__)

_MAGIC = b"FACETSIX"
_VERSION = 1
_PREFIX = struct.Struct("<8sII")
_DIGEST_BYTES = hashlib.sha256().digest_size
_BUFFER = 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class SnapshotIdentity:
    """What a snapshot belongs to; one that differs is foreign.

    Attributes:
        store_id: Of the document store.
        collection: Number of the collection.
        num_facets: K.
        dim: D.
        revision: Revision of the data directory that the index had reached. When reading: the store's, which the
            snapshot's must not exceed.
    """

    store_id: str
    collection: int
    num_facets: int
    dim: int
    revision: int


def write_snapshot(path: Path, index: FacetIndex, identity: SnapshotIdentity) -> None:
    """Writes a snapshot atomically: a crash leaves the old file or the new one.

    Raises:
        StorageError: The disk is full or cannot be written; the old snapshot stays.
    """
    header = {
        "store_id": identity.store_id,
        "collection": identity.collection,
        "revision": identity.revision,
        "num_slots": len(index.slots),
        "index": index.describe(),
    }
    encoded = json.dumps(header, sort_keys=True).encode()
    with write_atomically(path, durable=True, private=True) as part, open(part, "wb", buffering=_BUFFER) as file:
        digest = hashlib.sha256()

        def sink(data: bytes) -> None:
            digest.update(data)
            file.write(data)

        sink(_PREFIX.pack(_MAGIC, _VERSION, len(encoded)))
        sink(encoded)
        sink(index.slots.astype("<i8").tobytes())
        index.write(sink)
        file.write(digest.digest())


def read_snapshot(path: Path, identity: SnapshotIdentity, backend: IndexBackend, facets: FacetSource) -> FacetIndex:
    """Reads a snapshot after verifying its checksum and whose it is.

    Raises:
        IndexFormatError: Damaged, truncated, foreign, or of an unknown version.
        FileNotFoundError: There is none.
    """
    with open(path, "rb", buffering=_BUFFER) as file:
        body_bytes = _verify(file)
        magic, version, header_bytes = _PREFIX.unpack(file.read(_PREFIX.size))
        if magic != _MAGIC or version != _VERSION:
            raise IndexFormatError(f"snapshot has version {version}, expected {_VERSION}")
        header = json.loads(file.read(header_bytes))
        description = header["index"]
        found = SnapshotIdentity(
            store_id=header["store_id"],
            collection=header["collection"],
            num_facets=description["num_facets"],
            dim=description["dim"],
            revision=header["revision"],
        )
        if replace(found, revision=identity.revision) != identity:
            raise IndexFormatError(f"snapshot belongs to {found}, expected {identity}")
        if found.revision > identity.revision:
            raise IndexFormatError(
                f"snapshot is of revision {found.revision}, newer than the store's {identity.revision}"
            )
        slots = np.frombuffer(file.read(8 * header["num_slots"]), dtype="<i8").astype(np.int64)
        return backend.read(_bounded_reader(file, body_bytes), slots, description, facets)


def load_snapshot(
    path: Path, identity: SnapshotIdentity, backend: IndexBackend, facets: FacetSource
) -> FacetIndex | None:
    """Reads a snapshot, or sets it aside as ``*.damaged`` when it cannot be trusted; None then, or without one."""
    try:
        return read_snapshot(path, identity, backend, facets)
    except FileNotFoundError:
        return None
    except (IndexFormatError, OSError) as error:
        aside = path.with_suffix(".damaged")
        logger.warning("index snapshot %s set aside as %s, rebuilding: %s", path, aside.name, error)
        with clear_errors(f"damaged snapshot {path} cannot be set aside"):
            path.replace(aside)
        return None


def check_snapshot(path: Path) -> None:
    """Compares a snapshot with its checksum.

    Raises:
        IndexFormatError: It is damaged or truncated.
        OSError: It cannot be read.
    """
    with open(path, "rb", buffering=_BUFFER) as file:
        _verify(file)


def _verify(file: BinaryIO) -> int:
    """Compares the checksum; returns the length before it and leaves the file at its start."""
    size = file.seek(0, os.SEEK_END)
    body_bytes = size - _DIGEST_BYTES
    if body_bytes < _PREFIX.size:
        raise IndexFormatError(f"snapshot has {size} bytes, expected more than {_PREFIX.size + _DIGEST_BYTES}")
    file.seek(0)
    if file.read(len(_MAGIC)) != _MAGIC:
        raise IndexFormatError("file is not a Facets index snapshot")
    file.seek(0)
    digest = hashlib.sha256()
    left = body_bytes
    while left:
        data = file.read(min(left, _BUFFER))
        if not data:
            raise IndexFormatError("snapshot became shorter while it was read")
        digest.update(data)
        left -= len(data)
    if file.read(_DIGEST_BYTES) != digest.digest():
        raise IndexFormatError("snapshot is damaged: its checksum differs")
    file.seek(0)
    return body_bytes


def _bounded_reader(file: BinaryIO, end: int) -> Callable[[int], bytes]:
    """Reads up to the checksum and no further."""

    def read(num_bytes: int) -> bytes:
        return file.read(min(num_bytes, end - file.tell()))

    return read
