"""Data and loss of a relation model (Chang 2022, algorithm 2).

Shape suffixes: B patterns, R relations, L tokens, N entity pairs, K facets, D dimensions, V words.
"""

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from facets.errors import ConfigError
from facets.losses.autoencoder import pattern_autoencoder_loss, weighted_word_sum
from facets.relations.loss import universal_schema_loss
from facets.relations.network import RelationNetwork, pattern_rows
from facets.relations.training.config import RelationTrainingConfig
from facets.relations.training.data import RelationMatrix, load_matrix
from facets.relations.training.factorization import factorize
from facets.relations.training.stream import PairSample, RelationBatch, RelationStream
from facets.relations.training.verbalization import name_words, read_phrases
from facets.storage import write_atomically
from facets.text.tokenizer import Tokenizer
from facets.training.trainer import LOSS, Trainer
from facets.words.vectors import WordVectors

__all__ = ["RelationTrainer"]

logger = logging.getLogger(__name__)


class RelationTrainer(Trainer[RelationTrainingConfig, RelationBatch]):
    """One relation network; the factorized matrix is made once a run folder, as ``universal_schema.pt``.

    Raises:
        ConfigError: The settings do not fit the word vectors.
        InvalidInputError: A matrix file has a bad line.
    """

    network: RelationNetwork

    def __init__(self, config: RelationTrainingConfig, out_dir: Path) -> None:
        super().__init__(config)
        self._out_dir = out_dir
        self.words = WordVectors.load(Path(config.words))
        if self.words.dim != config.model.dim:
            raise ConfigError(
                f"model.dim must be the width of the word vectors, {self.words.dim}, got {config.model.dim}"
            )
        self.matrix = _read_matrix(config)
        vocabulary = self.words.vocabulary
        tokens = [pattern.split() for pattern in self.matrix.patterns]
        self._stream = RelationStream(self.matrix, pattern_rows(tokens, vocabulary, config.pattern_tokens), config)
        unit = self.words.unit_vectors
        self._unit_VD = self.tensor(unit)
        # One row more for everything that is no word: no probability, a zero vector.
        self._probabilities_V = self.tensor(np.append(vocabulary.probabilities, 0.0).astype(np.float32))
        self._words_VD = torch.cat([self._unit_VD, torch.zeros(1, self.words.dim, device=self.device)])
        relation_words = [self._known_rows(name_words(name)) for name in self.matrix.relations]
        self._relation_sums_RD = torch.stack([self._weighted_sum(rows) for rows in relation_words])
        torch.manual_seed(config.seed)
        self.network = RelationNetwork(
            config.model,
            torch.from_numpy(unit),
            functional.normalize(self._relation_sums_RD.cpu(), dim=1),
            num_relation_facets=config.num_relation_facets,
        ).to(self.device)
        self.row_vectors, pair_vectors = self._universal_schema()
        self.pair_vectors = pair_vectors.to(self.device)
        self._used_pairs: tuple[tuple[Tensor, Tensor], ...] = ()  # of the step that is being done
        self._num_used_pairs = 0

    def batches(self, start_step: int) -> Iterator[RelationBatch]:
        """See ``Trainer``."""
        return self._stream.training_batches(start_step)

    def _universal_schema(self) -> tuple[Tensor, Tensor]:
        """The factorized matrix: rows, and pairs at unit length; made once a folder."""
        path = self._out_dir / "universal_schema.pt"
        if path.exists():
            state = torch.load(path, weights_only=True)
            if len(state["rows"]) == len(self.matrix.offsets) - 1 and len(state["pairs"]) == self.matrix.num_pairs:
                return state["rows"].float(), functional.normalize(state["pairs"].float(), dim=1)
        rows, pairs = factorize(
            self.matrix, self.config.factorization, dim=self.config.model.dim, seed=self.config.seed
        )
        self._out_dir.mkdir(parents=True, exist_ok=True)
        with write_atomically(path, durable=False) as part:
            torch.save({"rows": rows.half(), "pairs": pairs.half()}, part)
        return rows, functional.normalize(pairs, dim=1)

    def step(self, batch: RelationBatch, number: int) -> dict[str, Tensor]:
        """See ``Trainer``."""
        rows_BL, lengths_B = self.tensor(batch.rows), self.tensor(batch.lengths)
        relations_R = self.tensor(batch.relations)
        with self.autocast():
            facets_BKD = self.network(self._dropped_words(rows_BL), lengths_B)
            relation_facets_RKD = self.network.relation_facets(relations_R)
        pattern_pairs, pattern_loss = self._pair_loss(facets_BKD, batch.pattern_pairs)
        relation_pairs, relation_loss = self._pair_loss(relation_facets_RKD, batch.relation_pairs)
        num_pairs = [int((sample.weights > 0).sum()) for sample in (batch.pattern_pairs, batch.relation_pairs)]
        schema_loss = (pattern_loss * num_pairs[0] + relation_loss * num_pairs[1]) / sum(num_pairs)
        sums_BD = torch.cat([self._weighted_sums(rows_BL, lengths_B), self._relation_sums_RD[relations_R]])
        means_BD = torch.cat([facets_BKD.float().mean(dim=1), relation_facets_RKD.float().mean(dim=1)])
        negatives_B = torch.arange(len(means_BD), device=self.device).roll(batch.shift)
        auto_loss = pattern_autoencoder_loss(means_BD.unsqueeze(1), self.network.word_map(sums_BD), negatives_B)
        loss = schema_loss + self.config.autoencoder_weight * auto_loss
        self._used_pairs, self._num_used_pairs = (pattern_pairs, relation_pairs), sum(num_pairs)
        return {LOSS: loss, "patterns": pattern_loss, "relations": relation_loss, "autoencoder": auto_loss}

    def after_step(self, learning_rate_factor: float) -> None:
        """Moves the entity pairs of the batch.

        The loss is a mean over the batch; each pair moves as if it were alone.
        """
        rate = learning_rate_factor * self.config.pair_learning_rate * self._num_used_pairs
        for pairs_BN, vectors_BND in self._used_pairs:
            self._move_pairs(pairs_BN, vectors_BND, rate)
        self._used_pairs = ()

    def state(self) -> dict[str, Any]:
        """See ``Trainer``; pairs in full precision, so that a resumed run ends as one that never stopped."""
        return super().state() | {"pairs": self.pair_vectors}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """See ``Trainer``."""
        super().load_state(state)
        self.pair_vectors = state["pairs"]

    def _pair_loss(self, facets_BKD: Tensor, sample: PairSample) -> tuple[tuple[Tensor, Tensor], Tensor]:
        """Rows and leaf embeddings of the entity pairs, and eq. 3.9."""
        count = sample.pairs.shape[1]
        pairs_BN = self.tensor(np.concatenate([sample.pairs, sample.negatives], axis=1))
        vectors_BND = self.pair_vectors[pairs_BN].requires_grad_()
        loss = universal_schema_loss(
            facets_BKD,
            vectors_BND[:, :count],
            vectors_BND[:, count:],
            positive_weights_BN=self.tensor(sample.weights),
            negative_weights_BN=self.tensor(sample.negative_weights),
        )
        return (pairs_BN, vectors_BND), loss

    @torch.no_grad()
    def _move_pairs(self, pairs_BN: Tensor, vectors_BND: Tensor, rate: float) -> None:
        """One gradient step of the embeddings of a batch, then unit length again."""
        if rate == 0.0 or vectors_BND.grad is None:
            return
        rows = pairs_BN.flatten()
        self.pair_vectors.index_add_(0, rows, vectors_BND.grad.flatten(0, 1), alpha=-rate)
        self.pair_vectors[rows] = functional.normalize(self.pair_vectors[rows], dim=1)

    def _dropped_words(self, rows_BL: Tensor) -> Tensor:
        """Some words become <unk>; placeholders never do."""
        unknown = len(self._unit_VD)
        dropped_BL = (torch.rand(rows_BL.shape, device=self.device) < self.config.word_dropout) & (rows_BL < unknown)
        return rows_BL.masked_fill(dropped_BL, unknown)

    def _weighted_sums(self, rows_BL: Tensor, lengths_B: Tensor) -> Tensor:
        unknown = len(self._unit_VD)
        mask_BL = torch.arange(rows_BL.shape[1], device=self.device) < lengths_B[:, None]
        rows_BL = rows_BL.clamp_max(unknown).masked_fill(~mask_BL, unknown)
        return weighted_word_sum(self._words_VD[rows_BL], self._probabilities_V[rows_BL])

    def _weighted_sum(self, rows: NDArray[np.int64]) -> Tensor:
        rows_1L = self.tensor(rows).unsqueeze(0)
        return weighted_word_sum(self._words_VD[rows_1L], self._probabilities_V[rows_1L])[0]

    def _known_rows(self, tokens: list[str]) -> NDArray[np.int64]:
        return self.words.vocabulary.rows(tokens)


def _read_matrix(config: RelationTrainingConfig) -> RelationMatrix:
    matrix = load_matrix(
        [Path(path) for path in config.cells],
        Path(config.triples),
        tokenizer=Tokenizer(),
        max_patterns_per_pair=config.max_patterns_per_pair,
        max_pairs_per_pattern=config.max_pairs_per_pattern,
        phrases=read_phrases(Path(config.phrases)) if config.phrases else {},
        with_mirrors=config.mirrored_triples,
        seed=config.seed,
    )
    logger.info(
        "%d patterns, %d relations, %d entity pairs, %d cells",
        len(matrix.patterns),
        len(matrix.relations),
        matrix.num_pairs,
        len(matrix.pairs),
    )
    return matrix
