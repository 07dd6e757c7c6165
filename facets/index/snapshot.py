"""Snapshots of indexes: one file, verified by checksums and mapped into memory.

Layout: what the index wrote; the row of every place, int64 little-endian; the header, JSON in UTF-8; the CRC-32 of each
64 KiB block before the header; magic, version, lengths, and the CRC-32 of header, checksums and these (``<8sIIQI``).
Everything is verified when a snapshot is opened: 4 GB take a second of CPU time.
"""

import json
import logging
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from facets.errors import IndexFormatError
from facets.index.base import FacetIndex, IndexBackend
from facets.storage.files import clear_errors, write_atomically

logger = logging.getLogger(__name__)

_MAGIC = b"FACETSIX"
_VERSION = 1
_END = struct.Struct("<8sIIQ")  # magic, version, bytes of the header, bytes before it
_CHECKSUM = struct.Struct("<I")
_BUFFER = 1024 * 1024
_BLOCK_BYTES = 65_536


def write_snapshot(path: Path, index: FacetIndex, *, store_id: str, collection: int, revision: int) -> None:
    """Writes a snapshot atomically; after a StorageError the old one stays.

    ``store_id``: of the document store; ``revision``: of the data directory, which the index has reached.
    """
    header = {"store_id": store_id, "collection": collection, "revision": revision}
    header |= {"num_slots": len(index.slots), "index": index.describe()}
    slots = index.slots.astype("<i8").tobytes()
    with write_atomically(path, durable=True, private=True) as part, open(part, "wb+", buffering=_BUFFER) as file:
        index.write(file.write)
        num_bytes = file.tell() + file.write(slots)
        encoded = json.dumps(header, sort_keys=True).encode()
        end = encoded + _checksums(file, num_bytes).tobytes()
        end += _END.pack(_MAGIC, _VERSION, len(encoded), num_bytes)
        file.seek(num_bytes)
        file.write(end + _CHECKSUM.pack(zlib.crc32(end)))


def _checksums(file: BinaryIO, num_bytes: int) -> NDArray[np.uint32]:
    """CRC-32 of each block of the first bytes of a file."""
    file.seek(0)
    blocks = (file.read(min(_BLOCK_BYTES, num_bytes - start)) for start in range(0, num_bytes, _BLOCK_BYTES))
    return np.fromiter(map(zlib.crc32, blocks), dtype="<u4")


def load_snapshot(
    path: Path, expected: Mapping[str, object], backend: IndexBackend, *, revision: int
) -> FacetIndex | None:
    """Opens a snapshot; None if there is none, or if it cannot be trusted and was renamed to ``*.damaged``.

    ``expected``: store id, collection, K and D that it must have; ``revision``: of the data directory now.
    """
    try:
        content, header = _open(path)
        description = header["index"]
        actual = {name: (header | description)[name] for name in expected}
        if actual != expected:
            raise IndexFormatError(f"snapshot belongs to {actual}, expected {expected}")
        if header["revision"] > revision:
            raise IndexFormatError(f"snapshot of revision {header['revision']} is newer than the store's")
        slots_byte = len(content) - 8 * header["num_slots"]
        slots = content[slots_byte:].view("<i8").astype(np.int64)
        return backend.read(path, content[:slots_byte], slots, description)
    except FileNotFoundError:
        return None
    except (IndexFormatError, OSError) as error:
        aside = path.with_suffix(".damaged")
        logger.warning("index snapshot %s set aside as %s, rebuilding: %s", path, aside.name, error)
        with clear_errors(f"damaged snapshot {path} cannot be set aside"):
            path.replace(aside)
        return None


def check_snapshot(path: Path) -> None:
    """Verifies a whole snapshot; raises IndexFormatError or OSError."""
    _open(path)


def _open(path: Path) -> tuple[NDArray[np.uint8], dict[str, Any]]:
    """The verified content of a snapshot, mapped into memory, and its header."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _END.size - _CHECKSUM.size))
        end = file.read(_END.size)
        if len(end) < _END.size or not end.startswith(_MAGIC):
            raise IndexFormatError("file is not a Facets index snapshot, or it is truncated")
        _, version, header_bytes, body_bytes = _END.unpack(end)
        if version != _VERSION:
            raise IndexFormatError(f"snapshot has version {version}, expected {_VERSION}")
        num_blocks = -(-body_bytes // _BLOCK_BYTES)
        expected = body_bytes + header_bytes + 4 * num_blocks + _END.size + _CHECKSUM.size
        if size != expected:
            raise IndexFormatError(f"snapshot has {size} bytes, expected {expected}")
        file.seek(body_bytes)
        rest = file.read()
        if _CHECKSUM.pack(zlib.crc32(rest[: -_CHECKSUM.size])) != rest[-_CHECKSUM.size :]:
            raise IndexFormatError("snapshot is damaged: the checksum of its header differs")
        checksums = np.frombuffer(rest, dtype="<u4", count=num_blocks, offset=header_bytes)
        if not np.array_equal(checksums, _checksums(file, body_bytes)):
            raise IndexFormatError("snapshot is damaged: the checksum of its content differs")
    return np.memmap(path, np.uint8, "r", shape=(body_bytes,)), json.loads(rest[:header_bytes])
