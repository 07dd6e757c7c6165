"""Counts the values of a request on the wire, before protobuf makes objects of them.

Two bytes on the wire can become an object of hundreds of bytes. The count follows the message's descriptor and ends at
the first limit that is exceeded, so it costs less than sending the message.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError

from facets.errors import InvalidInputError
from facets.index.config import MAX_FILTER_NODES
from facets_server.runtime.config import MAX_VALUES, LimitsConfig

_UNDECODABLE = "the request cannot be decoded: expected a protobuf message with UTF-8 strings"
_MAX_DEPTH = 100  # protobuf's own limit
_MAX_CONDITIONS = 16
_MAX_PARTS = 10_000  # authors of a paper, entities of a text
_SMALL_BYTES = 8  # a nested message of so few bytes counts as a value for every two: no more fit
_MEMORY_PER_BYTE, _MEMORY_PER_VALUE = 3, 256  # of a request: on the wire, in protobuf and in Python; measured
_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
_UNPACKED = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_MESSAGE)

MessageT = TypeVar("MessageT")


class _Field(NamedTuple):
    name: str
    is_repeated: bool
    limit: int  # of its items in one message
    fields: "dict[int, _Field] | None"  # of a message, by number
    is_packed: bool  # numbers of at least one byte each


def memory_of(num_bytes: int, num_values: int = 0) -> int:
    """Bytes of memory, about, that a request takes while it is answered."""
    return _MEMORY_PER_BYTE * num_bytes + _MEMORY_PER_VALUE * num_values


def _limits(config: LimitsConfig) -> dict[str, int]:
    """The most items of repeated fields, by message and field. All others share the limit of the whole request."""
    texts, ids, queries = config.max_texts_per_request, config.max_documents_per_upsert, config.max_queries_per_search
    pairs, slots, names = config.max_pairs_per_request, config.max_slots_per_request, config.max_gazetteer_names
    return {
        **dict.fromkeys(("EmbedRequest.texts", "ExplainRequest.texts", "SuggestTopicsRequest.texts"), texts),
        **dict.fromkeys(("SuggestTopicsRequest.keep", "SuggestTopicsRequest.avoid"), _MAX_CONDITIONS),
        **dict.fromkeys(("ScoreRequest.pairs", "DetectEntailmentRequest.pairs"), pairs),
        **dict.fromkeys(("SummarizeRequest.documents", "RerankRequest.texts"), texts),
        "SentenceList.sentences": config.max_sentences_per_document,
        **dict.fromkeys(("UpsertRequest.documents", "UpsertStreamBatch.documents"), ids),
        **dict.fromkeys(("GetDocumentsRequest.ids", "DeleteDocumentsRequest.ids"), ids),
        **dict.fromkeys(("SearchRequest.queries", "RankPapersRequest.ids", "FindCandidatesRequest.texts"), queries),
        "FilterList.filters": MAX_FILTER_NODES,
        **dict.fromkeys(("RecommendAuthorsRequest.papers", "RecommendCitationsRequest.papers"), texts),
        **dict.fromkeys(("RecommendBulkRequest.papers", "PaperList.papers", "NewAuthor.papers"), texts),
        **dict.fromkeys(("Paper.authors", "RelationText.entities"), _MAX_PARTS),
        **dict.fromkeys(("AddPapersRequest.papers", "AddAuthorsRequest.authors"), ids),
        **dict.fromkeys(("ExtractRelationsRequest.texts", "FillSlotsRequest.texts"), texts),
        **dict.fromkeys(("ExtractRelationsRequest.gazetteer_names", "FillSlotsRequest.gazetteer_names"), names),
        "FillSlotsRequest.slots": slots,
        "ScoreRelationsRequest.patterns": config.max_patterns_per_request,
    }


class MessageLimits:
    """The limits on the values of requests."""

    def __init__(self, config: LimitsConfig) -> None:
        self._limits = _limits(config)
        self._known: dict[str, dict[int, _Field]] = {}  # fields to look into, by full name of the message

    def num_values(self, decode: Any, data: bytes) -> int:
        """The number of values that ``decode`` would parse; InvalidInputError beyond a limit, or for no message."""
        fields = self._fields_of(decode.__self__.DESCRIPTOR)
        try:
            left = self._walk(data, 0, len(data), fields, MAX_VALUES, 1)
        except IndexError:  # the message ends in the middle of a value
            raise InvalidInputError(_UNDECODABLE) from None
        return MAX_VALUES - left

    def _walk(self, data: bytes, position: int, end: int, fields: Mapping[int, _Field], left: int, depth: int) -> int:
        """Counts the values between two positions; returns how many of ``left`` are left."""
        counts: dict[int, int] = {}
        while position < end:
            tag = data[position]
            position += 1
            if tag > 127:
                tag, position = _varint(data, position - 1)
            left -= 1
            kind, number = tag & 7, tag >> 3
            if kind == _LENGTH:
                size = data[position]
                position += 1
                if size > 127:
                    size, position = _varint(data, position - 1)
                start, position = position, position + size
                if (field := fields.get(number)) is not None and position <= end:
                    name, is_repeated, limit, inner, is_packed = field
                    counts[number] = count = counts.get(number, 0) + 1
                    if count > limit:
                        raise InvalidInputError(f"has at least {count} items, the limit is {limit}", path=name)
                    if is_packed:
                        left -= size
                    elif inner is not None and size <= _SMALL_BYTES:
                        left -= size // 2
                    elif inner is not None:
                        if depth == _MAX_DEPTH:
                            raise InvalidInputError(f"the request is nested deeper than {_MAX_DEPTH} levels, the limit")
                        try:
                            left = self._walk(data, start, position, inner, left, depth + 1)
                        except InvalidInputError as error:
                            if not error.path:
                                raise
                            raise error.at((name, *((count - 1,) if is_repeated else ()), *error.path)) from None
            elif kind == _VARINT:
                while data[position] > 127:
                    position += 1
                position += 1
            elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
                position += 8 if kind == _EIGHT_BYTES else 4
            else:
                raise InvalidInputError(_UNDECODABLE)
            if left < 0:
                raise InvalidInputError(f"the request has more than {MAX_VALUES} values, the limit")
        if position > end:
            raise InvalidInputError(_UNDECODABLE)
        return left

    def _fields_of(self, message: Descriptor) -> dict[int, _Field]:
        """The fields to look into: messages, numbers that may be packed, and lists with a limit of their own."""
        known = self._known.get(message.full_name)
        if known is None:
            known = self._known[message.full_name] = {}  # messages may hold themselves
            for field in message.fields:
                limit = self._limits.get(f"{message.name}.{field.name}")
                inner = None if field.message_type is None else self._fields_of(field.message_type)
                is_packed = field.is_repeated and field.type not in _UNPACKED
                if limit is not None or inner is not None or is_packed:
                    known[field.number] = _Field(field.name, field.is_repeated, limit or MAX_VALUES, inner, is_packed)
        return known


def parsed(decode: Callable[[bytes], MessageT], data: bytes) -> MessageT:
    """Parses bytes whose values were counted; raises InvalidInputError, where gRPC itself would answer INTERNAL."""
    try:
        return decode(data)
    except DecodeError as error:
        raise InvalidInputError(_UNDECODABLE) from error


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while (byte := data[position]) > 127:
        value |= (byte & 127) << shift
        shift += 7
        position += 1
    return value | byte << shift, position + 1
