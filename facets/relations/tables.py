"""What a relation model knows beside its network: relations with their facets, and the look-up of seen patterns.

Shape suffixes: R relations, J relation facets, P patterns, D dimensions.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from facets.errors import CheckpointError
from facets.storage import write_atomically

__all__ = ["PatternTable", "RelationCalibration", "RelationTable", "read_tables", "write_tables"]

_RELATIONS_FILE = "relations.json"
_PATTERNS_FILE = "patterns.txt"


@dataclass(frozen=True, slots=True)
class RelationCalibration:
    """Numbers fitted on development data.

    Attributes:
        thresholds: Scores from here on are accepted, one a relation.
        default_threshold: For relations added later.
        use_asymmetric: Facets count by eq. 3.10 with the pattern as premise, instead of eq. 3.11.
        margin: Accepted are only relations whose score is at most so far below the pattern's best.
        slope: ``probability = 1 / (1 + exp(-slope * (score - threshold) - gap_slope * gap - offset))``; the gap is
            the score less the pattern's best.
        gap_slope: See ``slope``.
        offset: See ``slope``.
        schema_scale: The look-up's cosine times this, plus ``schema_shift``, is compared with the facets' score.
        schema_shift: See ``schema_scale``. Where both together exceed 1, all scores are divided by their sum.
        entailment_weights: Of similarity, its square, sizes of asymmetry and of difference in coverage, and 1.
        paraphrase_weights: Of the same.
        direction_weights: Of the asymmetry and of the difference in coverage.
    """

    thresholds: tuple[float, ...]
    default_threshold: float = 0.5
    use_asymmetric: bool = False
    margin: float = 2.0
    slope: float = 10.0
    gap_slope: float = 0.0
    offset: float = 0.0
    schema_scale: float = 1.0
    schema_shift: float = 0.0
    entailment_weights: tuple[float, ...] = (2.0, 0.0, 4.0, 4.0, -2.0)
    paraphrase_weights: tuple[float, ...] = (8.0, 0.0, -10.0, -10.0, -6.0)
    direction_weights: tuple[float, ...] = (10.0, 10.0)

    @property
    def peak(self) -> float:
        """What scores are divided by, so that the highest is 1."""
        return max(1.0, self.schema_scale + self.schema_shift)


@dataclass(frozen=True, slots=True)
class RelationTable:
    """Relations and their facets.

    Attributes:
        names: ``R`` distinct names.
        num_pairs: Entity pairs each was trained on.
        facets: ``[R, J, D]`` float32, unit length.
        calibration: Thresholds and more.
        patterns: Rows of the pattern table that share entity pairs with each relation, most shared first.
    """

    names: tuple[str, ...]
    num_pairs: tuple[int, ...]
    facets: NDArray[np.float32]
    calibration: RelationCalibration
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
        "calibration": asdict(relations.calibration),
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
        calibration = _calibration(values["calibration"])
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
    if len(calibration.thresholds) != len(names):
        raise CheckpointError(f"{path}: expected {len(names)} thresholds, got {len(calibration.thresholds)}")
    return (
        RelationTable(names, num_pairs, vectors["relations.facets"], calibration, shared),
        PatternTable(rows, vectors["table.patterns"], vectors["table.relations"], counts),
    )


def _calibration(values: dict[str, Any]) -> RelationCalibration:
    def checked(value: Any) -> Any:
        if isinstance(value, list):
            return tuple(map(float, value))
        return value if isinstance(value, bool) else float(value)

    return RelationCalibration(**{name: checked(value) for name, value in values.items()})


def _replace(path: Path, content: str) -> None:
    with write_atomically(path, durable=False) as part:
        part.write_text(content, encoding="utf-8")
