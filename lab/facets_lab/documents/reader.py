"""Trains the answer reader on examples of questions and texts.

Shape suffixes: S sentences of a batch, E examples.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from facets.config import AtLeastOne, NonNegativeInt, Positive, SentenceEncoderConfig
from facets.model.answer_network import AnswerNetwork, ReadRow, read_row
from facets.model.passage_checkpoint import read_passage_weights
from facets.model.passage_model import PassageModel
from facets.model.word_pieces import WordPieces
from facets_lab.documents.reader_data import Example, augmented, cropped, names_in
from facets_lab.training.loop import LOSS, BatchSize, OptimizerConfig, Trainer, TrainingConfig

_NEAREST = 24  # close texts of other questions, from which negatives are drawn
_NEAREST_SKIPPED = 0


class ReaderTrainingConfig(TrainingConfig):
    """Settings of the answer reader; ``start``: folder of a passage model or of a reader."""

    data: str  # examples as JSON lines
    neighbours: str  # close texts of other examples, `.npy`
    start: str
    name: str = "facets-reader-en"
    num_steps: NonNegativeInt = 2_000
    batch_size: BatchSize = 16  # questions per step
    negatives: AtLeastOne = 2  # other texts per question
    shares: dict[str, float] = Field(default={})  # of the sources in a batch
    listwise_weight: Positive = 1.0
    validation_examples: AtLeastOne = 400  # never trained on
    optimizer: OptimizerConfig = OptimizerConfig(learning_rate=1e-4, warmup_steps=100)
    model: SentenceEncoderConfig = SentenceEncoderConfig(num_layers=3)


@dataclass(frozen=True, slots=True)
class Window:
    """A text to read for a question: which of its sentences answer; None: at least one does."""

    example: Example
    group: int  # number of the question in the batch


def load_examples(path: Path) -> list[Example]:
    """Examples as ``write_examples`` writes them."""
    examples = []
    for line in path.read_text(encoding="utf-8").splitlines():
        source, question, heading, sentences, answers = json.loads(line)
        known = None if answers is None else tuple(answers)
        examples.append(Example(source, question, heading, tuple(sentences), known))
    return examples


class ReaderTrainer(Trainer[ReaderTrainingConfig, list[Window]]):
    """The reader with its examples."""

    network: AnswerNetwork

    def __init__(self, config: ReaderTrainingConfig) -> None:
        super().__init__(config)
        self._examples = load_examples(Path(config.data))
        self._neighbours = np.load(config.neighbours)
        self._names = names_in(self._examples)
        random = np.random.default_rng(0)
        order = random.permutation(len(self._examples))
        self._held_out, rest = np.split(order, [config.validation_examples])
        self._by_source = defaultdict(list)
        for number in rest.tolist():
            self._by_source[self._examples[number].source].append(number)
        torch.manual_seed(config.seed)
        self.network, self._pieces = start_network(Path(config.start), config.model)
        self.network.encoder.pieces.requires_grad_(False)
        self.network.to(self.device)

    def batches(self, start_step: int) -> Iterator[list[Window]]:
        """See ``Trainer``."""
        shares = self.config.shares or {source: len(own) for source, own in self._by_source.items()}
        sources, chances = list(shares), np.array(list(shares.values())) / sum(shares.values())
        for step in count(start_step):
            random = np.random.default_rng((self.config.seed, step))
            chosen = random.choice(len(sources), self.config.batch_size, p=chances)
            numbers = [int(random.choice(self._by_source[sources[source]])) for source in chosen]
            yield self._windows(numbers, random)

    def _windows(self, numbers: Sequence[int], random: np.random.Generator) -> list[Window]:
        windows = []
        for group, number in enumerate(numbers):
            example = self._examples[number]
            windows.append(Window(augmented(example, self._names, random), group))
            others = random.choice(self._neighbours[number], self.config.negatives, replace=False)
            for other in others.tolist():
                text = cropped(self._examples[other], random, 8)
                negative = Example(text.source, example.question, text.heading, text.sentences, ())
                windows.append(Window(negative, group))
        return windows

    def step(self, batch: list[Window], number: int) -> dict[str, Tensor]:
        """See ``Trainer``."""
        rows = rows_of([window.example for window in batch], self._pieces)
        with self.autocast():
            logits_S = self.network(rows)
        return self._losses(batch, rows, logits_S)

    def _losses(self, batch: Sequence[Window], rows: Sequence[ReadRow], logits_S: Tensor) -> dict[str, Tensor]:
        """Cross-entropy of each sentence, and of the sentences of a question against each other."""
        ends = np.cumsum([row.num_sentences for row in rows])
        positive, known, group_of = (np.zeros(ends[-1], dtype=kind) for kind in (bool, bool, int))
        any_of = list[Tensor]()
        for window, row, end in zip(batch, rows, ends.tolist(), strict=True):
            places = slice(end - row.num_sentences, end)
            answers = window.example.answers
            group_of[places] = window.group
            if answers is None:
                positive[places] = True
                any_of.append(torch.logsumexp(logits_S[places], 0))
            else:
                positive[places] = np.isin(np.arange(row.num_sentences), answers)
                known[places] = True
        target_S, known_S = self.tensor(positive.astype(np.float32)), self.tensor(known)
        separate = functional.binary_cross_entropy_with_logits(logits_S[known_S], target_S[known_S])
        if any_of:
            anywhere = functional.softplus(-torch.stack(any_of)).mean()
            separate = separate + 0.1 * anywhere
        num_groups = group_of[-1] + 1
        groups_S, positive_S = self.tensor(group_of), self.tensor(positive)
        every = _group_logsumexp(logits_S, groups_S, num_groups)
        right = _group_logsumexp(torch.where(positive_S, logits_S, -1e4), groups_S, num_groups)
        has_right = self.tensor(np.bincount(group_of, positive, num_groups) > 0)
        listwise = (every - right)[has_right].mean()
        loss = 3 * separate + self.config.listwise_weight * listwise
        return {LOSS: loss, "separate": separate.detach(), "listwise": listwise.detach()}

    def validate(self) -> dict[str, float]:
        """Losses and shares of right choices on held-out examples."""
        found = defaultdict(list)
        for start in range(0, len(self._held_out), self.config.batch_size):
            numbers = self._held_out[start : start + self.config.batch_size].tolist()
            batch = self._windows(numbers, np.random.default_rng((1, start)))
            for name, loss in self.step(batch, 0).items():
                found[name].append(float(loss))
            known = [e for e in (self._examples[n] for n in numbers) if e.answers is not None]
            rows = rows_of(known, self._pieces)
            if rows:
                with self.autocast():
                    logits = self.network(rows).float().numpy()
                for example, row, end in zip(known, rows, np.cumsum([row.num_sentences for row in rows]), strict=True):
                    own = logits[end - row.num_sentences : end]
                    if example.answers and len(own):
                        found[f"right_{example.source}"].append(int(own.argmax()) in example.answers)
        return {name: float(np.mean(values)) for name, values in found.items()}


def _group_logsumexp(values_S: Tensor, groups_S: Tensor, num_groups: int) -> Tensor:
    highest = values_S.detach().max()
    sums = torch.zeros(num_groups).index_add(0, groups_S, torch.exp(values_S - highest))
    return torch.log(sums.clamp_min(1e-30)) + highest


def rows_of(examples: Sequence[Example], pieces: WordPieces) -> list[ReadRow]:
    """Pieces of examples, joined."""
    texts = [text for e in examples for text in (e.question, e.heading, *e.sentences)]
    ids = iter(pieces.ids(texts))
    return [read_row(next(ids), next(ids), [next(ids) for _ in e.sentences], pieces) for e in examples]


def start_network(folder: Path, config: SentenceEncoderConfig) -> tuple[AnswerNetwork, WordPieces]:
    """The network with the weights of a passage model's encoder, or of a reader."""
    network = AnswerNetwork(config)
    weights = read_passage_weights(folder)
    is_reader = "score.weight" in weights
    (network if is_reader else network.encoder).load_state_dict(weights, strict=False)
    return network, WordPieces.from_json((folder / "tokenizer.json").read_bytes())


def nearest_texts(model: PassageModel, examples: Sequence[Example]) -> np.ndarray:
    """Numbers of the examples with other texts closest to each question, ``[E, 24]``."""
    questions = model.embed([example.question for example in examples])
    texts = model.embed([" ".join((e.heading, *e.sentences))[:600] for e in examples])
    keys = np.array([hash(e.sentences) for e in examples])
    firsts = np.unique(keys, return_index=True)[1]
    nearest = np.zeros((len(examples), _NEAREST), dtype=np.int64)
    for start in range(0, len(examples), 1024):
        cosines = questions[start : start + 1024] @ texts[firsts].T
        cosines[keys[firsts][None] == keys[start : start + 1024, None]] = -1
        best = np.argpartition(-cosines, _NEAREST, axis=1)[:, :_NEAREST]
        nearest[start : start + 1024] = firsts[best]
    return nearest
