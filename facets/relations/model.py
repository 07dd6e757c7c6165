"""The relation model: patterns in, facets out; and its checkpoint.

Word pieces and words are read from the passage model that the network was trained from::

    config.json          format, name, task, shape of the network, folder of the encoder
    model.safetensors    weights, relation facets, pattern look-up; matrices have one byte per number, and scales
    relations.json       names and meanings of relations, confidence
    patterns.txt         patterns in the look-up
    README.md            model card

Shape suffixes: V word pieces, W width of the encoder.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from facets.config import Name, PatternNetworkConfig, Settings
from facets.errors import CheckpointError
from facets.language.interruption import check_interrupted
from facets.language.vectors import WordVectors, unit_rows
from facets.model.base import CheckpointModel
from facets.model.checkpoint import FilesRead, fit_weights, read_config, read_words, write_parts
from facets.model.passage_checkpoint import (
    PASSAGE_FILES,
    PassageModelConfig,
    packed_weights,
    read_passage_weights,
    read_word_pieces,
)
from facets.model.passage_encoding import length_batches
from facets.model.precision import fastest_precision
from facets.model.shipped import borrowed_folder
from facets.relations.network import PatternNetwork, PatternPieces
from facets.relations.patterns import tokenize_patterns
from facets.relations.tables import TABLES, TYPES, PatternTable, RelationTable, read_tables, write_tables

TASK: Literal["relations"] = "relations"
_PIECES = "encoder.pieces.weight"
_BATCH_TOKENS = 4096


class RelationModelConfig(Settings):
    """Content of ``config.json``."""

    name: Name  # name of the model, unique among the models of a server
    task: Literal["relations"] = TASK
    encoder_of: Name  # folder of the passage model whose word pieces are used, relative to the checkpoint
    network: PatternNetworkConfig = PatternNetworkConfig()  # shape of the network
    training: dict[str, Any] = Field(default_factory=dict)  # facts about the training run, for readers

    @property
    def num_facets(self) -> int:
        """K, the number of facets of a pattern."""
        return self.network.num_facets

    @property
    def dim(self) -> int:
        """D, the width of a facet."""
        return self.network.dim

    @property
    def max_tokens(self) -> int:
        """Maximum number of word pieces, including two special ones; longer patterns lose their middle."""
        return self.network.max_tokens


class RelationModel(CheckpointModel[PatternNetwork, RelationModelConfig]):
    """A model whose texts are patterns; its target space is that of entity pairs.

    ``relations``: names, facets and thresholds. ``table``: look-up of seen patterns.
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
        """K_rel, the number of facets of a relation."""
        return int(self.relations.facets.shape[1])

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Facets of patterns with ``$ARG1`` and ``$ARG2``, ``[len(texts), K, D]`` float32, unit length."""
        return self.encode_patterns(tokenize_patterns(texts, self.tokenizer))

    def encode_patterns(self, patterns: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """Facets of tokenized patterns, ``[len(patterns), K, D]`` float32, unit length."""
        return self._run(patterns, self.network, (self.num_facets, self.dim))

    def pattern_vectors(self, patterns: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """Unit sentence vectors of tokenized patterns, ``[len(patterns), W]``; they ignore the order of arguments."""

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
        outputs = np.empty((len(rows), *shape), dtype=np.float32)
        for batch in length_batches([len(row) for row in rows], max_tokens=_BATCH_TOKENS):
            check_interrupted()
            outputs[batch] = part([rows[index] for index in batch]).float().cpu().numpy()
        return outputs

    def save(self, folder: Path) -> None:
        """Writes a checkpoint folder, except the model card."""
        tensors: dict[str, Tensor] = dict(self.network.state_dict())
        tables = (self.relations.facets, self.table.patterns, self.table.relations, self.relations.type_log_odds)
        for name, rows in zip(TABLES, tables, strict=True):
            tensors[name] = torch.from_numpy(rows).flatten(0, -2)
        write_parts(folder, self.config, packed_weights(tensors))
        write_tables(folder, self.relations, self.table)

    @classmethod
    def from_folder(cls, folder: Path, *, device: str = "cpu") -> Self:
        """Loads a checkpoint folder whose task is ``relations``.

        Raises:
            NotFoundError: The folder does not exist, or the model of its encoder is not installed.
            CheckpointError: The folder, or that of its encoder, is incomplete, damaged, or for another task.
        """
        files = FilesRead()
        config = read_config(folder, RelationModelConfig, read=files)
        source = borrowed_folder(folder, config.encoder_of)
        passages = read_config(source, PassageModelConfig, read=files)
        if passages.network.encoder != config.network.encoder:
            raise CheckpointError(f"{source}: expected the encoder that {folder} was made from, got another shape")
        pieces = PatternPieces(read_word_pieces(source, passages, read=files), config.network.max_tokens)
        words = read_words(source, passages.dim, read=files)
        pieces_VW = encoder_pieces(source, read=files)
        tensors = read_passage_weights(folder, read=files)
        vectors = {name: tensors.pop(name).numpy().astype(np.float32) for name in TABLES if name in tensors}
        # Rounding to one byte loses unit length.
        vectors |= {name: unit_rows(rows) for name, rows in vectors.items() if name != TYPES}
        relations, table = read_tables(folder, vectors, read=files)
        network = fit_weights(folder, lambda: PatternNetwork(config.network, pieces_VW), tensors)
        revision = files.revision(
            *(folder / name for name in ("config.json", "model.safetensors", "relations.json", "patterns.txt")),
            *(source / name for name in PASSAGE_FILES),  # they affect results too
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


def encoder_pieces(folder: Path, *, read: Callable[[Path], bytes] = Path.read_bytes) -> Tensor:
    """Word-piece vectors of a passage model, ``[V, W]`` float32."""
    weights = read_passage_weights(folder, read=read)
    if _PIECES not in weights:
        raise CheckpointError(f"{folder}: expected a model of passages, its weights have no {_PIECES}")
    return weights[_PIECES].float()
