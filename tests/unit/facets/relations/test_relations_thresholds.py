"""Numbers fitted on development data, in their file."""

import pytest

from facets.errors import ConfigError
from facets.relations.thresholds import EntailmentWeights


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
