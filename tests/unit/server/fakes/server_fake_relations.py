"""The engine of relations around a made model: patterns are alike by words they share in one order of arguments."""

import numpy as np
from facets_server.relations.service import ServedRelations

from facets.language.tokenizer import Tokenizer
from facets.language.vectors import unit_rows
from facets.relations.engine import RelationEngine
from facets.relations.entities import EntityType
from facets.relations.patterns import ARG1, ARG2
from facets.relations.tables import Confidence, PatternTable, RelationDetails, RelationTable

TRAINED = {
    "birthPlace": ("$ARG1 was born in $ARG2", "$ARG1 , a native of $ARG2"),
    "employer": ("$ARG1 works for $ARG2", "$ARG1 works at $ARG2"),
    "spouse": ("$ARG1 is married to $ARG2", "$ARG1 , the wife of $ARG2"),
}
NUM_FACETS, _DIM = 2, 512


class MadeModel:
    """What ``RelationEngine`` needs of a model; facets of a pattern are all its words, places by a hash of each."""

    task, revision, space = "relations", "r1", "fake"
    num_facets, dim, max_tokens, vocabulary_size = NUM_FACETS, 8, 20, 100
    num_relation_facets = 2

    def __init__(self, name):
        self.name = name
        self.tokenizer = Tokenizer()
        examples = [[example.split() for example in own] for own in TRAINED.values()]
        facets = np.stack([self.pattern_vectors(own) for own in examples])
        self.relations = RelationTable(
            names=tuple(TRAINED),
            num_pairs=(10,) * len(TRAINED),
            facets=facets,
            confidence=Confidence(thresholds=(0.6,) * len(TRAINED), slope=100.0),
            patterns=((),) * len(TRAINED),
            details=(RelationDetails(),) * len(TRAINED),
            type_log_odds=np.zeros((2, len(TRAINED), len(EntityType)), np.float32),
        )
        known = [pattern for own in examples for pattern in own]
        rows = {" ".join(pattern): row for row, pattern in enumerate(known)}
        of_relations = unit_rows(np.repeat(np.eye(len(TRAINED), dtype=np.float32), 2, axis=0))
        self.table = PatternTable(
            rows, of_relations, np.eye(len(TRAINED), dtype=np.float32), counts=np.arange(len(known), 0, -1)
        )

    def pattern_vectors(self, patterns):
        vectors = np.zeros((len(patterns), _DIM), np.float32)
        for row, pattern in enumerate(patterns):
            order = int(pattern.index(ARG1) > pattern.index(ARG2)) * (_DIM // 2)
            for word in pattern:
                if word not in (ARG1, ARG2):
                    vectors[row, order + sum(word.encode()) % (_DIM // 2)] += 1.0
            vectors[row, order] += 0.01  # no pattern is without a word
        return unit_rows(vectors)

    def encode_patterns(self, patterns):
        return np.repeat(self.pattern_vectors(patterns)[:, None], NUM_FACETS, axis=1)


def fake_relations(name="fake-relations"):
    """A served engine around a made model."""
    model = MadeModel(name)
    return ServedRelations(model, RelationEngine(model))
