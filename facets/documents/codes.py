"""How the store keeps facets and terms: int8 codes, magnitudes, spans and term counts.

Zero facets have no code. The names of a document (its id and file name, short searched fields such as the title, and
headings of its text) are kept among its terms, with count 0, so that a query finds what it names.
The facets of several documents are concatenated, since a long document has more than K.
Shape letters: N documents, T facets of all documents, C chosen documents, K facets of a document, D dimensions.
"""

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from facets.arrays import Floats, Ints, Vectors
from facets.documents.fields import SearchedText
from facets.errors import DamagedError
from facets.index.lexical import TermCounts
from facets.language.interruption import check_interrupted
from facets.language.reading import read
from facets.language.terms import terms

Codes: TypeAlias = NDArray[np.int8]
_MAX_CODE = 127
_DECODED_AT_A_TIME = 8192  # facets; bounds the extra memory
_MAX_COUNT = 65_535
_MAX_NAME_CHARS = 200  # a longer text is no name
_MAX_NAMES = 8  # of a query
_FILE = re.compile(r"\.(?:txt|md|rst|html?|pdf|docx|csv|tsv|jsonl?)$", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,3}(?:\.\d{1,3})*[.):]?\s+")  # before the words of a heading
_IDENTIFIER = re.compile(r"(?=.*[^\W\d_])(?:.*\d|.+[._/:#].)")  # letters with digits, or parts: os.path
_AROUND = " \"'`\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb()[]<>?!.,:;"


def starts_of(counts: Iterable[int]) -> Ints:
    """Offsets ``[N + 1]`` of consecutive groups of these sizes; the last one is their sum."""
    return np.cumsum([0, *counts], dtype=np.int64)


def encode_units(units_TD: Vectors) -> Codes:
    """Directions as int8 codes, ``[T, D]``; the norm of a code has no meaning, zero stays zero.

    The largest component of each facet becomes 127: the direction changes by about 0.005 radians.
    """
    largest = np.abs(units_TD).max(axis=1, keepdims=True, initial=0.0)
    codes_TD: Codes = np.rint(units_TD * (_MAX_CODE / np.where(largest > 0, largest, 1.0))).astype(np.int8)
    return codes_TD


def decode_units(codes_TD: Codes) -> NDArray[np.float16]:
    """The unit-norm facets ``[T, D]`` that codes represent."""
    units_TD = np.empty(codes_TD.shape, dtype=np.float16)
    for start in range(0, len(codes_TD), _DECODED_AT_A_TIME):
        part = codes_TD[start : start + _DECODED_AT_A_TIME].astype(np.float32)
        norms = np.sqrt(np.einsum("td,td->t", part, part))
        units_TD[start : start + _DECODED_AT_A_TIME] = part / np.where(norms > 0, norms, 1.0)[:, None]
    return units_TD


def codes_to_bytes(codes_TD: Codes, norms_T: Floats, starts_N1: Ints) -> list[bytes]:
    """The codes of each document, leaving out zero facets."""
    stored = memoryview(codes_TD[norms_T > 0].tobytes())
    ends = (np.concatenate([[0], np.cumsum(norms_T > 0)])[starts_N1] * codes_TD.shape[1]).tolist()
    return [bytes(stored[start:end]) for start, end in pairwise(ends)]


def codes_from_bytes(blobs: Sequence[bytes], norms_T: Floats, starts_N1: Ints, *, dim: int) -> Codes:
    """The reverse of :func:`codes_to_bytes`, ``[T, D]``; raises DamagedError if a blob has the wrong length."""
    is_stored_T = norms_T > 0
    num_stored_N = np.diff(np.concatenate([[0], np.cumsum(is_stored_T)])[starts_N1])
    if not (num_stored_N * dim == [len(blob) for blob in blobs]).all():
        raise DamagedError("facets on disk have another size than their collection says: store them again")
    codes_TD = np.zeros((len(norms_T), dim), dtype=np.int8)
    codes_TD[is_stored_T] = np.frombuffer(b"".join(blobs), dtype=np.int8).reshape(-1, dim)
    return codes_TD


@dataclass(frozen=True, slots=True)
class StoredFacets:
    """The facets of documents as stored."""

    codes: Codes  # directions, `[T, D]`
    norms: Floats  # magnitudes, `[T]`
    starts: Ints  # offset of each document's facets, `[N + 1]`
    spans: tuple[Ints | None, ...]  # of each document, `[K, 2]`; None: not known

    @property
    def units(self) -> NDArray[np.float16]:
        """Unit-norm facets, ``[T, D]``; zero stays zero."""
        return decode_units(self.codes)


def hash_terms(found: Sequence[str]) -> list[int]:
    """CRC-32 of each term. With 200,000 terms in a collection, one in 20,000 other terms collides with one of them."""
    return [zlib.crc32(term.encode()) for term in found]


def count_terms(searched: SearchedText, language: str, *, id: str) -> TermCounts:
    """Term counts of a document: terms of a field count as often as its weight says, at least once; names count 0."""
    check_interrupted()
    counts: Counter[int] = Counter(hash_terms(terms(searched.said, language, stored=True)))
    weighted: dict[int, float] = {}
    for field in searched.fields:
        for hash, count in Counter(hash_terms(terms(field.text, language, stored=True))).items():
            weighted[hash] = weighted.get(hash, 0.0) + count * field.weight
    for hash, weight in weighted.items():
        counts[hash] += max(1, round(weight))
    for hash in hash_terms([name_term(name) for name in names_of(id, searched)]):
        counts.setdefault(hash, 0)
    ordered = sorted(counts.items())
    return TermCounts(
        np.array([hash for hash, _ in ordered], dtype=np.uint32),
        np.array([min(count, _MAX_COUNT) for _, count in ordered], dtype=np.uint16),
    )


def terms_to_bytes(counts: TermCounts) -> bytes:
    """Checksum, hashes and counts, little-endian."""
    body = counts.hashes.astype("<u4").tobytes() + counts.counts.astype("<u2").tobytes()
    return zlib.crc32(body).to_bytes(4, "little") + body


def terms_from_bytes(blob: bytes) -> TermCounts:
    """The reverse of :func:`terms_to_bytes`; raises DamagedError if the checksum differs."""
    body = blob[4:]
    if len(blob) < 4 or len(body) % 6 or zlib.crc32(body) != int.from_bytes(blob[:4], "little"):
        raise DamagedError("terms of a document are damaged on disk")
    size = len(body) // 6
    return TermCounts(
        np.frombuffer(body, dtype="<u4", count=size).astype(np.uint32),
        np.frombuffer(body, dtype="<u2", offset=4 * size).astype(np.uint16),
    )


def names_of(id: str, searched: SearchedText) -> set[str]:
    """The names of a part of a document; id and fields name the first part only."""
    texts = [searched.text[start:end] for start, end in read(searched.text).headings.tolist()]
    if not searched.start:
        file = id.replace("\\", "/").rpartition("/")[2]
        texts += [id, file, _FILE.sub("", file)]
        texts += [line for field in searched.fields for line in field.text.splitlines()]
    names = set(map(_name_of, texts))
    return (names | {_NUMBER.sub("", name, count=1) for name in names}) - {""}


def names_in(query: str) -> list[str]:
    """What a query may name: all of it, and the identifiers in it; nothing if it is too long.

    Example:
        >>> names_in('Where is "INV-2031" in  2026?')
        ['where is "inv-2031" in 2026', 'inv-2031']
    """
    if len(query) > _MAX_NAME_CHARS:
        return []
    identifiers = filter(_IDENTIFIER.match, map(_name_of, query.split()))
    return [name for name in dict.fromkeys([_name_of(query), *identifiers]) if name][:_MAX_NAMES]


def name_term(name: str) -> str:
    """The term that stands for a name; no other term has its first character."""
    return f"\0{name}"


def _name_of(text: str) -> str:
    """A text as names are compared: without case, and without quotes and marks around it; empty if it is too long."""
    folded = unicodedata.normalize("NFKC", text).casefold() if len(text) <= _MAX_NAME_CHARS else ""
    return " ".join(folded.split()).strip(_AROUND)
