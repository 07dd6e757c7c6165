"""Which sentences of a document a person would pick for its summary."""

import numpy as np
import pytest

from facets.language.sentences import sentences_of
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


@pytest.mark.parametrize("text", [*BOILERPLATE, *SAID])
def test_boilerplate_is_told_from_sentences(text: str) -> None:
    assert is_boilerplate(text) is (text in BOILERPLATE)


def test_a_letter_is_summarized_by_what_it_says() -> None:
    found = importance(sentences_of(LETTER))
    texts = [sentences_of(LETTER)[place].text for place in np.argsort(-found, kind="stable")]
    assert texts[0] == "The boiler in the cellar broke on Sunday."
    assert not {"Dear all,", "- warm socks", "- a kettle", "Kind regards,\nAna"} & set(texts[:4])


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("The dog barks at night.", "It always barks at night."),
        ("However, the neighbours complain.", "But then they complain at night."),
        ("The repair costs 90 euros.", "The repair costs an hour."),
        ("The neighbours have complained about the dog.", "They complain."),
    ],
)
def test_importance_prefers_what_stands_alone_and_matters(better: str, worse: str) -> None:
    found = [importance(sentences_of(f"The dog lives in the yard. {second}"))[1] for second in (better, worse)]
    assert found[0] > found[1]


def test_prose_and_notes_are_told_apart() -> None:
    assert has_prose(sentences_of("TODO\n\n- The boiler broke."))
    assert not has_prose(sentences_of("TODO\n\n- boiler\n- call Ana!!"))
