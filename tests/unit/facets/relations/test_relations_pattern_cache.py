"""Facets of patterns from memory are those of the model, and only so many are kept."""

import numpy as np

from facets.relations import RelationEngine
from facets.relations.pattern_cache import PatternCache

BORN, MET = ("$ARG1", "was", "born", "in", "$ARG2"), ("$ARG1", "met", "$ARG2")


class Counting:
    """Passes patterns on to a model and counts them."""

    def __init__(self, model) -> None:
        self.model = model
        self.encoded = []

    def encode_patterns(self, patterns):
        self.encoded += patterns
        return self.model.encode_patterns(patterns)


def test_patterns_are_encoded_once_and_stay_what_they_are(engine: RelationEngine) -> None:
    counting = Counting(engine.model)
    cache = PatternCache(counting)
    first, again = cache.encode([BORN, MET, BORN]), cache.encode([MET, BORN])
    assert counting.encoded == [BORN, MET]
    np.testing.assert_allclose(first, engine.model.encode_patterns([BORN, MET, BORN]), atol=1e-5)
    np.testing.assert_array_equal(again, first[[1, 2]])
    first[:] = 0.0
    np.testing.assert_array_equal(cache.encode([MET, BORN]), again)


def test_the_patterns_asked_for_longest_ago_are_forgotten(engine: RelationEngine) -> None:
    counting = Counting(engine.model)
    cache = PatternCache(counting, size=1)
    for pattern in (BORN, MET, MET, BORN):
        cache.encode([pattern])
    assert counting.encoded == [BORN, MET, BORN]
    assert cache.encode([]).shape[0] == 0
