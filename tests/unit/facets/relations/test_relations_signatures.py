"""What kinds of arguments say against relations: dates and numbers for sure, others by their odds."""

import numpy as np

from facets.relations import EntityType
from facets.relations.details import RelationDetails
from facets.relations.signatures import refused_types, type_penalties

BORN = RelationDetails(head=(EntityType.PERSON,), tail=(EntityType.PLACE,))
BORN_ON = RelationDetails(head=(EntityType.PERSON,), tail=(EntityType.DATE, EntityType.NUMBER))
COLUMNS = {kind: column for column, kind in enumerate(EntityType)}


def test_dates_are_refused_where_none_is_taken_and_others_where_only_dates_are() -> None:
    _, tails = refused_types([BORN, BORN_ON, RelationDetails()])
    assert tails[:, COLUMNS[EntityType.DATE]].tolist() == [True, False, False]
    assert tails[:, COLUMNS[EntityType.PLACE]].tolist() == [False, True, False]
    assert not tails[:, COLUMNS[EntityType.UNKNOWN]].any()
    assert refused_types([]).shape == (2, 0, len(COLUMNS))


def test_kinds_only_speak_against_relations_and_unknown_ones_say_nothing() -> None:
    log_odds = np.zeros((2, 2, len(COLUMNS)), dtype=np.float32)
    log_odds[0, 0, COLUMNS[EntityType.WORK]] = 4.0
    log_odds[0, 0, COLUMNS[EntityType.PERSON]] = log_odds[0, 0, COLUMNS[EntityType.PLACE]] = -4.0
    penalties = type_penalties(log_odds)
    of_work = {kind: penalties[0, 0, column] for kind, column in COLUMNS.items()}
    assert (penalties <= 0).all() and not penalties[1].any() and not penalties[0, 1].any()
    assert of_work[EntityType.WORK] == of_work[EntityType.UNKNOWN] == 0
    # A title is taken for an organization more often than for a person.
    assert of_work[EntityType.PERSON] < of_work[EntityType.ORGANIZATION] < 0
