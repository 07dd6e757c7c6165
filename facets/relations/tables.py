"""What a relation model knows besides its network: relations and their meanings, their facets, the seen patterns.

Argument types only count against a relation: a person and a place fit ``residence`` and many others.
Whether something is a date or a number is certain and rules out relations that do not take one. Other types are
uncertain, so their penalties are softened according to how often a recogniser errs.
Shape suffixes: R relations, J relation facets, P patterns, D dimensions, T entity types.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field, TypeAdapter

from facets.arrays import Bools, Floats, Ints
from facets.config import Settings
from facets.relations.entities import VALUES, EntityType
from facets.storage.files import reading, write_whole

_MODEL_FEATURES = (
    "coverage",  # how well the premise's facets cover the hypothesis' (eq. 3.10)
    "generality",  # how much better the hypothesis' facets cover other patterns than the premise's facets do
    "similarity",  # cosine of the sentence vectors, at least 0
)
WORD_FEATURES = (
    "hypernym",  # a word of the premise is a kind of one of the hypothesis: assassinated, killed
    "same_words",  # share of common words, on the side where it is smaller
    "hedged",  # the premise is possible or attempted, the hypothesis is stated
    "roles_exchanged",  # the roles are exchanged: defeated, was defeated by
    "opposite",  # opposites: buy, sell
    "converse",  # converses: husband, wife, with the arguments exchanged
    "negated",  # one side is negated and the other is not
    "doubted",  # one side is possible, attempted or reported, and the other is stated
    "implied",  # according to the table of relations, the hypothesis follows
    "apart",  # the table of relations knows both sides, and the hypothesis does not follow
)
FEATURES = (*_MODEL_FEATURES, *WORD_FEATURES)
CONSTANT = "constant"
# Means over both directions, and absolute differences.
PARAPHRASE_FEATURES = (*FEATURES, *(f"{name}_difference" for name in FEATURES))
# Prior weights, kept where the pairs give no evidence: similarity makes entailment possible; exchanged roles,
# opposites and negation rule it out.
_ENTAILS = {
    CONSTANT: -9.5,
    "coverage": 4.0,
    "generality": 1.0,
    "similarity": 10.0,
    "hypernym": 4.0,
    "hedged": -2.0,
    "roles_exchanged": -6.0,
    "opposite": -6.0,
    "negated": -6.0,
    "doubted": -1.75,
    "implied": 4.0,
    "apart": -1.0,
}
_PARAPHRASE = {
    CONSTANT: -11.0,
    "coverage": 4.0,
    "similarity": 12.0,
    "same_words": 2.0,
    "hypernym_difference": -2.0,
    "hedged_difference": -4.0,
    "roles_exchanged": -8.0,
    "opposite": -8.0,
    "converse": 3.0,
    "negated": -8.0,
    "doubted": -4.0,
    "implied": 6.0,
    "implied_difference": -4.0,
    "apart": -1.5,
}


class EntailmentWeights(Settings):
    """Weights of features by name; a missing feature has weight 0."""

    # Weights of `FEATURES` and `CONSTANT`, for "the premise entails the hypothesis"; the reverse uses the same weights
    # with the sides exchanged.
    entails: Mapping[str, float] = _ENTAILS
    paraphrase: Mapping[str, float] = _PARAPHRASE  # weights of `PARAPHRASE_FEATURES` and `CONSTANT`
    threshold: float = 0.5  # a label other than neutral needs this probability of entailment in one direction


class Confidence(Settings):
    """Numbers fitted on development data."""

    thresholds: Annotated[tuple[float, ...], Field(strict=False)]  # lowest accepted score, by relation
    default_threshold: float = 0.5  # for relations added later
    use_asymmetric: bool = False  # score facets by eq. 3.10 with the pattern as premise, not by eq. 3.11
    margin: float = 2.0  # a relation is accepted only if its score is at most this far below the pattern's best
    # `probability = 1 / (1 + exp(-slope * (score - threshold) - gap_slope * gap - offset))`; the gap is the score minus
    # the pattern's best.
    slope: float = 10.0
    gap_slope: float = 0.0
    offset: float = 0.0
    # The look-up score is `schema_scale * cosine + schema_shift`. If the two numbers sum to more than 1, all scores
    # are divided by the sum.
    schema_scale: float = 1.0
    schema_shift: float = 0.0
    type_weight: float = 0.08  # weight of the log-odds of an argument's type
    entailment: EntailmentWeights = EntailmentWeights()


# Names of the tables among a model's weights: unit rows, and log-odds of heads, then of tails.
TABLES = ("relations.facets", "table.patterns", "table.relations", "relations.types")
FACETS, SEEN_PATTERNS, SEEN_RELATIONS, TYPES = TABLES
_RELATIONS_FILE = "relations.json"
_PATTERNS_FILE = "patterns.txt"
_CONFIDENCE = "calibration"  # key of the confidence in the file
# Types that spaCy's small English pipeline gives to entities of each type, in 2,500 openings of Wikipedia articles with
# 3,000 names of known types. Rows that sum to less than 1 leave the rest unknown.
_RECOGNISED_AS = {
    "person": dict(person=0.70, organization=0.12, place=0.04),
    "organization": dict(organization=0.69, place=0.08, person=0.06, work=0.06, group=0.03),
    "place": dict(place=0.74, organization=0.11, person=0.09),
    "work": dict(work=0.56, organization=0.14, place=0.14, person=0.07),
    "event": dict(event=0.32, organization=0.22, place=0.18, work=0.09, person=0.08),
    "group": dict(group=0.33, organization=0.35, person=0.09),
    "thing": dict(group=0.54, organization=0.11, work=0.08, person=0.07, place=0.06, thing=0.02),
    "date": dict(date=1.0),
    "number": dict(number=1.0),
}
# Share of each type in the same openings.
_TYPE_SHARES = dict(
    person=0.22, organization=0.12, place=0.40, work=0.06, event=0.04, group=0.02, thing=0.08, date=0.04, number=0.02
)
_UNSEEN_SHARE = 0.1  # share of a relation's pairs that may have types not seen in training


@dataclass(frozen=True, kw_only=True, slots=True)
class RelationDetails:
    """Meaning of a relation; every field may be left out."""

    description: str = ""  # one line
    example: str = ""  # a sentence with the head in `[..]` and the tail in `{..}`
    aliases: tuple[str, ...] = ()  # other names of the relation
    inverse_aliases: tuple[str, ...] = ()  # names of the relation with head and tail exchanged
    head_types: tuple[EntityType, ...] = ()  # types of heads; empty: any
    tail_types: tuple[EntityType, ...] = ()  # types of tails; empty: any
    symmetric: bool = False  # holds in both directions
    pairs: tuple[tuple[str, str], ...] = ()  # well-known heads and tails

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "RelationDetails":
        """Creates a record from an entry of the file; other keys are ignored."""
        keys = {own.name: own.name.removesuffix("_types") for own in fields(RelationDetails)}
        known = {name: values[key] for name, key in keys.items() if key in values}
        return _DETAILS.validate_python(known)

    def to_dict(self) -> dict[str, object]:
        """The entry for the file, without empty values."""
        values = {own.name.removesuffix("_types"): getattr(self, own.name) for own in fields(RelationDetails)}
        return {name: value for name, value in values.items() if value}


_DETAILS = TypeAdapter(RelationDetails)


@dataclass(frozen=True, slots=True)
class RelationTable:
    """Relations and their facets."""

    names: tuple[str, ...]  # `R` distinct names
    num_pairs: tuple[int, ...]  # number of entity pairs that each was trained on
    facets: Floats  # `[R, J, D]` float32, unit length
    confidence: Confidence  # turns scores into decisions and probabilities
    patterns: tuple[tuple[int, ...], ...]  # rows of patterns that share entity pairs with each relation, most first
    details: tuple[RelationDetails, ...]
    # For heads and tails, `[2, R, T]` float32 in the order of `EntityType`: log-odds of a type, against all entities.
    type_log_odds: Floats
    refused_types: Bools = field(init=False)  # see `refused_types`
    type_penalties: Floats = field(init=False)  # see `type_penalties`

    def __post_init__(self) -> None:
        object.__setattr__(self, "refused_types", refused_types(self.details))
        object.__setattr__(self, "type_penalties", type_penalties(self.type_log_odds))

    @property
    def symmetric_names(self) -> frozenset[str]:
        """Relations that hold in both directions."""
        return frozenset(name for name, details in zip(self.names, self.details, strict=True) if details.symmetric)

    def meanings(self) -> dict[str, tuple[str, bool]]:
        """The relation that each name and alias stands for, and whether head and tail are exchanged."""
        meanings: dict[str, tuple[str, bool]] = {}
        for name, details in zip(self.names, self.details, strict=True):
            for aliases, is_inverse in (((name, *details.aliases), False), (details.inverse_aliases, True)):
                for alias in aliases:
                    meanings.setdefault(alias, (name, is_inverse))
        return meanings


@dataclass(frozen=True, slots=True)
class PatternTable:
    """The look-up model (universal schema): seen patterns and relations in a shared space."""

    rows: Mapping[str, int]  # row of each pattern, its tokens joined by blanks
    patterns: Floats  # `[P, D]` float32, unit length
    relations: Floats  # `[R, D]` float32, unit length, in the order of the relation table
    counts: Ints  # `[P]`, number of entity pairs each pattern was seen with

    def find(self, patterns: Sequence[Sequence[str]]) -> Ints:
        """Row of each tokenized pattern; -1 where it was not seen."""
        return np.fromiter((self.rows.get(" ".join(p), -1) for p in patterns), dtype=np.int64, count=len(patterns))


def write_tables(folder: Path, relations: RelationTable, patterns: PatternTable) -> None:
    """Writes names, numbers and pattern texts; the vectors are among the model's weights."""
    values = {
        "relations": [
            {"name": name, "num_pairs": count, "patterns": list(rows), **details.to_dict()}
            for name, count, rows, details in zip(
                relations.names, relations.num_pairs, relations.patterns, relations.details, strict=True
            )
        ],
        _CONFIDENCE: relations.confidence.to_dict(),
    }
    write_whole(folder / _RELATIONS_FILE, json.dumps(values, ensure_ascii=False) + "\n")
    lines = (f"{pattern}\t{count}\n" for pattern, count in zip(patterns.rows, patterns.counts.tolist(), strict=True))
    write_whole(folder / _PATTERNS_FILE, "".join(lines))


def read_tables(folder: Path, vectors: Mapping[str, Floats]) -> tuple[RelationTable, PatternTable]:
    """Reads what ``write_tables`` wrote; raises CheckpointError if a file is missing, damaged or does not fit.

    ``vectors``: arrays named as in ``TABLES``, with the rows of one relation after another.
    """
    with reading(folder):
        values = json.loads((folder / _RELATIONS_FILE).read_bytes().decode("utf-8"))
        entries = values["relations"]
        names = tuple(str(entry["name"]) for entry in entries)
        confidence = Confidence(**values[_CONFIDENCE])
        lines = (folder / _PATTERNS_FILE).read_bytes().decode("utf-8").split("\n")[:-1]
        counts = {pattern: int(count) for pattern, count in (line.split("\t") for line in lines)}
        num_facets = max(1, len(vectors[FACETS]) // max(1, len(names)))
        lengths = {name: len(rows) for name, rows in vectors.items()} | {"thresholds": len(confidence.thresholds)}
        for name, expected in (
            (FACETS, num_facets * len(names)),
            (SEEN_PATTERNS, len(counts)),
            (SEEN_RELATIONS, len(names)),
            (TYPES, 2 * len(names)),
            ("thresholds", len(names)),
        ):
            if not expected or lengths[name] != expected:
                raise ValueError(f"expected {expected} rows of {name}, got {lengths[name]}")
        relations = RelationTable(
            names=names,
            num_pairs=tuple(int(entry["num_pairs"]) for entry in entries),
            facets=vectors[FACETS].reshape(len(names), num_facets, -1),
            confidence=confidence,
            patterns=tuple(tuple(map(int, entry["patterns"])) for entry in entries),
            details=tuple(map(RelationDetails.from_dict, entries)),
            type_log_odds=vectors[TYPES].reshape(2, len(names), len(EntityType)),
        )
        if any(not 0 <= row < len(counts) for rows in relations.patterns for row in rows):
            raise ValueError(f"rows that are not below {len(counts)}, the length of the pattern table")
    patterns = PatternTable(
        rows={pattern: row for row, pattern in enumerate(counts)},
        patterns=vectors[SEEN_PATTERNS],
        relations=vectors[SEEN_RELATIONS],
        counts=np.array(list(counts.values()), dtype=np.int64),
    )
    return relations, patterns


def type_penalties(log_odds: Floats) -> Floats:
    """How much a recognised type counts against a relation, ``[2, R, T]``, at most 0.

    ``log_odds``: log-odds of the types of heads and of tails, ``[2, R, T]``.
    """
    types = list(EntityType)
    shares_T = np.array([_TYPE_SHARES.get(entity_type, 0.0) for entity_type in types])
    recognised_TT = np.array([[_RECOGNISED_AS.get(t, {}).get(other, 0.0) for other in types] for t in types])
    of_relation = np.exp(log_odds) * shares_T
    of_relation /= of_relation.sum(axis=-1, keepdims=True)
    of_relation = (1.0 - _UNSEEN_SHARE) * of_relation + _UNSEEN_SHARE * shares_T
    for_relation, for_all = of_relation @ recognised_TT, shares_T @ recognised_TT
    known_T = for_all > 0
    penalties = np.zeros(log_odds.shape, dtype=np.float32)
    penalties[..., known_T] = np.log(for_relation[..., known_T] / for_all[known_T])
    return np.minimum(penalties, 0.0)


def refused_types(details: Sequence[RelationDetails]) -> Bools:
    """Types that heads and tails cannot have, ``[2, R, T]`` in the order of ``EntityType``."""
    sides = [relation.head_types for relation in details], [relation.tail_types for relation in details]
    refused = [[[_is_refused(t, frozenset(taken)) for t in EntityType] for taken in side] for side in sides]
    return np.array(refused, dtype=np.bool_).reshape(2, len(details), len(EntityType))


def _is_refused(entity_type: EntityType, taken: frozenset[EntityType]) -> bool:
    if entity_type is EntityType.UNKNOWN or not taken:
        return False
    return entity_type not in taken if entity_type in VALUES else taken <= VALUES
