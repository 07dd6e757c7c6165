"""The relation model: patterns in, facets out, beside the tables of relations and of seen patterns.

Shape suffixes: B patterns, W width of the encoder.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from facets.errors import CheckpointError
from facets.language.interruption import check_interrupted
from facets.language.vectors import WordVectors, unit_rows
from facets.model.base import CheckpointModel
from facets.model.checkpoint import FilesRead, fit_weights, read_config, write_parts
from facets.model.passage_checkpoint import (
    PassageModelConfig,
    packed_weights,
    read_passage_weights,
    read_passage_words,
    read_word_pieces,
)
from facets.model.passage_encoding import length_batches
from facets.model.precision import fastest_precision
from facets.model.shipped import borrowed_folder
from facets.relations.checkpoint import (
    RelationModelConfig,
    encoder_files,
    encoder_pieces,
)
from facets.relations.network import PatternNetwork
from facets.relations.pattern_pieces import PatternPieces
from facets.relations.patterns import tokenize_patterns
from facets.relations.tables import PatternTable, RelationTable, read_tables, write_tables

__all__ = ["RelationModel"]

_TABLES = ("relations.facets", "table.patterns", "table.relations")
_TYPES = "relations.types"
_BATCH_TOKENS = 4096


class RelationModel(CheckpointModel[PatternNetwork, RelationModelConfig]):
    """A model whose texts are patterns; its target space is that of entity pairs.

    It meets ``facets.model.contract.Model``.

    Attributes:
        config: What the checkpoint says about itself.
        network: The PyTorch module, in evaluation mode.
        words: Words with vectors in the space of the encoder.
        pieces: Turns patterns into ids.
        tokenizer: Sentence and token splitting.
        revision: Changes when anything that decides an answer changes.
        relations: Names, facets and thresholds.
        table: The look-up of seen patterns.
    """

    def __init__(
        self,
        network: PatternNetwork,
        words: WordVectors,
        *,
        pieces: PatternPieces,
        config: RelationModelConfig,
        relations: RelationTable,
        table: PatternTable,
        revision: str = "unsaved",
        device: str = "cpu",
    ) -> None:
        super().__init__(network, words, config=config, revision=revision, device=device, precision=fastest_precision)
        self.pieces = pieces
        self.relations = relations
        self.table = table

    @property
    def num_relation_facets(self) -> int:
        """K_rel, the number of facets of every relation."""
        return int(self.relations.facets.shape[1])

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Facets of patterns as people write them.

        Args:
            texts: Patterns with ``$ARG1`` and ``$ARG2``.

        Returns:
            ``[len(texts), K, D]`` float32, unit length, in the order of the texts.

        Raises:
            InvalidInputError: A pattern lacks an argument or has one twice.
            TypeError: ``texts`` is one ``str``.
        """
        return self.encode_patterns(tokenize_patterns(texts, self.tokenizer))

    def encode_patterns(self, patterns: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """Facets ``[len(patterns), K, D]`` float32 of tokenized patterns, unit length."""
        return self._run(patterns, self.network, (self.num_facets, self.dim))

    def pattern_vectors(self, patterns: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """What tokenized patterns mean, whichever argument is which: sentence vectors ``[len(patterns), W]``, unit."""

        def means(rows: Sequence[NDArray[np.int64]]) -> Tensor:
            return functional.normalize(self.network.states(rows).mean.float(), dim=1)

        return self._run(patterns, means, (self.config.network.encoder.width,))

    @torch.inference_mode()
    def _run(
        self,
        patterns: Sequence[Sequence[str]],
        part: Callable[[Sequence[NDArray[np.int64]]], Tensor],
        shape: tuple[int, ...],
    ) -> NDArray[np.float32]:
        rows = self.pieces.rows(patterns)
        found = np.empty((len(rows), *shape), dtype=np.float32)
        for places in length_batches([len(row) for row in rows], max_tokens=_BATCH_TOKENS):
            check_interrupted()
            found[places] = part([rows[place] for place in places]).float().cpu().numpy()
        return found

    def save(self, folder: Path) -> None:
        """Writes a checkpoint folder, complete but for the card."""
        tensors: dict[str, Tensor] = dict(self.network.state_dict())
        for name, vectors in zip(
            _TABLES, (self.relations.facets, self.table.patterns, self.table.relations), strict=True
        ):
            tensors[name] = torch.from_numpy(vectors).flatten(0, -2)
        if self.relations.type_log_odds is not None:
            tensors[_TYPES] = torch.from_numpy(self.relations.type_log_odds).flatten(0, 1)
        write_parts(folder, self.config, packed_weights(tensors))
        write_tables(folder, self.relations, self.table)

    @classmethod
    def from_folder(cls, folder: Path, *, device: str = "cpu") -> Self:
        """Loads a checkpoint folder whose task is ``relations``.

        Raises:
            NotFoundError: There is no such folder, or the model whose encoder it uses is not installed.
            CheckpointError: It is incomplete, damaged, of another task, or its encoder's folder is.
        """
        files = FilesRead()
        config = read_config(folder, RelationModelConfig, read=files)
        source = borrowed_folder(folder, config.encoder_of)
        passages = read_config(source, PassageModelConfig, read=files)
        if passages.network.encoder != config.network.encoder:
            raise CheckpointError(f"{source}: expected the encoder that {folder} was made from, got another shape")
        pieces = PatternPieces(read_word_pieces(source, passages, read=files), config.network.max_tokens)
        words = read_passage_words(source, passages, read=files)
        pieces_VW = encoder_pieces(source, read=files)
        tensors = read_passage_weights(folder, read=files)
        vectors = {name: _unit(tensors.pop(name).numpy()) for name in _TABLES if name in tensors}
        if _TYPES in tensors:
            vectors[_TYPES] = tensors.pop(_TYPES).numpy().astype(np.float32)
        relations, table = read_tables(folder, vectors, read=files)
        network = fit_weights(folder, lambda: PatternNetwork(config.network, pieces_VW), tensors)
        revision = files.revision(
            *(folder / name for name in ("config.json", "model.safetensors", "relations.json", "patterns.txt")),
            *encoder_files(source),
        )
        return cls(
            network,
            words,
            pieces=pieces,
            config=config,
            relations=relations,
            table=table,
            revision=revision,
            device=device,
        )


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Unit length along the last axis; rounding loses it."""
    return unit_rows(vectors.astype(np.float32))
