"""What a relation model knows beside its network: relations with their facets, and the look-up of seen patterns.

Shape suffixes: R relations, J relation facets, P patterns, D dimensions.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.errors import CheckpointError
from facets.relations.confidence import Confidence
from facets.relations.details import RelationDetails
from facets.relations.entity_types import EntityType
from facets.relations.signatures import refused_types, type_penalties
from facets.storage import write_atomically

__all__ = ["PatternTable", "RelationTable", "read_tables", "write_tables"]

_RELATIONS_FILE = "relations.json"
_PATTERNS_FILE = "patterns.txt"
_CONFIDENCE = "calibration"  # its name in files


@dataclass(frozen=True, slots=True)
class RelationTable:
    """Relations and their facets.

    Attributes:
        names: ``R`` distinct names.
        num_pairs: Entity pairs each was trained on.
        facets: ``[R, J, D]`` float32, unit length.
        confidence: How scores become decisions and probabilities.
        patterns: Rows of the pattern table that share entity pairs with each relation, most shared first.
        details: What each relation means; empty: nothing is known of any.
        type_log_odds: Of the types of heads and of tails, ``[2, R, T]`` float32 in the order of ``EntityType``: how
            much likelier a type is than among entities in general. None: nothing is known.
        refused_types: What heads and tails cannot be, ``[2, R, T]``, from the details.
        type_penalties: What the kinds of heads and tails say against each relation, ``[2, R, T]``, at most 0.
    """

    names: tuple[str, ...]
    num_pairs: tuple[int, ...]
    facets: NDArray[np.float32]
    confidence: Confidence
    patterns: tuple[tuple[int, ...], ...]
    details: tuple[RelationDetails, ...] = ()
    type_log_odds: NDArray[np.float32] | None = None
    refused_types: NDArray[np.bool_] = field(init=False)
    type_penalties: NDArray[np.float32] = field(init=False)

    def __post_init__(self) -> None:
        details = self.details or (RelationDetails(),) * len(self.names)
        object.__setattr__(self, "refused_types", refused_types(details))
        unknown = np.zeros((2, len(self.names), len(EntityType)), dtype=np.float32)
        log_odds = unknown if self.type_log_odds is None else self.type_log_odds
        object.__setattr__(self, "type_penalties", type_penalties(log_odds))

    @property
    def symmetric_names(self) -> frozenset[str]:
        """Relations that hold both ways round."""
        return frozenset(name for row, name in enumerate(self.names) if self.details_of(row).symmetric)

    def meanings(self) -> dict[str, tuple[str, bool]]:
        """The relation behind each name and alias, and whether head and tail are exchanged."""
        found: dict[str, tuple[str, bool]] = {}
        for row, name in enumerate(self.names):
            details = self.details_of(row)
            found |= dict.fromkeys((name, *details.aliases), (name, False))
            found |= dict.fromkeys(details.inverse_aliases, (name, True))
        return found

    def details_of(self, row: int) -> RelationDetails:
        """What a relation means."""
        return self.details[row] if self.details else RelationDetails()


@dataclass(frozen=True, slots=True)
class PatternTable:
    """The look-up model (universal schema): seen patterns and relations in one space.

    Attributes:
        rows: Row of each pattern, its tokens joined by one blank.
        patterns: ``[P, D]`` float32, unit length.
        relations: ``[R, D]`` float32, unit length, in the order of the relation table.
        counts: Entity pairs each pattern was seen with, ``[P]``.
    """

    rows: Mapping[str, int]
    patterns: NDArray[np.float32]
    relations: NDArray[np.float32]
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def find(self, patterns: Sequence[Sequence[str]]) -> NDArray[np.int64]:
        """Row of each tokenized pattern, -1 where it was not seen."""
        return np.fromiter((self.rows.get(" ".join(p), -1) for p in patterns), dtype=np.int64, count=len(patterns))


def write_tables(folder: Path, relations: RelationTable, patterns: PatternTable) -> None:
    """Writes names, numbers and pattern texts; the vectors are among the model's weights."""
    values = {
        "relations": [
            {"name": name, "num_pairs": count, "patterns": list(own), **relations.details_of(row).to_dict()}
            for row, (name, count, own) in enumerate(
                zip(relations.names, relations.num_pairs, relations.patterns, strict=True)
            )
        ],
        _CONFIDENCE: relations.confidence.to_dict(),
    }
    _replace(folder / _RELATIONS_FILE, json.dumps(values, ensure_ascii=False) + "\n")
    lines = (f"{pattern}\t{count}\n" for pattern, count in zip(patterns.rows, patterns.counts.tolist(), strict=True))
    _replace(folder / _PATTERNS_FILE, "".join(lines))


def read_tables(
    folder: Path, vectors: Mapping[str, NDArray[np.float32]], *, read: Callable[[Path], bytes] = Path.read_bytes
) -> tuple[RelationTable, PatternTable]:
    """Reads what ``write_tables`` wrote.

    Args:
        folder: The checkpoint.
        vectors: Unit rows ``relations.facets`` (those of one relation after the other), ``table.patterns`` and
            ``table.relations``.
        read: Gives the content of a file.

    Raises:
        CheckpointError: A file is missing, damaged, or does not fit the vectors.
    """
    path = folder / _RELATIONS_FILE
    try:
        values = json.loads(read(path).decode("utf-8"))
        names = tuple(str(relation["name"]) for relation in values["relations"])
        num_pairs = tuple(int(relation["num_pairs"]) for relation in values["relations"])
        shared = tuple(tuple(map(int, relation["patterns"])) for relation in values["relations"])
        details = tuple(map(RelationDetails.from_dict, values["relations"]))
        confidence = Confidence.from_dict(values[_CONFIDENCE])
        lines = read(folder / _PATTERNS_FILE).decode("utf-8").split("\n")[:-1]
        parts = [line.split("\t") for line in lines]
        rows = {pattern: row for row, (pattern, _) in enumerate(parts)}
        counts = np.array([int(count) for _, count in parts], dtype=np.int64)
    except OSError as error:
        raise CheckpointError(f"cannot read {error.filename}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise CheckpointError(f"{folder}: expected tables of a relation model, got damaged ones: {error}") from error
    facets = vectors.get("relations.facets", np.zeros((0, 1), dtype=np.float32))
    if not names or not len(facets) or len(facets) % len(names):
        raise CheckpointError(f"{folder}: expected facets of {len(names)} relations, got {len(facets)} rows")
    expected = {"table.patterns": len(rows), "table.relations": len(names)}
    for name, length in expected.items():
        if name not in vectors or len(vectors[name]) != length:
            found = len(vectors[name]) if name in vectors else "none"
            raise CheckpointError(f"{folder}: expected {length} rows of {name}, got {found}")
    log_odds = vectors.get("relations.types", np.zeros((2 * len(names), len(EntityType)), dtype=np.float32))
    if log_odds.shape != (2 * len(names), len(EntityType)):
        raise CheckpointError(f"{folder}: expected types of {2 * len(names)} arguments, got {log_odds.shape}")
    if any(not 0 <= row < len(rows) for own in shared for row in own):
        raise CheckpointError(f"{path}: expected rows below {len(rows)} of the pattern table, got others")
    if len(confidence.thresholds) != len(names):
        raise CheckpointError(f"{path}: expected {len(names)} thresholds, got {len(confidence.thresholds)}")
    return (
        RelationTable(
            names,
            num_pairs,
            facets.reshape(len(names), -1, facets.shape[1]),
            confidence,
            shared,
            details,
            log_odds.reshape(2, len(names), -1),
        ),
        PatternTable(rows, vectors["table.patterns"], vectors["table.relations"], counts),
    )


def _replace(path: Path, content: str) -> None:
    with write_atomically(path, durable=False) as part:
        part.write_text(content, encoding="utf-8")
