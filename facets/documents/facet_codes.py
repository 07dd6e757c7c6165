"""Facets as the store keeps them: directions as codes, magnitudes apart, zero facets left out.

Shape letters: N documents, K facets, D dimensions, T facets that are not zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Codes",
    "FacetCode",
    "StoredFacets",
    "decode_units",
    "encode_units",
    "no_codes",
    "numbered_parts",
    "read_codes",
    "row_of_part",
    "split_codes",
    "write_codes",
]

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
_SLICE = 512  # documents decoded at a time: bounds the extra memory


def no_codes(shape: tuple[int, ...], code: FacetCode) -> Codes:
    """Codes of zero facets."""
    return np.zeros(shape, dtype=np.int8) if code == "int8" else np.zeros(shape, dtype=np.float16)


def encode_units(units_NKD: NDArray[np.floating], code: FacetCode) -> Codes:
    """Directions as codes, ``[N, K, D]``: the norm of a code means nothing, zero stays zero.

    int8 scales the largest component of each facet to 127: the direction changes by about half a percent of a radian.
    """
    if code == "fp16":
        return units_NKD.astype(np.float16)
    largest = np.abs(units_NKD).max(axis=2, keepdims=True, initial=0.0)
    codes_NKD: Codes = np.rint(units_NKD * (_LARGEST / np.where(largest > 0, largest, 1.0))).astype(np.int8)
    return codes_NKD


def decode_units(codes_NKD: Codes) -> NDArray[np.float16]:
    """Unit-norm facets, as indexes want them."""
    if codes_NKD.dtype != np.int8:
        return codes_NKD.astype(np.float16, copy=False)
    units_NKD = np.empty(codes_NKD.shape, dtype=np.float16)
    for start in range(0, len(codes_NKD), _SLICE):
        part = codes_NKD[start : start + _SLICE].astype(np.float32)
        norms = np.sqrt(np.einsum("nkd,nkd->nk", part, part))
        units_NKD[start : start + _SLICE] = part / np.where(norms > 0, norms, 1.0)[:, :, None]
    return units_NKD


def write_codes(codes_NKD: Codes, norms_NK: NDArray[np.float32]) -> list[bytes]:
    """The codes of each document as the store keeps them: those of the facets whose norm is not 0, one by one."""
    kept_NK = norms_NK > 0
    stored = codes_NKD.astype(codes_NKD.dtype.newbyteorder("<"), copy=False)
    return [codes_KD[kept_K].tobytes() for codes_KD, kept_K in zip(stored, kept_NK, strict=True)]


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


def read_codes(blobs: Sequence[bytes], norms_NK: NDArray[np.float32], *, dim: int, code: FacetCode) -> Codes | None:
    """The reverse of :func:`write_codes`, ``[N, K, D]``; None when a blob has another length.

    Stores of earlier versions hold zero facets too; their blobs are of full length.
    """
    kind = _TYPES[code]
    sizes_N = np.fromiter(map(len, blobs), dtype=np.int64, count=len(blobs))
    kept_NK = norms_NK > 0
    kept_NK[sizes_N == norms_NK.shape[1] * dim * kind.itemsize] = True
    if not (kept_NK.sum(axis=1) * dim * kind.itemsize == sizes_N).all():
        return None
    codes_NKD = no_codes((*norms_NK.shape, dim), code)
    codes_NKD[kept_NK] = np.frombuffer(b"".join(blobs), dtype=kind).reshape(-1, dim)
    return codes_NKD


@dataclass(frozen=True, slots=True)
class StoredFacets:
    """The facets of documents as stored.

    Attributes:
        codes: Directions, ``[N, K, D]``; norms mean nothing.
        norms: Magnitudes, ``[N, K]``.
        spans: Where in the text each facet comes from, ``[K, 2]`` a document; None where nobody said.
    """

    codes: Codes
    norms: NDArray[np.float32]
    spans: tuple[NDArray[np.uint32] | None, ...]

    @property
    def units(self) -> NDArray[np.float16]:
        """Unit-norm facets, ``[N, K, D]``; zero stays zero."""
        return decode_units(self.codes)

    @property
    def embeddings(self) -> NDArray[np.float32]:
        """Facets with magnitudes, ``[N, K, D]``."""
        return self.units.astype(np.float32) * self.norms[:, :, None]
