"""What was measured, a file for each folder and system, so that a run that was cut short goes on from there."""

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from facets.storage import clear_errors, write_atomically
from facets_lab.documents.evaluation.beir import RetrievalData
from facets_lab.evaluation.intervals import Metrics

__all__ = ["KeptResults", "Measured", "data_digest"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a system reached on a folder.

    Attributes:
        metrics: By method.
        num_vectors: Vectors a document by method.
    """

    metrics: dict[str, Metrics]
    num_vectors: Mapping[str, float]


class KeptResults:
    """Measures what is not yet kept.

    Args:
        folder: Made when needed; None: nothing is kept.
        settings: What results depend on besides data and system; JSON values.
    """

    def __init__(self, folder: Path | None, settings: Mapping[str, object]) -> None:
        self._folder = folder
        self._settings = dict(settings)

    def measured(self, system: str, data: RetrievalData, measure: Callable[[], Measured]) -> Measured:
        """What is kept of this system, folder and settings; otherwise what ``measure`` gives, which is kept at once.

        Args:
            system: Its name and version.
            data: The folder as it was read.
            measure: Called at most once.

        Raises:
            StorageError: The folder cannot be written.
        """
        if self._folder is None:
            return measure()
        key = json.dumps({"system": system, "data": data_digest(data), **self._settings}, sort_keys=True)
        path = self._folder / f"{data.name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
        kept = _read(path)
        if kept is not None:
            return kept
        found = measure()
        with clear_errors(f"cannot make the folder {self._folder}"):
            self._folder.mkdir(parents=True, exist_ok=True)
        content = {"of": json.loads(key), "metrics": found.metrics, "vectors": dict(found.num_vectors)}
        with write_atomically(path, durable=False) as part:
            part.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        return found


def data_digest(data: RetrievalData) -> str:
    """A hash of documents, queries and judgements."""
    content = [data.document_ids, data.documents, data.query_ids, data.queries, data.judgements]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def _read(path: Path) -> Measured | None:
    """None where nothing is kept, or nothing that can be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Measured(dict(content["metrics"]), dict(content["vectors"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        logger.warning("%s cannot be read and is measured again: %s", path, error)
        return None
