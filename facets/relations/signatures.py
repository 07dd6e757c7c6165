"""What the kinds of its arguments say against a relation.

Whether something is a date or a number is known for sure, and rules a relation out that takes none. Other kinds are not
sure, as titles are taken for organizations: what they say is softened by how often a recognizer errs. It only counts
against a relation: that a person and a place fit ``residence`` says nothing for it, as so many relations take these.

Shape suffixes: R relations, T types.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from facets.relations.details import RelationDetails
from facets.relations.entity_types import EntityType

__all__ = ["VALUES", "refused_types", "type_penalties"]

VALUES = frozenset([EntityType.DATE, EntityType.NUMBER])

# As what a recognizer (spaCy's small English pipeline) takes names of each kind: 2,500 openings of Wikipedia articles,
# 3,000 names of known kinds. What is left to 1 is not known.
_TAKEN_FOR = {
    EntityType.PERSON: {EntityType.PERSON: 0.70, EntityType.ORGANIZATION: 0.12, EntityType.PLACE: 0.04},
    EntityType.ORGANIZATION: {
        EntityType.ORGANIZATION: 0.69,
        EntityType.PLACE: 0.08,
        EntityType.PERSON: 0.06,
        EntityType.WORK: 0.06,
        EntityType.GROUP: 0.03,
    },
    EntityType.PLACE: {EntityType.PLACE: 0.74, EntityType.ORGANIZATION: 0.11, EntityType.PERSON: 0.09},
    EntityType.WORK: {
        EntityType.WORK: 0.56,
        EntityType.ORGANIZATION: 0.14,
        EntityType.PLACE: 0.14,
        EntityType.PERSON: 0.07,
    },
    EntityType.EVENT: {
        EntityType.EVENT: 0.32,
        EntityType.ORGANIZATION: 0.22,
        EntityType.PLACE: 0.18,
        EntityType.WORK: 0.09,
        EntityType.PERSON: 0.08,
    },
    EntityType.GROUP: {EntityType.GROUP: 0.33, EntityType.ORGANIZATION: 0.35, EntityType.PERSON: 0.09},
    EntityType.THING: {
        EntityType.GROUP: 0.54,
        EntityType.ORGANIZATION: 0.11,
        EntityType.WORK: 0.08,
        EntityType.PERSON: 0.07,
        EntityType.PLACE: 0.06,
        EntityType.THING: 0.02,
    },
    EntityType.DATE: {EntityType.DATE: 1.0},
    EntityType.NUMBER: {EntityType.NUMBER: 1.0},
}
# Kinds of entities in general, in the same openings.
_SHARES = {
    EntityType.PERSON: 0.22,
    EntityType.ORGANIZATION: 0.12,
    EntityType.PLACE: 0.40,
    EntityType.WORK: 0.06,
    EntityType.EVENT: 0.04,
    EntityType.GROUP: 0.02,
    EntityType.THING: 0.08,
    EntityType.DATE: 0.04,
    EntityType.NUMBER: 0.02,
}
_DOUBT = 0.1  # of a relation's own pairs, which may be of kinds not seen in training


def type_penalties(log_odds: NDArray[np.float32]) -> NDArray[np.float32]:
    """What recognized kinds say against relations, ``[2, R, T]``, at most 0.

    Args:
        log_odds: Of the kinds of heads and of tails, ``[2, R, T]``: how much likelier a kind is than in general.
    """
    kinds = list(EntityType)
    shares_T = np.array([_SHARES.get(kind, 0.0) for kind in kinds])
    taken_TT = np.array([[_TAKEN_FOR.get(kind, {}).get(other, 0.0) for other in kinds] for kind in kinds])
    of_relation = np.exp(log_odds) * shares_T
    of_relation /= of_relation.sum(axis=-1, keepdims=True)
    of_relation = (1.0 - _DOUBT) * of_relation + _DOUBT * shares_T
    recognized, in_general = of_relation @ taken_TT, shares_T @ taken_TT
    known_T = in_general > 0
    penalties = np.zeros(log_odds.shape, dtype=np.float32)
    penalties[..., known_T] = np.log(recognized[..., known_T] / in_general[known_T])
    return np.minimum(penalties, 0.0)


def refused_types(details: Sequence[RelationDetails]) -> NDArray[np.bool_]:
    """What heads and tails of relations cannot be, ``[2, R, T]`` in the order of ``EntityType``.

    Args:
        details: What each relation takes; one that takes anything refuses nothing.

    Example:
        >>> born = RelationDetails(head=(EntityType.PERSON,), tail=(EntityType.PLACE,))
        >>> heads, tails = refused_types([born])
        >>> [kind.value for kind, refused in zip(EntityType, tails[0], strict=True) if refused]
        ['date', 'number']
    """
    refused = [
        [[_is_refused(kind, frozenset(taken)) for kind in EntityType] for taken in side]
        for side in ([own.head for own in details], [own.tail for own in details])
    ]
    return np.array(refused, dtype=np.bool_).reshape(2, len(details), len(EntityType))


def _is_refused(kind: EntityType, taken: frozenset[EntityType]) -> bool:
    if kind is EntityType.UNKNOWN or not taken:
        return False
    return kind not in taken if kind in VALUES else taken <= VALUES
