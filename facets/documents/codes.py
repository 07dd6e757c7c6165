"""What the store keeps of facets and terms: codes, and checksums that tell when they are damaged.

Directions are codes, magnitudes stand apart, zero facets are left out. The facets of all documents stand one after
another: most documents have K, long ones more. SQLite itself has no checksums on its pages.
Shape letters: N documents, T facets of all documents, D dimensions.
"""

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from facets.documents.fields import SearchedText
from facets.errors import DamagedError
from facets.index.lexical import TermCounts
from facets.language.reading import read
from facets.language.terms import terms
from facets.storage import row_checksum

FacetCode = Literal["fp16", "int8"]
Codes = NDArray[np.float16] | NDArray[np.int8]
_TYPES: dict[FacetCode, np.dtype[np.float16] | np.dtype[np.int8]] = {
    "fp16": np.dtype("<f2"),
    "int8": np.dtype("i1"),
}
_LARGEST = 127
_PART_BYTES = 1328  # of codes in a line of facet_parts: three lines fill a page
_FIRST_LINE_BYTES = 1312  # of norms, spans and codes in the line of facets
_MAX_PARTS = 4096  # of one document
_SLICE = 8192  # facets decoded at a time: bounds the extra memory
_MAX_COUNT = 65_535


def no_codes(shape: tuple[int, ...], code: FacetCode) -> Codes:
    """Codes of zero facets."""
    return np.zeros(shape, dtype=np.int8) if code == "int8" else np.zeros(shape, dtype=np.float16)


def starts_of(counts: Iterable[int]) -> NDArray[np.int64]:
    """Where the facets of each document begin, given how many it has, and T at the end: ``[N + 1]``."""
    return np.cumsum([0, *counts], dtype=np.int64)


def encode_units(units_TD: NDArray[np.floating], code: FacetCode) -> Codes:
    """Directions as codes, ``[T, D]``: the norm of a code means nothing, zero stays zero.

    int8 scales the largest component of each facet to 127: the direction changes by about half a percent of a radian.
    """
    if code == "fp16":
        return units_TD.astype(np.float16)
    largest = np.abs(units_TD).max(axis=1, keepdims=True, initial=0.0)
    codes_TD: Codes = np.rint(units_TD * (_LARGEST / np.where(largest > 0, largest, 1.0))).astype(np.int8)
    return codes_TD


def decode_units(codes_TD: Codes) -> NDArray[np.float16]:
    """Unit-norm facets, as indexes want them."""
    if codes_TD.dtype != np.int8:
        return codes_TD.astype(np.float16, copy=False)
    units_TD = np.empty(codes_TD.shape, dtype=np.float16)
    for start in range(0, len(codes_TD), _SLICE):
        part = codes_TD[start : start + _SLICE].astype(np.float32)
        norms = np.sqrt(np.einsum("td,td->t", part, part))
        units_TD[start : start + _SLICE] = part / np.where(norms > 0, norms, 1.0)[:, None]
    return units_TD


def write_codes(codes_TD: Codes, norms_T: NDArray[np.float32], starts_N1: NDArray[np.int64]) -> list[bytes]:
    """The codes of each document as the store keeps them: those of the facets whose norm is not 0, one by one."""
    stored = codes_TD.astype(codes_TD.dtype.newbyteorder("<"), copy=False)
    kept = memoryview(stored[norms_T > 0].tobytes())
    width = stored.dtype.itemsize * stored.shape[1]
    ends = (np.concatenate([[0], np.cumsum(norms_T > 0)])[starts_N1] * width).tolist()
    return [bytes(kept[start:end]) for start, end in pairwise(ends)]


def split_codes(blob: bytes, beside: int) -> tuple[bytes, list[bytes]]:
    """The codes of a document as lines of the store: what stands beside ``beside`` other bytes, and further parts."""
    first = max(0, _FIRST_LINE_BYTES - beside)
    rest = range(first, len(blob), max(_PART_BYTES, -(-len(blob) // _MAX_PARTS)))
    return blob[:first], [blob[start : start + rest.step] for start in rest]


def numbered_parts(row: int, parts: Sequence[bytes]) -> list[tuple[int, bytes]]:
    """The parts of a document with their keys."""
    return list(enumerate(parts, start=row * _MAX_PARTS))


def row_of_part(number: int) -> int:
    """The document of a part, by its key."""
    return number // _MAX_PARTS


def read_codes(
    blobs: Sequence[bytes], norms_T: NDArray[np.float32], starts_N1: NDArray[np.int64], *, dim: int, code: FacetCode
) -> Codes | None:
    """The reverse of :func:`write_codes`, ``[T, D]``; None when a blob has another length."""
    width = _TYPES[code].itemsize * dim
    sizes_N = np.fromiter(map(len, blobs), dtype=np.int64, count=len(blobs))
    kept_T = norms_T > 0
    if not (np.diff(np.concatenate([[0], np.cumsum(kept_T)])[starts_N1]) * width == sizes_N).all():
        return None
    codes_TD = no_codes((len(norms_T), dim), code)
    codes_TD[kept_T] = np.frombuffer(b"".join(blobs), dtype=_TYPES[code]).reshape(-1, dim)
    return codes_TD


_OF_HEADING = np.uint32(1 << 31)  # of the start of a span; no text is as long


def note_headings(spans_K2: NDArray[np.integer], text: str) -> NDArray[np.uint32]:
    """Spans as they are stored, ``[K, 2]``: the highest bit of a start says that the span lies in a heading.

    ``spans_K2``: in the text of a part, those in fields behind it.
    """
    _, ends_K = read(text).headings_above(spans_K2)
    noted_K2 = spans_K2.astype(np.uint32)
    noted_K2[(spans_K2[:, 0] < spans_K2[:, 1]) & (spans_K2[:, 1] <= ends_K), 0] |= _OF_HEADING
    return noted_K2


def read_spans(noted_K2: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Stored spans as they were given, ``[K, 2]``, and which of them lie in a heading, ``[K]``."""
    return (noted_K2 & ~_OF_HEADING).astype(np.int64), noted_K2[:, 0] >= _OF_HEADING


@dataclass(frozen=True, slots=True)
class StoredFacets:
    """The facets of documents as stored."""

    codes: Codes  # directions, `[T, D]`; norms mean nothing
    norms: NDArray[np.float32]  # magnitudes, `[T]`
    starts: NDArray[np.int64]  # where the facets of each document begin, and T: `[N + 1]` int64
    # Where in the text each facet comes from, `[facets of it, 2]` a document, noted; None where nobody said.
    spans: tuple[NDArray[np.uint32] | None, ...]

    def __getitem__(self, places_C: NDArray[np.int64]) -> "StoredFacets":
        """Those of the documents at these places, in this order."""
        counts_C = np.diff(self.starts)[places_C]
        starts_C1 = starts_of(counts_C.tolist())
        taken = np.repeat(self.starts[places_C] - starts_C1[:-1], counts_C) + np.arange(starts_C1[-1])
        spans = tuple(self.spans[place] for place in places_C.tolist())
        return StoredFacets(self.codes[taken], self.norms[taken], starts_C1, spans)

    @property
    def units(self) -> NDArray[np.float16]:
        """Unit-norm facets, ``[T, D]``; zero stays zero."""
        return decode_units(self.codes)

    @property
    def embeddings(self) -> list[NDArray[np.float32]]:
        """Facets of each document with magnitudes, ``[facets of it, D]``."""
        whole = self.units.astype(np.float32) * self.norms[:, None]
        return [whole[start:end] for start, end in pairwise(self.starts.tolist())]


def hash_terms(found: Sequence[str]) -> list[int]:
    """CRC-32 of each term: of 200,000 terms of a collection one in 20,000 others would be taken for one of them."""
    return [zlib.crc32(term.encode()) for term in found]


def count_terms(said: SearchedText) -> TermCounts:
    """The terms of a document: those of its text, and those of its fields as often as these weigh, once at least."""
    counts: Counter[int] = Counter(hash_terms(terms(read(said.text).text)))
    weighted: dict[int, float] = {}
    for field in said.fields:
        for hash, count in Counter(hash_terms(terms(field.text))).items():
            weighted[hash] = weighted.get(hash, 0.0) + count * field.weight
    for hash, weight in weighted.items():
        counts[hash] += max(1, round(weight))
    counted = sorted(counts.items())
    return TermCounts(
        np.array([hash for hash, _ in counted], dtype=np.uint32),
        np.array([min(count, _MAX_COUNT) for _, count in counted], dtype=np.uint16),
    )


def write_terms(counted: TermCounts) -> bytes:
    """The terms as the store keeps them: checksum, hashes, counts; little-endian."""
    body = counted.hashes.astype("<u4").tobytes() + counted.counts.astype("<u2").tobytes()
    return zlib.crc32(body).to_bytes(4, "little") + body


def read_terms(blob: bytes) -> TermCounts:
    """The reverse of :func:`write_terms`.

    Raises:
        DamagedError: The checksum differs.
    """
    body = blob[4:]
    if len(blob) < 4 or len(body) % 6 or zlib.crc32(body) != int.from_bytes(blob[:4], "little"):
        raise DamagedError("terms of a document are damaged on disk")
    size = len(body) // 6
    return TermCounts(
        np.frombuffer(body, dtype="<u4", count=size).astype(np.uint32),
        np.frombuffer(body, dtype="<u2", offset=4 * size).astype(np.uint16),
    )


def document_checksum(
    text: str, *, id: str, payload: str, reading: tuple[int | None, int | None], num_parts: int = 1
) -> int:
    """CRC-32 of what a document says; the text of one of several parts stands with these."""
    checksum = zlib.crc32(text.encode(), zlib.crc32(f"{id}\0{payload}\0".encode()))
    if num_parts > 1:
        checksum = zlib.crc32(f"\0{num_parts} parts".encode(), checksum)
    return checksum if reading == (None, None) else zlib.crc32(f"\0{reading[0]} {reading[1]}".encode(), checksum)


def part_checksum(text: str, *, start: int, headings: str, page: int) -> int:
    """CRC-32 of what a part of a document says, its headings as stored."""
    return zlib.crc32(text.encode(), zlib.crc32(f"{start} {page} {headings}\0".encode()))


def facets_checksum(norms: bytes, units: bytes, spans: bytes | None) -> int:
    """CRC-32 of a document's facets as stored."""
    return zlib.crc32(spans or b"", zlib.crc32(units, zlib.crc32(norms)))


def placed(checksum: int, *place: int) -> int:
    """A checksum that covers where its line belongs, too."""
    return row_checksum(checksum, *place)


class FacetLine(NamedTuple):
    """The facets of a document as they stand in the tables, whatever became of them."""

    row: int
    checksum: int
    norms: bytes
    spans: bytes | None
    codes: bytes

    def is_whole(self, num_facets: int) -> bool:
        """Whether they are what was written, where it was written: at least so many."""
        said = placed(facets_checksum(self.norms, self.codes, self.spans), self.row)
        return len(self.norms) >= 4 * num_facets and self.checksum == said
