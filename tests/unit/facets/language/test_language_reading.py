"""How texts of many kinds are read: blocks, sentences, what is left out, and where each word is in the original."""

import json
import random
import re
import textwrap
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from facets.language.blocks import blocks
from facets.language.markup import Hyphens
from facets.language.reading import read
from facets.language.sentences import sentences_of

ROOT = Path(__file__).resolve().parents[4]
CASES = {
    name: rest.split("\n%%%\n")
    for name, _, rest in (
        case.partition("\n")
        for case in (ROOT / "tests" / "answers" / "reading_cases.txt").read_text().split("%%% ")[1:]
    )
}
SAMPLES = [json.loads(line)["text"] for line in (ROOT / "samples" / "wikipedia.jsonl").read_text().splitlines()]
PROSE = (
    "The large crane on pier seven fell over on the fourth of March, when a cable broke in heavy rain and the operator "
    "jumped into the water. Repairs will cost about 80,000 crowns. Dr. Lee of the harbour board said that the next one "
    "would be bought in Rotterdam, where such cranes are made."
)


def said(text: str) -> list[str]:
    return [sentence.said for sentence in sentences_of(text)]


@pytest.mark.parametrize("name", CASES)
def test_a_text_is_read_as_a_person_reads_it(name: str) -> None:
    text, expected = CASES[name]
    sentences, reading = sentences_of(text), read(text)
    lines = [
        f"{block.kind[0]}{block.level or ''} "
        + " / ".join(sentence.said for sentence in sentences if block.start <= sentence.start < block.end)
        for block in blocks(text)
    ]
    assert lines == expected.strip("\n").split("\n")
    assert all(text[one.start : one.end] == one.text == one.text.strip() for one in sentences)
    assert all(before.end <= after.start for before, after in pairwise(sentences))
    assert re.findall(r"\w+", reading.text) == re.findall(r"\w+", " ".join(one.said for one in sentences))
    words = [match.span() for match in re.finditer(r"\w{2,}", reading.text)]
    origins = reading.original(np.array(words, dtype=np.int64).reshape(-1, 2)).tolist()
    names = " ".join(name for block in blocks(text) if block.row for name in block.row.names)
    for (first, last), (start, end) in zip(words, origins, strict=True):
        word = reading.text[first:last]
        assert word == re.sub(r"-?\s*\n\s*", "", text[start:end]) or word in names


def broken_by_hand(text: str, width: int, rng: random.Random) -> str:
    """Wrapped as people do: each line ends somewhere between 60 and 100 percent of the width."""
    lines, limit = [""], width
    for word in text.split():
        if len(lines[-1]) + len(word) >= limit:
            limit = int(width * rng.uniform(0.6, 1))
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(lines)


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("between", ["\n\n", "\n"])
def test_wrapping_is_not_meaning(between: str, *, by_hand: bool) -> None:
    rng = random.Random(5)
    num_expected = num_found = num_read = num_right = 0
    for first, second in zip(SAMPLES[::2], SAMPLES[1::2], strict=False):
        sentences = said(first) + said(second)
        for width in range(30, 111, 20):
            wrap = partial(broken_by_hand, rng=rng) if by_hand else textwrap.fill
            wrapped = said(between.join(wrap(text, width=width) for text in (first, second)))
            num_expected, num_read = num_expected + len(sentences), num_read + len(wrapped)
            num_found += len(set(sentences) & set(wrapped))
            num_right += sum(sentence in sentences for sentence in wrapped)
    assert num_found / num_expected >= 0.985, "of the sentences of the unwrapped texts"
    assert num_right / num_read >= 0.985, "of the sentences of the wrapped texts"


@pytest.mark.parametrize("prefix", ["    ", "> ", "> > ", "# ", "// ", "-- "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_prefixes_and_line_ends_do_not_matter(prefix: str, end: str) -> None:
    wrapped = textwrap.fill(PROSE, 50, initial_indent=prefix, subsequent_indent=prefix)
    assert said(wrapped.replace("\n", end)) == said(PROSE)


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
        "Two roads diverged in a yellow wood\nAnd sorry I could not travel both\nAnd be one traveller, long I stood",
        "cats\ndogs\nhorses",
        "let crane = board.cranes.first(number);\nreturn crane.repaired ? crane.height : 0;\nthrow new Error();",
        "facets, states = model.read(rows)\nreturn facets",
        "Bread\nButter and two kinds of cheese\nSome of the good apples from the market",
        "How do I reset my password\nWhy was my order sent to the old address\nCan I pay by invoice",
        "name\tcity\nAnn\tOslo\nBo\tRome",
        "Oslo\nOslo is the capital of Norway and lies at the end of a fjord that is a hundred kilometres long",
    ],
)
def test_a_newline_is_a_border_where_something_new_begins(text: str) -> None:
    marks = re.compile(r"^(?:[-#|]|\d\.) | \|$")
    assert [one.text for one in sentences_of(text)] == [marks.sub("", line).strip() for line in text.split("\n")]


def test_a_line_before_one_in_lower_case_is_no_heading() -> None:
    text = "The harbour of the old town\nwas built by the monks\n\nIt has two piers and a crane that fell over in May."
    assert {block.kind for block in blocks(text)} == {"paragraph"}
    assert blocks(text.replace("\nwas", "\n\nWas"))[0].kind == "heading"


def test_a_short_title_right_above_a_paragraph_does_not_unwrap_it() -> None:
    text = (
        "Item 3: Zebra crossing\nThe town has refused a zebra crossing in front of the school. The parents\n"
        "resolved to collect signatures, and Mr Boone will write to the newspaper.\n"
    )
    assert said(text)[-1].startswith("The parents resolved to collect signatures")


def test_a_line_that_ends_mid_sentence_continues_in_the_shortest_text() -> None:
    cell = "The crane tipped over on the fourth of\nNovember and damaged the fence."
    assert read(cell).text == cell.replace("\n", " ")
    for kept in ("salt and\nPepper", "what we saw in the north of the\n\nNorth Sea"):
        assert "\n" in read(kept).text


@given(st.text(alphabet="ab !\n\r\t->#1|=*\u2028", max_size=200))
def test_every_letter_is_in_one_block(text: str) -> None:
    found = blocks(text)
    assert all(one.start <= one.said_start <= one.said_end <= one.end and one.start < one.end for one in found)
    assert all(before.end <= after.start for before, after in pairwise(found))
    assert "".join(text[one.start : one.end] for one in found).count("b") == text.count("b")
    assert bool(found) == bool(text.strip())
    assert "".join(one.text for one in sentences_of(text)).count("b") == text.count("b")


SIZE = 30_000
HOSTILE = {
    "one endless word": "a" * SIZE,
    "no full stop": "word " * (SIZE // 5),
    "newlines": "\n" * SIZE,
    "short lines": "ab cd\n" * (SIZE // 6),
    "nested items": "".join("  " * depth + "- item\n" for depth in range(200)),
    "rows": "| a | b |\n" * (SIZE // 10),
    "stars": "**a " * (SIZE // 4),
    "backticks": "`" * SIZE,
    "open links": "[a](b" * (SIZE // 5),
    "brackets": "[" * SIZE,
    "open tags": "<p " * (SIZE // 3),
    "open comments": "<!-- a\n" * (SIZE // 7),
    "open fences": "```a\n" * (SIZE // 5),
    "roles": ":a:`b`" * (SIZE // 6),
    "hyphens": "infor-\nmation " * (SIZE // 14),
    "rules": "abc\n===\n" * (SIZE // 8),
    "pages": "a\f" * (SIZE // 2),
    "quotations": "> " * (SIZE // 2),
    "entities": "&amp;" * (SIZE // 5),
    "spaces": "a" + " " * SIZE + "b\nc",
    "capitals": "ABCD\n\n" * (SIZE // 6),
    "chinese": "\u6e2f" * SIZE,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_take_linear_time_and_lose_nothing(text: str) -> None:
    started = time.process_time()
    sentences, reading = sentences_of(text), read(text)
    assert time.process_time() - started < 4  # well below a second; quadratic readings take minutes
    assert bool(sentences) == bool(text.strip()) and len(reading.text) <= len(text)
    assert sum(one.text.count("a") for one in sentences) >= sum(one.said.count("a") for one in sentences)


@pytest.mark.parametrize(
    ("head", "tail", "text", "stays"),
    [
        ("infor", "mation", "", False),
        ("well", "known", "", True),
        ("Jean", "Paul", "", True),
        ("self", "ish", "a selfish man", False),
        ("tree", "like", "the tree-like shape", True),
    ],
)
def test_a_hyphen_stays_where_it_belongs_to_the_word(head: str, tail: str, text: str, stays: bool) -> None:
    assert Hyphens(text).stays(head, tail) is stays


def test_a_long_address_does_not_make_the_other_lines_short() -> None:
    lines = textwrap.wrap(PROSE, 50)
    assert len(blocks("\n".join([*lines[:2], "https://harbour.example/" + "a" * 70, *lines[2:]]))) <= 3


ROWS = ["X-20: Weight 2.8 kg, Price 219 EUR", "X-20S: Weight 3.1 kg, Price 259 EUR"]


def rows(text: str) -> list[str]:
    """The rows below the header row as they are read; empty without a header row."""
    found = [sentence for sentence in sentences_of(text) if sentence.row]
    return [sentence.said for sentence in found if sentence.row and sentence.row.names]


@pytest.mark.parametrize(
    "text",
    [
        "| Model | Weight | Price |\n|---|---:|---|\n| X-20 | 2.8 kg | 219 EUR |\n| **X-20S** | 3.1 kg | 259 EUR |",
        "Model | Weight | Price\n--- | --- | ---\nX-20 | 2.8 kg | 219 EUR\nX-20S | 3.1 kg | 259 EUR",
        "| Model | Weight | Price |\n| X-20 | 2.8 kg | 219 EUR |\n| X-20S | 3.1 kg | 259 EUR |",
        "| | Weight | Price |\n| X-20 | 2.8 kg | 219 EUR |\n| X-20S | 3.1 kg | 259 EUR |",
        "+--+--+--+\n| Model | Weight | Price |\n+==+==+==+\n| X-20 | 2.8 kg | 219 EUR |\n| X-20S | 3.1 kg | 259 EUR |",
        "Model\tWeight\tPrice\nX-20\t2.8 kg\t219 EUR\nX-20S\t3.1 kg\t259 EUR",
        "Model;Weight;Price\nX-20;2.8 kg;219 EUR\nX-20S;3.1 kg;259 EUR",
        "Model,Weight,Price\nX-20,2.8 kg,219 EUR\nX-20S,3.1 kg,259 EUR",
        "Model    Weight    Price\nX-20     2.8 kg    219 EUR\nX-20S    3.1 kg    259 EUR",
    ],
)
def test_a_row_is_read_with_the_names_of_its_columns(text: str) -> None:
    assert rows(text) == ROWS
    (header,) = (sentence for sentence in sentences_of(text) if sentence.row and sentence.row.is_header)
    assert "Weight" in header.text


@pytest.mark.parametrize(
    "text",
    [
        "| Weight | 3 kg |\n|---|---|\n| Height | 12 cm |\n| Width | 30 cm |",  # names and values
        "| Colour | blue |\n| Height | 12 cm |\n| Width | 30 cm |",
        "Ann | Oslo | 1962\nBo | Rome | 1971",
        "| Ann | Oslo | married |\n| Bo | Rome | single |",
        "| X-20 | 2.8 kg | 219 EUR |\n\n| X-20S | 3.1 kg | 259 EUR |",
    ],
)
def test_a_first_row_of_values_is_no_header(text: str) -> None:
    assert rows(text) == []
    assert not any(sentence.row and sentence.row.is_header for sentence in sentences_of(text))


def test_pages_without_a_line_have_no_sentences() -> None:
    assert sentences_of("\f \f\n") == []


def test_blank_cells_keep_the_columns_in_place() -> None:
    text = "| | X-20 | X-20S |\n|---|---|---|\n| Weight | 2.8 kg | 3.1 kg |\n| Lid | | steel |\n| Feet | four |\n"
    assert rows(text) == ["Weight: X-20 2.8 kg, X-20S 3.1 kg", "Lid: X-20S steel"]
    assert sentences_of(text)[-1].said == "Feet | four"


def test_a_cut_name_of_a_column_ends_with_a_mark() -> None:
    longest, longer = "n" * 40, "Share of those who answered the question in May"
    text = f"| Town | {longest} | {longer} |\n|---|---|---|\n| Oslo | 7 | 9 |"
    assert rows(text) == [f"Oslo: {longest} 7, Share of those who answered the questio… 9"]


def test_the_name_of_a_column_stands_for_its_cell() -> None:
    text = "Model,Maximum weight,Price\nX-20,2.8,219\nX-20S,3.1,259"
    reading = read(text)
    starts = [reading.text.index(word) for word in ("X-20S", "Maximum weight 3.1", "3.1", "Price 259")]
    spans = reading.original(np.array([[start, start + 3] for start in starts])).tolist()
    assert [text[start:end] for start, end in spans] == ["X-2", "3", "3.1", "2"]


@pytest.mark.parametrize(("num_rows", "num_columns"), [(5_000, 3), (100, 200)])
def test_large_tables_take_linear_time(num_rows: int, num_columns: int) -> None:
    lines = [" | ".join(f"{name} {i}" for i in range(num_columns)) for name in ["column", *["7"] * num_rows]]
    text = "\n".join([f"| {lines[0]} |", "|---" * num_columns + "|", *(f"| {line} |" for line in lines[1:])])
    started = time.process_time()
    reading = read(text)
    assert time.process_time() - started < 4  # about half a second; quadratic: minutes
    assert len(reading.text) < len(text) + 310 * num_rows
    assert reading.text.split("\n")[1].startswith("7 0: column 1 7 1, column 2 7 2")
