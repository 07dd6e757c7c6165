"""The training loop of a sentence model: steps, validation, checkpoints, curve (Chang 2022, algorithm 1)."""

import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from tqdm import tqdm

from facets.errors import CheckpointError, ConfigError
from facets.losses.sparse_coding import sparse_coding_loss
from facets.model.backbone import BackboneEncoder
from facets.model.network import FacetNetwork
from facets.texts.training.config import SentenceTrainingConfig
from facets.texts.training.phrases import PhraseStream
from facets.texts.training.sentences import SentenceBatch, SentenceStream
from facets.texts.training.word_pieces import PieceDropout, WordPieceTable
from facets.training.corpus import PackedCorpus
from facets.training.runs import (
    interrupts,
    learning_rate_factor,
    load_checkpoint,
    log_curve,
    save_checkpoint,
    training_device,
    use_bfloat16,
)
from facets.words.pieces import remove_pieces
from facets.words.vectors import WordVectors

__all__ = ["SentenceTrainer", "TrainingResult"]

logger = logging.getLogger(__name__)

# KKT residual and sweeps: a gradient needs less accuracy than a figure that is reported.
_TRAINING_ACCURACY = (1e-3, 12)
_VALIDATION_ACCURACY = (1e-5, 200)

# Settings that say where a run computes, not what: they may change between its parts.
_HARDWARE = ("device", "num_threads")


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """How a run ended.

    Attributes:
        finished: False when it was interrupted; ``resume`` goes on from there.
        step: Steps done, of all runs together.
        validation_loss: The last one, sparse coding whatever the training loss; None before the first.
    """

    finished: bool
    step: int
    validation_loss: float | None


class SentenceTrainer:
    """Trains one network on a packed corpus, in a folder of its own.

    The folder holds ``checkpoint.pt`` (weights, optimizer, step) and ``curve.jsonl``, one line each validation.

    Raises:
        ConfigError: The corpus and the word vectors do not belong together, or no such device.
    """

    def __init__(self, config: SentenceTrainingConfig, out_dir: Path) -> None:
        self._config = config
        self._out_dir = out_dir
        self._device = training_device(config.device)
        if config.num_threads:
            torch.set_num_threads(config.num_threads)
        corpus = PackedCorpus.open(Path(config.corpus))
        vectors = WordVectors.load(Path(config.words))
        words = remove_pieces(vectors)  # corpora hold words only
        if words.vocabulary.words != corpus.vocabulary.words:
            raise ConfigError(
                f"the word vectors in {config.words} and the corpus in {config.corpus} have different vocabularies"
            )
        if words.dim != config.model.dim:
            raise ConfigError(f"model.dim must be the width of the word vectors, {words.dim}, got {config.model.dim}")
        self.words = words
        self._stream = PhraseStream(corpus, config) if config.inputs == "phrases" else SentenceStream(corpus, config)
        torch.manual_seed(config.seed)
        word_vectors_VD = torch.from_numpy((vectors if config.piece_rate else words).unit_vectors)
        self.network = FacetNetwork(config.model, word_vectors_VD).to(self._device)
        self._targets_VD = word_vectors_VD.to(self._device)
        encoder = self.network.encoder
        self._piece_table = (
            WordPieceTable.of_backbone(encoder, words.vocabulary.words)
            if isinstance(encoder, BackboneEncoder)
            else None
        )
        self._piece_dropout = PieceDropout(vectors.vocabulary, rate=config.piece_rate) if config.piece_rate else None
        self._autocast_dtype = torch.bfloat16 if use_bfloat16(config.precision, self._device) else None
        self._optimizer = AdamW(
            [weights for weights in self.network.parameters() if weights.requires_grad],
            lr=config.optimizer.learning_rate,
            weight_decay=config.optimizer.weight_decay,
            fused=True,
        )
        self._schedule = LambdaLR(self._optimizer, self._learning_rate_factor)
        self._step = 0
        self._seconds = 0.0  # of training, over all runs
        self._validation_loss: float | None = None

    @property
    def step(self) -> int:
        """Steps done."""
        return self._step

    def resume(self) -> None:
        """Goes back to the last checkpoint; the run then ends exactly as if it had never stopped.

        On other hardware, or with another number of threads, it ends the same up to rounding.

        Raises:
            CheckpointError: There is none, it is damaged, or it belongs to other settings.
        """
        path = self._out_dir / "checkpoint.pt"
        state = load_checkpoint(path, self._config.to_dict(), device=self._device, may_change=_HARDWARE)
        self.network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._schedule.load_state_dict(state["schedule"])
        torch.set_rng_state(state["rng"].cpu())
        if self._device.type == "cuda" and state["cuda_rng"] is not None:
            torch.cuda.set_rng_state(state["cuda_rng"].cpu(), self._device)
        self._step, self._seconds, self._validation_loss = (
            state["step"],
            state["seconds"],
            state["validation_loss"],
        )

    def train(self, *, progress: bool = True) -> TrainingResult:
        """Runs to the last step, or to an interrupt (SIGINT, SIGTERM), which saves a checkpoint first."""
        config = self._config
        self._out_dir.mkdir(parents=True, exist_ok=True)
        losses: list[float] = []
        with (
            interrupts() as interrupted,
            tqdm(total=config.num_steps, initial=self._step, disable=not progress, unit="step") as bar,
        ):
            for batch in self._stream.training_batches(self._step):
                if self._step >= config.num_steps or interrupted:
                    break
                started = time.monotonic()
                losses.append(self._train_step(batch))
                self._seconds += time.monotonic() - started
                self._step += 1
                bar.update()
                is_last = self._step == config.num_steps
                if self._step % config.validate_every == 0 or is_last:
                    self._validation_loss = self.validate()
                    self._log_curve(losses)
                    bar.set_postfix(validation=f"{self._validation_loss:.4f}")
                    losses.clear()
                if self._step % config.checkpoint_every == 0 or is_last:
                    self._save_checkpoint()
        finished = self._step >= config.num_steps
        if not finished:
            self._save_checkpoint()
        return TrainingResult(finished, self._step, self._validation_loss)

    @torch.no_grad()
    def validate(self) -> float:
        """Mean sparse coding loss of the held-out batches, whatever the training loss is."""
        self.network.eval()
        total = 0.0
        batches = self._stream.validation_batches()
        for batch in batches:
            total += float(self._loss(batch, kmeans=False, accuracy=_VALIDATION_ACCURACY))
        return total / len(batches)

    def _train_step(self, batch: SentenceBatch) -> float:
        self.network.train()
        loss = self._loss(batch, kmeans=self._config.loss == "kmeans", accuracy=_TRAINING_ACCURACY)
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self._config.optimizer.max_gradient_norm)
        self._optimizer.step()
        self._schedule.step()
        value = float(loss.detach())
        if value != value:
            raise CheckpointError(f"the training loss became NaN at step {self._step}; the last checkpoint is kept")
        return value

    def _loss(self, batch: SentenceBatch, *, kmeans: bool, accuracy: tuple[float, int]) -> Tensor:
        device_type = self._device.type
        rows, lengths = self._input_rows(batch)
        with torch.autocast(device_type, dtype=self._autocast_dtype, enabled=self._autocast_dtype is not None):
            facets_BKD = self.network(self._tensor(rows), self._tensor(lengths))
        return sparse_coding_loss(
            facets_BKD,
            self._targets_VD[self._tensor(batch.targets)],
            self._tensor(batch.target_mask),
            self._tensor(batch.negatives),
            l1_weight=self._config.l1_weight,
            tolerance=accuracy[0],
            max_sweeps=accuracy[1],
            kmeans=kmeans,
        )

    def _input_rows(self, batch: SentenceBatch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What the encoder reads of a batch: words, or pieces of words."""
        most = self._config.model.max_tokens
        if self._piece_table is not None:
            return self._piece_table.pieces(batch.rows, batch.lengths, max_pieces=most)
        if self._piece_dropout is not None:
            rng = np.random.default_rng([self._config.seed, 7, self._step]) if self.network.training else None
            return self._piece_dropout(batch.rows, batch.lengths, rng, most)
        return batch.rows, batch.lengths

    def _tensor(self, array: Any) -> Tensor:
        return torch.from_numpy(array).to(self._device, non_blocking=True)

    def _learning_rate_factor(self, step: int) -> float:
        config = self._config
        warmup_steps = config.optimizer.warmup_steps
        return learning_rate_factor(step, warmup_steps=warmup_steps, num_steps=config.num_steps)

    def _log_curve(self, losses: list[float]) -> None:
        line = {
            "step": self._step,
            "presentations": self._step * self._config.batch_size,
            "training_loss": round(sum(losses) / len(losses), 5),
            "validation_loss": round(self._validation_loss or 0.0, 5),
            "learning_rate": self._schedule.get_last_lr()[0],
            "seconds": round(self._seconds, 1),
            "sentences_per_second": round(self._step * self._config.batch_size / self._seconds, 1),
        }
        log_curve(self._out_dir / "curve.jsonl", line)
        logger.info(
            "step %(step)d validation loss %(validation_loss).4f, %(sentences_per_second).0f sentences/s",
            line,
        )

    def _save_checkpoint(self) -> None:
        state = {
            "config": self._config.to_dict(),
            "network": self.network.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "schedule": self._schedule.state_dict(),
            "rng": torch.get_rng_state(),
            "cuda_rng": torch.cuda.get_rng_state(self._device) if self._device.type == "cuda" else None,
            "step": self._step,
            "seconds": self._seconds,
            "validation_loss": self._validation_loss,
        }
        save_checkpoint(self._out_dir / "checkpoint.pt", state)
