"""The training loop of a relation model (Chang 2022, algorithm 2).

Shape suffixes: B patterns, R relations, L tokens, N entity pairs, K facets, D dimensions, V words.
"""

import logging
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from tqdm import tqdm

from facets.errors import CheckpointError, ConfigError
from facets.losses.autoencoder import pattern_autoencoder_loss, weighted_word_sum
from facets.relations.loss import universal_schema_loss
from facets.relations.network import RelationNetwork, pattern_rows
from facets.relations.training.config import RelationTrainingConfig
from facets.relations.training.data import load_matrix
from facets.relations.training.factorization import factorize
from facets.relations.training.stream import PairSample, RelationBatch, RelationStream
from facets.relations.training.verbalization import name_words, read_phrases
from facets.text.tokenizer import Tokenizer
from facets.training.runs import (
    interrupts,
    learning_rate_factor,
    load_checkpoint,
    log_curve,
    save_checkpoint,
    use_bfloat16,
)
from facets.words.vectors import WordVectors

__all__ = ["RelationTrainer"]

logger = logging.getLogger(__name__)

_CURVE_EVERY = 250
_HARDWARE = ("num_threads",)


class RelationTrainer:
    """Trains one relation network in a folder of its own.

    The folder holds ``universal_schema.pt`` (the factorized matrix, made once), ``checkpoint.pt`` and ``curve.jsonl``.

    Raises:
        ConfigError: The settings do not fit the word vectors.
        InvalidInputError: A matrix file has a bad line.
    """

    def __init__(self, config: RelationTrainingConfig, out_dir: Path) -> None:
        self.config = config
        self._out_dir = out_dir
        if config.num_threads:
            torch.set_num_threads(config.num_threads)
        self.words = WordVectors.load(Path(config.words))
        if self.words.dim != config.model.dim:
            raise ConfigError(
                f"model.dim must be the width of the word vectors, {self.words.dim}, got {config.model.dim}"
            )
        self.matrix = load_matrix(
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
            len(self.matrix.patterns),
            len(self.matrix.relations),
            self.matrix.num_pairs,
            len(self.matrix.pairs),
        )
        vocabulary = self.words.vocabulary
        tokens = [pattern.split() for pattern in self.matrix.patterns]
        self._stream = RelationStream(self.matrix, pattern_rows(tokens, vocabulary, config.pattern_tokens), config)
        unit = self.words.unit_vectors
        self._unit_VD = torch.from_numpy(unit)
        # One row more for everything that is no word: no probability, a zero vector.
        self._probabilities_V = torch.from_numpy(np.append(vocabulary.probabilities, 0.0).astype(np.float32))
        self._words_VD = torch.cat([self._unit_VD, torch.zeros(1, self.words.dim)])
        relation_words = [self._known_rows(name_words(name)) for name in self.matrix.relations]
        self._relation_sums_RD = torch.stack([self._weighted_sum(rows) for rows in relation_words])
        torch.manual_seed(config.seed)
        self.network = RelationNetwork(
            config.model,
            self._unit_VD,
            functional.normalize(self._relation_sums_RD, dim=1),
            num_relation_facets=config.num_relation_facets,
        )
        self.row_vectors, self.pair_vectors = self._universal_schema()
        self._autocast_dtype = torch.bfloat16 if use_bfloat16(config.precision, torch.device("cpu")) else None
        self._optimizer = AdamW(
            self.network.parameters(),
            lr=config.optimizer.learning_rate,
            weight_decay=config.optimizer.weight_decay,
            fused=True,
        )
        self._schedule = LambdaLR(self._optimizer, self._learning_rate_factor)
        self._step = 0
        self._seconds = 0.0

    @property
    def step(self) -> int:
        """Steps done."""
        return self._step

    @property
    def seconds(self) -> float:
        """Seconds of training, over all runs."""
        return self._seconds

    def train(self, *, progress: bool = True) -> int:
        """Runs to the last step with a checkpoint every ``checkpoint_every``; returns the steps done.

        SIGINT and SIGTERM save a checkpoint and end the run early; ``resume`` goes on from there.
        """
        self._out_dir.mkdir(parents=True, exist_ok=True)
        losses: list[tuple[float, float, float]] = []
        with (
            interrupts() as interrupted,
            tqdm(total=self.config.num_steps, initial=self._step, disable=not progress, unit="step") as bar,
        ):
            for batch in self._stream.training_batches(self._step):
                if self._step >= self.config.num_steps or interrupted:
                    break
                started = time.monotonic()
                losses.append(self._train_step(batch))
                self._seconds += time.monotonic() - started
                self._step += 1
                bar.update()
                is_last = self._step == self.config.num_steps
                if self._step % _CURVE_EVERY == 0 or is_last:
                    self._log_curve(losses)
                    losses.clear()
                if self._step % self.config.checkpoint_every == 0 or is_last:
                    self._save_checkpoint()
        if self._step < self.config.num_steps:
            self._save_checkpoint()
        return self._step

    def resume(self) -> None:
        """Goes back to the last checkpoint.

        Raises:
            CheckpointError: There is none, it is damaged, or it belongs to other settings.
        """
        path = self._out_dir / "checkpoint.pt"
        state = load_checkpoint(path, self.config.to_dict(), device=torch.device("cpu"), may_change=_HARDWARE)
        self.network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._schedule.load_state_dict(state["schedule"])
        torch.set_rng_state(state["rng"])
        self.pair_vectors = state["pairs"].float()
        self._step, self._seconds = state["step"], state["seconds"]

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
        torch.save({"rows": rows.half(), "pairs": pairs.half()}, path)
        return rows, functional.normalize(pairs, dim=1)

    def _train_step(self, batch: RelationBatch) -> tuple[float, float, float]:
        config = self.config
        self.network.train()
        rows_BL = torch.from_numpy(batch.rows)
        lengths_B = torch.from_numpy(batch.lengths)
        relations_R = torch.from_numpy(batch.relations)
        with torch.autocast("cpu", dtype=self._autocast_dtype, enabled=self._autocast_dtype is not None):
            facets_BKD = self.network(self._dropped_words(rows_BL), lengths_B)
            relation_facets_RKD = self.network.relation_facets(relations_R)
        pattern_pairs, pattern_loss = self._pair_loss(facets_BKD, batch.pattern_pairs)
        relation_pairs, relation_loss = self._pair_loss(relation_facets_RKD, batch.relation_pairs)
        num_pairs = [int((sample.weights > 0).sum()) for sample in (batch.pattern_pairs, batch.relation_pairs)]
        schema_loss = (pattern_loss * num_pairs[0] + relation_loss * num_pairs[1]) / sum(num_pairs)
        sums_BD = torch.cat([self._weighted_sums(rows_BL, lengths_B), self._relation_sums_RD[relations_R]])
        means_BD = torch.cat([facets_BKD.float().mean(dim=1), relation_facets_RKD.float().mean(dim=1)])
        negatives_B = torch.arange(len(means_BD)).roll(batch.shift)
        auto_loss = pattern_autoencoder_loss(means_BD.unsqueeze(1), self.network.word_map(sums_BD), negatives_B)
        loss = schema_loss + config.autoencoder_weight * auto_loss
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), config.optimizer.max_gradient_norm)
        factor = self._learning_rate_factor(self._step)
        # The loss is a mean over the batch; each pair moves as if it were alone.
        for used in (pattern_pairs, relation_pairs):
            self._move_pairs(*used, factor * config.pair_learning_rate * sum(num_pairs))
        self._optimizer.step()
        self._schedule.step()
        value = float(loss.detach())
        if value != value:
            raise CheckpointError(f"the training loss became NaN at step {self._step}; the last checkpoint is kept")
        return float(pattern_loss.detach()), float(relation_loss.detach()), float(auto_loss.detach())

    def _pair_loss(self, facets_BKD: Tensor, sample: PairSample) -> tuple[tuple[Tensor, Tensor], Tensor]:
        """Rows and leaf embeddings of the entity pairs, and eq. 3.9."""
        count = sample.pairs.shape[1]
        pairs_BN = torch.from_numpy(np.concatenate([sample.pairs, sample.negatives], axis=1))
        vectors_BND = self.pair_vectors[pairs_BN].requires_grad_()
        loss = universal_schema_loss(
            facets_BKD,
            vectors_BND[:, :count],
            vectors_BND[:, count:],
            torch.from_numpy(sample.weights),
            torch.from_numpy(sample.negative_weights),
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
        dropped_BL = (torch.rand(rows_BL.shape) < self.config.word_dropout) & (rows_BL < unknown)
        return rows_BL.masked_fill(dropped_BL, unknown)

    def _weighted_sums(self, rows_BL: Tensor, lengths_B: Tensor) -> Tensor:
        unknown = len(self._unit_VD)
        mask_BL = torch.arange(rows_BL.shape[1]) < lengths_B[:, None]
        rows_BL = rows_BL.clamp_max(unknown).masked_fill(~mask_BL, unknown)
        return weighted_word_sum(self._words_VD[rows_BL], self._probabilities_V[rows_BL])

    def _weighted_sum(self, rows: NDArray[np.int64]) -> Tensor:
        rows_1L = torch.from_numpy(rows).unsqueeze(0)
        return weighted_word_sum(self._words_VD[rows_1L], self._probabilities_V[rows_1L])[0]

    def _known_rows(self, tokens: list[str]) -> NDArray[np.int64]:
        return self.words.vocabulary.rows(tokens)

    def _learning_rate_factor(self, step: int) -> float:
        config = self.config
        warmup_steps = config.optimizer.warmup_steps
        return learning_rate_factor(step, warmup_steps=warmup_steps, num_steps=config.num_steps)

    def _log_curve(self, losses: list[tuple[float, float, float]]) -> None:
        means = np.mean(losses, axis=0)
        line: dict[str, Any] = {
            "step": self._step,
            "pattern_loss": round(float(means[0]), 5),
            "relation_loss": round(float(means[1]), 5),
            "autoencoder_loss": round(float(means[2]), 5),
            "seconds": round(self._seconds, 1),
            "patterns_per_second": round(self._step * self.config.batch_size / self._seconds, 1),
        }
        log_curve(self._out_dir / "curve.jsonl", line)

    def _save_checkpoint(self) -> None:
        state = {
            "config": self.config.to_dict(),
            "network": self.network.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "schedule": self._schedule.state_dict(),
            "rng": torch.get_rng_state(),
            "pairs": self.pair_vectors,  # in full precision: a resumed run ends as one that never stopped
            "step": self._step,
            "seconds": self._seconds,
        }
        save_checkpoint(self._out_dir / "checkpoint.pt", state)
