"""What of a document may stand in its summary: prose, antecedents, the subject; texts without prose."""

import numpy as np
import pytest
import torch

from facets.language.sentences import sentences_of
from facets.language.tokenizer import Tokenizer
from facets.language.vocabulary import Vocabulary
from facets.texts.coverage import Covered
from facets.texts.prose import Prose, is_boilerplate, prose_of
from facets.texts.summarization import select_sentences, summarize

TOKENIZER = Tokenizer()
FREQUENT = "the it lives yard barks night neighbours complain complains bark problem far away here".split()
VOCABULARY = Vocabulary([*FREQUENT, "cat", "dog"], np.array([*range(1000, 1000 - len(FREQUENT), -1), 1, 1]))
LETTER = """Subject: the broken boiler

Dear all,

The boiler in the cellar broke on Sunday. It shows the error E119. They will send somebody.

- warm socks
- a kettle

Kind regards,
Ana
"""


def _standing(text: str) -> list[str]:
    sentences = sentences_of(text)
    prose = prose_of(sentences, TOKENIZER, VOCABULARY)
    return [sentence.text for sentence, stands in zip(sentences, prose.may_stand, strict=True) if stands]


def test_only_what_a_letter_says_may_stand() -> None:
    assert _standing(LETTER) == [
        "The boiler in the cellar broke on Sunday.",
        "It shows the error E119.",
        "They will send somebody.",
    ]


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


@pytest.mark.parametrize(
    ("second", "leans"),
    [
        ("It barks at night.", True),
        ("However, the neighbours complain.", False),
        ("However, Mr Lund complains.", False),
        ("But she complains.", True),
        ("So the dog barks.", False),
        ("Two of them bark at night.", True),
        ("This is a problem.", True),
        ("This dog barks at night.", True),
        ("The dog barks at night.", False),
        ("Italy is far away from here.", False),
    ],
)
def test_sentence_leans_on_the_one_before(second: str, leans: bool) -> None:
    prose = prose_of(sentences_of(f"The dog lives in the yard. {second}"), TOKENIZER, VOCABULARY)
    assert (prose.leans_on[1] == 0) == leans
    assert prose.leans_on[0] == -1


def test_title_and_opening_name_the_subject() -> None:
    text = (
        "Octopuses\n\nThe octopus lives in caves. Crabs are its food. Caves protect it from sharks and caves are cool."
    )
    prose = prose_of(sentences_of(text), TOKENIZER, VOCABULARY)
    assert prose.names_subject.tolist() == [False, True, False, False]


@pytest.mark.parametrize("num_sentences", [1, 2, 3, 4])
def test_antecedent_stands_beside_what_needs_it(model, num_sentences: int) -> None:  # type: ignore[no-untyped-def]
    text = (
        "The cat plays piano.\n\nIt likes concert music, violin music and kittens. They sleep. A truck is on the road."
    )
    (summary,) = summarize(model, [text], num_sentences=num_sentences)
    picked = {sentence.sentence for sentence in summary.sentences}
    assert len(picked) == min(num_sentences, 3)  # of two words, one says too little
    assert 1 not in picked or 0 in picked
    assert all(sentence.text == text[sentence.start : sentence.end] for sentence in summary.sentences)


@pytest.mark.parametrize("seed", range(20))
def test_choice_keeps_the_rules_whatever_is_covered(seed: int) -> None:
    generator = np.random.default_rng(seed)
    size = 12
    leans = np.where(generator.random(size) < 0.5, np.arange(size) - 1, -1)
    may_stand, named = generator.random(size) < 0.8, generator.random(size) < 0.3
    may_stand[0] = True
    standing = np.flatnonzero(may_stand)
    leans = np.array([max((p for p in standing if p <= lean), default=-1) if lean >= 0 else -1 for lean in leans])
    prose = Prose(may_stand, leans, named & may_stand, np.ones(size), found=True)
    covered = Covered(torch.from_numpy(generator.random((size, 5))).float(), torch.ones(5), 0.65)
    picked = select_sentences(covered, costs_S=np.ones(size, dtype=np.int64), budget=4, prose=prose)
    places = [item.sentence for item in picked]
    assert len(places) == len(set(places)) == min(4, len(standing))
    assert may_stand[places].all()
    assert all(leans[place] < 0 or leans[place] in places for place in places)
    reachable = [p for p in standing if named[p] and leans[p] < 0]
    assert not reachable or named[places].any()
