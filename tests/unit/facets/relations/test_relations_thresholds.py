"""Numbers fitted on development data, in their file."""

import json

import pytest

from facets.errors import ConfigError
from facets.relations.thresholds import Confidence, EntailmentWeights


def test_what_was_written_is_read_again() -> None:
    weights = EntailmentWeights(entails={"similarity": 2.0, "constant": -1.0}, paraphrase={"same_words": 3.0})
    confidence = Confidence(thresholds=(0.25, 0.5), use_asymmetric=True, entailment=weights)
    assert Confidence.from_dict(json.loads(json.dumps(confidence.to_dict()))) == confidence


@pytest.mark.parametrize(
    "values",
    [
        {"entails": {}, "threshold": 0.5},
        {"entails": {}, "paraphrase": {"similarity": "much"}, "threshold": 0.5},
        {"entails": {"luck": 9.0}, "paraphrase": {}, "threshold": 0.5},
    ],
)
def test_damaged_weights_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        EntailmentWeights.from_dict(values)
