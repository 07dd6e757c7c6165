"""Records to messages and back, by descriptor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

import numpy as np
import pytest
from facets_proto.codec import from_message, message_of, to_message
from facets_proto.v1 import common_pb2, documents_pb2, relations_pb2, results_pb2, texts_pb2
from facets_proto.values import WireError, array_from_message, payload_from_message
from numpy.testing import assert_array_equal
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Span:
    start: int
    end: int
    field: str = ""
    text: str = ""
    problem: str = ""
    columns: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Match:
    first_facet: int
    second_facet: int
    cosine: float
    contribution: float
    first_words: tuple[tuple[str, float], ...] = ()
    second_words: tuple[tuple[str, float], ...] = ()
    second_span: Span | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    id: str = "a"
    score: float = 0.5
    text: str = "words"
    payload: Mapping[str, Any] | None
    evidence: tuple[Match, ...] = (Match(0, 1, 0.5, 0.25, (("cat", 0.5),), (), Span(1, 2)), Match(1, 1, 0.25, 0.75))
    revision: int = 3
    facets_score: float = 0.25
    lexical_score: float = 2.0
    matched_words: tuple[str, ...] = ("cat",)
    answer: Span | None = None
    confidence: float | None = None
    signals: Mapping[str, float] = field(default_factory=dict)  # not in the message
    part: None = None
    part_number: int = 0
    num_parts: int = 1
    answer_confidence: float | None = None

    @property
    def matched_spans(self) -> tuple[tuple[int, int], ...]:
        return ((1, 2), (3, 4))


HIT = Hit(payload={"year": 1990, "tags": ["x", None, {"deep": [True, 1.5]}], "none": None})


def test_a_record_survives_the_round_trip() -> None:
    message = to_message(HIT, results_pb2.SearchHit)
    assert [(span.start, span.end) for span in message.matched_spans] == [(1, 2), (3, 4)]
    assert from_message(results_pb2.SearchHit.FromString(message.SerializeToString()), Hit) == HIT


def test_presence_is_kept() -> None:
    absent = to_message(Hit(payload=None), results_pb2.SearchHit)
    assert not any(absent.HasField(name) for name in ("confidence", "answer", "payload"))
    zero = Hit(confidence=0.0, answer=Span(0, 0), payload={})
    present = to_message(zero, results_pb2.SearchHit)
    assert all(present.HasField(name) for name in ("confidence", "answer", "payload"))
    assert from_message(present, Hit) == zero


def test_values_by_name_replace_those_of_the_record() -> None:
    message = to_message(HIT, results_pb2.SearchHit, text="", payload=None, answer=Span(2, 3))
    assert (message.text, message.HasField("payload"), message.answer.end) == ("", False, 3)
    read = from_message(message, Hit, signals={"a": 1.0}, text="mine")
    assert (read.signals, read.text) == ({"a": 1.0}, "mine")
    assert [hit.id for hit in message_of(results_pb2.SearchResult, hits=[HIT, message]).hits] == ["a", "a"]


def test_missing_fields_are_type_errors() -> None:
    with pytest.raises(TypeError, match="Span has no word, fields of"):
        to_message(Span(1, 2), common_pb2.NearestWord, cosine=1.0)
    with pytest.raises(TypeError, match="has no start, a field of Span"):
        from_message(common_pb2.NearestWord(), Span)
    with pytest.raises(TypeError, match="must be a sequence"):
        message_of(texts_pb2.EmbedRequest, texts="cat")


class Kind(Enum):
    NONE = ""
    PLACE = "a place"


@dataclass(frozen=True, slots=True)
class Mention:
    text: str
    start: int
    end: int
    type: Kind


@dataclass(frozen=True, slots=True)
class NamedMention:
    text: str
    start: int
    end: int
    type: str


@dataclass(frozen=True, slots=True)
class Ranked:
    mode: Literal["hybrid", "facets"] = "hybrid"


def test_enums_are_converted_by_name() -> None:
    unknown = relations_pb2.EntityMention.FromString(b"\x20\x4d")
    for kind, number in ((Kind.PLACE, 3), (Kind.NONE, 0)):
        message = to_message(Mention("a", 0, 1, kind), relations_pb2.EntityMention)
        assert (message.type, from_message(message, Mention).type) == (number, kind)
    place = to_message(NamedMention("a", 0, 1, "place"), relations_pb2.EntityMention)
    assert (place.type, from_message(place, NamedMention).type) == (3, "place")
    assert from_message(unknown, NamedMention).type == ""  # a value of a newer release
    with pytest.raises(WireError, match="type must be a known value, got number 77"):
        from_message(unknown, Mention)
    with pytest.raises(ValueError, match="must be one of person"):
        to_message(NamedMention("a", 0, 1, "spoon"), relations_pb2.EntityMention)
    assert from_message(documents_pb2.SearchRequest(), Ranked) == Ranked("hybrid")
    assert from_message(documents_pb2.SearchRequest(mode="SEARCH_MODE_FACETS"), Ranked) == Ranked("facets")
    with pytest.raises(WireError) as caught:
        from_message(documents_pb2.SearchRequest(mode="SEARCH_MODE_LEXICAL"), Ranked)
    assert caught.value.path == ("mode",)


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    facet_embeddings: NDArray[np.floating] | None
    facet_spans: NDArray[np.integer] | None = None


@pytest.mark.parametrize(
    ("dtype", "expected"), [(np.float32, np.float32), (np.float16, np.float16), (np.float64, np.float32)]
)
def test_arrays_keep_shape_type_and_numbers(dtype: type, expected: type) -> None:
    array = np.arange(6, dtype=dtype).reshape(2, 3)
    message = message_of(documents_pb2.Document, facet_embeddings=array, facet_spans=np.array([[0, 2], [2, 5]]))
    read = from_message(message, Stored)
    assert read.facet_embeddings is not None and read.facet_embeddings.dtype == expected
    read.facet_embeddings[0, 0] = 7  # is writable
    assert_array_equal(read.facet_embeddings[1], array[1])
    assert_array_equal(read.facet_spans, [[0, 2], [2, 5]])
    unset = from_message(documents_pb2.Document(), Stored)
    assert (unset.facet_embeddings, unset.facet_spans) == (None, None)
    large = message_of(documents_pb2.Document, facet_embeddings=np.array([1e300, -1e300]))
    assert np.isfinite(array_from_message(large.facet_embeddings)).all()


@pytest.mark.parametrize(
    ("message", "field_name"),
    [
        ({"shape": [1, 2], "dtype": 7, "data": b"x" * 8}, "dtype"),
        ({"shape": [1, 2], "data": b"x" * 9}, "data"),
        ({"shape": [2**31, 2**31], "data": b"x"}, "data"),
    ],
)
def test_invalid_arrays_name_the_field(message: dict[str, Any], field_name: str) -> None:
    with pytest.raises(WireError) as caught:
        array_from_message(common_pb2.FacetArray(**message))
    assert caught.value.path == (field_name,)


def test_payloads_keep_whole_numbers_and_reject_infinity() -> None:
    payload = {"a": 2**53, "b": 1.5, "c": [1, [None, {"d": False}]], "e": {}, "f": []}
    read = payload_from_message(message_of(documents_pb2.Document, payload=payload).payload)
    assert read == payload and isinstance(read["a"], int)
    broken = message_of(documents_pb2.Document, payload={"a": [{"b": float("inf")}]})
    with pytest.raises(WireError) as caught:
        payload_from_message(broken.payload)
    assert caught.value.path == ("a", 0, "b")


@dataclass(frozen=True, slots=True)
class Queries:
    queries: Sequence[str | NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Documents:
    documents: tuple[str | tuple[str, ...], ...]


def test_unions_are_messages_with_one_oneof() -> None:
    array = np.ones((2, 3), np.float32)
    text, facets = from_message(message_of(documents_pb2.SearchRequest, queries=["words", array]), Queries).queries
    assert text == "words"
    assert_array_equal(facets, array)
    with pytest.raises(WireError, match=r"queries\.0 has no text and no facet_embeddings"):
        from_message(documents_pb2.SearchRequest(queries=[{}]), Queries)
    with pytest.raises(WireError) as caught:
        invalid = documents_pb2.SearchQuery(facet_embeddings={"shape": [3], "data": b""})
        from_message(documents_pb2.SearchRequest(queries=[{"text": "a"}, invalid]), Queries)
    assert caught.value.path == ("queries", 1, "facet_embeddings", "data")
    request = texts_pb2.SummarizeRequest(documents=[{"text": "one"}, {"sentences": {"sentences": ["a", "b"]}}])
    assert from_message(request, Documents).documents == ("one", ("a", "b"))
