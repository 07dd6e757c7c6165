"""Trains encoders of passage models by distillation from a teacher.

Shape suffixes: W width, N texts, G groups.
"""

from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from torch import Tensor, nn

from facets.errors import CheckpointError, ConfigError
from facets.language.vectors import WordVectors, unit_rows
from facets.language.vocabulary import Vocabulary
from facets.model.network import Backbone
from facets.model.passage_checkpoint import PassageModelConfig, write_passage_checkpoint
from facets.model.passage_network import RaggedBatch, SentenceEncoder, average_states
from facets_lab.documents.data import PassageTrainingConfig, PreparedPassages, Texts, vectors_of
from facets_lab.evaluation.files import parse_count, read_table
from facets_lab.losses.passages import distillation_loss
from facets_lab.training.loop import (
    CHECKPOINT,
    LOSS,
    ConfigFile,
    ModelOut,
    Resume,
    RunOut,
    Trainer,
    TrainingResult,
    train,
)

_DISTANCE_WEIGHT = 5.0  # of the cosine relative to the divergence, so that both count about equally
_MAX_WORD_TOKENS = 32
_TRAINING_FACTS = ("seed", "num_steps", "batch_size", "layers", "teacher")


Batch = dict[str, NDArray[np.int64]]  # rows of passages, of their sentences, and of their questions, by kind


class PassageTrainer(Trainer[PassageTrainingConfig, Batch]):
    """A sentence encoder with its data."""

    network: SentenceEncoder

    def __init__(self, config: PassageTrainingConfig) -> None:
        super().__init__(config)
        self._data = PreparedPassages(Path(config.data))
        if self._data.num_groups <= config.validation_groups:
            raise ConfigError(f"{config.data} has {self._data.num_groups} groups, expected > validation_groups")
        passages = self._data.texts["passage"]
        first = np.searchsorted(passages.owners, np.arange(self._data.num_groups))
        self._group_vectors = unit_rows(np.add.reduceat(passages.vectors.astype(np.float32), first))
        torch.manual_seed(config.seed)
        teacher = Backbone(config.teacher)
        if teacher.config.replaced(num_layers=config.model.num_layers) != config.model:
            raise ConfigError(
                f"model must match {teacher.folder} except in num_layers: {teacher.config}, got {config.model}"
            )
        self.network = SentenceEncoder(config.model)
        self.network.load_state_dict(teacher.encoder(config.layers).state_dict())
        if config.start:
            _load_weights(Path(config.start), self.network)
        self.network.to(self.device)

    def batches(self, start_step: int) -> Iterator[Batch]:
        """Groups, in a different order in each pass over the data, the same for the same seed."""
        return map(self._batch, islice(self._groups_of_steps(), start_step, None))

    def step(self, batch: Batch, number: int) -> dict[str, Tensor]:
        """See ``Trainer``."""
        return self._losses(batch, np.random.default_rng((self.config.seed, number)))

    def validate(self) -> dict[str, float]:
        """Mean losses of the held-out groups."""
        held_out = np.arange(self._data.num_groups - self.config.validation_groups, self._data.num_groups)
        losses = [
            self._losses(self._batch(groups), np.random.default_rng(number))
            for number, groups in enumerate(self._cut(held_out))
        ]
        return {name: float(np.mean([float(of_batch[name]) for of_batch in losses])) for name in losses[0]}

    def _groups_of_steps(self) -> Iterator[NDArray[np.int64]]:
        num_groups = self._data.num_groups - self.config.validation_groups
        for epoch in count():
            order = np.random.default_rng((self.config.seed, epoch)).permutation(num_groups)
            yield from self._cut(similar_neighbours(order, self._group_vectors, self.config.similar_groups))

    def _cut(self, groups: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """Yields the groups of each step, enough for a batch of passages; the remainder is left out."""
        passages = self._data.texts["passage"]
        first, size = 0, 0
        for position, group in enumerate(groups.tolist()):
            size += len(passages.of(group))
            if size >= self.config.batch_size:
                yield groups[first : position + 1]
                first, size = position + 1, 0

    def _batch(self, groups: NDArray[np.int64]) -> Batch:
        texts = self._data.texts
        passages = texts["passage"].of_all(groups)
        return {"passage": passages} | {kind: texts[kind].of_all(passages) for kind in ("sentence", "question")}

    def _losses(self, batch: Batch, random_choice: np.random.Generator) -> dict[str, Tensor]:
        """Losses of the passages and of a sample of their sentences and questions."""
        texts = self._data.texts
        chosen: list[tuple[Texts, int]] = [
            (texts[kind], number) for kind in ("sentence", "question") for number in batch[kind].tolist()
        ]
        size = min(len(chosen), self.config.distilled_texts)
        chosen = [chosen[position] for position in random_choice.choice(len(chosen), size, replace=False)]
        chosen += [(texts["passage"], number) for number in batch["passage"].tolist()]
        ragged = RaggedBatch.of([of_kind.row(number) for of_kind, number in chosen], self.device)
        with self.autocast():
            vectors_NW = average_states(self.network(ragged), ragged)
        teacher_NW = np.stack([of_kind.vectors[number] for of_kind, number in chosen]).astype(np.float32)
        distance, divergence = distillation_loss(
            vectors_NW, self.tensor(teacher_NW), temperature=self.config.temperature
        )
        return {LOSS: _DISTANCE_WEIGHT * distance + divergence, "distance": distance, "divergence": divergence}


def passages(config: ConfigFile, out: RunOut, resume: Resume = False, model_out: ModelOut = None) -> None:
    """Distil a sentence encoder into a smaller model of passages; Ctrl-C saves a checkpoint.

    Example: facets-train passages --config lab/configs/facets-passages-en.toml --out runs/facets-passages-en
    """
    settings, folder = PassageTrainingConfig.from_toml(config), model_out or out / "model"
    trainer, result = train(lambda: PassageTrainer(settings), out, resume=resume)
    export_passage_model(trainer, result, folder)
    typer.echo(f"{settings.name}: model in {folder}", err=True)


def _load_weights(run: Path, network: nn.Module) -> None:
    """Loads the weights from the last checkpoint of a run."""
    path = run / CHECKPOINT
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)["trainer"]["network"]
        network.load_state_dict(state)
    except (OSError, RuntimeError, KeyError, EOFError) as error:
        raise CheckpointError(f"{path}: expected a run of the same shape to start from, got: {error}") from error


def similar_neighbours(order: NDArray[np.int64], vectors_GW: NDArray[np.float32], size: int) -> NDArray[np.int64]:
    """Reorders groups so that each run of ``size`` has the first remaining group and those most similar to it."""
    if size == 1:
        return order
    left, runs = order, []
    while len(left):
        cosines = vectors_GW[left] @ vectors_GW[left[0]]
        cosines[0] = np.inf
        chosen = np.argsort(-cosines, kind="stable")[:size]
        runs.append(left[chosen])
        left = np.delete(left, chosen)
    return np.concatenate(runs)


def export_passage_model(trainer: PassageTrainer, result: TrainingResult, out: Path) -> None:
    """Writes a model folder."""
    config, teacher = trainer.config, Backbone(trainer.config.teacher)
    facts = {name: value for name, value in config.to_dict().items() if name in _TRAINING_FACTS}
    exported = PassageModelConfig(
        name=config.name,
        space=Path(config.teacher).name,
        encoder=config.model,
        window_tokens=config.window_tokens,
        training={**facts, "seconds": round(result.seconds), "step": result.step},
    )
    words = encode_words(Path(config.words), teacher, max_words=config.num_words)
    write_passage_checkpoint(out, exported, trainer.network.state_dict(), pieces=teacher.pieces, words=words)


def encode_words(path: Path, teacher: Backbone, *, max_words: int) -> WordVectors:
    """The teacher's vectors of the first ``max_words`` words of a file of words and counts, each encoded separately."""
    table = list(read_table(path, {"word": str, "count": parse_count}))
    words, counts = [word for word, _ in table], [count for _, count in table]
    rows = teacher.ids(words[:max_words], _MAX_WORD_TOKENS)
    vectors = vectors_of(teacher.encoder(), rows).astype(np.float32)
    return WordVectors(Vocabulary(words[:max_words], np.array(counts[:max_words]), total_count=sum(counts)), vectors)
