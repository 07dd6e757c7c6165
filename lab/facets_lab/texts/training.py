"""Data and loss of a sentence model (Chang 2022, algorithm 1), and the export of a run.

Shape suffixes: B texts, K facets, D dimensions.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import typer
from torch import Tensor

from facets.errors import ConfigError
from facets.language.vectors import WordVectors
from facets.model.checkpoint import CheckpointConfig
from facets.model.facet_model import FacetModel
from facets.model.network import FacetNetwork, WordTable
from facets.texts.words import fit_common_components
from facets_lab.language.word_vectors import whole_words
from facets_lab.losses import nnsc_loss
from facets_lab.texts.data import SentenceBatch, SentenceStream, SentenceTrainingConfig
from facets_lab.training.corpus import PackedCorpus
from facets_lab.training.loop import LOSS, ConfigFile, Resume, RunOut, Trainer, TrainingResult, WordsOf, train

# KKT residual and sweeps of the solver; a gradient needs less accuracy than a reported figure.
_TRAINING_ACCURACY = (1e-3, 12)
_VALIDATION_ACCURACY = (1e-5, 200)
_COMPONENT_SENTENCES = 20_000  # more change the first principal component by less than its rounding


def sentences(config: ConfigFile, out: RunOut, resume: Resume = False, words_of: WordsOf = None) -> None:
    """Train a model of sentences; Ctrl-C saves a checkpoint.

    Example: facets-train sentences --config lab/configs/facets-en.toml --out runs/facets-en
    """
    settings, folder = SentenceTrainingConfig.from_toml(config), out / "model"
    export_sentence_model(*train(lambda: SentenceTrainer(settings), out, resume=resume), folder, words_of=words_of)
    typer.echo(f"{settings.name}: model in {folder}", err=True)


class SentenceTrainer(Trainer[SentenceTrainingConfig, SentenceBatch]):
    """A facet network on a packed corpus."""

    network: FacetNetwork

    def __init__(self, config: SentenceTrainingConfig) -> None:
        super().__init__(config)
        corpus = PackedCorpus.open(Path(config.corpus))
        words = whole_words(WordVectors.load(Path(config.words)))  # corpora have no pieces
        if words.vocabulary.words != corpus.vocabulary.words:
            raise ConfigError(
                f"the word vectors in {config.words} and the corpus in {config.corpus} have different vocabularies"
            )
        if words.dim != config.model.dim:
            raise ConfigError(f"model.dim must be the width of the word vectors, {words.dim}, got {config.model.dim}")
        self._stream = SentenceStream(corpus, config)
        torch.manual_seed(config.seed)
        word_vectors_VD = torch.from_numpy(words.unit_vectors)
        self.network = FacetNetwork(config.model, WordTable(word_vectors_VD)).to(self.device)
        self._targets_VD = word_vectors_VD.to(self.device)

    def batches(self, start_step: int) -> Iterator[SentenceBatch]:
        """See ``Trainer``."""
        return self._stream.training_batches(start_step)

    def step(self, batch: SentenceBatch, number: int) -> dict[str, Tensor]:
        """See ``Trainer``."""
        return {LOSS: self._loss(batch, kmeans=self.config.loss == "kmeans", accuracy=_TRAINING_ACCURACY)}

    def validate(self) -> dict[str, float]:
        """Mean NNSC loss of the held-out batches, for both training losses."""
        batches = self._stream.validation_batches()
        losses = [float(self._loss(batch, kmeans=False, accuracy=_VALIDATION_ACCURACY)) for batch in batches]
        return {LOSS: sum(losses) / len(batches)}

    def _loss(self, batch: SentenceBatch, *, kmeans: bool, accuracy: tuple[float, int]) -> Tensor:
        with self.autocast():
            facets_BKD = self.network(self.tensor(batch.rows), self.tensor(batch.lengths))
        return nnsc_loss(
            facets_BKD,
            self._targets_VD[self.tensor(batch.targets)],
            self.tensor(batch.target_mask),
            self.tensor(batch.negatives),
            l1_weight=self.config.l1_weight,
            tolerance=accuracy[0],
            max_sweeps=accuracy[1],
            kmeans=kmeans,
        )


def export_sentence_model(
    trainer: SentenceTrainer, result: TrainingResult, out_dir: Path, *, words_of: Path | None = None
) -> FacetModel:
    """Writes a model folder; ``words_of`` is a model with the same word vectors, which are then not stored again."""
    config = trainer.config
    vectors = WordVectors.load(Path(config.words))
    network = FacetNetwork(config.model, WordTable.of(vectors))
    network.load_state_dict(trainer.network.state_dict())
    corpus = PackedCorpus.open(Path(config.corpus))
    checkpoint = CheckpointConfig(
        name=config.name,
        task="sentences",
        model=config.model,
        l1_weight=config.l1_weight,
        words="." if words_of is None else os.path.relpath(words_of, out_dir),
        training={
            "loss": config.loss,
            "seed": config.seed,
            "presentations": result.step * config.batch_size,
            "seconds": round(result.seconds, 1),
            "validation_loss": result.validation_loss,
            "corpus_sentences": corpus.num_sentences,
            "corpus_tokens": len(corpus.tokens),
        },
    )
    model = FacetModel(network, vectors, config=checkpoint)
    model.common_components = fit_common_components(model, _training_texts(corpus, config))
    model.save(out_dir)
    return model


def _training_texts(corpus: PackedCorpus, config: SentenceTrainingConfig) -> list[str]:
    """Sentences for the common components of SIF, as known words separated by spaces."""
    rng = np.random.default_rng([config.seed, 5])
    chosen = rng.choice(corpus.num_sentences, min(_COMPONENT_SENTENCES, corpus.num_sentences), replace=False)
    words = np.array([*corpus.vocabulary.words, ""], dtype=object)
    return [text for text in (" ".join(words[corpus.sentence(row)]).strip() for row in chosen) if text]
