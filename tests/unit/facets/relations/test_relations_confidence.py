import json

import pytest

from facets.relations.confidence import Confidence
from facets.relations.entailment_weights import EntailmentWeights


def test_what_was_written_is_read_again() -> None:
    weights = EntailmentWeights({"similarity": 2.0, "constant": -1.0}, {"same_words": 3.0})
    confidence = Confidence(thresholds=(0.25, 0.5), use_asymmetric=True, entailment=weights)
    assert Confidence.from_dict(json.loads(json.dumps(confidence.to_dict()))) == confidence


def test_files_of_earlier_versions_open_with_the_weights_of_today() -> None:
    earlier = {
        "thresholds": [0.5],
        "slope": 12.0,
        "entailment_weights": [2.0, 0.0, 4.0, 4.0, -2.0],
        "paraphrase_weights": [8.0, 0.0, -10.0, -10.0, -6.0],
        "direction_weights": [10.0, 10.0],
    }
    assert Confidence.from_dict(earlier) == Confidence(thresholds=(0.5,), slope=12.0)


def test_features_that_are_gone_are_left_out() -> None:
    found = EntailmentWeights.from_dict({"entails": {"similarity": 1, "luck": 9}, "paraphrase": {}})
    assert found == EntailmentWeights({"similarity": 1.0}, {})


@pytest.mark.parametrize("values", [{"entails": {}}, {"entails": {}, "paraphrase": {"similarity": "much"}}])
def test_damaged_weights_are_refused(values: dict[str, object]) -> None:
    with pytest.raises((TypeError, ValueError)):
        EntailmentWeights.from_dict(values)
