"""Relations added at run time by example patterns: a JSON-lines file, written whole and synced before an answer."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from facets.errors import StorageError

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
        StorageError: The file cannot be read or is damaged; the message names file and line.
    """
    path = folder / _FILE
    number = 0
    added = []
    try:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):  # noqa: B007
            values = json.loads(line)
            added.append(
                AddedRelation(str(values["name"]), tuple(map(str, values["examples"])), float(values["threshold"]))
            )
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise StorageError(f"{path}, line {number}: expected a relation added earlier, got a damaged line") from error
    return added


def write_added(folder: Path, added: list[AddedRelation]) -> None:
    """Replaces the file; it is on disk when this returns.

    Raises:
        StorageError: It could not be written; the file is as before.
    """
    path = folder / _FILE
    part = path.with_name(_FILE + ".part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with part.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(json.dumps(asdict(relation), ensure_ascii=False) + "\n" for relation in added)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
        directory = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error
