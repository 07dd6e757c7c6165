"""Records as messages and back, by descriptor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum, StrEnum
from typing import Any, Literal

import numpy as np
import pytest
from facets_proto.codec import from_message, message_of, to_message
from facets_proto.v1 import common_pb2, documents_pb2, models_pb2, papers_pb2, relations_pb2, results_pb2, texts_pb2
from facets_proto.values import WireError, array_from_message, payload_from_message
from numpy.testing import assert_array_equal
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Span:
    start: int
    end: int
    field: str = ""
    text: str = ""
    words: tuple[tuple[int, int], ...] = ()  # not in the message


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
    id: str
    score: float
    text: str
    payload: Mapping[str, Any] | None
    evidence: tuple[Match, ...]
    revision: int
    facets_score: float
    lexical_score: float
    matched_words: tuple[str, ...]
    answer: Span | None
    confidence: float | None
    signals: Mapping[str, float] = field(default_factory=dict)
    part: None = None
    part_number: int = 0
    num_parts: int = 1

    @property
    def matched_spans(self) -> tuple[tuple[int, int], ...]:
        return ((1, 2), (3, 4))


def hit(**changes: Any) -> Hit:
    values: dict[str, Any] = {
        "id": "a",
        "score": 0.5,
        "text": "words",
        "payload": {"year": 1990, "tags": ["x", None, {"deep": [True, 1.5]}], "none": None},
        "evidence": (Match(0, 1, 0.5, 0.25, (("cat", 0.5),), (), Span(1, 2)), Match(1, 1, 0.25, 0.75)),
        "revision": 3,
        "facets_score": 0.25,
        "lexical_score": 2.0,
        "matched_words": ("cat",),
        "answer": None,
        "confidence": None,
    }
    return Hit(**(values | changes))


def test_a_record_comes_back_as_it_was() -> None:
    message = to_message(hit(), results_pb2.SearchHit)
    assert [(span.start, span.end) for span in message.matched_spans] == [(1, 2), (3, 4)]
    assert from_message(message, Hit) == hit()
    message = results_pb2.SearchHit.FromString(message.SerializeToString())
    assert from_message(message, Hit) == hit()


def test_presence_is_kept() -> None:
    absent = to_message(hit(payload=None), results_pb2.SearchHit)
    assert not any(absent.HasField(name) for name in ("confidence", "answer", "payload"))
    given = to_message(hit(confidence=0.0, answer=Span(0, 0), payload={}), results_pb2.SearchHit)
    assert all(given.HasField(name) for name in ("confidence", "answer", "payload"))
    back = from_message(given, Hit)
    assert (back.confidence, back.answer, back.payload) == (0.0, Span(0, 0), {})


def test_fields_are_given_by_name_beside_the_record_or_in_its_place() -> None:
    message = to_message(hit(), results_pb2.SearchHit, text="", payload=None, answer=Span(2, 3))
    assert (message.text, message.HasField("payload"), message.answer.end) == ("", False, 3)
    assert from_message(message, Hit, signals={"a": 1.0}, text="of mine").signals == {"a": 1.0}
    made = message_of(results_pb2.SearchResult, hits=[hit(), message])
    assert [found.id for found in made.hits] == ["a", "a"]


def test_a_record_without_a_field_of_the_message_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError, match="Span has no word, fields of"):
        to_message(Span(1, 2), common_pb2.NearestWord, cosine=1.0)
    with pytest.raises(TypeError, match="has no start, a field of Span"):
        from_message(common_pb2.NearestWord(), Span)


@dataclass(frozen=True, slots=True)
class Paper:
    title: str
    year: int | None = None
    abstract: str = "none"


def test_what_is_not_set_is_none_or_the_default_of_the_record() -> None:
    assert from_message(papers_pb2.Paper(title="t"), Paper).year is None
    assert from_message(papers_pb2.Paper(title="t", year=0), Paper).year == 0
    assert from_message(papers_pb2.Paper(title="t"), Paper).abstract == ""  # has no presence

    @dataclass(frozen=True)
    class Options:
        top_k: int = 10
        facet_weight: float | None = None
        example_weight: float = 0.25

    assert from_message(papers_pb2.PaperOptions(), Options) == Options()
    assert from_message(papers_pb2.PaperOptions(top_k=3, facet_weight=0), Options) == Options(3, 0.0)


class Kind(Enum):
    NONE = ""
    PERSON = "person"
    PLACE = "a place"


class Label(StrEnum):
    ENTAILS = "entails"
    NEUTRAL = "neutral"


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
class Decision:
    label: Label


@dataclass(frozen=True, slots=True)
class Wanted:
    mode: Literal["hybrid", "facets"] = "hybrid"


def test_enums_are_converted_by_name() -> None:
    for kind, number in ((Kind.PLACE, 3), (Kind.NONE, 0)):
        message = to_message(Mention("a", 0, 1, kind), relations_pb2.EntityMention)
        assert message.type == number
        assert from_message(message, Mention).type is kind
    place = to_message(NamedMention("a", 0, 1, "place"), relations_pb2.EntityMention)
    assert (place.type, from_message(place, NamedMention).type) == (3, "place")
    assert (
        from_message(relations_pb2.EntityMention.FromString(b"\x20\x4d"), NamedMention).type == ""
    )  # of a later release
    with pytest.raises(WireError, match="type must be a known value, got number 77"):
        from_message(relations_pb2.EntityMention.FromString(b"\x20\x4d"), Mention)
    with pytest.raises(ValueError, match="must be one of person"):
        to_message(NamedMention("a", 0, 1, "spoon"), relations_pb2.EntityMention)


def test_an_unspecified_value_is_the_default_or_refused() -> None:
    assert from_message(documents_pb2.SearchRequest(mode="SEARCH_MODE_UNSPECIFIED"), Wanted) == Wanted("hybrid")
    assert from_message(documents_pb2.SearchRequest(mode="SEARCH_MODE_FACETS"), Wanted) == Wanted("facets")
    with pytest.raises(WireError) as caught:
        from_message(documents_pb2.SearchRequest(mode="SEARCH_MODE_LEXICAL"), Wanted)  # the record does not have it
    assert caught.value.path == ("mode",)
    with pytest.raises(WireError, match="label"):
        from_message(relations_pb2.Entailment(), Decision)
    assert from_message(relations_pb2.Entailment(label="ENTAILMENT_LABEL_NEUTRAL"), Decision).label is Label.NEUTRAL


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    facet_embeddings: NDArray[np.floating] | None
    facet_spans: NDArray[np.integer] | None = None


def test_arrays_keep_shape_type_and_numbers() -> None:
    for dtype in (np.float32, np.float16, np.float64):
        array = np.arange(6, dtype=dtype).reshape(2, 3)
        message = message_of(documents_pb2.Document, facet_embeddings=array, facet_spans=np.array([[0, 2], [2, 5]]))
        back = from_message(message, Stored)
        assert back.facet_embeddings is not None
        assert back.facet_embeddings.dtype == (np.float16 if dtype is np.float16 else np.float32)
        back.facet_embeddings[0, 0] = 7  # it can be written
        assert_array_equal(back.facet_embeddings[1], array[1])
        assert_array_equal(back.facet_spans, [[0, 2], [2, 5]])
    nothing = from_message(documents_pb2.Document(), Stored)
    assert (nothing.facet_embeddings, nothing.facet_spans) == (None, None)


def test_too_large_numbers_are_cut_at_the_largest() -> None:
    message = message_of(documents_pb2.Document, facet_embeddings=np.array([1e300, -1e300]))
    assert np.isfinite(array_from_message(message.facet_embeddings)).all()


@pytest.mark.parametrize(
    ("message", "field_name"),
    [
        ({"shape": [1, 2], "dtype": 7, "data": b"x" * 8}, "dtype"),
        ({"shape": [2], "data": b"x" * 8}, "shape"),
        ({"shape": [0, 2], "data": b""}, "shape"),
        ({"shape": [1, 2], "data": b"x" * 9}, "data"),
        ({"shape": [2**31, 2**31], "data": b"x"}, "data"),
        ({"shape": [1, 2], "data": np.array([1, np.nan], np.float32).tobytes()}, "data"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_where_they_do_not(message: dict[str, Any], field_name: str) -> None:
    with pytest.raises(WireError) as caught:
        array_from_message(common_pb2.FacetArray(**message), num_axes=2)
    assert caught.value.path == (field_name,)


def test_payloads_come_back_with_whole_numbers() -> None:
    payload = {"a": 2**53, "b": 1.5, "c": [1, [None, {"d": False}]], "e": {}, "f": []}
    message = message_of(documents_pb2.Document, payload=payload)
    assert payload_from_message(message.payload) == payload
    assert isinstance(payload_from_message(message.payload)["a"], int)
    broken = message_of(documents_pb2.Document, payload={"a": [{"b": float("inf")}]})
    with pytest.raises(WireError) as caught:
        payload_from_message(broken.payload)
    assert caught.value.path == ("a", 0, "b")


@dataclass(frozen=True, slots=True)
class Query:
    queries: Sequence[str | NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Documents:
    documents: tuple[str | tuple[str, ...], ...]


def test_a_union_is_a_message_of_one_oneof() -> None:
    array = np.ones((2, 3), np.float32)
    message = to_message(Query(["words", array]), documents_pb2.SearchRequest, **unset(documents_pb2.SearchRequest))
    text, facets = from_message(message, Query).queries
    assert text == "words"
    assert_array_equal(facets, array)
    with pytest.raises(WireError, match=r"queries\.0 has no text and no facet_embeddings"):
        from_message(documents_pb2.SearchRequest(queries=[{}]), Query)
    with pytest.raises(WireError) as caught:
        bad = documents_pb2.SearchQuery(facet_embeddings={"shape": [3], "data": b""})
        from_message(documents_pb2.SearchRequest(queries=[{"text": "a"}, bad]), Query)
    assert caught.value.path == ("queries", 1, "facet_embeddings", "data")
    given = texts_pb2.SummarizeRequest(documents=[{"text": "one"}, {"sentences": {"sentences": ["a", "b"]}}])
    assert from_message(given, Documents).documents == ("one", ("a", "b"))


def unset(message: Any) -> dict[str, Any]:
    return {name: None for name in message.DESCRIPTOR.fields_by_name if name != "queries"}


@dataclass(frozen=True, slots=True)
class Embeddings:
    facet_spans: tuple[tuple[Span | None, ...], ...]


def test_a_list_in_a_list_is_a_message_of_one_field_and_none_in_it_an_empty_one() -> None:
    message = message_of(texts_pb2.EmbedResponse, facet_spans=(((1, 2), None), ()))
    assert [[(s.start, s.end) for s in entry.spans] for entry in message.facet_spans] == [[(1, 2), (0, 0)], []]
    assert from_message(message, Embeddings).facet_spans == ((Span(1, 2), None), ())

    @dataclass(frozen=True)
    class Options:
        candidates: tuple[str, ...] | None = None

    assert from_message(papers_pb2.PaperOptions(), Options).candidates is None
    assert from_message(papers_pb2.PaperOptions(candidates={}), Options).candidates == ()
    made = message_of(papers_pb2.PaperOptions, candidates=("a", "b"))
    assert from_message(made, Options).candidates == ("a", "b")


@dataclass(frozen=True, slots=True)
class Status:
    start_time: datetime
    request_counts: dict[str, int]
    last_backup_time: datetime | None


def test_times_and_mappings() -> None:
    started = datetime(2026, 1, 2, 3, 4, 5, 600_000, tzinfo=UTC)
    message = message_of(
        models_pb2.GetServerStatusResponse, start_time=started, request_counts={"OK": 3, "INTERNAL": 1}
    )
    assert from_message(message, Status) == Status(started, {"OK": 3, "INTERNAL": 1}, None)


def test_errors_say_where_in_the_message() -> None:
    @dataclass(frozen=True)
    class Text:
        entities: tuple[Mention, ...]

    @dataclass(frozen=True)
    class Texts:
        texts: list[Text]

    mention: list[Any] = [{"type": 1}, {"type": 99}]

    @dataclass(frozen=True)
    class Reply:
        texts: tuple[Text, ...]

    message = relations_pb2.ExtractRelationsResponse(texts=[{}, {"entities": mention}])
    with pytest.raises(WireError) as caught:
        from_message(message, Reply)
    assert caught.value.path == ("texts", 1, "entities", 1, "type")
    assert from_message(relations_pb2.ExtractRelationsResponse(texts=[{}]), Texts).texts == [Text(())]
