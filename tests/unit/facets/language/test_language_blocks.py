"""What blocks and sentences plain texts of forty kinds have; where a newline is a space, and where a border."""

import re
import textwrap
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facets.language.blocks import blocks
from facets.language.sentences import sentences_of
from facets.language.tokenizer import Tokenizer

PROSE = (
    "The large crane on pier seven fell over on the fourth of March, when a cable broke in heavy rain and the operator "
    "jumped into the water. Repairs will cost about 80,000 crowns. Dr. Lee of the harbour board said that the next one "
    "would be bought in Rotterdam, where such cranes are made."
)


CASES = {
    name: rest.split("\n%%%\n")
    for name, _, rest in (
        case.partition("\n")
        for case in (Path(__file__).resolve().parents[3] / "answers" / "reading_cases.txt")
        .read_text()
        .split("%%% ")[1:]
    )
}


def runs(text: str) -> list[str]:
    return [text[block.start : block.end] for block in blocks(text)]


def told(text: str) -> list[str]:
    """A line a block: kind with level and role, and its sentences as they are read."""
    sentences = sentences_of(text)
    return [
        f"{block.kind[0]}{block.level or ''}{f'({block.role})' if block.role else ''} "
        + " / ".join(one.said for one in sentences if block.start <= one.start < block.end)
        for block in blocks(text)
    ]


@pytest.mark.parametrize("name", CASES)
def test_a_plain_text_is_read_as_a_person_would(name: str) -> None:
    text, expected = CASES[name]
    assert told(text) == expected.strip("\n").split("\n")


@pytest.mark.parametrize("name", CASES)
def test_sentences_lie_where_they_say(name: str) -> None:
    text, _ = CASES[name]
    found = sentences_of(text)
    assert all(text[one.start : one.end] == one.text == one.text.strip() for one in found)
    assert all(before.end <= after.start for before, after in pairwise(found))


@pytest.mark.parametrize("width", [34, 40, 60, 72, 80, 100])
@pytest.mark.parametrize("prefix", ["", "    ", "> ", "> > ", "# ", "// ", "-- "])
def test_sentences_of_wrapped_prose_are_those_of_the_unwrapped(width: int, prefix: str) -> None:
    wrapped = textwrap.fill(PROSE, width, initial_indent=prefix, subsequent_indent=prefix)
    mark = prefix.strip()

    def words(text: str) -> list[list[str]]:
        return [[w for w in one.text.split() if w not in mark.split()] for one in Tokenizer().sentences(text)]

    assert [line for line in words(wrapped) if line] == words(PROSE)


@pytest.mark.parametrize(
    "text",
    [
        "- buy twelve litres of milk at the corner\n- buy bread, butter and a jar of honey\n- call the plumber",
        "1. fill the kettle with cold water up to the mark\n2. wait until the lamp turns green\n3. lift it",
        "# The harbour of the northern town\nThe crane fell over.",
        "Minutes of the board of the harbour\nThe chairman opened.",
        "| crane | year in which it was built |\n| seven | nineteen hundred and eighty |",
        "From: the board of the northern harbour\nTo: all who work there\nSubject: the crane of pier seven",
        "Anna: have you seen what happened to the crane\nPavel: I have, it lies in the water",
        "2026-11-03 10:00 the queue holds nine letters\n2026-11-03 10:05 the queue holds ten letters",
        "Team meeting moved to Friday at ten sharp\nHoliday of the whole office in the last week",
        "Two roads diverged in a yellow wood\nAnd sorry I could not travel both\nAnd be one traveller, long I stood",
        "cats\ndogs\nhorses",
        "let crane = board.cranes.first(number);\nreturn crane.repaired ? crane.height : 0;\nthrow new Error();",
    ],
    ids="list steps heading rule table fields talk log notes verse words code".split(),
)
def test_a_newline_is_a_border_where_something_new_begins(text: str) -> None:
    marks = re.compile(r"^(?:[-#|]|\d\.) | \|$")
    assert [one.text for one in sentences_of(text)] == [marks.sub("", line) for line in text.split("\n")]


def test_items_of_a_list_go_on_in_lines_that_hang() -> None:
    text = (
        "Things to remember about the old boat:\n\n"
        "- the spare anchor lies under the bench\n  at the stern, so lift it with two of us\n"
        "- the pump must be switched on by hand\n  before every trip"
    )
    assert [" ".join(run.split()) for run in runs(text)][1:] == [
        "- the spare anchor lies under the bench at the stern, so lift it with two of us",
        "- the pump must be switched on by hand before every trip",
    ]


def test_a_line_that_is_set_in_begins_a_paragraph() -> None:
    first, second = (
        "the crane fell over on the fourth of March\nwhen it rained.",
        "The board met on the first day of\nspring",
    )
    text = f"{first}\n    {second}"
    assert len(runs(text)) == 2


def test_an_address_that_hangs_out_of_its_line_does_not_make_the_others_short() -> None:
    lines = textwrap.wrap(PROSE, 50)
    text = "\n".join([*lines[:2], "https://harbour.example/" + "a" * 70, *lines[2:]])
    assert len(runs(text)) <= 3


def test_every_line_end_of_every_system_separates_or_joins() -> None:
    wrapped = textwrap.fill(PROSE, 50)
    for end in ("\r\n", "\r"):
        assert len(runs(wrapped.replace("\n", end))) == len(runs(wrapped)) == 1
    assert len(runs("one page of a book about cranes.\fanother page of it")) == 2


@given(st.text(alphabet="ab !\n\r\t->#1|=*\u2028", max_size=200))
def test_every_letter_is_in_one_block(text: str) -> None:
    found = blocks(text)
    assert all(one.start <= one.said_start <= one.said_end <= one.end and one.start < one.end for one in found)
    assert all(before.end <= after.start for before, after in pairwise(found))
    covered = "".join(text[one.start : one.end] for one in found)
    assert covered.count("b") == text.count("b")
    assert bool(found) == bool(text.strip())
    said = "".join(one.text for one in sentences_of(text))
    assert said.count("b") == text.count("b")


def test_a_megabyte_of_short_lines_is_read_in_linear_time() -> None:
    assert len(blocks("ab cd\n" * 150_000)) == 150_000
