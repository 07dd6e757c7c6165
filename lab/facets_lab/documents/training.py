"""Trains the encoders of passage models by distillation from a teacher.

Shape suffixes: W width, N texts, G groups.
"""

from collections.abc import Iterator
from itertools import chain, count, islice
from pathlib import Path

import numpy as np
import torch
import typer
from torch import Tensor

from facets.arrays import Ints
from facets.errors import ConfigError
from facets.language.vectors import WordVectors
from facets.language.vocabulary import Vocabulary
from facets.model.passage_checkpoint import PassageModelConfig, write_encoder
from facets.model.passage_network import RaggedBatch, SentenceEncoder, average_states
from facets_lab.documents.data import PassageTrainingConfig, PreparedPassages, Teacher, vectors_of
from facets_lab.evaluation.files import parse_count, read_table
from facets_lab.losses import distillation_loss
from facets_lab.training.loop import LOSS, ConfigFile, Resume, RunOut, Trainer, TrainingResult, train

_DISTANCE_WEIGHT = 5.0  # of the cosine relative to the divergence, so that both count about equally
_MAX_WORD_TOKENS = 32
_TRAINING_FACTS = ("seed", "num_steps", "batch_size", "layers", "teacher")


Batch = Ints  # numbers of passages, and of their sentences and questions


class PassageTrainer(Trainer[PassageTrainingConfig, Batch]):
    """A sentence encoder with its data."""

    network: SentenceEncoder

    def __init__(self, config: PassageTrainingConfig) -> None:
        super().__init__(config)
        self._data = PreparedPassages(Path(config.data))
        if self._data.num_groups <= config.validation_groups:
            raise ConfigError(f"{config.data} has {self._data.num_groups} groups, expected > validation_groups")
        torch.manual_seed(config.seed)
        teacher = Teacher(config.teacher)
        if teacher.config.replaced(num_layers=config.model.num_layers) != config.model:
            raise ConfigError(
                f"model must match {teacher.folder} except in num_layers: {teacher.config}, got {config.model}"
            )
        self.network = SentenceEncoder(config.model)
        self.network.load_state_dict(teacher.encoder(config.layers).state_dict())
        self.network.to(self.device)

    def batches(self, start_step: int) -> Iterator[Batch]:
        """Groups, in a different order in each pass over the data, the same for the same seed."""
        num_groups = self._data.num_groups - self.config.validation_groups
        orders = (np.random.default_rng((self.config.seed, epoch)).permutation(num_groups) for epoch in count())
        return islice(chain.from_iterable(map(self._cut, orders)), start_step, None)

    def step(self, batch: Batch, number: int) -> dict[str, Tensor]:
        """See ``Trainer``."""
        return self._losses(batch, np.random.default_rng((self.config.seed, number)))

    def validate(self) -> dict[str, float]:
        """Mean losses of the held-out groups."""
        held_out = np.arange(self._data.num_groups - self.config.validation_groups, self._data.num_groups)
        losses = [
            self._losses(batch, np.random.default_rng(number)) for number, batch in enumerate(self._cut(held_out))
        ]
        return {name: float(np.mean([float(of_batch[name]) for of_batch in losses])) for name in losses[0]}

    def _cut(self, groups: Ints) -> Iterator[Batch]:
        """Yields the texts of enough groups for a batch of passages; the remainder is left out."""
        texts, num_passages = list[Ints](), 0
        for group in groups.tolist():
            texts.append(self._data.of(group))
            num_passages += int(self._data.is_passage[texts[-1]].sum())
            if num_passages >= self.config.batch_size:
                yield np.concatenate(texts)
                texts, num_passages = [], 0

    def _losses(self, batch: Batch, random_choice: np.random.Generator) -> dict[str, Tensor]:
        is_passage = self._data.is_passage[batch]
        size = min(int((~is_passage).sum()), self.config.distilled_texts)
        chosen = np.concatenate([random_choice.choice(batch[~is_passage], size, replace=False), batch[is_passage]])
        ragged = RaggedBatch.of([self._data.row(number) for number in chosen.tolist()], self.device)
        with self.autocast():
            vectors_NW = average_states(self.network(ragged), ragged)
        teacher_NW = self.tensor(self._data.vectors[chosen].astype(np.float32))
        distance, divergence = distillation_loss(vectors_NW, teacher_NW, temperature=self.config.temperature)
        return {LOSS: _DISTANCE_WEIGHT * distance + divergence, "distance": distance, "divergence": divergence}


def passages(config: ConfigFile, out: RunOut, resume: Resume = False) -> None:
    """Distil a small encoder; Ctrl-C saves a checkpoint.

    Example: facets-train passages --config lab/configs/facets-passages-en.toml --out runs/facets-passages-en
    """
    settings = PassageTrainingConfig.from_toml(config)
    trainer, result = train(lambda: PassageTrainer(settings), out, resume=resume)
    export_passage_model(trainer, result, out / "model")
    typer.echo(f"{settings.name}: model in {out / 'model'}", err=True)


def export_passage_model(trainer: PassageTrainer, result: TrainingResult, out: Path) -> None:
    """Writes a model folder."""
    config, teacher = trainer.config, Teacher(trainer.config.teacher)
    facts = {name: value for name, value in config.to_dict().items() if name in _TRAINING_FACTS}
    exported = PassageModelConfig(
        name=config.name,
        space=Path(config.teacher).name,
        encoder=config.model,
        reads_windows=config.reads_windows,
        window_tokens=config.window_tokens,
        training={**facts, "seconds": round(result.seconds), "step": result.step},
    )
    words = encode_words(Path(config.words), teacher, max_words=config.num_words)
    write_encoder(out, exported, trainer.network.state_dict(), teacher.pieces)
    words.save(out)


def encode_words(path: Path, teacher: Teacher, *, max_words: int) -> WordVectors:
    """The teacher's vectors of the first ``max_words`` words of a file of words and counts, each encoded separately."""
    table = list(read_table(path, {"word": str, "count": parse_count}))
    words, counts = [word for word, _ in table], [count for _, count in table]
    rows = teacher.ids(words[:max_words], _MAX_WORD_TOKENS)
    vectors = vectors_of(teacher.encoder(), rows).astype(np.float32)
    return WordVectors(Vocabulary(words[:max_words], np.array(counts[:max_words]), total_count=sum(counts)), vectors)
