"""Which sentences of a document a person would pick for its summary."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from facets.language.sentences import sentences_of
from facets.model.answer_reader import AnswerReader
from facets.texts.importance import has_prose, importance, is_boilerplate

LETTER = """Subject: the broken boiler

Dear all,

The boiler in the cellar broke on Sunday. It shows the error E119. They will send somebody.

- warm socks
- a kettle

Kind regards,
Ana
"""
BOILERPLATE = """
Dear all,
Kind regards,
# Heading
| a | b |
```python
![badge](https://x.example)
Thanks in advance!
Copyright (c) 2021 Somebody.
Read more: ten bridges.
Was this review helpful to you?
Permission is hereby granted, free of charge, to any person.
""".strip().splitlines()
SAID = """
The copy of the key was lost.
Great battery life makes up for the weight.
Thank you letters must be written by hand, and the children hate that more than all their other homework.
He follows the river for ten miles.
""".strip().splitlines()
MINUTES = """Parish hall committee, 3 May

Present: Joan, Peter, Alicja
Apologies: Tom

1. Roof
Peter had been up the ladder and found the felt torn. There was a long talk about who had stood on it at the fair.
Agreed: Alicja orders new felt from Harris for 340 pounds, and Peter lays it before 1 June.

2. Piano
Nobody plays it. Left for next time.

Meeting closed 9.10 pm.
"""


class FakeReader:
    """Finds the last sentence that it reads the most important."""

    config = SimpleNamespace(summary_weight=10.0)
    num_read = 0

    def read_whole(self, question: str, heading: str, sentences: Sequence[str]) -> NDArray[np.float32]:
        self.num_read += len(sentences)
        return np.arange(len(sentences), dtype=np.float32)


def best_first(text: str, reader: Any) -> list[str]:
    sentences = sentences_of(text)
    odds = importance(sentences, np.ones(len(sentences)), reader)
    assert odds.max() == 1 and (odds > 0).all()
    return [" ".join(sentences[place].text.split()) for place in np.argsort(-odds, kind="stable")]


@pytest.mark.parametrize("text", [*BOILERPLATE, *SAID])
def test_boilerplate_is_told_from_sentences(text: str) -> None:
    assert is_boilerplate(text) is (text in BOILERPLATE)


def test_a_letter_is_summarized_by_what_it_says() -> None:
    for reader in (None, AnswerReader.shared()):
        texts = best_first(LETTER, reader)
        assert texts[0] == "The boiler in the cellar broke on Sunday."
        assert not {"Dear all,", "- warm socks", "- a kettle", "Kind regards, Ana"} & set(texts[:3])


def test_what_was_agreed_is_what_matters_in_minutes() -> None:
    assert best_first(MINUTES, AnswerReader.shared())[0].startswith("Agreed: Alicja orders")


def test_of_a_long_document_the_reader_reads_some_sentences() -> None:
    reader = FakeReader()
    texts = best_first("\n".join(f"- Somebody has to buy {number} eggs" for number in range(200)), reader)
    assert reader.num_read == 64 and len(texts) == 200


def test_neither_other_languages_nor_prose_are_read() -> None:
    reader = FakeReader()
    best_first("- Wir kaufen das Brot\n- Die Kinder holen die Milch und den Käse\n- Das ist nicht für mich", reader)
    best_first("The boiler in the cellar of the old house broke on Sunday morning. " * 3, reader)
    assert reader.num_read == 0


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("The dog barks at night.", "It is barking at night."),
        ("However, the neighbours complain.", "But then they complain at night."),
        ("The repair costs 90 euros.", "The repair costs an hour."),
        ("The neighbours have complained about the dog.", "They complain."),
    ],
)
def test_importance_prefers_what_stands_alone_and_matters(better: str, worse: str) -> None:
    texts = [f"The dog lives in the yard. {second}" for second in (better, worse)]
    odds = [importance(sentences_of(text), np.ones(2), None) for text in texts]
    assert odds[0][1] / odds[0][0] > odds[1][1] / odds[1][0]


def test_prose_and_notes_are_told_apart() -> None:
    assert has_prose(sentences_of("TODO\n\n- The boiler broke."))
    assert not has_prose(sentences_of("TODO\n\n- boiler\n- call Ana!!"))
