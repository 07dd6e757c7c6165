"""Where long texts are cut: at sections, pages and between sentences, in linear time whatever they hold."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from facets.documents import CollectionEngine, Document, DocumentPart
from facets.documents.fields import searched_part
from facets.documents.parts import LONGEST_WHOLE_CHARS, check_sections, split_text, with_parts
from facets.documents.types import TokenStats
from facets.errors import InvalidInputError
from facets.language.sentences import sentences_of

PROSE = "The crane fell on Monday. Nobody was hurt, said Dr. Who. It was 5 p.m. then. "


def assert_whole(text: str, parts: tuple[DocumentPart, ...]) -> None:
    """They are all of the text, and none is blank."""
    assert "".join(text[part.start : part.end] for part in parts) == (text if parts else "")
    assert all(text[part.start : part.end].strip() for part in parts)


def test_a_short_text_stays_one_part() -> None:
    text = ("# Cranes\n\n" + PROSE * 50)[:LONGEST_WHOLE_CHARS]
    sections = [DocumentPart(start=start, end=0, headings=(str(start),)) for start in (0, 900)]
    assert split_text(text) == split_text(text, sections) == split_text("") == ()


def test_parts_begin_with_sentences_and_overlap_by_nothing() -> None:
    text = PROSE * 400
    parts = split_text(text)
    assert_whole(text, parts)
    assert {part.start for part in parts} <= {sentence.start for sentence in sentences_of(text)}
    sizes = [part.end - part.start for part in parts]
    assert min(sizes) > 1200 and max(sizes) < 2800


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("# Cranes\n\n", "## Bees\n\n"),
        ("Cranes\n======\n\n", "Bees\n------\n\n"),
        ("Chapter 1: Cranes\n\n", "Chapter 2: Bees\n\n"),
        ("1 Cranes\n\n", "1.1 Bees\n\n"),
        ("CRANES\n\n", "BEES\n\n"),
    ],
)
def test_headings_of_all_kinds_are_seen(first: str, second: str) -> None:
    text = first + PROSE * 20 + "\n\n" + second + PROSE * 20
    parts = split_text(text)
    assert_whole(text, parts)
    assert len(parts) == 2 and text[parts[1].start :].startswith(second)
    assert (
        "Cranes".casefold() in parts[0].headings[0].casefold() and "Bees".casefold() in parts[1].headings[-1].casefold()
    )
    assert len(parts[1].headings) == (2 if first[0] == "#" or first.startswith(("Cranes\n", "1 ")) else 1)


def test_comments_in_code_and_items_of_lists_are_no_headings() -> None:
    code = "Look:\n\n```\n# not a heading\n\n# nor this\n```\n\n"
    items = "\n\n1. Buy milk and bread for all of us.\n\n2. Then go home, and rest.\n\n"
    assert {part.headings for part in split_text(code + PROSE * 30 + items + PROSE * 30)} == {()}


def test_pages_are_counted_and_preferred() -> None:
    text = "\f".join([PROSE * 25] * 6)
    parts = split_text(text)
    assert_whole(text, parts)
    assert [part.page for part in parts] == [1, 2, 3, 4, 5, 6]
    assert all(part.page == 0 for part in split_text(PROSE * 100))


def test_sections_of_the_caller_go_before_what_the_text_shows() -> None:
    text = "# Not asked\n\n" + PROSE * 60
    at = text.index("Nobody", 2500)
    given_ = (
        DocumentPart(start=0, end=0, headings=("Book", "One"), page=11),
        DocumentPart(start=at, end=0, headings=("Book", "Two"), page=12),
    )
    parts = split_text(text, check_sections(text, given_, ("parts",)))
    assert_whole(text, parts)
    assert [(part.headings, part.page) for part in parts] == [(("Book", "One"), 11), (("Book", "Two"), 12)]
    assert parts[1].start == at


def test_short_sections_go_with_the_next_one() -> None:
    text = "# Cranes\n\n## Old ones\n\n" + PROSE * 30 + "\n\n## New ones\n\nNone.\n\n# Bees\n\n" + PROSE * 30
    parts = split_text(text)
    assert_whole(text, parts)
    assert [part.headings for part in parts] == [("Cranes", "Old ones"), ("Bees",)]


@pytest.mark.parametrize("starts", [[5, 3], [0, 10**9]])
def test_sections_out_of_order_or_of_the_text_are_refused(starts: list[int]) -> None:
    with pytest.raises(InvalidInputError, match="must be in order and within"):
        check_sections(PROSE * 50, [DocumentPart(start=start, end=0) for start in starts], ("parts",))


def test_headings_are_cut_to_what_counts() -> None:
    section = DocumentPart(start=0, end=0, headings=("  a\n b ", "", *("x" * 500 for _ in range(500))))
    (checked,) = check_sections(PROSE, [section], ("parts",))
    assert checked.headings == ("a b", *["x" * 200] * 6)


@settings(max_examples=60)
@given(
    pieces=st.lists(
        st.tuples(
            st.sampled_from(
                ["# A b\n\n", "\f", "\n\n", PROSE, "x" * 70, " ", "1. One Two. ", "***\n", "Tom\n---\n", "```\n"]
            ),
            st.integers(1, 60),
        ),
        max_size=12,
    )
)
def test_any_text_is_cut_into_all_of_it(pieces: list[tuple[str, int]]) -> None:
    text = "".join(piece * count for piece, count in pieces)
    parts = split_text(text)
    assert_whole(text, parts)
    assert len(parts) != 1


@pytest.mark.parametrize(
    "text",
    ["word " * 30_000, "x" * 150_000, "".join(f"# {n}\n\n" for n in range(5_000)), "a\f" * 5_000, ". " * 30_000],
    ids=["no stop", "no space", "headings", "empty pages", "stops"],
)
def test_endless_texts_take_linear_time(text: str) -> None:
    start = time.process_time()
    parts = split_text(text)
    assert time.process_time() - start < 2
    assert_whole(text, parts)
    assert all(part.end - part.start <= LONGEST_WHOLE_CHARS for part in parts)


def test_facets_of_a_whole_text_go_to_the_parts_that_their_spans_begin_in() -> None:
    text = PROSE * 100
    parts = split_text(text)
    starts = np.array([0, parts[1].start - 3, parts[2].start, parts[2].start + 9, 0])
    document = Document(
        id="a",
        text=text,
        facet_embeddings=np.arange(10.0).reshape(5, 2),
        facet_spans=np.stack([starts, [5, parts[1].start + 9, parts[2].start + 4, parts[2].start + 12, 0]], axis=1),
    )
    made = with_parts(document, parts, num_facets=2)
    assert list(made.part_facets) == [2] * len(parts)
    assert made.facet_embeddings[:6].tolist() == [[0, 1], [2, 3], [0, 0], [0, 0], [4, 5], [6, 7]]
    assert made.facet_spans is not None and made.facet_spans[1].tolist() == [parts[1].start - 3, parts[1].start]


def test_a_table_cut_into_parts_keeps_its_header_row() -> None:
    rows = [f"{name}{number}\t{number * 7}\t{number % 5}" for number in range(100) for name in ("North ", "South ")]
    text = "Stations of the line\n\nStation\tParking\tLifts\n" + "\n".join(rows) + "\n\nAll times are local."
    parts = split_text(text)
    assert len(parts) > 1 and all(text[part.start - 1] == "\n" for part in parts[1:])
    assert {part.headings[-1] for part in parts[1:]} == {"| Station | Parking | Lifts |"}
    for part in parts[1:]:
        searched = searched_part(text[part.start : part.end], (), part)
        first, parking, _ = searched.text.split("\t", 2)
        assert searched.said.startswith(f"{first}: Parking {parking}, Lifts ")
    assert searched.said.endswith("South 99: Parking 693, Lifts 4\nAll times are local.")


TEXT = "Na\u00efve caf\u00e9s sell tea. Pumps fail."


SPANS = np.array([[0, 21], [22, 33]])


def document(id: str = "a", **changes: object) -> Document:
    values: dict[str, object] = {
        "facet_embeddings": np.eye(2, 32),
        "facet_spans": SPANS,
        "token_stats": TokenStats(7, 9),
    }
    return Document(id=id, text=TEXT, **{**values, **changes})  # type: ignore[arg-type]  # any field


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"facet_spans": np.array([[0, 21]])}, r"documents\[1\].facet_spans"),
        ({"facet_spans": np.array([[0, 21], [22, 34]])}, r"documents\[1\].facet_spans\[1\]"),
        ({"facet_spans": np.array([[-1, 21], [0, 0]])}, r"documents\[1\].facet_spans\[0\]"),
        ({"facet_spans": np.array([[5, 4], [0, 0]])}, r"documents\[1\].facet_spans\[0\]"),
        ({"facet_spans": SPANS.astype(float)}, r"documents\[1\].facet_spans"),
        ({"token_stats": TokenStats(10, 9)}, r"documents\[1\].token_stats.num_tokens"),
        ({"token_stats": TokenStats(-1, 9)}, r"documents\[1\].token_stats.num_tokens"),
    ],
)
def test_impossible_spans_and_counts_are_refused(
    engine: CollectionEngine, changes: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidInputError, match=field):
        engine.upsert("docs", [document("fine"), document("bad", **changes)])
    assert engine.count("docs").num_documents == 0
