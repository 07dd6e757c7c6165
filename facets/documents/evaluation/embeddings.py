"""Embeddings of many texts, kept in a folder: the same texts are embedded once."""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.evaluation.embedders import Embed
from facets.storage import clear_errors, write_atomically
from facets.words.vectors import unit_rows

__all__ = ["CachedEmbedder"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedEmbedder:
    """An embedder with a folder of what it has embedded.

    Attributes:
        name: Of the embedder and its settings: part of the files' names.
        embed: Texts -> ``[N, D]``.
        folder: Made when needed; a file for each list of texts, named after a hash of them.
    """

    name: str
    embed: Embed
    folder: Path

    def units(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit embeddings ``[N, D]``; a text without any keeps zeros.

        Raises:
            StorageError: The folder cannot be written.
        """
        path = self.folder / f"{self.name}-{_digest(texts)}.npy"
        stored = _load(path, len(texts))
        if stored is not None:
            return stored
        with clear_errors(f"cannot make the folder {self.folder}"):
            self.folder.mkdir(parents=True, exist_ok=True)
        units_ND = unit_rows(self.embed(texts)).astype(np.float32)
        with write_atomically(path, durable=False) as part, part.open("wb") as file:
            np.save(file, units_ND, allow_pickle=False)
        return units_ND


def _digest(texts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()[:32]


def _load(path: Path, num_texts: int) -> NDArray[np.float32] | None:
    """What is stored, when it is whole."""
    try:
        stored = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, EOFError) as error:
        logger.warning("%s cannot be read and is made again: %s", path, error)
        return None
    return stored if stored.ndim == 2 and len(stored) == num_texts else None
