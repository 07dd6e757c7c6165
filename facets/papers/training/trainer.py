"""The training loop of a model of papers: network and tables together (Chang 2022, eq. 3.14)."""

import logging
import math
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from tqdm import tqdm

from facets.errors import CheckpointError
from facets.losses.autoencoder import paper_autoencoder_loss
from facets.papers.inputs import CandidateKind
from facets.papers.loss import ranking_loss, recommendation_loss
from facets.papers.network import EncodedPapers, PaperNetwork
from facets.papers.training.batches import PaperBatch, PaperStream
from facets.papers.training.config import PaperTrainingConfig
from facets.papers.training.data import PaperCorpus
from facets.papers.training.matched_table import MatchedTable
from facets.training.runs import (
    interrupts,
    learning_rate_factor,
    load_checkpoint,
    log_curve,
    save_checkpoint,
    training_device,
    use_bfloat16,
)
from facets.words.singular import rarity_weights, word_counts
from facets.words.vectors import WordVectors, unit_rows

__all__ = ["PaperTrainer", "PaperTrainingResult"]

logger = logging.getLogger(__name__)

_HARDWARE = ("device", "num_threads")
_PAIRS_AT_A_TIME = 8192
_PASSES = 4  # over the papers, when no number of steps is asked for; after more the held-out loss rises
_WEIGHTS_FASTER = 5.0  # logarithms of word weights move by units, coordinates of unit vectors by hundredths


@dataclass(frozen=True, slots=True)
class PaperTrainingResult:
    """How a run ended.

    Attributes:
        finished: False when it was interrupted; ``resume`` goes on from there.
        step: Steps done, of all runs together.
        validation_loss: Of the held-out papers; None before the first.
    """

    finished: bool
    step: int
    validation_loss: float | None


class PaperTrainer:
    """Trains network and tables on a corpus, in a folder of its own: ``checkpoint.pt`` and ``curve.jsonl``."""

    def __init__(self, config: PaperTrainingConfig, corpus: PaperCorpus, words: WordVectors, out_dir: Path) -> None:
        self._stream = PaperStream(corpus, config)
        if not config.num_steps:
            num_presentations = _PASSES * len(self._stream.training_papers)
            config = config.replaced(num_steps=math.ceil(num_presentations / config.batch_size))
        self._config = config
        self._out_dir = out_dir
        self._device = training_device(config.device)
        if config.num_threads:
            torch.set_num_threads(config.num_threads)
        torch.manual_seed(config.seed)
        unit_vectors = torch.from_numpy(words.unit_vectors)
        probabilities = torch.from_numpy(words.vocabulary.probabilities)
        self.network = PaperNetwork(config.model, unit_vectors, probabilities, train_words=config.train_words)
        projection_WD, averages_IW = _starting_point(config, corpus, words)
        self.network.start_from(torch.from_numpy(projection_WD))
        self.network.to(self._device)
        is_training = np.zeros(len(corpus), dtype=np.bool_)
        is_training[self._stream.training_papers] = True
        facets_ID = averages_IW @ projection_WD
        self.tables = nn.ModuleDict(
            {
                kind: MatchedTable(
                    torch.from_numpy(pairs.columns),
                    torch.from_numpy(is_training[pairs.papers]),
                    torch.from_numpy(facets_ID[pairs.papers]),
                    len(pairs.ids),
                )
                for kind, pairs in corpus.interactions.items()
            }
        ).to(self._device)
        self._use_bfloat16 = use_bfloat16(config.precision, self._device)
        self._loss_of_pairs = (
            partial(ranking_loss, temperature=config.temperature)
            if config.loss == "softmax"
            else partial(recommendation_loss, negative_weight=config.negative_weight)
        )
        of_words = [self.network.word_vectors, self.network.log_word_weights] if config.train_words else []
        is_of_words = set(map(id, of_words))
        others = [parameter for parameter in self.network.parameters() if id(parameter) not in is_of_words]
        groups = [
            {"params": others, "weight_decay": config.optimizer.weight_decay},
            {"params": self.tables.parameters(), "weight_decay": 0.0},  # their length
        ]
        if of_words:
            rate = config.word_learning_rate
            groups.append({"params": of_words[:1], "weight_decay": 0.0, "lr": rate})
            groups.append({"params": of_words[1:], "weight_decay": 0.0, "lr": rate * _WEIGHTS_FASTER})
        self._optimizer = AdamW(groups, lr=config.optimizer.learning_rate, fused=True)
        self._schedule = LambdaLR(self._optimizer, self._learning_rate_factor)
        self._step, self._seconds = 0, 0.0
        self.stop_after: int | None = None  # a step to stop at as if interrupted
        self._validation_loss: float | None = None

    @property
    def config(self) -> PaperTrainingConfig:
        """The settings, with the number of steps."""
        return self._config

    @property
    def step(self) -> int:
        """Steps done."""
        return self._step

    @property
    def seconds(self) -> float:
        """Seconds of training, over all runs."""
        return self._seconds

    def resume(self) -> None:
        """Goes back to the last checkpoint.

        Raises:
            CheckpointError: There is none, it is damaged, or it belongs to other settings or papers.
        """
        path = self._out_dir / "checkpoint.pt"
        state = load_checkpoint(path, self._config.to_dict(), device=self._device, may_change=_HARDWARE)
        try:
            self.network.load_state_dict(state["network"])
            self.tables.load_state_dict(state["tables"])
        except RuntimeError as error:
            raise CheckpointError(f"{path} was made with other papers: {str(error)[:200]}") from error
        self._optimizer.load_state_dict(state["optimizer"])
        self._schedule.load_state_dict(state["schedule"])
        torch.set_rng_state(state["rng"].cpu())
        self._step, self._seconds, self._validation_loss = state["step"], state["seconds"], state["validation_loss"]

    def train(self, *, progress: bool = True) -> PaperTrainingResult:
        """Runs to the last step, or to an interrupt (SIGINT, SIGTERM), which saves a checkpoint first."""
        config = self._config
        self._out_dir.mkdir(parents=True, exist_ok=True)
        losses: list[float] = []
        with (
            interrupts() as interrupted,
            tqdm(total=config.num_steps, initial=self._step, disable=not progress, unit="step", mininterval=10) as bar,
        ):
            for batch in self._stream.training_batches(self._step):
                if self._step >= config.num_steps or interrupted or self._step == self.stop_after:
                    break
                started = time.monotonic()
                losses.append(self._train_step(batch))
                self._seconds += time.monotonic() - started
                self._step += 1
                bar.update()
                is_last = self._step == config.num_steps
                if self._step % config.validate_every == 0 or is_last:
                    self._log_curve(losses)
                    losses.clear()
                if self._step % config.checkpoint_every == 0 or is_last:
                    self._save_checkpoint()
        finished = self._step >= config.num_steps
        if not finished:
            self._save_checkpoint()
        return PaperTrainingResult(finished, self._step, self._validation_loss)

    @torch.no_grad()
    def refresh(self, *, num_rounds: int = 3, use_validation: bool = True) -> None:
        """Encodes every paper with the network as it is and matches until the tables fit it.

        Args:
            num_rounds: Rounds of matching, each with the vectors of the last.
            use_validation: Let the held-out papers count from now on; end of training.
        """
        self.network.eval()
        corpus, dim = self._stream.corpus, self._config.model.dim
        shape = (len(corpus), self._config.model.num_facets)
        facets = torch.empty((*shape, dim), dtype=torch.float16)
        magnitudes = {kind: torch.empty(shape) for kind in CandidateKind}
        limit = self._config.model.max_tokens
        for papers, rows, lengths in self._stream.all_papers(limit):
            with torch.autocast(self._device.type, dtype=torch.bfloat16, enabled=self._use_bfloat16):
                encoded = self.network(self._tensor(rows), self._tensor(lengths))
            places = torch.from_numpy(papers)
            facets[places] = encoded.facets.half().cpu()
            magnitudes[CandidateKind.AUTHORS][places] = encoded.author_magnitudes.float().cpu()
            magnitudes[CandidateKind.CITATIONS][places] = encoded.citation_magnitudes.float().cpu()
        for kind, pairs in corpus.interactions.items():
            table = self.tables[kind]
            assert isinstance(table, MatchedTable)
            if use_validation:
                table.count_all()
            used = np.flatnonzero(table.is_used.cpu().numpy())
            for _ in range(num_rounds):
                for first in range(0, len(used), _PAIRS_AT_A_TIME):
                    numbers = used[first : first + _PAIRS_AT_A_TIME]
                    papers_P = torch.from_numpy(pairs.papers[numbers])
                    scaled = facets[papers_P].float() * magnitudes[kind][papers_P].unsqueeze(2)
                    numbers_P = self._tensor(numbers)
                    own_PD, _ = table.vectors_without(numbers_P)
                    table.update(numbers_P, scaled.to(self._device), own_PD)

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Mean losses of the held-out papers, by name."""
        self.network.eval()
        batches = self._stream.validation_batches()
        total: dict[str, float] = {}
        for batch in batches:
            for name, loss in self._losses(batch).items():
                total[name] = total.get(name, 0.0) + float(loss) / len(batches)
        return total

    def _train_step(self, batch: PaperBatch) -> float:
        self.network.train()
        loss = self._total(self._losses(batch))
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self._config.optimizer.max_gradient_norm)
        self._optimizer.step()
        self._schedule.step()
        if self._config.train_words:
            self.network.normalize_words()
        value = float(loss.detach())
        if value != value:
            raise CheckpointError(f"the training loss became NaN at step {self._step}; the last checkpoint is kept")
        return value

    def _total(self, losses: dict[str, Tensor]) -> Tensor:
        config = self._config
        return (
            config.author_weight * losses[CandidateKind.AUTHORS]
            + config.citation_weight * losses[CandidateKind.CITATIONS]
            + config.autoencoder_weight * losses["autoencoder"]
        )

    def _losses(self, batch: PaperBatch) -> dict[str, Tensor]:
        encoded = self._encode(batch)
        magnitudes = {
            CandidateKind.AUTHORS: encoded.author_magnitudes,
            CandidateKind.CITATIONS: encoded.citation_magnitudes,
        }
        losses: dict[str, Tensor] = {}
        for kind, pairs in batch.pairs.items():
            table = self.tables[kind]
            assert isinstance(table, MatchedTable)
            facets_BKD = encoded.facets * magnitudes[kind].unsqueeze(-1)
            numbers_P = self._tensor(pairs.numbers)
            positives_P2 = self._tensor(pairs.pairs)
            own_PD, has_rest_P = table.vectors_without(numbers_P)
            losses[kind] = self._loss_of_pairs(
                facets_BKD,
                table.vectors(self._tensor(pairs.columns)),
                positives_P2,
                # A pair whose author has no other paper teaches nothing yet.
                self._tensor(pairs.weights) * has_rest_P,
                own_PD=own_PD,
            )
            if self.network.training:
                table.update(numbers_P, facets_BKD.detach()[positives_P2[:, 0]], own_PD)
        words_BD = self.network.word_map(encoded.averages)
        losses["autoencoder"] = paper_autoencoder_loss(encoded.facets, words_BD, self._tensor(batch.negatives))
        return losses

    def _encode(self, batch: PaperBatch) -> EncodedPapers:
        parts = []
        with torch.autocast(self._device.type, dtype=torch.bfloat16, enabled=self._use_bfloat16):
            for rows, lengths in batch.parts:
                parts.append(self.network(self._tensor(rows), self._tensor(lengths)))
        return EncodedPapers(*(torch.cat([part.float() for part in column]) for column in zip(*parts, strict=True)))

    def _tensor(self, array: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(array).to(self._device, non_blocking=True)

    def _learning_rate_factor(self, step: int) -> float:
        config = self._config
        warmup_steps = config.optimizer.warmup_steps
        return learning_rate_factor(step, warmup_steps=warmup_steps, num_steps=config.num_steps)

    def _log_curve(self, losses: list[float]) -> None:
        parts = self.validate()
        self._validation_loss = sum(
            weight * parts.get(name, 0.0)
            for name, weight in (
                (CandidateKind.AUTHORS, self._config.author_weight),
                (CandidateKind.CITATIONS, self._config.citation_weight),
                ("autoencoder", self._config.autoencoder_weight),
            )
        )
        line = {
            "step": self._step,
            "training_loss": round(sum(losses) / len(losses), 5),
            "validation_loss": round(self._validation_loss, 5),
            **{f"validation_{name}": round(value, 5) for name, value in parts.items()},
            "seconds": round(self._seconds, 1),
            "papers_per_second": round(self._step * self._config.batch_size / max(self._seconds, 1e-9), 1),
        }
        log_curve(self._out_dir / "curve.jsonl", line)
        logger.info("step %d %s", self._step, line)

    def _save_checkpoint(self) -> None:
        state = {
            "config": self._config.to_dict(),
            "network": self.network.state_dict(),
            "tables": self.tables.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "schedule": self._schedule.state_dict(),
            "rng": torch.get_rng_state(),
            "step": self._step,
            "seconds": self._seconds,
            "validation_loss": self._validation_loss,
        }
        save_checkpoint(self._out_dir / "checkpoint.pt", state)


def _starting_point(
    config: PaperTrainingConfig, corpus: PaperCorpus, words: WordVectors
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """A projection of word averages ``[W, D]`` that spreads papers evenly, and the averages ``[I, W]``."""
    probabilities = words.vocabulary.probabilities
    weighted_VW = words.unit_vectors * rarity_weights(probabilities)[:, None]
    counts_IV = word_counts(corpus.rows, corpus.offsets, len(words))
    averages_IW = unit_rows(np.asarray(counts_IV @ weighted_VW))
    values, axes = np.linalg.eigh(averages_IW.T @ averages_IW / max(1, len(averages_IW)))
    dim = min(config.model.dim, len(values))
    scale = (np.maximum(values[::-1][:dim], 1e-6) * dim) ** -0.5
    projection_WD = np.zeros((words.dim, config.model.dim), dtype=np.float32)
    projection_WD[:, :dim] = axes[:, ::-1][:, :dim] * scale
    return projection_WD, averages_IW
