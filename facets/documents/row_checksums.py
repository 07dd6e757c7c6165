"""Checksums of documents and their facets; SQLite itself has none on its pages."""

import zlib

from facets.storage import row_checksum

__all__ = ["document_checksum", "facets_checksum", "is_whole", "placed"]


def document_checksum(id: str, payload: str, text: str, reading: tuple[int | None, int | None]) -> int:
    """CRC-32 of what a document says."""
    checksum = zlib.crc32(text.encode(), zlib.crc32(f"{id}\0{payload}\0".encode()))
    return checksum if reading == (None, None) else zlib.crc32(f"\0{reading[0]} {reading[1]}".encode(), checksum)


def facets_checksum(norms: bytes, units: bytes, spans: bytes | None) -> int:
    """CRC-32 of a document's facets as stored."""
    return zlib.crc32(spans or b"", zlib.crc32(units, zlib.crc32(norms)))


def placed(checksum: int, *place: int) -> int:
    """A checksum that covers where its line belongs, too: negative, so that it is told from those without."""
    return -1 - row_checksum(checksum, *place)


def is_whole(stored: object, checksum: int, *place: int) -> bool:
    """Whether a line is what was written, where it was written; lines of older versions do not say where."""
    return isinstance(stored, int) and stored == (checksum if stored >= 0 else placed(checksum, *place))
