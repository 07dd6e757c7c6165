"""Facets of titles and other fields: what the model reads, where facets stand, and which field is shown."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from facets.documents import CollectionEngine, Document, EncodedText, SearchRequest, TargetModel
from facets.documents.fields import SearchedText, field_texts
from facets.documents.types import DocumentPart, SearchHit

TITLE, BODY = "Crane accident at Lyon", "It happened on the fourth of May. Nobody was hurt."
SAID = SearchedText(BODY, field_texts({"title": TITLE, "tags": ["port", "harbour"]}, {"title": 2.0, "tags": 1.0}))


def place_of(part: str) -> tuple[int, int]:
    """Where a part stands in what the model reads."""
    start = SAID.read.index(part)
    return start, start + len(part)


def kept(*spans: tuple[int, int], said: SearchedText = SAID) -> list[list[int]]:
    return said.kept_spans(np.array(spans)).tolist()


def test_model_reads_fields_before_the_text() -> None:
    assert SAID.read == f"{TITLE}\n\nport\nharbour\n\n{BODY}"
    assert SearchedText(BODY, field_texts({}, {"title": 2.0})).read == BODY


@pytest.mark.parametrize(
    ("part", "field"), [("accident", "title"), ("harbour", "tags"), ("fourth of May", ""), (TITLE, "title"), (BODY, "")]
)
def test_span_of_what_was_read_is_found_again(part: str, field: str) -> None:
    span = SAID.span(*kept(place_of(part))[0])
    assert span is not None
    assert (span.text, span.field) == (part, field)


def test_span_over_a_border_lies_where_most_of_it_is() -> None:
    over = SAID.span(*kept((place_of("harbour")[1] - 2, place_of("It happened")[1]))[0])
    assert over is not None
    assert (over.text, over.field) == ("It happened", "")


@given(
    st.text(alphabet="ab \n", max_size=8),
    st.lists(st.text(alphabet="xyz", min_size=1, max_size=5), max_size=3),
    st.data(),
)
def test_every_span_keeps_the_letters_it_had(text: str, values: list[str], data: st.DataObject) -> None:
    said = SearchedText(
        text, field_texts({f"f{n}": value for n, value in enumerate(values)}, {f"f{n}": 1.0 for n in range(3)})
    )
    start = data.draw(st.integers(0, len(said.read)))
    end = data.draw(st.integers(start, len(said.read)))
    first, last = kept((start, end), said=said)[0]
    assert 0 <= first <= last <= said.num_chars
    span = said.span(first, last)
    if span is not None:
        assert span.text in said.read[start:end], "a part of what the model attended to"


def document(id: str, payload: dict[str, object], text: str, facets: NDArray[np.floating], spans: object) -> Document:
    said = SearchedText(text, field_texts(payload, {"title": 2.0}))  # type: ignore[arg-type]  # JSON
    places = [(said.read.index(part), said.read.index(part) + len(part)) for part in spans]  # type: ignore[attr-defined]
    return Document(
        id=id,
        text=text,
        payload=payload,  # type: ignore[arg-type]
        facet_embeddings=facets,
        facet_spans=said.kept_spans(np.array(places)),
    )


def hit_of(engine: CollectionEngine, facet: list[float], words: str | None, first: Document) -> SearchHit:
    others = [Document(id=f"o{n}", text=f"Other text {n}.", facet_embeddings=np.full((2, 4), 0.5)) for n in range(5)]
    engine.create_collection("docs", model="m", model_revision="1", num_facets=2, dim=4)
    engine.upsert("docs", [first, *others])
    query = np.array([[facet]], dtype=np.float32)
    request = SearchRequest(facets=query, texts=[words] if words else None, top_k=1)
    return engine.search("docs", request).hits[0][0]


@pytest.fixture
def empty_engine(open_engine: object) -> CollectionEngine:
    return open_engine()  # type: ignore[operator, no-any-return]


def crane(second: list[float]) -> Document:
    """The title's facet is the first axis."""
    facets = np.array([[1.0, 0, 0, 0], second])
    return document("crane", {"title": TITLE}, BODY, facets, [TITLE, "It happened on the fourth of May."])


@pytest.mark.parametrize(
    ("second", "words", "field", "answer"),
    [
        ([0.1, 1.0, 0, 0], None, "title", TITLE),
        ([0.9, 0.3, 0, 0], None, "", "It happened on the fourth of May."),  # nearly as close
        ([0.1, 1.0, 0, 0], "crane accident hurt", "title", TITLE),
    ],
)
def test_text_goes_before_the_title_if_it_says_nearly_as_much(
    empty_engine: CollectionEngine, second: list[float], words: str | None, field: str, answer: str
) -> None:
    hit = hit_of(empty_engine, [1.0, 0, 0, 0], words, crane(second))
    assert hit.answer is not None and (hit.answer.field, hit.answer.text) == (field, answer)
    assert hit.evidence[0].second_span is not None and hit.evidence[0].second_span.field == "title"
    assert hit.matched_words == tuple((words or "").split())


def test_reindex_encodes_fields_and_may_change_them(empty_engine: CollectionEngine) -> None:
    empty_engine.create_collection("docs", model="m", model_revision="1", num_facets=2, dim=4, search_fields={})
    empty_engine.upsert("docs", [Document(id="a", text=BODY, payload={"title": TITLE}, facet_embeddings=np.eye(2, 4))])
    read: list[str] = []

    def encode(texts: object) -> list[EncodedText]:
        read.extend(texts)  # type: ignore[arg-type]
        return [EncodedText(np.eye(2, 4), np.array([[0, 5], [24, 26]]))]

    target = TargetModel(
        model="m", model_revision="1", num_facets=2, dim=4, encode=encode, search_fields={"title": 3.0}
    )
    assert empty_engine.reindex("docs", target).done
    assert read == [f"{TITLE}\n\n{BODY}"]
    assert empty_engine.get_collection("docs").search_fields == {"title": 3.0}
    request = SearchRequest(facets=np.eye(1, 4, dtype=np.float32)[None], texts=["lyon"], top_k=1)
    hit = empty_engine.search("docs", request).hits[0][0]
    assert hit.matched_words == ("lyon",)
    assert hit.answer is not None
    assert hit.answer.field == "title"
    again = TargetModel(model="m", model_revision="1", num_facets=2, dim=4, encode=encode)
    assert empty_engine.reindex("docs", again).done
    assert len(read) == 1, "without other fields there is nothing to do"


LONG = "# Cranes\nThe boom fell on the quay. " + "x" * 20 + "\n# Boats\nThe ferry sank."
PARTS = (
    DocumentPart(start=0, end=LONG.index("# Boats"), headings=("Cranes",)),
    DocumentPart(start=LONG.index("# Boats"), end=len(LONG), headings=("Harbour", "Boats"), page=2),
)


def of_parts(engine: CollectionEngine, title: str) -> Document:
    said = engine.record("docs").searched(LONG, {"title": title}, PARTS)
    read = [one.read for one in said]
    wanted = [("Ports", "The boom fell"), ("Harbour", "ferry")]
    spans = [
        one.in_document(one.kept_spans(np.array([(text.index(part), text.index(part) + len(part)) for part in parts])))
        for one, text, parts in zip(said, read, wanted, strict=True)
    ]
    return Document(
        id="long",
        text=LONG,
        payload={"title": title},
        facet_embeddings=np.concatenate([np.eye(2, 4), np.eye(4)[2:]]),
        facet_spans=np.concatenate(spans),
        parts=PARTS,
        part_facets=(2, 2),
    )


@pytest.mark.parametrize(
    ("axis", "text", "field"),
    [(0, "Ports", "title"), (1, "The boom fell", ""), (2, "Harbour", "headings"), (3, "ferry", "")],
)
def test_every_part_has_the_title_and_its_headings(
    empty_engine: CollectionEngine, axis: int, text: str, field: str
) -> None:
    empty_engine.create_collection("docs", model="m", model_revision="1", num_facets=2, dim=4)
    empty_engine.upsert("docs", [of_parts(empty_engine, "Ports of the north")])
    request = SearchRequest(facets=np.eye(4, dtype=np.float32)[None, axis : axis + 1], texts=["ports"], top_k=1)
    hit = empty_engine.search("docs", request).hits[0][0]
    span = hit.evidence[0].second_span
    assert span is not None
    assert (span.text, span.field) == (text, field)
    assert hit.part_number == 1 + axis // 2
    assert hit.matched_words == ("ports",), "the title belongs to both"
    if not field:
        assert hit.text[span.start : span.end] == text
    (again,) = empty_engine.get("docs", ["long"], include_facets=True).documents
    assert again.facet_spans is not None
    assert again.facet_spans.tolist() == of_parts(empty_engine, "Ports of the north").facet_spans.tolist()  # type: ignore[union-attr]


def test_long_field_belongs_to_the_first_part_alone(empty_engine: CollectionEngine) -> None:
    empty_engine.create_collection("docs", model="m", model_revision="1", num_facets=2, dim=4)
    first, second = empty_engine.record("docs").searched(LONG, {"title": "Ports " * 60}, PARTS)
    assert [one.name for one in first.fields] == ["title"]
    assert [(one.name, one.text) for one in second.fields] == [("headings", "Harbour")]
