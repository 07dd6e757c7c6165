"""What two texts say of each other, by the model that answers where none is named: plain cases of people's texts."""

import csv
import gc
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from facets.model.loading import load
from facets.model.pair_reader import PairReader
from facets.model.passage_model import PassageModel
from facets.texts.comparison import Comparison, InferenceLabel
from facets.texts.similarity import score_pairs

ANSWERS = Path(__file__).parents[3] / "answers"
SECONDS_OF_LONG_TEXTS = 20
# Shares of right labels; these pairs were written apart from the training data and read for the figures alone.
LEAST_RIGHT = {"opposite": 0.85, "negation": 0.9, "value": 0.9, "paraphrase": 0.85, "less": 0.8, "topic": 0.9}


def rows_of(file: str) -> list[list[str]]:
    with (ANSWERS / file).open(encoding="utf-8", newline="") as lines:
        return list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.fixture(scope="module")
def model() -> PassageModel:
    return load(None, PassageModel)


def compared(model: PassageModel, first: str, second: str) -> Comparison:
    (comparison,) = score_pairs(model, [(first, second)]).comparisons
    return comparison


def test_labels_of_plain_pairs_are_those_that_people_give(model: PassageModel) -> None:
    rows = rows_of("inference.tsv")
    comparisons = score_pairs(model, [(first, second) for *_, first, second in rows]).comparisons
    asked, right = Counter(row[1] for row in rows), Counter[str]()
    for (label, kind, *_), comparison in zip(rows, comparisons, strict=True):
        right[kind] += comparison.label == label
    assert len(rows) == 400
    assert {kind: share for kind, least in LEAST_RIGHT.items() if (share := right[kind] / asked[kind]) < least} == {}
    assert right.total() >= 0.9 * len(rows)


@pytest.mark.parametrize("file", ["similarity-dev.tsv", "similarity-held-back.tsv", "similarity-fresh.tsv"])
def test_paraphrases_stand_above_contradictions(model: PassageModel, file: str) -> None:
    rows = rows_of(file)
    pairs = [(first, second) for *_, first, second in rows]
    is_paraphrase = np.array([row[0] == "paraphrase" for row in rows])
    assert (len(rows), is_paraphrase.sum()) == (40, 20)
    above, by_vectors = (
        (scores[is_paraphrase][:, None] > scores[~is_paraphrase]).mean()
        for scores in (score_pairs(model, pairs, method).scores for method in (None, "encoder"))
    )
    assert above >= 0.9 > 0.5 > by_vectors


def test_contradicting_words_are_named(model: PassageModel) -> None:
    rows = rows_of("differences.tsv")
    comparisons = score_pairs(model, [(first, second) for first, second, *_ in rows]).comparisons
    named = 0
    for (first, second, word, other), comparison in zip(rows, comparisons, strict=True):
        for found in comparison.differences[:1]:
            assert first[found.first_start : found.first_end] == found.first
            assert second[found.second_start : found.second_end] == found.second
            named += (found.first, found.second) == (word, other)
    assert named >= 0.7 * len(rows)


@pytest.mark.parametrize(
    ("first", "second", "least"),
    [
        ("The door is open.", "The door is open.", 1.0),
        ("The door is\nopen and the\nwindow is shut.", "The door is open and the window is shut.", 1.0),
        ("The door is open.", "the DOOR is open", 0.85),
        ("I recieved your mesage.", "I received your message.", 0.6),
        ("\u732b\u304c\u72ac\u3092\u8ffd\u3046", "\u732b\u304c\u72ac\u3092\u8ffd\u3046", 1.0),
        ("?!", "?!", 1.0),
    ],
)
def test_the_same_in_another_dress_is_alike(model: PassageModel, first: str, second: str, least: float) -> None:
    assert score_pairs(model, [(first, second)]).scores[0] >= least - 1e-6


def test_swapping_the_texts_swaps_the_sides_alone(model: PassageModel) -> None:
    first, second = "The shop opens at 9:15.", "The shop opens at 9:50."
    there, back = score_pairs(model, [(first, second), (second, first)]).comparisons
    assert there.score == pytest.approx(back.score, abs=0.02)
    (one,), (other,) = there.differences, back.differences
    assert (one.first, one.second) == (other.second, other.first) == ("9:15", "9:50")


def test_texts_in_another_language_have_no_label(model: PassageModel) -> None:
    german = compared(model, "Der Laden ist am Montag offen.", "Der Laden ist am Montag nicht offen.")
    assert german.label is None and not german.differences
    assert compared(model, "Der Laden ist zu.", "Der Laden ist zu.").label is InferenceLabel.EQUIVALENT


def test_the_special_entails_the_general_and_not_the_other_way_round(model: PassageModel) -> None:
    special, general = "A poodle is sleeping on the old sofa.", "A dog is sleeping."
    assert compared(model, special, general).label is InferenceLabel.ENTAILS
    assert compared(model, general, special).label is InferenceLabel.NEUTRAL


@pytest.mark.timeout(SECONDS_OF_LONG_TEXTS)
def test_long_texts_are_compared_sentence_by_sentence(model: PassageModel) -> None:
    animals = "dog cat horse cow hen goat pig duck sheep goose donkey rabbit".split()
    long = " ".join(f"The door of the {animal}'s house is open in the morning." for animal in animals)
    changed = long.replace("cow's house is open", "cow's house is closed")
    same, short = score_pairs(model, [(long, changed), (long, "The door of the cow's house is closed.")]).comparisons
    assert same.label is short.label is InferenceLabel.CONTRADICTS
    (found,) = same.differences
    assert (found.first, found.second) == ("open", "closed")
    assert changed[found.second_start : found.second_end] == "closed"
    assert same.score > short.score


def test_the_reader_is_loaded_once(model: PassageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [("The lake froze.", "The water stayed liquid all winter.")]
    before = score_pairs(model, pairs)
    monkeypatch.setattr(PairReader, "from_folder", None)  # loading again would fail
    gc.collect()
    np.testing.assert_array_equal(score_pairs(model, pairs).scores, before.scores)
