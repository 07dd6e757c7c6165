"""Trains passage models: facets that match sentences and questions, and encoders distilled from a teacher.

Shape suffixes: B passages, K facets, W width, T tokens, S targets, N texts, G groups.
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
from facets.model.passage_checkpoint import PassageModelConfig
from facets.model.passage_model import PassageModel
from facets.model.passage_network import PassageNetwork, RaggedBatch, average_states
from facets_lab.documents.data import PassageTrainingConfig, PreparedPassages, Texts, vectors_of
from facets_lab.evaluation.files import parse_count, read_table
from facets_lab.losses.passages import distillation_loss, facet_losses
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
_TRAINING_FACTS = ("seed", "num_steps", "batch_size", "layers", "teacher", "tune_encoder")


Batch = dict[str, NDArray[np.int64]]  # rows of passages, of their sentences, and of their questions, by kind


class PassageTrainer(Trainer[PassageTrainingConfig, Batch]):
    """A passage network with its data."""

    network: PassageNetwork

    def __init__(self, config: PassageTrainingConfig) -> None:
        super().__init__(config)
        self._data = PreparedPassages(Path(config.data))
        if self._data.num_groups <= config.validation_groups:
            raise ConfigError(f"{config.data} has {self._data.num_groups} groups, expected > validation_groups")
        passages = self._data.texts["passage"]
        first = np.searchsorted(passages.owners, np.arange(self._data.num_groups))
        self._group_vectors = unit_rows(np.add.reduceat(passages.vectors.astype(np.float32), first))
        torch.manual_seed(config.seed)
        self.network = PassageNetwork(config.model)
        teacher, shape = Backbone(config.teacher), config.model.encoder
        if teacher.config.replaced(num_layers=shape.num_layers) != shape:
            raise ConfigError(
                f"model.encoder must match {teacher.folder} except in num_layers: {teacher.config}, got {shape}"
            )
        self.network.encoder.load_state_dict(teacher.encoder(config.layers).state_dict())
        if config.start:
            _load_weights(Path(config.start), self.network, "")
        if config.start_facets:
            _load_weights(Path(config.start_facets), self.network.pooling, "pooling.")
        self.network.encoder.requires_grad_(config.tune_encoder)
        self.network.pooling.requires_grad_(config.facets)
        self.network.to(self.device)
        if not config.tune_encoder and self._use_bfloat16:
            self.network.encoder.bfloat16()

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
        groups = np.arange(self._data.num_groups - self.config.validation_groups)
        texts = self._data.texts
        with_questions = np.unique(texts["passage"].owners[texts["question"].owners])
        repeated = np.tile(with_questions[with_questions < len(groups)], self.config.question_repeats - 1)
        for epoch in count():
            order = np.random.default_rng((self.config.seed, epoch)).permutation(np.concatenate([groups, repeated]))
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
        rows = [self._data.texts["passage"].row(passage) for passage in batch["passage"]]
        passages = RaggedBatch.of(rows, self.device)
        with torch.set_grad_enabled(self.config.tune_encoder and torch.is_grad_enabled()), self.autocast():
            states_TW = self.network.encoder(passages)
            vectors_BW = average_states(states_TW, passages)
        losses: dict[str, Tensor] = {}
        total = vectors_BW.new_zeros(())
        if self.config.facets:
            with self.autocast():
                facets_BKW, _ = self.network.pooling(states_TW, vectors_BW, passages)
            losses |= self._facet_losses(facets_BKW, batch)
            total = total + losses["ranking"] + self.config.fit_weight * losses["fit"]
        if self.config.distillation_weight:
            losses |= self._distillation_losses(vectors_BW, batch, random_choice)
            distilled = _DISTANCE_WEIGHT * losses["distance"] + losses["divergence"]
            total = total + self.config.distillation_weight * distilled
        return {LOSS: total, **losses}

    def _facet_losses(self, facets_BKW: Tensor, batch: Batch) -> dict[str, Tensor]:
        texts = self._data.texts
        both = [(texts[kind], batch[kind]) for kind in ("sentence", "question")]
        targets = np.concatenate([of_kind.vectors[numbers] for of_kind, numbers in both]).astype(np.float32)
        position_of = {passage: position for position, passage in enumerate(batch["passage"].tolist())}
        owners = np.array([position_of[p] for of_kind, numbers in both for p in of_kind.owners[numbers].tolist()])
        weights = np.repeat([1.0, self.config.question_weight], [len(batch["sentence"]), len(batch["question"])])
        ranking_S, fit_S = facet_losses(
            self.tensor(targets),
            self.tensor(owners),
            facets_BKW.float(),
            ranking_temperature=self.config.ranking_temperature,
            facet_temperature=self.config.facet_temperature,
        )
        weights_S = self.tensor((weights / weights.sum()).astype(np.float32))
        return {"ranking": (ranking_S * weights_S).sum(), "fit": (fit_S * weights_S).sum()}

    def _distillation_losses(
        self, vectors_BW: Tensor, batch: Batch, random_choice: np.random.Generator
    ) -> dict[str, Tensor]:
        """Losses of the passages and of a sample of their sentences and questions."""
        short: list[tuple[Texts, int]] = [
            (self._data.texts[kind], number) for kind in ("sentence", "question") for number in batch[kind].tolist()
        ]
        size = min(len(short), self.config.distilled_texts)
        chosen = [short[position] for position in random_choice.choice(len(short), size, replace=False)]
        ragged = RaggedBatch.of([texts.row(number) for texts, number in chosen], self.device)
        with self.autocast():
            short_NW = average_states(self.network.encoder(ragged), ragged)
        teacher = [
            self._data.texts["passage"].vectors[batch["passage"]],
            *(t.vectors[[number]] for t, number in chosen),
        ]
        distance, divergence = distillation_loss(
            torch.cat([vectors_BW, short_NW]),
            self.tensor(np.concatenate(teacher).astype(np.float32)),
            temperature=self.config.ranking_temperature,
        )
        return {"distance": distance, "divergence": divergence}


def passages(config: ConfigFile, out: RunOut, resume: Resume = False, model_out: ModelOut = None) -> None:
    """Train a model of passages, or distil its encoder; Ctrl-C saves a checkpoint.

    Example: facets-train passages --config lab/configs/facets-passages-en.toml --out runs/facets-passages-en
    """
    settings, folder = PassageTrainingConfig.from_toml(config), model_out or out / "model"
    trainer, result = train(lambda: PassageTrainer(settings), out, resume=resume)
    if settings.facets:
        export_passage_model(trainer, result, folder)
        typer.echo(f"{settings.name}: model in {folder}", err=True)


def _load_weights(run: Path, network: nn.Module, prefix: str) -> None:
    """Loads the weights with a prefix from the last checkpoint of a run."""
    path = run / CHECKPOINT
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)["trainer"]["network"]
        network.load_state_dict({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})
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


def export_passage_model(trainer: PassageTrainer, result: TrainingResult, out: Path) -> PassageModel:
    """Writes a model folder."""
    config = trainer.config
    vector_weight = config.exported_vector_weight
    shape = config.model if vector_weight is None else config.model.replaced(own_vector_weight=vector_weight)
    network = PassageNetwork(shape)
    network.load_state_dict(trainer.network.state_dict())
    teacher = Backbone(config.teacher)
    facts = {name: value for name, value in config.to_dict().items() if name in _TRAINING_FACTS}
    model = PassageModel(
        network,
        encode_words(Path(config.words), teacher, max_words=config.num_words),
        pieces=teacher.pieces,
        config=PassageModelConfig(
            name=config.name,
            space=Path(config.teacher).name,
            network=shape,
            window_tokens=config.window_tokens,
            window_overlap=config.window_overlap,
            training={**facts, "seconds": round(result.seconds), "step": result.step},
        ),
    )
    model.save(out)
    return model


def encode_words(path: Path, teacher: Backbone, *, max_words: int) -> WordVectors:
    """The teacher's vectors of the first ``max_words`` words of a file of words and counts, each encoded separately."""
    table = list(read_table(path, {"word": str, "count": parse_count}))
    words, counts = [word for word, _ in table], [count for _, count in table]
    rows = teacher.ids(words[:max_words], _MAX_WORD_TOKENS)
    vectors = vectors_of(teacher.encoder(), rows).astype(np.float32)
    return WordVectors(Vocabulary(words[:max_words], np.array(counts[:max_words]), total_count=sum(counts)), vectors)
