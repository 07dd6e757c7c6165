"""Pairs of patterns that are labelled: the format of Paul et al. 2021, and that of Levy and Holt.

Shape suffixes: P pairs.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError
from facets.relations.patterns import ARG1, ARG2
from facets_lab.evaluation.files import read_lines

__all__ = ["LABELS", "EntailmentData", "read_entailment"]

LABELS = (">", "<", ":", "N")
# By whether the second triple entails the first.
_FOLLOWS = {"True": (">", ":"), "False": ("<", "N")}
_PLURAL = re.compile("(ies|es|s|y|e)$")
_DETERMINERS = frozenset("the a an this that these those some any his her its their our my your of in".split())


@dataclass(frozen=True, slots=True)
class EntailmentData:
    """Candidate pairs.

    Attributes:
        premises: The specific pattern of each pair.
        hypotheses: The general one.
        possible: Which of ``LABELS`` each may have, ``[P, 4]``: ``>`` the premise entails the hypothesis, ``<`` the
            reverse, ``:`` paraphrase, ``N`` neither. One where both directions were judged, else two.
        frequencies: Entity pairs of premise and hypothesis, ``[P, 2]``; 0 where the file does not say.
        is_judged_one_way: Each row was judged in one direction, whether the premise entails the hypothesis, and that
            is what average precision is about; else it is about entailment in either direction that is no paraphrase.
    """

    premises: list[str]
    hypotheses: list[str]
    possible: NDArray[np.bool_]
    frequencies: NDArray[np.float64]
    is_judged_one_way: bool

    @property
    def directions(self) -> NDArray[np.int64]:
        """1 for ``>``, -1 for ``<``, 0 where there is no entailment, or paraphrase, or it is not known; ``[P]``."""
        is_known_P = self.possible.sum(axis=1) == 1
        return np.where(is_known_P & self.possible[:, 0], 1, np.where(is_known_P & self.possible[:, 1], -1, 0))

    @property
    def relevant(self) -> NDArray[np.bool_]:
        """What average precision counts as found, ``[P]``."""
        return ~self.possible[:, 3] & ~self.possible[:, 1] if self.is_judged_one_way else self.directions != 0

    @property
    def hypernyms(self) -> list[str]:
        """The words of each hypothesis that its premise does not have; direction is averaged over these."""
        return [
            " ".join(word for word in hypothesis.split() if word not in premise.split())
            for premise, hypothesis in zip(self.premises, self.hypotheses, strict=True)
        ]


def read_entailment(path: Path) -> EntailmentData:
    """Reads one of two formats; the first line says which.

    ``label (> < : N)<TAB>specific<TAB>general<TAB>frequency<TAB>frequency`` has two patterns and both directions.
    ``triple<TAB>triple<TAB>True or False`` says whether the second triple entails the first; a triple is ``entity,
    words, entity``. Its patterns: the words of the first one between ``$ARG1`` and ``$ARG2``; those of the second too,
    or between ``$ARG2`` and ``$ARG1`` where the entity that both share stands on the other side. The other entity of
    one of them is a word for its kind (``person``, ``material``). Where a file has a pair both ways round, both
    judgements make the label.

    Raises:
        InvalidInputError: A bad line; the message names file and line.
        ConfigError: The file cannot be read.
    """
    lines = [(where, line.split("\t")) for where, line in read_lines(path) if line.strip()]
    is_judged_one_way = bool(lines) and len(lines[0][1]) == 3
    read = _triples if is_judged_one_way else _labelled
    rows = [read(where, parts) for where, parts in lines]
    data = EntailmentData(
        [premise for premise, _, _, _ in rows],
        [hypothesis for _, hypothesis, _, _ in rows],
        np.array([[label in labels for label in LABELS] for _, _, labels, _ in rows], dtype=bool).reshape(-1, 4),
        np.array([frequencies for *_, frequencies in rows], dtype=np.float64).reshape(-1, 2),
        is_judged_one_way,
    )
    if is_judged_one_way:
        _combine_directions(data)
    if not data.relevant.any():
        raise InvalidInputError(f"{path} must have a pair with entailment, got none in {len(rows)} rows")
    return data


_Row = tuple[str, str, tuple[str, ...], tuple[float, float]]


def _labelled(where: str, parts: list[str]) -> _Row:
    if len(parts) != 5 or parts[0] not in LABELS or not (parts[3].isdigit() and parts[4].isdigit()):
        got = "\t".join(parts)[:80]
        raise InvalidInputError(
            f"{where}: expected label (> < : N)<TAB>pattern<TAB>pattern<TAB>frequency<TAB>frequency, got {got!r}"
        )
    for pattern in parts[1:3]:
        if pattern.count(ARG1) != 1 or pattern.count(ARG2) != 1:
            raise InvalidInputError(f"{where}: expected {ARG1} and {ARG2} once in each pattern, got {pattern!r}")
    return parts[1], parts[2], (parts[0],), (float(parts[3]), float(parts[4]))


def _triples(where: str, parts: list[str]) -> _Row:
    triples = [[field.strip() for field in part.split(",")] for part in parts[:2]]
    if len(parts) != 3 or parts[2] not in _FOLLOWS or any(len(t) != 3 or not all(t) for t in triples):
        got = "\t".join(parts)[:80]
        raise InvalidInputError(
            f"{where}: expected entity, words, entity<TAB>entity, words, entity<TAB>True or False, got {got!r}"
        )
    first, second = triples
    straight = _likeness(first[0], second[0]) + _likeness(first[2], second[2])
    crossed = _likeness(first[0], second[2]) + _likeness(first[2], second[0])
    premise = f"{ARG2} {second[1]} {ARG1}" if crossed > straight else f"{ARG1} {second[1]} {ARG2}"
    return premise, f"{ARG1} {first[1]} {ARG2}", _FOLLOWS[parts[2]], (0.0, 0.0)


def _likeness(entity: str, other: str) -> float:
    """Share of the words of the shorter one that both have: ``medicine``, ``these medicines``."""
    first, second = ({_PLURAL.sub("", word) for word in name.lower().split()} for name in (entity, other))
    first, second = first - _DETERMINERS, second - _DETERMINERS
    return len(first & second) / max(1, min(len(first), len(second)))


def _combine_directions(data: EntailmentData) -> None:
    """Leaves one label where a pair stands in the file both ways round: the second row's is read backwards."""
    keys = [(_ordered(p, h), _ordered(h, p)) for p, h in zip(data.premises, data.hypotheses, strict=True)]
    judged = {own: possible.copy() for (own, _), possible in zip(keys, data.possible, strict=True)}
    for place, (_, reverse) in enumerate(keys):
        if reverse in judged:
            both = data.possible[place] & judged[reverse][[1, 0, 2, 3]]
            if both.any():
                data.possible[place] = both


def _ordered(premise: str, hypothesis: str) -> tuple[str, str]:
    """The same for a pair and the pair with all arguments exchanged."""
    if premise.index(ARG1) < premise.index(ARG2):
        return premise, hypothesis
    exchange = {ARG1: ARG2, ARG2: ARG1}
    first, second = (" ".join(exchange.get(word, word) for word in text.split()) for text in (premise, hypothesis))
    return first, second
