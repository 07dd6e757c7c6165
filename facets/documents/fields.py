"""Payload fields that are searched with the text: title, subject, or any fields a collection names; terms and names.

Words of a field count as often as its weight says: BM25F with one saturation for all fields, see Robertson, Zaragoza
and Taylor 2004. A model reads the fields before the text, so that facets of the text reflect the title. Spans are kept
as if the fields followed the text, so that they do not depend on them. The names of a document (its id and file name,
short searched fields such as the title, and headings of its text) are kept among its terms, with count 0, so that a
query finds what it names. Shape letters: K facets, P text and fields.
"""

import math
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from facets.arrays import Ints
from facets.documents.filters import PATH_RULE, keys_of, path_of
from facets.documents.types import DocumentPart, JsonValue, Span
from facets.errors import DamagedError, InvalidInputError
from facets.index.lexical import TermCounts
from facets.language.interruption import check_interrupted
from facets.language.reading import read
from facets.language.sentences import sentences_of
from facets.language.terms import terms

_TITLES, _SOLUTIONS = ("title", "subject", "headline", "heading", "name"), ("answer", "resolution", "solution")
DEFAULT_SEARCH_FIELDS: Mapping[str, float] = dict.fromkeys(_TITLES, 2.0) | dict.fromkeys(_SOLUTIONS, 1.0)
MAX_SEARCH_FIELDS = 32
MAX_FIELD_WEIGHT = 100.0
_GAP = "\n\n"
_HEADINGS = "headings"
_RULE = "\n|---|"
_MAX_CONTEXT_CHARS = 300  # a longer field belongs to the first part of a document only
_MAX_COUNT = 65_535
_MAX_NAME_CHARS = 200  # a longer text is no name
_MAX_NAMES = 8  # of a query
_FILE = re.compile(r"\.(?:txt|md|rst|html?|pdf|docx|csv|tsv|jsonl?)$", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,3}(?:\.\d{1,3})*[.):]?\s+")  # before the words of a heading
_IDENTIFIER = re.compile(r"(?=.*[^\W\d_])(?:.*\d|.+[._/:#].)")  # letters with digits, or parts: os.path
_AROUND = " \"'`\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb()[]<>?!.,:;"
_keys_of = lru_cache(maxsize=1024)(keys_of)  # the fields of a collection are looked up in every document


@dataclass(frozen=True, slots=True)
class FieldText:
    """The text of one field of a document."""

    name: str  # path of the value in the payload
    text: str  # its value; list items on separate lines; never blank
    weight: float  # how often its words count


@dataclass(frozen=True, slots=True)
class SearchedText:
    """A text, or one part of it, and the fields that are searched with it."""

    text: str  # text of the document or part; may be empty
    fields: tuple[FieldText, ...] = ()  # fields with text, and the headings above a part as field `headings`
    start: int = 0  # offset of the part in the text of the document
    num_beside: int = 0  # characters of the document's text outside the part

    @property
    def read(self) -> str:
        """The input of the model: fields and text with blank lines between them."""
        if not self.fields:
            return self.text
        return _GAP.join(part for part in (*(field.text for field in self.fields), self.text) if part.strip())

    def text_of(self, field: str) -> str:
        """Text of the field of this name; of the document or part if there is none."""
        return next((own.text for own in self.fields if own.name == field), self.text)

    @property
    def continues_table(self) -> bool:
        """Whether the part begins with rows of a table whose header row ends the headings."""
        return bool(self.fields) and self.fields[-1].text.endswith(_RULE)

    @property
    def said(self) -> str:
        """The text as it is read, without the fields; rows of a table that continues have the names of its columns."""
        if not self.continues_table:
            return read(self.text).text
        reading, start = read(self.read), len(self.read) - len(self.text)
        if reading.places is None or reading.origins is None:
            return self.text
        piece = int(np.searchsorted(reading.origins, start))
        return reading.text[reading.places[piece] :] if piece < len(reading.places) else ""

    @property
    def num_chars(self) -> int:
        """Characters of text and fields, including those between them: the upper bound of spans."""
        return int(self._bounds()[-1, 1])

    def kept_spans(self, spans_K2: NDArray[np.integer]) -> Ints:
        """Converts spans in the input of the model to kept spans, ``[K, 2]``.

        A span across a border is assigned to the side that holds more of it, or to the text if both hold the same.
        """
        spans = spans_K2.astype(np.int64)
        if not self.fields:
            return spans
        as_read = [*range(1, len(self.fields) + 1), *([0] if self.text.strip() else [])]
        kept_P2 = self._bounds()[as_read]
        lengths_P = kept_P2[:, 1] - kept_P2[:, 0]
        starts_P = np.concatenate([[0], np.cumsum(lengths_P + len(_GAP))[:-1]])
        low_KP = np.maximum(spans[:, :1], starts_P)
        high_KP = np.minimum(spans[:, 1:], starts_P + lengths_P)
        part_K = len(as_read) - 1 - (high_KP - low_KP)[:, ::-1].argmax(axis=1)  # in a tie the last one, the text
        low_K, high_K = (bound_KP[np.arange(len(spans)), part_K] for bound_KP in (low_KP, high_KP))
        moved_K = kept_P2[part_K, 0] - starts_P[part_K]
        return np.where((high_K > low_K)[:, None], np.stack([low_K + moved_K, high_K + moved_K], axis=1), 0)

    def in_document(self, spans_K2: NDArray[np.integer]) -> Ints:
        """Converts kept spans of a part to spans of the document; empty ones stay empty."""
        moved_K1 = np.where(spans_K2[:, 1:] > len(self.text), self.num_beside, self.start)
        return np.where(spans_K2[:, 1:] > spans_K2[:, :1], spans_K2.astype(np.int64) + moved_K1, 0)

    def in_part(self, spans_K2: NDArray[np.integer]) -> Ints:
        """The reverse of :meth:`in_document`."""
        moved_K1 = np.where(spans_K2[:, 1:] > len(self.text) + self.num_beside, self.num_beside, self.start)
        return np.where(spans_K2[:, 1:] > spans_K2[:, :1], spans_K2.astype(np.int64) - moved_K1, 0)

    def span(self, start: int, end: int) -> Span | None:
        """A kept span with its text; None if it is empty or outside."""
        if end <= start:
            return None
        if start <= len(self.text):
            return Span(start=start, end=end, text=self.text[start:end])
        first = len(self.text) + 1
        for field in self.fields:
            if start - first <= len(field.text):
                start, end = start - first, end - first
                return Span(start=start, end=end, text=field.text[start:end], field=field.name)
            first += len(field.text) + 1
        return None

    def _bounds(self) -> Ints:
        """Start and end of the text and of each field as spans are kept, ``[P, 2]``."""
        lengths = np.array([len(self.text), *(len(field.text) for field in self.fields)], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(lengths + 1)[:-1]])
        return np.stack([starts, starts + lengths], axis=1)


def check_search_fields(fields: Mapping[str, float]) -> dict[str, float]:
    """Fields and weights as a collection stores them; raises InvalidInputError if there are too many or one is bad."""
    if len(fields) > MAX_SEARCH_FIELDS:
        raise InvalidInputError(f"has {len(fields)} items, the limit is {MAX_SEARCH_FIELDS}", path="search_fields")
    for place, (name, weight) in enumerate(fields.items()):
        if not keys_of(name):
            raise InvalidInputError(f"must be {PATH_RULE}, got {name!r}", path=("search_fields", place, "name"))
        if not (math.isfinite(weight) and 0 < weight <= MAX_FIELD_WEIGHT):
            rule = f"must be above 0 and at most {MAX_FIELD_WEIGHT:g}, got {weight:g}"
            raise InvalidInputError(rule, path=("search_fields", place, "weight"))
    return {name: float(weight) for name, weight in fields.items()}


def field_texts(payload: Mapping[str, JsonValue], fields: Mapping[str, float]) -> tuple[FieldText, ...]:
    r"""The searched fields of a document that have text, in the order of the fields.

    Strings are taken as they are, numbers as they are written, list items on separate lines; null, booleans, objects
    and nested lists are ignored. Dots select keys inside objects; case is ignored if no key matches exactly.

    Example:
        >>> found = field_texts({"Title": "On bees", "tags": ["honey", 7, None]}, {"title": 2.0, "tags": 1.0})
        >>> [(field.name, field.text) for field in found]
        [('Title', 'On bees'), ('tags', 'honey\n7')]
    """
    values = ((*_lookup(payload, name), weight) for name, weight in fields.items()) if payload else ()
    texts = ((path, "\n".join(_texts(value)), weight) for path, value, weight in values if value is not None)
    return tuple(FieldText(path, text, weight) for path, text, weight in texts if text)


def searched_part(text: str, fields: tuple[FieldText, ...], part: DocumentPart, num_beside: int = 0) -> SearchedText:
    """The text of a part, the headings above it and the fields of its document, long ones in the first part only."""
    if part.start:
        fields = tuple(field for field in fields if len(field.text) <= _MAX_CONTEXT_CHARS)
    headings = "\n".join(heading for heading in part.headings if heading.strip() and heading not in text)
    if headings:
        if part.headings[-1].startswith("|"):
            headings += _RULE  # the header row of a table that continues in this part
        fields += (FieldText(_HEADINGS, headings, 1.0),)
    return SearchedText(text, fields, part.start, num_beside)


def _lookup(payload: Mapping[str, JsonValue], name: str) -> tuple[str, object]:
    """The path of a field as the payload spells it, and its value."""
    value: object = payload
    keys = []
    for key in _keys_of(name):
        if not isinstance(value, Mapping):
            return name, None
        if key not in value:
            folded = key.casefold()
            key = next((other for other in value if other.casefold() == folded), key)
        value = value.get(key)
        keys.append(key)
    return path_of(keys), value


def _texts(value: object) -> Iterator[str]:
    items: Sequence[object] = value if isinstance(value, (list, tuple)) else [value]
    for item in items:
        if isinstance(item, str) and item.strip():
            yield item
        elif isinstance(item, (int, float)) and not isinstance(item, bool):
            yield f"{item:.15g}" if isinstance(item, float) else str(item)


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
    """The names of a part of a document: headings, or identifiers of a row; id and fields name the first part only."""
    texts = [searched.text[start:end] for start, end in read(searched.text).headings.tolist()]
    if not searched.start:
        file = id.replace("\\", "/").rpartition("/")[2]
        texts += [id, file, _FILE.sub("", file)]
        texts += [line for field in searched.fields for line in field.text.splitlines()]
    if searched.text.startswith("|"):
        rows = [sentence.row for sentence in sentences_of(searched.text) if sentence.row and not sentence.row.is_header]
        cells = [searched.text[start:end] for start, end in rows[0].cells] if len(rows) == 1 else []
        texts += filter(_IDENTIFIER.match, cells)
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
