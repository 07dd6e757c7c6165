"""Data and loss of a sentence or phrase model (Chang 2022, algorithm 1)."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets.errors import ConfigError
from facets.language.pieces import remove_pieces
from facets.language.vectors import WordVectors
from facets.model.network import BackboneEncoder, FacetNetwork
from facets_lab.losses.sparse_coding import sparse_coding_loss
from facets_lab.texts.training.config import SentenceTrainingConfig
from facets_lab.texts.training.phrases import PhraseStream
from facets_lab.texts.training.sentences import SentenceBatch, SentenceStream
from facets_lab.texts.training.word_pieces import PieceDropout, WordPieceTable
from facets_lab.training.corpus import PackedCorpus
from facets_lab.training.trainer import LOSS, Trainer

__all__ = ["SentenceTrainer"]

# KKT residual and sweeps: a gradient needs less accuracy than a figure that is reported.
_TRAINING_ACCURACY = (1e-3, 12)
_VALIDATION_ACCURACY = (1e-5, 200)


class SentenceTrainer(Trainer[SentenceTrainingConfig, SentenceBatch]):
    """One network on a packed corpus.

    Raises:
        ConfigError: The corpus and the word vectors do not belong together, or no such device.
    """

    network: FacetNetwork

    def __init__(self, config: SentenceTrainingConfig) -> None:
        super().__init__(config)
        corpus = PackedCorpus.open(Path(config.corpus))
        vectors = WordVectors.load(Path(config.words))
        words = remove_pieces(vectors)  # corpora hold words only
        if words.vocabulary.words != corpus.vocabulary.words:
            raise ConfigError(
                f"the word vectors in {config.words} and the corpus in {config.corpus} have different vocabularies"
            )
        if words.dim != config.model.dim:
            raise ConfigError(f"model.dim must be the width of the word vectors, {words.dim}, got {config.model.dim}")
        self._stream = PhraseStream(corpus, config) if config.inputs == "phrases" else SentenceStream(corpus, config)
        torch.manual_seed(config.seed)
        word_vectors_VD = torch.from_numpy((vectors if config.piece_rate else words).unit_vectors)
        self.network = FacetNetwork(config.model, word_vectors_VD).to(self.device)
        self._targets_VD = word_vectors_VD.to(self.device)
        encoder = self.network.encoder
        self._piece_table = (
            WordPieceTable.of_backbone(encoder, words.vocabulary.words)
            if isinstance(encoder, BackboneEncoder)
            else None
        )
        self._piece_dropout = PieceDropout(vectors.vocabulary, rate=config.piece_rate) if config.piece_rate else None

    def batches(self, start_step: int) -> Iterator[SentenceBatch]:
        """See ``Trainer``."""
        return self._stream.training_batches(start_step)

    def step(self, batch: SentenceBatch, number: int) -> dict[str, Tensor]:
        """See ``Trainer``."""
        inputs = self._input_rows(batch, np.random.default_rng([self.config.seed, 7, number]))
        is_kmeans = self.config.loss == "kmeans"
        return {LOSS: self._loss(batch, inputs, kmeans=is_kmeans, accuracy=_TRAINING_ACCURACY)}

    def validate(self) -> dict[str, float]:
        """Mean sparse coding loss of the held-out batches, whatever the training loss is."""
        total = 0.0
        batches = self._stream.validation_batches()
        for batch in batches:
            inputs = self._input_rows(batch, None)
            total += float(self._loss(batch, inputs, kmeans=False, accuracy=_VALIDATION_ACCURACY))
        return {LOSS: total / len(batches)}

    def _loss(
        self,
        batch: SentenceBatch,
        inputs: tuple[NDArray[np.int64], NDArray[np.int64]],
        *,
        kmeans: bool,
        accuracy: tuple[float, int],
    ) -> Tensor:
        rows, lengths = inputs
        with self.autocast():
            facets_BKD = self.network(self.tensor(rows), self.tensor(lengths))
        return sparse_coding_loss(
            facets_BKD,
            self._targets_VD[self.tensor(batch.targets)],
            self.tensor(batch.target_mask),
            self.tensor(batch.negatives),
            l1_weight=self.config.l1_weight,
            tolerance=accuracy[0],
            max_sweeps=accuracy[1],
            kmeans=kmeans,
        )

    def _input_rows(
        self, batch: SentenceBatch, rng: np.random.Generator | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What the encoder reads of a batch: words, or pieces of words; without ``rng`` known words stay whole."""
        most = self.config.model.max_tokens
        if self._piece_table is not None:
            return self._piece_table.pieces(batch.rows, batch.lengths, max_pieces=most)
        if self._piece_dropout is not None:
            return self._piece_dropout(batch.rows, batch.lengths, rng, most)
        return batch.rows, batch.lengths
