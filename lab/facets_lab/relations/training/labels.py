"""Patterns that are known to say a relation, or none: phrases of a catalogue's relations.

Shape suffixes: P patterns, R relations.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.language.tokenizer import Tokenizer
from facets.relations.patterns import ARG1, ARG2, ENTITY, mirrored, tokenize_patterns
from facets_lab.relations.training.catalogue import RelationCatalogue
from facets_lab.relations.training.verbalization import name_patterns

__all__ = ["LabelledPatterns", "composed", "label_patterns"]

_NAMES_OF_A_RELATION = 3  # itself and two aliases are put into words


@dataclass(frozen=True, slots=True)
class LabelledPatterns:
    """Patterns and what they say.

    Attributes:
        relations: Canonical names, ``R``.
        is_symmetric: Relations that hold both ways round, ``[R]``.
        patterns: Distinct tokenized patterns that say a relation, ``P``.
        labels: ``[P, R]``, True where the pattern says the relation with ``$ARG1`` as head.
        others: Tokenized patterns that say none of the relations.
    """

    relations: tuple[str, ...]
    is_symmetric: NDArray[np.bool_]
    patterns: list[tuple[str, ...]]
    labels: NDArray[np.bool_]
    others: list[tuple[str, ...]]


def label_patterns(
    catalogue: RelationCatalogue, phrases: Mapping[str, Sequence[str]], none_patterns: Sequence[str]
) -> LabelledPatterns:
    """Phrases and names of the relations as patterns; those of symmetric relations also the other way round.

    Args:
        catalogue: The relations.
        phrases: Patterns by canonical relation.
        none_patterns: Patterns that say none of them; they count both ways round.

    Raises:
        InvalidInputError: A pattern lacks an argument or has one twice.
    """
    tokenizer = Tokenizer()
    relations_of: dict[tuple[str, ...], set[int]] = {}
    for place, entry in enumerate(catalogue.relation):
        names = (entry.name, *entry.aliases)[:_NAMES_OF_A_RELATION]
        said = [*phrases.get(entry.name, ()), *(pattern for name in names for pattern in name_patterns(name))]
        for tokens in tokenize_patterns(said, tokenizer, path=("phrases", entry.name)):
            for pattern in (tokens, mirrored(tokens)) if entry.symmetric else (tokens,):
                relations_of.setdefault(pattern, set()).add(place)
    labels = np.zeros((len(relations_of), len(catalogue.relation)), dtype=np.bool_)
    for row, places in enumerate(relations_of.values()):
        labels[row, list(places)] = True
    others = tokenize_patterns(none_patterns, tokenizer, path=("none_patterns",))
    both_ways = dict.fromkeys([*others, *map(mirrored, others)])
    return LabelledPatterns(
        relations=tuple(entry.name for entry in catalogue.relation),
        is_symmetric=np.array([entry.symmetric for entry in catalogue.relation]),
        patterns=list(relations_of),
        labels=labels,
        others=[pattern for pattern in both_ways if pattern not in relations_of],
    )


def composed(pattern: tuple[str, ...], other: tuple[str, ...], form: int) -> tuple[str, ...]:
    """A pattern beside another fact of the same head, whose tail is an entity like any other.

    Args:
        pattern: What is said of the arguments.
        other: What is said beside it.
        form: Which of the forms of a sentence, counted from 0 and in turn.

    Returns:
        The pattern alone where either does not begin with the head and end with the tail.

    Example:
        >>> mass, speed = "$ARG1 has a mass of $ARG2".split(), "$ARG1 has a speed of $ARG2".split()
        >>> " ".join(composed(tuple(speed), tuple(mass), 0))
        '$ARG1 has a mass of $ENT and has a speed of $ARG2'
    """
    if any(p[0] != ARG1 or p[-1] != ARG2 for p in (pattern, other)):
        return pattern
    rest, clause = pattern[1:], (*other[1:-1], ENTITY)
    forms = (
        (ARG1, *clause, "and", *rest),
        (ARG1, *clause, ",", *rest),
        (ARG1, ",", "which", *clause, ",", *rest),
        (ARG1, "(", ENTITY, ")", *rest),
    )
    return forms[form % len(forms)]
