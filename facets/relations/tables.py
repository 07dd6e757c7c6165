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
    """

    names: tuple[str, ...]
    num_pairs: tuple[int, ...]
    facets: NDArray[np.float32]
    confidence: Confidence
    patterns: tuple[tuple[int, ...], ...]


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
            {"name": name, "num_pairs": count, "patterns": list(patterns_of)}
            for name, count, patterns_of in zip(relations.names, relations.num_pairs, relations.patterns, strict=True)
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
        vectors: Tensors ``relations.facets``, ``table.patterns`` and ``table.relations``.
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
        confidence = Confidence.from_dict(values[_CONFIDENCE])
        lines = read(folder / _PATTERNS_FILE).decode("utf-8").split("\n")[:-1]
        parts = [line.split("\t") for line in lines]
        rows = {pattern: row for row, (pattern, _) in enumerate(parts)}
        counts = np.array([int(count) for _, count in parts], dtype=np.int64)
    except OSError as error:
        raise CheckpointError(f"cannot read {error.filename}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise CheckpointError(f"{folder}: expected tables of a relation model, got damaged ones: {error}") from error
    expected = {"relations.facets": len(names), "table.patterns": len(rows), "table.relations": len(names)}
    for name, length in expected.items():
        if name not in vectors or len(vectors[name]) != length:
            found = len(vectors[name]) if name in vectors else "none"
            raise CheckpointError(f"{folder}: expected {length} rows of {name}, got {found}")
    if any(not 0 <= row < len(rows) for own in shared for row in own):
        raise CheckpointError(f"{path}: expected rows below {len(rows)} of the pattern table, got others")
    if len(confidence.thresholds) != len(names):
        raise CheckpointError(f"{path}: expected {len(names)} thresholds, got {len(confidence.thresholds)}")
    return (
        RelationTable(names, num_pairs, vectors["relations.facets"], confidence, shared),
        PatternTable(rows, vectors["table.patterns"], vectors["table.relations"], counts),
    )


def _replace(path: Path, content: str) -> None:
    with write_atomically(path, durable=False) as part:
        part.write_text(content, encoding="utf-8")
