"""Checks documents and encodes them for the store and the indexes: facets become int8 codes and norms.

The facets of several parts are concatenated, since a long part has more than K.
Shape letters: N documents, P parts of all documents, T facets of all parts, K facets of a part, D dimensions.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, starmap
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from facets.arrays import Doubles, Floats, Ints, Vectors
from facets.documents.fields import SearchedText, count_terms
from facets.documents.records import CollectionModel
from facets.documents.types import (
    MAX_COLLECTION_NAME_LENGTH,
    MAX_ID_BYTES,
    MAX_NUM_FACETS,
    MAX_PARTS,
    MAX_PAYLOAD_BYTES,
    MAX_SOURCE_BYTES,
    Document,
    JsonValue,
)
from facets.errors import ErrorPath, InvalidInputError
from facets.index.config import MAX_BATCH_DOCUMENTS, MAX_DOCUMENT_BYTES, MAX_PAYLOAD_DEPTH
from facets.index.lexical import TermCounts
from facets.language.interruption import check_interrupted
from facets.language.languages import detect

COLLECTION_NAME = re.compile(rf"[a-z0-9][a-z0-9_-]{{0,{MAX_COLLECTION_NAME_LENGTH - 1}}}")
# Documents and, for long ones, facets that are normalized at a time in float64: bounds the extra memory.
_DOCUMENTS_AT_A_TIME, _FACETS_AT_A_TIME = 256, 2048
Codes: TypeAlias = NDArray[np.int8]
_MAX_CODE = 127
_DECODED_AT_A_TIME = 8192  # facets; bounds the extra memory
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # as JSON writes it


@dataclass(frozen=True, kw_only=True, slots=True)
class EncodedBatch:
    """Checked documents ready to store. The facets of all parts are concatenated."""

    documents: Sequence[Document]  # with different ids
    payloads: list[str]  # compact JSON
    num_parts: Ints  # of each document, `[N]`
    codes: Codes  # directions of the facets, `[T, D]`
    norms: Floats  # magnitudes, `[T]`
    starts: Ints  # offset of each part's facets, `[P + 1]`
    spans: list[Ints | None]  # of each part's facets in its text, `[K, 2]`; None: not known
    terms: list[TermCounts]  # of each part with its headings and searched fields
    language: str  # whose rules the terms follow


def check_collection_name(name: str) -> None:
    """Raises InvalidInputError unless the name is ``[a-z0-9][a-z0-9_-]{0,63}``."""
    if not isinstance(name, str) or not COLLECTION_NAME.fullmatch(name):
        raise InvalidInputError(
            f"must be 1 to {MAX_COLLECTION_NAME_LENGTH} of a-z, 0-9, '_' and '-', "
            f"starting with a letter or digit, got {str(name)[:80]!r}",
            path="name",
        )


def check_unicode(text: str, *, path: ErrorPath, max_bytes: int) -> None:
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
        check_id(id, (*path, position))


def check_id(id: str, path: ErrorPath) -> None:
    """Raises InvalidInputError unless this can be the id of a document."""
    check_unicode(id, path=path, max_bytes=MAX_ID_BYTES)
    if not id or "\0" in id:
        raise InvalidInputError(f"must be a non-empty id without NUL, got {id[:80]!r}", path=path)


def check_source(source: str, path: ErrorPath) -> None:
    """Raises InvalidInputError unless this can be the source of a document."""
    check_unicode(source, path=path, max_bytes=MAX_SOURCE_BYTES)
    if "\0" in source:
        raise InvalidInputError(f"must not contain NUL, got {source[:80]!r}", path=path)


def encode_payload(payload: Mapping[str, JsonValue], *, path: ErrorPath) -> str:
    """The payload of a document as compact JSON; raises InvalidInputError if it breaks a limit."""
    if not isinstance(payload, Mapping):
        raise InvalidInputError(f"must be a JSON object, got {type(payload).__name__}", path=path)
    if not payload:
        return "{}"
    level, depth = list[object]([payload]), 0
    while level:
        if depth > MAX_PAYLOAD_DEPTH:
            raise InvalidInputError(f"is nested deeper than {MAX_PAYLOAD_DEPTH} levels, the limit", path=path)
        objects = [item for item in level if isinstance(item, Mapping)]
        if not all(isinstance(key, str) for item in objects for key in item):
            raise InvalidInputError("must have str keys only", path=path)
        lists = [item for item in level if isinstance(item, (list, tuple))]
        level, depth = list(chain(*(item.values() for item in objects), *lists)), depth + 1
    try:
        text = json.dumps(dict(payload), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"must hold only JSON values: {error}", path=path) from error
    check_unicode(text, path=path, max_bytes=MAX_PAYLOAD_BYTES)
    if "\\u0000" in text and _NUL.search(text):
        raise InvalidInputError("must not contain NUL: it would end a string in filters", path=path)
    return text


def check_document(document: Document, path: ErrorPath) -> str:
    """Id, source, text and payload of a document, which it returns as JSON; raises InvalidInputError."""
    check_id(document.id, (*path, "id"))
    check_source(document.source, (*path, "source"))
    check_unicode(document.text, path=(*path, "text"), max_bytes=MAX_DOCUMENT_BYTES)
    return encode_payload(document.payload, path=(*path, "payload"))


def encode_documents(documents: Sequence[Document], model: CollectionModel) -> EncodedBatch:
    """Encodes documents in the language of their collection, or their own if it has none yet.

    Raises InvalidInputError if one breaks a rule of :class:`facets.documents.Document`.
    """
    if len(documents) > MAX_BATCH_DOCUMENTS:
        raise InvalidInputError(f"has {len(documents)} items, the limit is {MAX_BATCH_DOCUMENTS}", path="documents")
    known_ids: set[str] = set()
    payloads: list[str] = []
    parts: list[tuple[Document, SearchedText, slice]] = []
    for position, document in enumerate(documents):
        path = ("documents", position)
        payloads.append(check_document(document, path))
        check_new(document.id, known_ids, path)
        searched, starts = check_facets(document, model, path)
        slices = starmap(slice, pairwise(starts.tolist()))
        parts += [(document, *part) for part in zip(searched, slices, strict=True)]
    codes_TD, norms_T = _encode_facets(documents, model.dim)
    language = model.language or detect(searched.read for _, searched, _ in parts)
    return EncodedBatch(
        documents=documents,
        payloads=payloads,
        num_parts=np.array([max(1, len(document.parts)) for document in documents], dtype=np.int64),
        codes=codes_TD,
        norms=norms_T,
        starts=np.cumsum([0, *(facets.stop - facets.start for _, _, facets in parts)]),
        spans=[
            None if document.facet_spans is None else searched.in_part(document.facet_spans[facets])
            for document, searched, facets in parts
        ],
        terms=[count_terms(searched, language, id=document.id) for document, searched, _ in parts],
        language=language,
    )


def check_new(id: str, known_ids: set[str], path: ErrorPath) -> None:
    """Adds an id to those of earlier documents of a batch; raises InvalidInputError if it is one of them."""
    if id in known_ids:
        rule = f"is {id!r}, which is also the id of an earlier document: expected different ids"
        raise InvalidInputError(rule, path=(*path, "id"))
    known_ids.add(id)


def _encode_facets(documents: Sequence[Document], dim: int) -> tuple[Codes, Floats]:
    codes_TD = np.zeros((sum(len(document.facet_embeddings) for document in documents), dim), dtype=np.int8)
    norms_T, start = np.empty(len(codes_TD), dtype=np.float32), 0
    for first in range(0, len(documents), _DOCUMENTS_AT_A_TIME):
        facets_TD = np.concatenate([one.facet_embeddings for one in documents[first : first + _DOCUMENTS_AT_A_TIME]])
        for some in np.split(facets_TD, range(_FACETS_AT_A_TIME, len(facets_TD), _FACETS_AT_A_TIME)):
            check_interrupted()
            end = start + len(some)
            units, norms = normalize(some.astype(np.float64))
            codes_TD[start:end], norms_T[start:end] = encode_units(units), norms
            start = end
    return codes_TD, norms_T


def check_facets(
    document: Document, model: CollectionModel, path: ErrorPath, *, is_whole: bool = False
) -> tuple[tuple[SearchedText, ...], Ints]:
    """Checks parts, facets and spans of a document; raises InvalidInputError.

    ``is_whole``: facets of a whole text that are not divided among its parts yet; with spans, there may be any number.
    Returns what is searched of each part, and the offset of each part's facets, ``[P + 1]``.
    """
    facets, facets_path = document.facet_embeddings, (*path, "facet_embeddings")
    if not isinstance(facets, np.ndarray) or not np.issubdtype(facets.dtype, np.floating) or facets.ndim != 2:
        kind = f"{facets.dtype} {list(facets.shape)}" if isinstance(facets, np.ndarray) else type(facets).__name__
        raise InvalidInputError(f"must be an array of floats [facets, dimensions], got {kind}", path=facets_path)
    most = model.num_facets if document.facet_spans is None else len(facets) if is_whole else MAX_NUM_FACETS
    if len(document.parts) < 2:
        starts = np.array([0, len(facets)])
        _check_shape(facets, (model.num_facets, model.dim), most, facets_path)
    else:
        starts = _check_parts(document, path)
        counts = np.diff(starts)
        for place in (int(counts.argmin()), int(counts.argmax())):  # all other counts lie between these two
            part_facets = facets[starts[place] : starts[place + 1]]
            _check_shape(part_facets, (model.num_facets, model.dim), most, facets_path)
    largest = float(np.abs(facets).max(initial=0.0))
    if not largest * math.sqrt(model.dim) <= np.finfo(np.float32).max:  # also true for NaN
        raise InvalidInputError("has NaN or infinite values: expected finite float32", path=facets_path)
    searched = model.searched(document.text, document.payload, document.parts)
    _check_spans(document, searched, np.diff(starts), path)
    return searched, starts


def _check_shape(facets: Vectors, shape: tuple[int, int], most: int, path: ErrorPath) -> None:
    """Raises InvalidInputError unless these are facets of one part, ``[K, D]``, or of more rows, up to ``most``."""
    num_facets, dim = shape
    is_long = num_facets < len(facets) <= most and facets.shape[1] == dim
    if facets.shape != shape and not is_long:
        raise InvalidInputError(
            f"has shape {list(facets.shape)}, expected [facets, dimensions] = {list(shape)}, "
            f"or up to {MAX_NUM_FACETS} facets with spans",
            path=path,
        )


def _check_parts(document: Document, path: ErrorPath) -> Ints:
    """Checks that several parts cover the text; returns the offset of each part's facets, ``[P + 1]``."""
    if len(document.parts) > MAX_PARTS:
        raise InvalidInputError(f"has {len(document.parts)} items, the limit is {MAX_PARTS}", path=(*path, "parts"))
    starts, num_facets = np.cumsum([0, *document.part_facets]), len(document.facet_embeddings)
    if len(starts) != len(document.parts) + 1 or starts[-1] != num_facets:
        rule = f"must give each of {len(document.parts)} parts its share of {num_facets} facets"
        raise InvalidInputError(rule, path=(*path, "part_facets"))
    bounds = [0, *(part.end for part in document.parts)]
    wrong = next((i for i, part in enumerate(document.parts) if not bounds[i] == part.start < part.end), None)
    if wrong is not None or bounds[-1] != len(document.text):
        rule = f"must cover the text of {len(document.text)} characters, one part directly after another"
        raise InvalidInputError(rule, path=(*path, "parts", *([] if wrong is None else [wrong])))
    return starts


def _check_spans(document: Document, parts: Sequence[SearchedText], counts_P: Ints, path: ErrorPath) -> None:
    spans_K2, num_facets = document.facet_spans, len(document.facet_embeddings)
    if spans_K2 is not None:
        spans_path = (*path, "facet_spans")
        if not isinstance(spans_K2, np.ndarray) or not np.issubdtype(spans_K2.dtype, np.integer):
            raise InvalidInputError("must be an array of integers", path=spans_path)
        if spans_K2.shape != (num_facets, 2):
            rule = f"has shape {list(spans_K2.shape)}, expected [facets, 2] = [{num_facets}, 2]"
            raise InvalidInputError(rule, path=spans_path)
        if len(document.parts) > 1:
            starts_K, ends_K = np.repeat([(part.start, part.end) for part in document.parts], counts_P, axis=0).T
            in_text_K = (spans_K2[:, 1] > spans_K2[:, 0]) & (spans_K2[:, 0] <= len(document.text))
            outside = np.flatnonzero(in_text_K & ((spans_K2[:, 0] < starts_K) | (spans_K2[:, 1] > ends_K)))
            if len(outside):
                rule = "must lie in the part that the facet belongs to"
                raise InvalidInputError(rule, path=(*spans_path, int(outside[0])))
        sizes_T = np.repeat([searched.num_chars + searched.num_beside for searched in parts], counts_P)
        wrong = np.flatnonzero((spans_K2[:, 0] < 0) | (spans_K2[:, 1] < spans_K2[:, 0]) | (spans_K2[:, 1] > sizes_T))
        if len(wrong):
            (start, end), size = spans_K2[wrong[0]].tolist(), sizes_T[wrong[0]]
            rule = f"must have 0 <= start <= end <= {size}, characters of text and fields, got {start} to {end}"
            raise InvalidInputError(rule, path=(*spans_path, int(wrong[0])))
    stats = document.token_stats
    if stats is not None and not 0 <= stats.num_tokens <= stats.num_tokens_in_text:
        rule = f"must be 0 to num_tokens_in_text, got {stats.num_tokens} of {stats.num_tokens_in_text}"
        raise InvalidInputError(rule, path=(*path, "token_stats", "num_tokens"))


def normalize(facets: Doubles) -> tuple[Doubles, Doubles]:
    """Splits vectors along the last axis into unit vectors and norms; zero stays zero.

    A vector with NaN or infinity gets a norm that is not finite.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        norms = np.linalg.norm(facets, axis=-1, keepdims=True)
        return facets / np.where(norms > 0, norms, 1.0), np.squeeze(norms, axis=-1)


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
