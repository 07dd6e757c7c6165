"""Terms of documents and queries as the lexical index and the store know them: 32-bit hashes and counts."""

import zlib
from collections import Counter
from collections.abc import Sequence

import numpy as np

from facets.errors import DamagedError
from facets.index.lexical import TermCounts
from facets.language.terms import QueryTerms, terms

__all__ = ["contained_phrases", "count_terms", "hash_terms", "matched_words", "read_terms", "write_terms"]

_MAX_COUNT = 65_535


def hash_terms(found: Sequence[str]) -> list[int]:
    """CRC-32 of each term: of 200,000 terms of a collection one in 20,000 others would be taken for one of them."""
    return [zlib.crc32(term.encode()) for term in found]


def count_terms(text: str) -> TermCounts:
    """The terms of a document."""
    counted = sorted(Counter(hash_terms(terms(text))).items())
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


def matched_words(query: QueryTerms, held: TermCounts) -> tuple[str, ...]:
    """Words of the query that a document has, in any form, each once."""
    hashes = hash_terms([term for term, _ in query.words])
    there = set(held.hashes.tolist())
    return tuple(dict.fromkeys(word for (_, word), hash in zip(query.words, hashes, strict=True) if hash in there))


def contained_phrases(phrases: Sequence[Sequence[str]], text: str) -> list[bool]:
    """Of each phrase, whether its terms stand side by side in a text."""
    held = _joined(terms(text))
    return [_joined(phrase) in held for phrase in phrases]


def _joined(found: Sequence[str]) -> str:
    return "".join(f" {term} " for term in found)  # no term holds white space
