"""Patterns made from triples: what a relation's name and its phrases say, alone and two triples in one sentence.

A knowledge base and a corpus share few entity pairs, so that many relations would meet no pattern at all. Facts can be
put into words: by the words of the relation's name, by phrases from a file, and as a clause beside another fact of the
same head (``$ARG1 has a mass of $ENT and a density of $ARG2``), which shows what belongs to which argument.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from facets.errors import InvalidInputError
from facets.relations.patterns import ARG1, ARG2, ENTITY
from facets.text.files import read_lines

__all__ = ["Triple", "name_patterns", "name_words", "read_phrases", "verbalize"]

_CAMEL = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_SPACES = re.compile(r"\s+")
_COMPOSITES = 4  # of each triple


@dataclass(frozen=True, slots=True)
class Triple:
    """``relation(head, tail)``, names as the knowledge base writes them."""

    head: str
    tail: str
    relation: str


def read_phrases(path: Path) -> dict[str, list[str]]:
    """Phrases by relation: ``relation<TAB>pattern`` a line.

    Raises:
        InvalidInputError: A bad line; the message names file and line.
        ConfigError: The file cannot be read.
    """
    phrases: dict[str, list[str]] = {}
    for number, line in enumerate(read_lines(path), start=1):
        relation, tab, pattern = line.partition("\t")
        tokens = pattern.split()
        if not tab or not relation or tokens.count(ARG1) != 1 or tokens.count(ARG2) != 1:
            raise InvalidInputError(
                f"{path}, line {number}: expected relation<TAB>pattern with {ARG1} and {ARG2}, got {line[:80]!r}"
            )
        phrases.setdefault(relation, []).append(" ".join(tokens))
    return phrases


def name_words(relation: str) -> list[str]:
    """Lower-case words of a relation's name.

    Example:
        >>> name_words("leaderName"), name_words("associatedBand/associatedMusicalArtist")[:3]
        (['leader', 'name'], ['associated', 'band', 'associated'])
    """
    return [word.lower() for word in _CAMEL.findall(relation.replace("_", " "))]


def name_patterns(relation: str) -> list[str]:
    """Patterns that say a relation by the words of its name.

    Example:
        >>> name_patterns("leaderName")[0]
        "$ARG1 's leader name is $ARG2"
    """
    patterns = []
    for alternative in re.split(r"[/(]", relation):
        words = " ".join(name_words(alternative))
        if words:
            patterns += [
                f"{ARG1} 's {words} is {ARG2}",
                f"{ARG1} has the {words} {ARG2}",
                f"{ARG2} is the {words} of {ARG1}",
                f"{ARG1} {words} {ARG2}",
            ]
    return [_SPACES.sub(" ", pattern) for pattern in dict.fromkeys(patterns)]


def verbalize(
    triples: Sequence[Triple], phrases: Mapping[str, Sequence[str]], *, seed: int
) -> Iterator[tuple[Triple, list[str]]]:
    """Patterns of each triple: all phrases of its relation, and a few of them beside another triple of its head.

    Args:
        triples: The knowledge base.
        phrases: Patterns by relation, beside ``name_patterns``.
        seed: Of the choice among the combinations.
    """
    own = {t.relation: [*name_patterns(t.relation), *phrases.get(t.relation, ())] for t in triples}
    by_head: dict[str, list[str]] = defaultdict(list)
    for triple in triples:
        by_head[triple.head].append(triple.relation)
    rng = np.random.default_rng([seed, 20])
    for triple in triples:
        simple = own[triple.relation]
        others = [relation for relation in by_head[triple.head] if relation != triple.relation]
        composed = []
        # Pairs of phrases that both begin with the head; the other fact's tail is an entity like any other.
        rests = [p.removeprefix(f"{ARG1} ") for p in simple if p.startswith(f"{ARG1} ")]
        for _ in range(_COMPOSITES if rests else 0):
            relation = (
                others[rng.integers(len(others))] if others else triples[int(rng.integers(len(triples)))].relation
            )
            beside = [p.replace(ARG2, ENTITY) for p in own[relation] if p.startswith(f"{ARG1} ")]
            if beside:
                first, rest = beside[rng.integers(len(beside))], rests[rng.integers(len(rests))]
                clause = first.removeprefix(f"{ARG1} ")
                composed.append(
                    (
                        f"{first} and {rest}",
                        f"{first} , {rest}",
                        f"{ARG1} , which {clause} , {rest}",
                        f"{ARG1} ( {ENTITY} ) {rest}",
                    )[rng.integers(4)]
                )
        yield triple, [*simple, *composed]
