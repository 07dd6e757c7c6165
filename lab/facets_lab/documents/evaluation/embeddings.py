"""Embeddings of many texts, kept in a folder: the same texts are embedded once."""

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from facets.language.vectors import unit_rows
from facets.storage import clear_errors, write_atomically
from facets_lab.evaluation.embedders import Embed

__all__ = ["CachedEmbedder", "CachedGroups", "EmbedGroups"]

logger = logging.getLogger(__name__)

EmbedGroups = Callable[[Sequence[str]], tuple[NDArray[np.float32], NDArray[np.int64]]]
"""Texts -> unit vectors of all texts, one text after another, ``[F, D]``, and how many each has, ``[N]``."""


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
        return _kept(self.folder, f"{self.name}-{_digest(texts)}", len(texts), lambda: self._embed(texts))

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return unit_rows(self.embed(texts)).astype(np.float32)


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedGroups:
    """As :class:`CachedEmbedder`, where a text has several vectors; they are kept in half precision.

    Attributes:
        name: Of the embedder and its settings: part of the files' names.
        embed: Texts -> vectors.
        folder: Made when needed.
    """

    name: str
    embed: EmbedGroups
    folder: Path

    def units(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Unit embeddings of each text, ``[., D]``.

        Raises:
            StorageError: The folder cannot be written.
        """
        name = f"{self.name}-{_digest(texts)}"
        made: list[tuple[NDArray[np.float32], NDArray[np.int64]]] = []

        def embed() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
            if not made:
                made.append(self.embed(texts))
            return made[0]

        counts_N = _kept(self.folder, f"{name}-counts", len(texts), lambda: embed()[1][:, None])[:, 0]
        units_FD = _kept(self.folder, name, int(counts_N.sum()), lambda: embed()[0].astype(np.float16))
        return np.split(units_FD.astype(np.float32), np.cumsum(counts_N)[:-1])


def _kept(folder: Path, name: str, num_rows: int, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """What the folder holds under this name, when it is whole; otherwise it is made and kept."""
    path = folder / f"{name}.npy"
    stored = _load(path, num_rows)
    if stored is not None:
        return stored
    with clear_errors(f"cannot make the folder {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    made = make()
    with write_atomically(path, durable=False) as part, part.open("wb") as file:
        np.save(file, made, allow_pickle=False)
    return made


def _digest(texts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()[:32]


def _load(path: Path, num_rows: int) -> NDArray[Any] | None:
    """What is stored, when it is whole."""
    try:
        stored = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, EOFError) as error:
        logger.warning("%s cannot be read and is made again: %s", path, error)
        return None
    return stored if stored.ndim == 2 and len(stored) == num_rows else None
