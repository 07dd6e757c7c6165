"""Relations added at run time by example patterns: a JSON-lines file, written whole and synced before an answer."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from facets.errors import DamagedError
from facets.storage import clear_errors, write_atomically

__all__ = ["AddedRelation", "read_added", "write_added"]

_FILE = "relations.jsonl"


@dataclass(frozen=True, slots=True)
class AddedRelation:
    """A relation and the patterns it was added by.

    Attributes:
        name: Distinct from all others.
        examples: Normalised patterns.
        threshold: Scores from here on are accepted.
    """

    name: str
    examples: tuple[str, ...]
    threshold: float


def read_added(folder: Path) -> list[AddedRelation]:
    """Reads what ``write_added`` wrote; nothing when there is no file yet.

    Raises:
        DamagedError: A line is no relation; the message names file and line.
        StorageError: The file cannot be read.
    """
    path = folder / _FILE
    with clear_errors(f"cannot read {path}"):
        if not path.exists():
            return []
        content = path.read_bytes()
    number = 0
    added = []
    try:
        for number, line in enumerate(content.decode().splitlines(), start=1):  # noqa: B007
            values = json.loads(line)
            added.append(
                AddedRelation(str(values["name"]), tuple(map(str, values["examples"])), float(values["threshold"]))
            )
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedError(f"{path}, line {number}: expected a relation added earlier, got a damaged line") from error
    return added


def write_added(folder: Path, added: list[AddedRelation]) -> None:
    """Replaces the file; it is on disk when this returns.

    Raises:
        StorageError: It could not be written; the file is as before.
    """
    path = folder / _FILE
    lines = (json.dumps(asdict(relation), ensure_ascii=False) + "\n" for relation in added)
    with clear_errors(f"cannot write {path}"):
        folder.mkdir(parents=True, exist_ok=True)
    with write_atomically(path, durable=True) as part:
        part.write_text("".join(lines), encoding="utf-8", newline="\n")
