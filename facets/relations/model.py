"""The relation model: patterns in, facets out; and its checkpoint.

Word pieces and words are read from the passage model that the network was trained from::

    config.json          name, task, shape of the network, folder of the encoder
    model.safetensors    weights, relation facets, pattern look-up; matrices have one byte per number, and scales
    relations.json       names and meanings of relations, confidence
    patterns.txt         patterns in the look-up

A facet has two parts. Its content is the pattern's sentence vector, shifted by the facet decoder, so an untrained
network compares patterns as the encoder compares sentences. Its order distinguishes the arguments, which sentence
vectors hardly do.
Shape suffixes: B patterns, T tokens of all patterns, L tokens of the longest, V word pieces, W width of the encoder, K
facets, O dimensions of the order, D = W + O, X a concatenation.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from facets.arrays import Floats, Ints, Ints32
from facets.config import FacetModelConfig, Name, PatternNetworkConfig
from facets.errors import CheckpointError
from facets.language.interruption import check_interrupted
from facets.language.vectors import WordVectors, unit_rows
from facets.model.base import CheckpointModel, ModelConfig
from facets.model.checkpoint import (
    fit_weights,
    packed_weights,
    read_config,
    read_table,
    read_weights,
    read_words,
    revision_of,
    write_parts,
)
from facets.model.contract import ModelDescription
from facets.model.network import FacetDecoder, WordTable
from facets.model.passage_checkpoint import PASSAGE_FILES, PIECES, PassageModelConfig, read_word_pieces
from facets.model.passage_encoding import length_batches
from facets.model.passage_network import RaggedBatch, SentenceEncoder
from facets.model.precision import fastest_precision
from facets.model.shipped import borrowed_folder
from facets.model.word_pieces import WordPieces
from facets.relations.patterns import ARG1, ARG2, ENTITY, tokenize_patterns
from facets.relations.tables import TABLES, TYPES, PatternTable, RelationTable, read_tables, write_tables

_FIRST_SCALE = 0.02  # initial scale of the decoder's output, so that facets start near the sentence vector
# Placeholders have the ids after those of the word pieces: V, V + 1, V + 2.
PLACEHOLDERS = (ARG1, ARG2, ENTITY)
NUM_PLACEHOLDERS = len(PLACEHOLDERS)


class PatternEmbedding(nn.Module):
    """The encoder's fixed word pieces, followed by learned vectors of the placeholders.

    The pieces are stored only with the passage model they come from.
    """

    def __init__(self, pieces: WordTable) -> None:
        super().__init__()
        self.pieces = pieces
        self.placeholders = nn.Parameter(torch.zeros(NUM_PLACEHOLDERS, pieces.vectors.shape[1]))

    def forward(self, ids: Tensor) -> Tensor:
        """Vectors of ids, ``[..., W]``."""
        num_pieces = len(self.pieces.vectors)
        known = self.pieces(ids.clamp_max(num_pieces - 1))
        special = functional.embedding((ids - num_pieces).clamp_min(0), self.placeholders)
        return torch.where((ids >= num_pieces).unsqueeze(-1), special, known)


@dataclass(frozen=True, slots=True)
class PatternStates:
    """The encoder's output for patterns."""

    padded: Tensor  # states of all tokens, `[B, L, W]`, zero for padding
    mask: Tensor  # True at tokens, `[B, L]`
    arguments: Tensor  # states of the two arguments, `[B, 2, W]`
    mean: Tensor  # mean state, `[B, W]`


class PatternNetwork(nn.Module):
    """Rows of pieces in, K unit facets ``[content, order]`` out; ``pieces``: vectors of word pieces."""

    def __init__(self, config: PatternNetworkConfig, pieces: WordTable) -> None:
        super().__init__()
        self.config = config
        width = config.encoder.width
        self.encoder = SentenceEncoder(config.encoder)
        self.encoder.pieces = PatternEmbedding(pieces)
        self.mix = nn.Linear(3 * width, width)
        self.decoder = FacetDecoder(
            FacetModelConfig(
                num_facets=config.num_facets,
                dim=width,
                hidden_dim=width,
                num_heads=config.num_heads,
                feedforward_dim=config.feedforward_dim,
                num_decoder_layers=config.num_decoder_layers,
            )
        )
        with torch.no_grad():
            self.decoder.output.weight.mul_(_FIRST_SCALE)
            self.decoder.output.bias.zero_()
        self.order_in = nn.Linear(3 * width, width)
        self.order_out = nn.Linear(width, config.num_facets * config.order_dim)

    @property
    def embedding(self) -> PatternEmbedding:
        """The encoder's embedding."""
        assert isinstance(self.encoder.pieces, PatternEmbedding)
        return self.encoder.pieces

    def states(self, rows: Sequence[Ints]) -> PatternStates:
        """States of patterns; each row holds each argument once."""
        device = self.mix.weight.device
        batch = RaggedBatch.of(rows, device)
        states_TW = self.encoder(batch)
        first = self.config.encoder.vocabulary_size
        arguments = [states_TW[batch.ids == first + number] for number in range(2)]
        padded_BLW = batch.pad(states_TW)
        mean_BW = padded_BLW.sum(dim=1) / batch.lengths[:, None].to(padded_BLW.dtype)
        return PatternStates(padded_BLW, batch.mask, torch.stack(arguments, dim=1), mean_BW)

    def facets(self, states: PatternStates) -> Tensor:
        """Unit facets ``[B, K, D]`` float32; their cosine is a weighted mean of the cosines of content and order."""
        config, normal = self.config, functional.normalize
        joined_BX = torch.cat([states.arguments.flatten(1), states.mean], dim=1)
        moved_BKW = self.decoder(self.mix(joined_BX), states.padded, states.mask[:, None, None])
        content_BKW = normal(normal(states.mean.float(), dim=1)[:, None] + moved_BKW.float(), dim=2)
        first_BW, second_BW = states.arguments.unbind(dim=1)
        order_BX = torch.cat([normal(x, dim=1) for x in (first_BW - second_BW, first_BW, second_BW)], dim=1)
        order_BKO = self.order_out(functional.gelu(self.order_in(order_BX))).unflatten(1, (config.num_facets, -1))
        order_BKO = normal(order_BKO.float(), dim=2)
        weight = config.order_weight
        return torch.cat([content_BKW * (1 - weight) ** 0.5, order_BKO * weight**0.5], dim=2)

    def forward(self, rows: Sequence[Ints]) -> Tensor:
        """Unit facets of patterns, ``[B, K, D]``."""
        return self.facets(self.states(rows))


class PatternPieces:
    """Turns patterns into ids.

    ``max_tokens``: maximum number of ids, including two special pieces; longer patterns lose their middle.
    """

    def __init__(self, pieces: WordPieces, max_tokens: int) -> None:
        self.pieces = pieces
        self.max_tokens = max_tokens
        self._special = {name: len(pieces) + number for number, name in enumerate(PLACEHOLDERS)}

    def rows(self, patterns: Sequence[Sequence[str]]) -> list[Ints]:
        """Ids ``[L]`` of each tokenized pattern, L <= ``max_tokens``; both arguments are kept."""
        texts = [_runs(pattern) for pattern in patterns]
        ids = iter(self.pieces.ids([run for runs in texts for run in runs if run not in self._special]))
        return [self._row([[self._special[r]] if r in self._special else next(ids) for r in runs]) for runs in texts]

    def _row(self, parts: Sequence[Sequence[int] | Ints32]) -> Ints:
        ids = np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])
        room = self.max_tokens - 2
        if len(ids) > room:
            ids = self._shortened(ids, room)
        return np.concatenate([[self.pieces.first_id], ids, [self.pieces.last_id]])

    def _shortened(self, ids: Ints, room: int) -> Ints:
        """Removes the middle, but keeps the arguments."""
        indexes = np.arange(len(ids))
        kept = (indexes < room // 2) | (indexes >= len(ids) - (room - room // 2))
        arguments = (ids == self._special[ARG1]) | (ids == self._special[ARG2])
        lost = int((arguments & ~kept).sum())
        # Each argument in the middle replaces a kept piece before the cut.
        border = np.flatnonzero(kept & ~arguments & (indexes < room // 2))
        kept[border[len(border) - lost :]] = False
        return ids[kept | arguments]


def _runs(pattern: Sequence[str]) -> list[str]:
    """Placeholders and the words between them, in order."""
    runs: list[str] = []
    for are_placeholders, tokens in groupby(pattern, key=PLACEHOLDERS.__contains__):
        run = list(tokens)
        runs += run if are_placeholders else [" ".join(run)]
    return runs


TASK: Literal["relations"] = "relations"
_BATCH_TOKENS = 512  # per forward pass: some 50 ms


class RelationModelConfig(ModelConfig):
    """Content of ``config.json``."""

    task: Literal["relations"] = TASK
    encoder_of: Name  # folder of the passage model whose word pieces are used, relative to the checkpoint
    network: PatternNetworkConfig = PatternNetworkConfig()  # shape of the network


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
        sizes, precision = (config.network.num_facets, config.network.dim, config.network.max_tokens), fastest_precision
        super().__init__(
            network, words, config=config, sizes=sizes, revision=revision, device=device, precision=precision
        )
        self.pieces = pieces
        self.relations = relations
        self.table = table

    def encode(self, texts: Sequence[str]) -> Floats:
        """Facets of patterns with ``$ARG1`` and ``$ARG2``, ``[len(texts), K, D]`` float32, unit length."""
        return self.encode_patterns(tokenize_patterns(texts, self.tokenizer))

    def encode_patterns(self, patterns: Sequence[Sequence[str]]) -> Floats:
        """Facets of tokenized patterns, ``[len(patterns), K, D]`` float32, unit length."""
        return self._run(patterns, self.network, (self.num_facets, self.dim))

    def pattern_vectors(self, patterns: Sequence[Sequence[str]]) -> Floats:
        """Unit sentence vectors of tokenized patterns, ``[len(patterns), W]``; they ignore the order of arguments."""

        def means(rows: Sequence[Ints]) -> Tensor:
            return functional.normalize(self.network.states(rows).mean.float(), dim=1)

        return self._run(patterns, means, (self.config.network.encoder.width,))

    @torch.inference_mode()
    def _run(
        self, patterns: Sequence[Sequence[str]], part: Callable[[Sequence[Ints]], Tensor], shape: tuple[int, ...]
    ) -> Floats:
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
    def describe(cls, folder: Path) -> ModelDescription:
        """The description of the model in a folder, without its weights; raises CheckpointError."""
        config = read_config(folder, RelationModelConfig)
        sizes = config.network.num_facets, config.network.dim, config.network.max_tokens
        source = borrowed_folder(folder, config.encoder_of)
        return config.describe(sizes, revision_of(*_revision_files(folder, source)), source)

    @classmethod
    def from_folder(cls, folder: Path, *, device: str = "cpu") -> Self:
        """Loads a checkpoint folder of this task; raises as ``facets.load``, also for the folder of its encoder."""
        config = read_config(folder, RelationModelConfig)
        source = borrowed_folder(folder, config.encoder_of)
        passages = read_config(source, PassageModelConfig)
        if passages.encoder != config.network.encoder:
            raise CheckpointError(f"{source}: expected the encoder that {folder} was made from, got another shape")
        pieces = PatternPieces(read_word_pieces(source, passages.encoder), config.network.max_tokens)
        words = read_words(source, passages.encoder.width)
        piece_vectors = read_table(source, PIECES)
        tensors = read_weights(folder)
        vectors = {name: tensors.pop(name).numpy().astype(np.float32) for name in TABLES if name in tensors}
        # Rounding to one byte loses unit length.
        vectors |= {name: unit_rows(rows) for name, rows in vectors.items() if name != TYPES}
        relations, table = read_tables(folder, vectors)
        network = fit_weights(folder, lambda: PatternNetwork(config.network, piece_vectors), tensors)
        revision = revision_of(*_revision_files(folder, source))
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


def _revision_files(folder: Path, source: Path) -> list[Path]:
    own = ("config.json", "model.safetensors", "relations.json", "patterns.txt")
    return [*(folder / name for name in own), *(source / name for name in PASSAGE_FILES)]  # all affect results
