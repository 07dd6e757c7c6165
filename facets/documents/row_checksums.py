"""Checksums of documents and their facets; SQLite itself has none on its pages."""

import zlib

from facets.storage import row_checksum

__all__ = ["document_checksum", "facets_checksum", "placed"]


def document_checksum(id: str, payload: str, text: str, reading: tuple[int | None, int | None]) -> int:
    """CRC-32 of what a document says."""
    checksum = zlib.crc32(text.encode(), zlib.crc32(f"{id}\0{payload}\0".encode()))
    return checksum if reading == (None, None) else zlib.crc32(f"\0{reading[0]} {reading[1]}".encode(), checksum)


def facets_checksum(norms: bytes, units: bytes, spans: bytes | None) -> int:
    """CRC-32 of a document's facets as stored."""
    return zlib.crc32(spans or b"", zlib.crc32(units, zlib.crc32(norms)))


def placed(checksum: int, *place: int) -> int:
    """A checksum that covers where its line belongs, too."""
    return row_checksum(checksum, *place)
