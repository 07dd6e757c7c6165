"""Checks what callers hand in and turns it into what the store keeps.

Shape letters: N documents, P parts of all documents, T facets of all of these, S places in an index, K facets of a
place, D dimensions.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.documents.codes import (
    Codes,
    count_terms,
    decode_units,
    encode_units,
    no_codes,
    note_headings,
    starts_of,
)
from facets.documents.fields import SearchedText
from facets.documents.records import CollectionRecord
from facets.documents.types import (
    MAX_COLLECTION_NAME_LENGTH,
    MAX_ID_BYTES,
    MAX_NUM_FACETS,
    MAX_PARTS,
    MAX_PAYLOAD_BYTES,
    MAX_PAYLOAD_DEPTH,
    Document,
    DocumentPart,
    JsonValue,
)
from facets.errors import ErrorPath, InvalidInputError
from facets.index.base import paged
from facets.index.config import MAX_BATCH_DOCUMENTS, MAX_DOCUMENT_BYTES
from facets.index.lexical import TermCounts

_COLLECTION_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_SLICE = 256  # documents, ...
_SLICE_FACETS = 8192  # ... and of long ones facets, normalized at a time in float64: bounds the extra memory

_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # as JSON writes it


@dataclass(frozen=True, kw_only=True, slots=True)
class EncodedBatch:
    """Documents ready to store; lists have an item a document or a part, and facets stand one part after another."""

    ids: list[str]  # their ids, all different
    texts: list[str]  # their texts
    payloads: list[str]  # their payloads as compact JSON
    codes: Codes  # directions of the facets, `[T, D]`; a zero facet stays zero
    norms: NDArray[np.float32]  # magnitudes, `[T]` float32
    starts: NDArray[np.int64]  # where the facets of each part begin, and T: `[P + 1]`
    # Where in the text of its part each facet comes from, `[facets of it, 2]` a part, noted; None where nobody said.
    spans: list[NDArray[np.uint32] | None]
    # Tokens of the text and how many were read; both None where nobody said.
    readings: list[tuple[int | None, int | None]]
    terms: list[TermCounts]  # terms of each part, of the headings above it and of the fields that are searched
    parts: list[tuple[DocumentPart, ...]]  # those of each document; none where it is one
    first_parts: NDArray[np.int64]  # where the parts of each document begin, and P: `[N + 1]`

    @property
    def num_parts(self) -> NDArray[np.int64]:
        """Of each document, ``[N]``."""
        return np.diff(self.first_parts)

    def paged(self, rows_P: NDArray[np.int64], num_facets: int) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
        """The parts as indexes get them: the same as read back from the store.

        ``rows_P``: row of each part; -1 for one that was not stored. Returns the row of each place, ``[S]``, and
        unit-norm facets, ``[S, K, D]``.
        """
        rows_S, units_SKD = paged(rows_P, decode_units(self.codes), self.starts, num_facets=num_facets)
        return rows_S[rows_S >= 0], units_SKD[rows_S >= 0].astype(np.float16, copy=False)


def check_collection_name(name: str) -> None:
    """Raises InvalidInputError unless the name is ``[a-z0-9][a-z0-9_-]{0,63}``."""
    valid = isinstance(name, str) and len(name) <= MAX_COLLECTION_NAME_LENGTH
    if not valid or not _COLLECTION_NAME.fullmatch(name):
        raise InvalidInputError(
            f"must be 1 to {MAX_COLLECTION_NAME_LENGTH} of a-z, 0-9, '_' and '-', "
            f"starting with a letter or digit, got {str(name)[:80]!r}",
            path="name",
        )


def check_text(text: str, *, path: ErrorPath, max_bytes: int) -> None:
    """Raises InvalidInputError unless the text is valid Unicode of at most ``max_bytes`` bytes of UTF-8."""
    if not isinstance(text, str):
        raise InvalidInputError(f"must be a str, got {type(text).__name__}", path=path)
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"must be valid Unicode, got a lone surrogate at {error.start}", path=path) from error
    if size > max_bytes:
        raise InvalidInputError(f"has {size} bytes, the limit is {max_bytes}", path=path)


def check_ids(ids: Sequence[str], *, path: ErrorPath) -> None:
    """Raises InvalidInputError unless these are at most ``MAX_BATCH_DOCUMENTS`` valid ids."""
    if isinstance(ids, str):
        raise InvalidInputError(f"must be a sequence of str, got one str: try [{ids[:20]!r}]", path=path)
    if len(ids) > MAX_BATCH_DOCUMENTS:
        raise InvalidInputError(f"has {len(ids)} items, the limit is {MAX_BATCH_DOCUMENTS}", path=path)
    for position, id in enumerate(ids):
        _check_id(id, (*path, position))


def _check_id(id: str, path: ErrorPath) -> None:
    check_text(id, path=path, max_bytes=MAX_ID_BYTES)
    if not id or "\0" in id:
        raise InvalidInputError(f"must be a non-empty id without NUL, got {id[:80]!r}", path=path)


def encode_json(value: Mapping[str, JsonValue], *, path: ErrorPath, max_bytes: int = MAX_PAYLOAD_BYTES) -> str:
    """A JSON object as compact text.

    Raises:
        InvalidInputError: Not an object of JSON values, NaN or infinity, nested deeper than
            ``MAX_PAYLOAD_DEPTH``, or more than ``max_bytes`` bytes of UTF-8.
    """
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"must be a JSON object, got {type(value).__name__}", path=path)
    if not value:
        return "{}"
    _check_nesting(value, path)
    try:
        text = json.dumps(dict(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"must hold only JSON values: {error}", path=path) from error
    check_text(text, path=path, max_bytes=max_bytes)
    return text


def _check_nesting(value: Mapping[str, JsonValue], path: ErrorPath) -> None:
    level: list[object] = [value]
    for _ in range(MAX_PAYLOAD_DEPTH + 1):
        below: list[object] = []
        for item in level:
            if isinstance(item, Mapping):
                if not all(isinstance(key, str) for key in item):
                    raise InvalidInputError("must have str keys only", path=path)
                below.extend(item.values())
            elif isinstance(item, (list, tuple)):
                below.extend(item)
        if not below:
            return
        level = below
    raise InvalidInputError(f"is nested deeper than {MAX_PAYLOAD_DEPTH} levels, the limit", path=path)


def encode_documents(documents: Sequence[Document], record: CollectionRecord) -> EncodedBatch:
    """Checks a batch and encodes it.

    ``documents``: the batch; each document has K facets of the collection or more.

    Raises:
        InvalidInputError: Whatever :meth:`facets.documents.CollectionEngine.upsert` documents; ``field`` names the
            document and its part.
    """
    if len(documents) > MAX_BATCH_DOCUMENTS:
        raise InvalidInputError(f"has {len(documents)} items, the limit is {MAX_BATCH_DOCUMENTS}", path="documents")
    first_position: dict[str, int] = {}
    payloads: list[str] = []
    for position, document in enumerate(documents):
        here = ("documents", position)
        _check_id(document.id, (*here, "id"))
        if first_position.setdefault(document.id, position) != position:
            raise InvalidInputError(
                f"is {document.id!r}, as an earlier one is: expected different ids", path=(*here, "id")
            )
        check_text(document.text, path=(*here, "text"), max_bytes=MAX_DOCUMENT_BYTES)
        payloads.append(payload := encode_json(document.payload, path=(*here, "payload")))
        if "\\u0000" in payload and _NUL.search(payload):
            raise InvalidInputError(
                "must have no NUL character, where filters would end a string", path=(*here, "payload")
            )
        _check_parts(document, here, shape=(record.num_facets, record.dim))
        _check_reading(document, record, here)
    parts = [(document, *one) for document in documents for one in _parts_of(document, record)]
    starts_N1 = starts_of(len(document.facet_embeddings) for document in documents)
    codes_TD = no_codes((int(starts_N1[-1]), record.dim), record.code)
    norms_T, done = np.empty(len(codes_TD), dtype=np.float32), 0
    for facets in _slices(documents):
        own = slice(done, done + len(facets))
        done = own.stop
        units, norms = normalize(facets.astype(np.float64))
        bad = np.flatnonzero(~(norms <= np.finfo(np.float32).max))  # NaN fails too
        if len(bad):
            place = int(np.searchsorted(starts_N1, own.start + bad[0], side="right")) - 1
            where = ("documents", place, "facet_embeddings")
            raise InvalidInputError("has NaN or infinite values: expected finite float32", path=where)
        codes_TD[own], norms_T[own] = encode_units(units, record.code), norms
    return EncodedBatch(
        ids=[document.id for document in documents],
        texts=[document.text for document in documents],
        payloads=payloads,
        codes=codes_TD,
        norms=norms_T,
        starts=starts_of(facets.stop - facets.start for _, _, facets in parts),
        spans=[
            None if one.facet_spans is None else note_headings(said.in_part(one.facet_spans[own]), said.text)
            for one, said, own in parts
        ],
        readings=[(document.num_tokens, document.num_read) for document in documents],
        terms=[count_terms(said) for _, said, _ in parts],
        parts=[tuple(document.parts) if len(document.parts) > 1 else () for document in documents],
        first_parts=starts_of(max(1, len(document.parts)) for document in documents),
    )


def _slices(documents: Sequence[Document]) -> Iterator[NDArray[np.floating]]:
    for start in range(0, len(documents), _SLICE):
        some = np.concatenate([document.facet_embeddings for document in documents[start : start + _SLICE]])
        for first in range(0, len(some), _SLICE_FACETS):
            yield some[first : first + _SLICE_FACETS]


def _parts_of(document: Document, record: CollectionRecord) -> Iterator[tuple[SearchedText, slice]]:
    """What each part of a document says, and which of the document's facets are its."""
    said = record.said(document.text, document.payload, document.parts)
    counts = document.part_facets if len(said) > 1 else [len(document.facet_embeddings)]
    ends = np.cumsum(counts).tolist()
    for part, first, end in zip(said, [0, *ends], ends, strict=False):
        yield part, slice(first, end)


def check_facets(facets: NDArray[np.floating], shape: tuple[int, int], has_spans: bool, path: ErrorPath) -> None:
    """Raises InvalidInputError unless these are facets for a document of a collection.

    Args:
        facets: What is given.
        shape: K and D of the collection.
        has_spans: Whether it is known where in the text they come from: those of a long text may be more than K.
        path: Of the facets.
    """
    if not isinstance(facets, np.ndarray) or not np.issubdtype(facets.dtype, np.floating):
        kind = facets.dtype if isinstance(facets, np.ndarray) else type(facets).__name__
        raise InvalidInputError(f"must be an array of floats, got {kind}", path=path)
    num_facets, dim = shape
    is_long = has_spans and facets.ndim == 2 and num_facets < len(facets) <= MAX_NUM_FACETS and facets.shape[1] == dim
    if facets.shape != shape and not is_long:
        more = f", or up to {MAX_NUM_FACETS} facets with spans"
        raise InvalidInputError(
            f"has shape {list(facets.shape)}, expected [facets, dimensions] = {list(shape)}{more}", path=path
        )


def _check_parts(document: Document, here: ErrorPath, *, shape: tuple[int, int]) -> None:
    has_spans, path = document.facet_spans is not None, (*here, "facet_embeddings")
    if len(document.parts) < 2:
        check_facets(document.facet_embeddings, shape, has_spans, path)
        return
    if len(document.parts) > MAX_PARTS:
        raise InvalidInputError(f"has {len(document.parts)} items, the limit is {MAX_PARTS}", path=(*here, "parts"))
    facets, counts = document.facet_embeddings, np.asarray(document.part_facets, dtype=np.int64)
    if counts.shape != (len(document.parts),) or counts.sum() != len(facets):
        rule = f"must give each of {len(document.parts)} parts its share of {len(facets)} facets"
        raise InvalidInputError(rule, path=(*here, "part_facets"))
    for place in (int(counts.argmin()), int(counts.argmax())):  # of all others the facets are no fewer, and no more
        first = int(counts[:place].sum())
        check_facets(facets[first : first + int(counts[place])], shape, has_spans, path)
    bounds = [0, *(part.end for part in document.parts)]
    wrong = next((at for at, part in enumerate(document.parts) if not bounds[at] == part.start < part.end), None)
    if wrong is not None or bounds[-1] != len(document.text):
        rule = f"must be all of the text of {len(document.text)} characters, one behind the other"
        raise InvalidInputError(rule, path=(*here, "parts", *([] if wrong is None else [wrong])))
    if document.facet_spans is None or len(document.facet_spans) != len(facets):
        return
    starts_T, ends_T = (np.repeat([getattr(part, end) for part in document.parts], counts) for end in ("start", "end"))
    spans_T2 = np.asarray(document.facet_spans)
    in_text = (spans_T2[:, 1] > spans_T2[:, 0]) & (spans_T2[:, 0] <= len(document.text))
    out = in_text & ((spans_T2[:, 0] < starts_T) | (spans_T2[:, 1] > ends_T))
    if out.any():
        at = int(np.flatnonzero(out)[0])
        raise InvalidInputError("must lie in the part that the facet belongs to", path=(*here, "facet_spans", at))


def _check_reading(document: Document, record: CollectionRecord, path: ErrorPath) -> None:
    spans_K2, num_facets = document.facet_spans, len(document.facet_embeddings)
    if spans_K2 is not None:
        if not isinstance(spans_K2, np.ndarray) or not np.issubdtype(spans_K2.dtype, np.integer):
            raise InvalidInputError("must be an array of integers", path=(*path, "facet_spans"))
        if spans_K2.shape != (num_facets, 2):
            raise InvalidInputError(
                f"has shape {list(spans_K2.shape)}, expected [facets, 2] = [{num_facets}, 2]",
                path=(*path, "facet_spans"),
            )
        parts = list(_parts_of(document, record))
        sizes_T = np.repeat(
            [said.num_chars + said.num_beside for said, _ in parts], [of.stop - of.start for _, of in parts]
        )
        wrong = np.flatnonzero((spans_K2[:, 0] < 0) | (spans_K2[:, 1] < spans_K2[:, 0]) | (spans_K2[:, 1] > sizes_T))
        if len(wrong):
            (start, end), size = spans_K2[wrong[0]].tolist(), sizes_T[wrong[0]]
            raise InvalidInputError(
                f"must have 0 <= start <= end <= {size}, characters of text and fields, got {start} to {end}",
                path=(*path, "facet_spans", int(wrong[0])),
            )
    reading = (document.num_tokens, document.num_read)
    if reading != (None, None) and not 0 <= (document.num_read or 0) <= (document.num_tokens or 0):
        raise InvalidInputError(
            f"must be 0 to num_tokens, got {document.num_read} of {document.num_tokens}", path=(*path, "num_read")
        )


def normalize(facets: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Splits vectors along the last axis into unit vectors and norms; zero stays zero.

    Safe from overflow and underflow; a vector with NaN or infinity gets a norm that is not finite.
    """
    largest = np.abs(facets).max(axis=-1, keepdims=True)
    scale = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = facets / scale
        lengths = np.sqrt((scaled * scaled).sum(axis=-1, keepdims=True))
        units = scaled / np.where(lengths > 0, lengths, 1.0)
        norms = np.squeeze(lengths * scale, axis=-1)
    return units, norms
