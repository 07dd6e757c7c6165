"""What two texts say of each other, by the model that answers where none is named: plain cases of people's texts."""

import csv
from pathlib import Path

import numpy as np
import pytest

from facets.model.loading import load
from facets.model.passage_model import PassageModel
from facets.texts.comparison import Comparison, InferenceLabel
from facets.texts.differences import DifferenceKind
from facets.texts.similarity import score_pairs

ANSWERS = Path(__file__).parents[3] / "answers"
SECONDS_OF_LONG_TEXTS = 20
ROWS = [line.split("\t") for line in (ANSWERS / "differences.tsv").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def model() -> PassageModel:
    return load(None, PassageModel)


def compared(model: PassageModel, first: str, second: str) -> Comparison:
    (comparison,) = score_pairs(model, [(first, second)]).comparisons
    return comparison


@pytest.mark.parametrize(
    ("file", "least"), [("similarity-dev.tsv", 0.9), ("similarity-held-back.tsv", 0.87), ("similarity-fresh.tsv", 0.8)]
)
def test_paraphrases_stand_above_contradictions(model: PassageModel, file: str, least: float) -> None:
    with (ANSWERS / file).open(encoding="utf-8") as lines:
        rows = list(csv.reader(lines, delimiter="\t"))
    scores = score_pairs(model, [(first, second) for *_, first, second in rows]).scores
    vectors = score_pairs(model, [(first, second) for *_, first, second in rows], "encoder").scores
    is_paraphrase = np.array([row[0] == "paraphrase" for row in rows])
    assert (len(rows), is_paraphrase.sum()) == (40, 20)
    above = (scores[is_paraphrase][:, None] > scores[~is_paraphrase]).mean()
    by_vectors = (vectors[is_paraphrase][:, None] > vectors[~is_paraphrase]).mean()
    assert above >= least > 0.5 > by_vectors


@pytest.mark.parametrize(("first", "second", "kind", "word", "other"), ROWS)
def test_what_differs_is_said_by_its_kind(
    model: PassageModel, first: str, second: str, kind: str, word: str, other: str
) -> None:
    comparison = compared(model, first, second)
    if not kind:  # other words for the same
        assert not comparison.differences
        assert comparison.label is InferenceLabel.EQUIVALENT
        return
    found = comparison.differences[0]
    assert (found.kind, found.first, found.second) == (kind, word, other)
    assert first[found.first_start : found.first_end].lower().split()[0] == word.split()[0]
    assert second[found.second_start : found.second_end].lower().split()[-1] == other.split()[-1]
    # Who does it to whom may be true both ways; who is heavier may not.
    is_possible = found.kind is DifferenceKind.ROLES and "than" not in first
    assert comparison.label is (InferenceLabel.NEUTRAL if is_possible else InferenceLabel.CONTRADICTS)
    assert comparison.score < 0.65


def test_six_is_in_the_morning_or_in_the_evening(model: PassageModel) -> None:
    assert compared(model, "The shop shuts at 6 am.", "The shop shuts at 18:00.").differences


@pytest.mark.parametrize(
    ("first", "second", "least"),
    [
        ("The door is open.", "The door is open.", 1.0),
        ("The door is\nopen and the\nwindow is shut.", "The door is open and the window is shut.", 1.0),
        ("The door is open.", "the DOOR is open", 0.95),
        ("I recieved your mesage.", "I received your message.", 0.75),
        ("\u732b\u304c\u72ac\u3092\u8ffd\u3046", "\u732b\u304c\u72ac\u3092\u8ffd\u3046", 1.0),
        ("?!", "?!", 1.0),
    ],
)
def test_the_same_in_another_dress_is_alike(model: PassageModel, first: str, second: str, least: float) -> None:
    assert score_pairs(model, [(first, second)]).scores[0] >= least - 1e-6


def test_exchanging_the_texts_exchanges_the_sides_alone(model: PassageModel) -> None:
    there, back = score_pairs(
        model,
        [("A poodle barks at 9:15.", "A dog barks at 9:50."), ("A dog barks at 9:50.", "A poodle barks at 9:15.")],
    ).comparisons
    assert there.score == back.score
    assert tuple(difference.exchanged() for difference in there.differences) == back.differences != ()


def test_the_special_entails_the_general_and_not_the_other_way_round(model: PassageModel) -> None:
    special, general = "A poodle is sleeping on the old sofa.", "A dog is sleeping on the sofa."
    assert compared(model, special, general).label is InferenceLabel.ENTAILS
    assert compared(model, general, special).label is InferenceLabel.NEUTRAL


def test_a_denial_of_something_else_is_no_contradiction(model: PassageModel) -> None:
    comparison = compared(model, "A man is praying.", "There is no man dancing.")
    assert comparison.label is InferenceLabel.NEUTRAL


@pytest.mark.timeout(SECONDS_OF_LONG_TEXTS)
def test_long_texts_are_compared_sentence_by_sentence(model: PassageModel) -> None:
    long = " ".join(f"Sentence {i} tells that the door of house {i} is open." for i in range(60))
    changed = long.replace("house 7 is open", "house 7 is closed")
    same, short = score_pairs(model, [(long, changed), (long, "The door of house 7 is closed.")]).comparisons
    assert [(one.first, one.second) for one in same.differences] == [("open", "closed")]
    assert changed[same.differences[0].second_start : same.differences[0].second_end] == "closed"
    assert same.score > short.score
