"""The relation model: patterns in, facets out, beside the tables of relations and of seen patterns."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets.errors import CheckpointError
from facets.model.base import FacetNetworkModel
from facets.model.checkpoint import (
    CheckpointConfig,
    FilesRead,
    fit_weights,
    read_checkpoint,
    read_words,
    words_folder,
    write_checkpoint,
)
from facets.model.network import FacetNetwork
from facets.relations.network import pattern_network, pattern_rows
from facets.relations.patterns import tokenize_patterns
from facets.relations.tables import PatternTable, RelationTable, read_tables, write_tables
from facets.words.vectors import WordVectors, unit_rows

__all__ = ["RelationModel"]

_TABLES = ("relations.facets", "table.patterns", "table.relations")


class RelationModel(FacetNetworkModel):
    """A model whose texts are patterns; its target space is that of entity pairs.

    Attributes:
        relations: Names, facets and thresholds.
        table: The look-up of seen patterns.
        num_relation_facets: K_rel.
    """

    def __init__(
        self,
        network: FacetNetwork,
        words: WordVectors,
        *,
        config: CheckpointConfig,
        relations: RelationTable,
        table: PatternTable,
        revision: str = "unsaved",
        device: str = "cpu",
    ) -> None:
        super().__init__(network, words, config=config, revision=revision, device=device)
        self.relations = relations
        self.table = table

    @property
    def num_relation_facets(self) -> int:
        """K_rel, the number of facets of every relation."""
        return int(self.relations.facets.shape[1])

    def tokenize(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """What ``encode_rows`` reads: token rows of patterns.

        Args:
            texts: Patterns with ``$ARG1`` and ``$ARG2``; the middle of one longer than ``max_tokens`` is cut out.

        Raises:
            InvalidInputError: A pattern lacks an argument or has one twice.
            TypeError: ``texts`` is one ``str``.
        """
        return self.token_rows(tokenize_patterns(texts, self.tokenizer))

    def token_rows(self, patterns: Sequence[Sequence[str]]) -> list[NDArray[np.int64]]:
        """Rows of patterns that are tokenized already."""
        return pattern_rows(patterns, self.words.vocabulary, self.max_tokens)

    def encode_patterns(self, patterns: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """Facets ``[len(patterns), K, D]`` of tokenized patterns, magnitudes kept."""
        return self.encode_rows(self.token_rows(patterns))

    def save(self, folder: Path) -> None:
        """Writes a checkpoint folder; word vectors too, unless the configuration shares another folder's."""
        tensors: dict[str, Tensor] = dict(self.network.state_dict())
        for name, vectors in zip(
            _TABLES, (self.relations.facets, self.table.patterns, self.table.relations), strict=True
        ):
            tensors[name] = torch.from_numpy(vectors)
        write_checkpoint(folder, self.config, tensors)
        write_tables(folder, self.relations, self.table)
        if self.config.words == ".":
            self.words.save(folder)

    @classmethod
    def from_folder(cls, folder: Path, *, device: str = "cpu") -> Self:
        """Loads a checkpoint folder whose task is ``relations``.

        Raises:
            NotFoundError: There is no such folder.
            CheckpointError: It is incomplete, damaged, or of another task.
        """
        files = FilesRead()
        config, tensors = read_checkpoint(folder, read=files)
        if config.task != "relations":
            raise CheckpointError(f"{folder}: expected a model for relations, got one for {config.task!r}")
        words = read_words(folder, config, read=files)
        vectors = {name: _unit(tensors.pop(name).numpy()) for name in _TABLES if name in tensors}
        relations, table = read_tables(folder, vectors, read=files)
        vectors_VD = torch.from_numpy(words.unit_vectors)
        network = fit_weights(folder, lambda: pattern_network(config.model, vectors_VD), tensors)
        shared = words_folder(folder, config)
        revision = files.revision(
            folder / "config.json",
            folder / "model.safetensors",
            folder / "relations.json",
            folder / "patterns.txt",
            shared / "vectors.safetensors",
            shared / "vocabulary.tsv",
        )
        return cls(network, words, config=config, relations=relations, table=table, revision=revision, device=device)


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Unit length along the last axis; half precision loses it."""
    return unit_rows(vectors.reshape(-1, vectors.shape[-1])).reshape(vectors.shape)
