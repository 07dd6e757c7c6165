"""What a relation model knows beside its network: relations and what each means, their facets, the seen patterns.

What the kinds of its arguments say counts against a relation only: that a person and a place fit ``residence`` says
nothing for it, as so many relations take these. Whether something is a date or a number is known for sure, and rules a
relation out that takes none. Other kinds are not sure, as titles are taken for organizations: what they say is softened
by how often a recognizer errs.

Shape suffixes: R relations, J relation facets, P patterns, D dimensions, T kinds of entities.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from facets.errors import CheckpointError
from facets.relations.entities import VALUES, EntityType
from facets.relations.thresholds import Confidence
from facets.storage import write_whole

# Names of the tables among a model's weights: unit rows, and log-odds of heads, then of tails.
TABLES = ("relations.facets", "table.patterns", "table.relations", "relations.types")
FACETS, SEEN_PATTERNS, SEEN_RELATIONS, TYPES = TABLES
_RELATIONS_FILE = "relations.json"
_PATTERNS_FILE = "patterns.txt"
_CONFIDENCE = "calibration"  # its name in files
# As what a recognizer (spaCy's small English pipeline) takes names of each kind: 2,500 openings of Wikipedia articles,
# 3,000 names of known kinds. What is left to 1 is not known.
_TAKEN_FOR = {
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
# Kinds of entities in general, in the same openings.
_SHARES = dict(
    person=0.22, organization=0.12, place=0.40, work=0.06, event=0.04, group=0.02, thing=0.08, date=0.04, number=0.02
)
_DOUBT = 0.1  # of a relation's own pairs, which may be of kinds not seen in training


@dataclass(frozen=True, kw_only=True, slots=True)
class RelationDetails:
    """What is known of a relation beside its facets; all of it may be left out."""

    description: str = ""  # one line
    example: str = ""  # a sentence; the head stands in `[..]`, the tail in `{..}`
    aliases: tuple[str, ...] = ()  # other names of the same relation
    inverse_aliases: tuple[str, ...] = ()  # names of the same relation with head and tail exchanged
    head_types: tuple[EntityType, ...] = ()  # what a head may be; empty: anything
    tail_types: tuple[EntityType, ...] = ()  # what a tail may be; empty: anything
    symmetric: bool = False  # holds both ways round
    pairs: tuple[tuple[str, str], ...] = ()  # well-known heads and tails by name

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """From an entry of a file; other keys are left alone.

        Raises:
            ValueError: A kind of entity is unknown, or a pair is none.
        """
        return cls(
            description=str(values.get("description", "")),
            example=str(values.get("example", "")),
            aliases=tuple(map(str, values.get("aliases", ()))),
            inverse_aliases=tuple(map(str, values.get("inverse_aliases", ()))),
            head_types=tuple(map(EntityType, values.get("head", ()))),
            tail_types=tuple(map(EntityType, values.get("tail", ()))),
            symmetric=bool(values.get("symmetric", False)),
            pairs=tuple((str(head), str(tail)) for head, tail in values.get("pairs", ())),
        )

    def to_dict(self) -> dict[str, object]:
        """For a file: what is given."""
        values: dict[str, object] = {
            "description": self.description,
            "example": self.example,
            "aliases": list(self.aliases),
            "inverse_aliases": list(self.inverse_aliases),
            "head": list(self.head_types),
            "tail": list(self.tail_types),
            "symmetric": self.symmetric,
            "pairs": [list(pair) for pair in self.pairs],
        }
        return {name: value for name, value in values.items() if value}


@dataclass(frozen=True, slots=True)
class RelationTable:
    """Relations and their facets."""

    names: tuple[str, ...]  # `R` distinct names
    num_pairs: tuple[int, ...]  # entity pairs each was trained on
    facets: NDArray[np.float32]  # `[R, J, D]` float32, unit length
    confidence: Confidence  # how scores become decisions and probabilities
    # Rows of the pattern table that share entity pairs with each relation, most shared first.
    patterns: tuple[tuple[int, ...], ...]
    details: tuple[RelationDetails, ...]  # what each relation means
    # Of the types of heads and of tails, `[2, R, T]` float32 in the order of `EntityType`: how much likelier a type is
    # than among entities in general.
    type_log_odds: NDArray[np.float32]
    # What heads and tails cannot be, `[2, R, T]`, from the details.
    refused_types: NDArray[np.bool_] = field(init=False)
    # What the kinds of heads and tails say against each relation, `[2, R, T]`, at most 0.
    type_penalties: NDArray[np.float32] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "refused_types", refused_types(self.details))
        object.__setattr__(self, "type_penalties", type_penalties(self.type_log_odds))

    @property
    def symmetric_names(self) -> frozenset[str]:
        """Relations that hold both ways round."""
        return frozenset(name for name, details in zip(self.names, self.details, strict=True) if details.symmetric)

    def meanings(self) -> dict[str, tuple[str, bool]]:
        """The relation behind each name and alias, and whether head and tail are exchanged."""
        found: dict[str, tuple[str, bool]] = {}
        for name, details in zip(self.names, self.details, strict=True):
            for others, is_inverse in (((name, *details.aliases), False), (details.inverse_aliases, True)):
                for other in others:
                    found.setdefault(other, (name, is_inverse))
        return found


@dataclass(frozen=True, slots=True)
class PatternTable:
    """The look-up model (universal schema): seen patterns and relations in one space."""

    rows: Mapping[str, int]  # row of each pattern, its tokens joined by one blank
    patterns: NDArray[np.float32]  # `[P, D]` float32, unit length
    relations: NDArray[np.float32]  # `[R, D]` float32, unit length, in the order of the relation table
    # Entity pairs each pattern was seen with, `[P]`.
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def find(self, patterns: Sequence[Sequence[str]]) -> NDArray[np.int64]:
        """Row of each tokenized pattern, -1 where it was not seen."""
        return np.fromiter((self.rows.get(" ".join(p), -1) for p in patterns), dtype=np.int64, count=len(patterns))


def write_tables(folder: Path, relations: RelationTable, patterns: PatternTable) -> None:
    """Writes names, numbers and pattern texts; the vectors are among the model's weights."""
    values = {
        "relations": [
            {"name": name, "num_pairs": count, "patterns": list(own), **details.to_dict()}
            for name, count, own, details in zip(
                relations.names, relations.num_pairs, relations.patterns, relations.details, strict=True
            )
        ],
        _CONFIDENCE: relations.confidence.to_dict(),
    }
    write_whole(folder / _RELATIONS_FILE, json.dumps(values, ensure_ascii=False) + "\n")
    lines = (f"{pattern}\t{count}\n" for pattern, count in zip(patterns.rows, patterns.counts.tolist(), strict=True))
    write_whole(folder / _PATTERNS_FILE, "".join(lines))


def read_tables(
    folder: Path, vectors: Mapping[str, NDArray[np.float32]], *, read: Callable[[Path], bytes] = Path.read_bytes
) -> tuple[RelationTable, PatternTable]:
    """Reads what ``write_tables`` wrote.

    ``vectors``: by the names of ``TABLES``, rows of one relation after the other.

    Raises:
        CheckpointError: A file is missing, damaged, or does not fit the vectors.
    """
    with _reading(folder):
        values = json.loads(read(folder / _RELATIONS_FILE).decode("utf-8"))
        entries = values["relations"]
        names = tuple(str(entry["name"]) for entry in entries)
        num_pairs = tuple(int(entry["num_pairs"]) for entry in entries)
        shared = tuple(tuple(map(int, entry["patterns"])) for entry in entries)
        details = tuple(map(RelationDetails.from_dict, entries))
        confidence = Confidence.from_dict(values[_CONFIDENCE])
        counts = _read_patterns(read(folder / _PATTERNS_FILE).decode("utf-8"))
        num_facets = max(1, len(vectors[FACETS]) // max(1, len(names)))
        expected = {
            FACETS: num_facets * len(names),
            SEEN_PATTERNS: len(counts),
            SEEN_RELATIONS: len(names),
            TYPES: 2 * len(names),
            "thresholds": len(names),
        }
        found: Mapping[str, Sized] = {**vectors, "thresholds": confidence.thresholds}
        for name, length in expected.items():
            if not length or len(found[name]) != length:
                raise ValueError(f"expected {length} rows of {name}, got {len(found[name])}")
        if any(not 0 <= row < len(counts) for own in shared for row in own):
            raise ValueError(f"rows that are not below {len(counts)}, the length of the pattern table")
        facets = vectors[FACETS].reshape(len(names), num_facets, -1)
        log_odds = vectors[TYPES].reshape(2, len(names), len(EntityType))
    return (
        RelationTable(names, num_pairs, facets, confidence, patterns=shared, details=details, type_log_odds=log_odds),
        PatternTable(
            rows={pattern: row for row, pattern in enumerate(counts)},
            patterns=vectors[SEEN_PATTERNS],
            relations=vectors[SEEN_RELATIONS],
            counts=np.array(list(counts.values()), dtype=np.int64),
        ),
    )


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """Whatever is wrong with the tables of a folder is a CheckpointError that names it."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(f"cannot read {error.filename}: {error.strerror}") from error
    except KeyError as error:
        raise CheckpointError(f"{folder}: expected tables of a relation model, {error} is missing") from error
    except (ValueError, TypeError) as error:
        raise CheckpointError(f"{folder}: expected tables of a relation model, got damaged ones: {error}") from error


def _read_patterns(content: str) -> dict[str, int]:
    """Entity pairs that each pattern was seen with, in the order of the rows."""
    parts = [line.split("\t") for line in content.split("\n")[:-1]]
    return {pattern: int(count) for pattern, count in parts}


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
        >>> born = RelationDetails(head_types=(EntityType.PERSON,), tail_types=(EntityType.PLACE,))
        >>> heads, tails = refused_types([born])
        >>> [kind.value for kind, refused in zip(EntityType, tails[0], strict=True) if refused]
        ['date', 'number']
    """
    refused = [
        [[_is_refused(kind, frozenset(taken)) for kind in EntityType] for taken in side]
        for side in ([own.head_types for own in details], [own.tail_types for own in details])
    ]
    return np.array(refused, dtype=np.bool_).reshape(2, len(details), len(EntityType))


def _is_refused(kind: EntityType, taken: frozenset[EntityType]) -> bool:
    if kind is EntityType.UNKNOWN or not taken:
        return False
    return kind not in taken if kind in VALUES else taken <= VALUES
