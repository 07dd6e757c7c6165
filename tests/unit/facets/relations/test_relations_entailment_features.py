import numpy as np
import pytest

from facets.language.wordnet import wordnet
from facets.relations.entailment_features import word_features
from facets.relations.thresholds import WORD_FEATURES
from facets.relations.wording import Wording, read_wording


def features_of(premise: str, hypothesis: str) -> dict[str, tuple[float, float]]:
    found = word_features([tuple(premise.split())], [tuple(hypothesis.split())])
    columns = zip(found.forward[0].tolist(), found.backward[0].tolist(), strict=True)
    return dict(zip(WORD_FEATURES, columns, strict=True))


@pytest.mark.parametrize(
    ("premise", "hypothesis", "exchanged"),
    [
        ("$ARG1 defeated $ARG2", "$ARG1 was defeated by $ARG2", 1.0),
        ("$ARG1 defeated $ARG2", "$ARG2 was defeated by $ARG1", 0.0),
        ("$ARG1 is the father of $ARG2", "$ARG2 is the father of $ARG1", 1.0),
        ("$ARG1 is married to $ARG2", "$ARG2 is married to $ARG1", 0.0),
        ("$ARG1 is made of $ARG2", "$ARG2 makes $ARG1", 0.0),
    ],
)
def test_exchanged_roles_are_seen_through_the_voice(premise: str, hypothesis: str, exchanged: float) -> None:
    assert features_of(premise, hypothesis)["roles_exchanged"] == (exchanged, exchanged)


def test_opposites_are_converse_when_the_arguments_are_exchanged() -> None:
    assert features_of("$ARG1 is the wife of $ARG2", "$ARG2 is the husband of $ARG1")["converse"] == (1.0, 1.0)
    assert features_of("$ARG1 loves $ARG2", "$ARG1 hates $ARG2")["opposite"] == (1.0, 1.0)


def test_exchanging_the_sides_exchanges_the_columns() -> None:
    pairs = [
        ("$ARG1 was assassinated by $ARG2", "$ARG1 was killed by $ARG2"),
        ("$ARG1 , a tall man of $ARG2", "$ARG1 lives in $ARG2"),
        ("$ARG1 $ARG2", "$ARG1 never met $ARG2"),
    ]
    first, second = ([tuple(pair[side].split()) for pair in pairs] for side in (0, 1))
    one, other = word_features(first, second), word_features(second, first)
    np.testing.assert_array_equal(one.forward, other.backward)
    np.testing.assert_array_equal(one.symmetric, other.symmetric)


def read(pattern: str) -> Wording:
    return read_wording(tuple(pattern.split()), wordnet())


@pytest.mark.parametrize(
    ("pattern", "acts"),
    [
        ("$ARG1 wrote $ARG2", True),
        ("$ARG2 wrote $ARG1", False),
        ("$ARG1 was written by $ARG2", False),
        ("$ARG2 was written in 1900 by $ARG1", True),
        ("$ARG2 , written by $ARG1", True),
        ("$ARG1 is near a lake by $ARG2", True),
    ],
)
def test_the_voice_says_who_acts(pattern: str, acts: bool) -> None:
    assert read(pattern).head_acts is acts


@pytest.mark.parametrize(
    "pattern",
    [
        "$ARG1 may have been killed by $ARG2",
        "$ARG1 tried to restrain $ARG2",
        "$ARG1 was allegedly born in $ARG2",
        "$ARG1 is believed to be in $ARG2",
    ],
)
def test_what_may_be_is_hedged(pattern: str) -> None:
    assert read(pattern).is_hedged
    assert not read("$ARG1 moved to $ARG2").is_hedged


def test_of_thousands_of_words_the_first_count() -> None:
    """Each is compared with each of the other pattern: 40 million for two patterns that a request may hold."""
    letters = "abcdefghij"
    long = ["$ARG1", *("w" + first + second + third for first in letters for second in letters for third in letters)]
    assert len(read(" ".join([*long, "$ARG2"])).content) == 64
