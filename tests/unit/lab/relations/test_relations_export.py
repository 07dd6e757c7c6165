import numpy as np
from facets_lab.relations.catalogue import RelationCatalogue
from facets_lab.relations.export import type_log_odds

from facets.relations import EntityType

KINDS = list(EntityType)
PERSON, PLACE, DATE, UNKNOWN = map(
    KINDS.index, (EntityType.PERSON, EntityType.PLACE, EntityType.DATE, EntityType.UNKNOWN)
)


def catalogue(**kinds: tuple[list[str], list[str]]) -> RelationCatalogue:
    entries = [
        {"name": name, "head": head, "tail": tail, "example": "[A] is {B}.", "description": "d"}
        for name, (head, tail) in kinds.items()
    ]
    return RelationCatalogue.from_dict({"relation": entries})


CATALOGUE = catalogue(born=(["person"], ["place"]), birthday=(["person"], ["date"]), within=(["place"], ["place"]))


def test_signature_decides_where_no_pair_is_known() -> None:
    head, tail = type_log_odds([], CATALOGUE, {})
    assert head.shape == tail.shape == (3, len(KINDS))
    assert head.dtype == np.float32
    assert head[0, PERSON] > 0 > head[0, PLACE]
    assert tail[0, PLACE] > tail[0, DATE]
    assert tail[1].argmax() == DATE
    assert head[2, PLACE] > head[0, PLACE]
    assert not head[:, UNKNOWN].any()
    assert np.abs(tail).max() <= 4


def test_pairs_move_the_odds_and_dates_are_known_by_their_form() -> None:
    types = {f"Ann {i}": EntityType.PERSON for i in range(100)}
    dated = [(name, "1950-05-03", "born") for name in types]
    _, before = type_log_odds([], CATALOGUE, types)
    _, after = type_log_odds(dated, CATALOGUE, types)
    assert after[0, DATE] > before[0, DATE]
    assert after[0, PLACE] < before[0, PLACE]
