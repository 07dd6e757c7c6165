"""A text as it is read: what is left out, where each word stands, and how hostile texts and long ones fare."""

import re
import time
from pathlib import Path

import numpy as np
import pytest

from facets.language.markup import Hyphens
from facets.language.reading import read
from facets.language.sentences import sentences_of

CASES = (Path(__file__).resolve().parents[3] / "answers" / "reading_cases.txt").read_text().split("%%% ")[1:]
TEXTS = [case.partition("\n")[2].split("\n%%%\n")[0] for case in CASES]
SIZE = 200_000
HOSTILE = {
    "one endless word": "a" * SIZE,
    "no full stop": "word " * (SIZE // 5),
    "newlines": "\n" * SIZE,
    "short lines": "ab cd\n" * (SIZE // 6),
    "items 500 deep": "".join("  " * depth + "- item\n" for depth in range(500)),
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


@pytest.mark.parametrize("text", TEXTS)
def test_every_word_of_a_reading_stands_where_it_says(text: str) -> None:
    reading = read(text)
    words = [match.span() for match in re.finditer(r"\w{2,}", reading.text)]
    found = reading.original(np.array(words, dtype=np.int64).reshape(-1, 2)).tolist()
    for (first, last), (start, end) in zip(words, found, strict=True):
        assert reading.text[first:last] == re.sub(r"-?\s*\n\s*", "", text[start:end])


@pytest.mark.parametrize("text", TEXTS)
def test_a_reading_says_what_its_sentences_say(text: str) -> None:
    said = " ".join(one.said for one in sentences_of(text))
    assert re.findall(r"\w+", read(text).text) == re.findall(r"\w+", said)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_take_linear_time_and_lose_nothing(text: str) -> None:
    started = time.process_time()
    sentences = sentences_of(text)
    reading = read(text)
    assert time.process_time() - started < 25  # a second or two; quadratic ones take minutes
    assert bool(sentences) == bool(text.strip()) and len(reading.text) <= len(text)
    assert sum(one.text.count("a") for one in sentences) >= sum(one.said.count("a") for one in sentences)


def test_a_page_of_ten_megabytes_without_a_full_stop_is_one_sentence() -> None:
    text = "word " * 2_000_000
    started = time.process_time()
    assert [(one.start, one.end) for one in sentences_of(text)] == [(0, len(text) - 1)]
    assert read(text).text is text
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    "text", ["Oslo", "\u0623\u0648\u0633\u0644\u0648", "\u5965\u65af\u9646", "\U0001f600", "-", "**"]
)
def test_a_text_of_one_word_is_one_sentence(text: str) -> None:
    assert [one.text for one in sentences_of(text)] == [text]
    assert read(text).text == text


@pytest.mark.parametrize(
    ("head", "tail", "text", "stays"),
    [
        ("infor", "mation", "", False),
        ("well", "known", "", True),
        ("third", "party", "", True),
        ("Jean", "Paul", "", True),
        ("self", "ish", "a selfish man", False),
        ("tree", "like", "the tree-like shape", True),
    ],
)
def test_a_hyphen_stays_where_it_belongs_to_the_word(head: str, tail: str, text: str, stays: bool) -> None:
    assert Hyphens(text).stays(head, tail) is stays
