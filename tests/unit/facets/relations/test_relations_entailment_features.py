import numpy as np
import pytest

from facets.relations.entailment import word_features
from facets.relations.tables import WORD_FEATURES


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
