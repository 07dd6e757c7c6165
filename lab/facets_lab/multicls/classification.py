"""Classifies sentences with few examples: K class tokens against one, and against a logistic regression.

Shape suffixes: N sentences, B sentences of a batch, C classes, D dimensions.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from facets.config import AtLeastOne, Positive
from facets.errors import ConfigError, InvalidInputError
from facets.language.sentences import sentences_of
from facets_lab.evaluation.comparison import Report, minilm
from facets_lab.evaluation.files import read_lines
from facets_lab.evaluation.options import Seeds, Threads, WorkDir
from facets_lab.evaluation.statistics import expected_calibration_error, repeat_seeds
from facets_lab.multicls.encoder import Backbone, ContrastConfig, ContrastTrainer, MultiClassEncoder, load_minilm
from facets_lab.training.corpus import clean_paragraph, read_documents
from facets_lab.training.loop import LOSS, OptimizerConfig, Trainer, TrainingConfig, TrainingLoop, train_or_load

_SENTENCES = 2  # sentences per sequence
_MEASURED_AT_ONCE = 64


def classify(
    train: Annotated[Path, typer.Argument(help="Sentence and class, in either order, separated by a tab.")],
    held_out: Annotated[Path, typer.Argument(help="Test data in the same format.")],
    corpus: Annotated[list[Path], typer.Option(help="'# Title', one paragraph per line, an empty line.")],
    work_dir: WorkDir,
    tokens: Annotated[list[int] | None, typer.Option("--tokens", metavar="K", help="Class tokens; repeatable.")] = None,
    examples: Annotated[list[int] | None, typer.Option(help="Number of labelled sentences; repeatable.")] = None,
    seeds: Seeds = 4,
    steps: Annotated[int, typer.Option(min=1, help="Batches of the contrastive training.")] = 200,
    batch_size: Annotated[int, typer.Option(min=2, help="Groups of texts per such batch.")] = 16,
    rounds: Annotated[int, typer.Option(min=1, help="Batches of the classifier, as passes over 100 examples.")] = 20,
    threads: Threads = 0,
) -> Report:
    """Classify sentences with few examples: K class tokens, and a logistic regression on MiniLM's vectors.

    Example: python -m facets_lab.multicls classify subj-train.tsv.xz subj-dev.tsv.xz --corpus shard-00.txt.xz ...
    """
    learned, tested = read_labelled(train), read_labelled(held_out)
    triples = read_triples(corpus, max(2 * batch_size, steps * batch_size))

    def measure(name: str, seed: int, num_examples: int) -> dict[str, float]:
        sample = learned.balanced(num_examples, seed)
        if name == "minilm":
            return measure_regression(sample, tested)
        contrast = ContrastConfig(
            name="multicls",
            num_steps=steps,
            batch_size=batch_size,
            validate_every=steps,
            checkpoint_every=max(steps // 4, 1),
            num_classes=int(name.removeprefix("K=")),
            num_threads=threads,
            optimizer=OptimizerConfig(learning_rate=2e-4, warmup_steps=min(steps // 10 + 1, 100)),
        )
        backbone = load_minilm()
        trained, result = train_or_load(
            lambda: ContrastTrainer(contrast, backbone, triples), work_dir / f"{name}-{steps}"
        )
        config = ClassifierConfig(
            name="multicls",
            num_threads=threads,
            num_steps=rounds * 100 // 16,
            batch_size=16,
            seed=seed,
            optimizer=OptimizerConfig(learning_rate=1e-4, warmup_steps=10),
        )
        trainer = ClassifierTrainer(config, backbone, encoder=trained.network, examples=sample)
        loop = TrainingLoop(trainer, Path())  # the run takes seconds, so nothing is written
        for batch in islice(trainer.batches(0), config.num_steps):
            loop.train_step(batch)
        found = figures(trainer.probabilities(tested.texts), tested.labels)
        return found | {"contrast_loss": result.validation_loss or 0.0}

    names = [*(f"K={num}" for num in tokens or (1, 5)), "minilm"]
    report = {str(n): repeat_seeds(names, seeds, partial(measure, num_examples=n)) for n in examples or (100, 1000)}
    shape = {"examples": len(learned.texts), "held_out": len(tested.texts), "sequences": len(triples)}
    return {"data": {"file": train.name, **shape}, "by_examples": report}


@dataclass(frozen=True, slots=True)
class Labelled:
    """Sentences and the numbers of their classes, ``[N]`` int64."""

    texts: Sequence[str]
    labels: NDArray[np.int64]

    def balanced(self, num_examples: int, seed: int) -> "Labelled":
        """A random sample with equally many examples of each class."""
        random = np.random.default_rng(seed)
        classes = np.unique(self.labels)
        share = num_examples // len(classes)
        rows_of_class = [np.flatnonzero(self.labels == label) for label in classes]
        if share < 1 or min(map(len, rows_of_class)) < share:
            raise InvalidInputError(f"expected {share} examples of each of {len(classes)} classes, got fewer")
        chosen = [random.choice(rows, share, replace=False) for rows in rows_of_class]
        order = random.permutation(np.concatenate(chosen))
        return Labelled([self.texts[row] for row in order], self.labels[order])


def read_labelled(path: Path) -> Labelled:
    """Reads a sentence and a whole number per line, in either order, separated by a tab."""
    texts, labels = [], []
    for place, line in read_lines(path):
        fields = line.split("\t")
        number = next((field for field in (fields[0], fields[-1]) if field.strip().isdigit()), None)
        if len(fields) != 2 or number is None:
            raise InvalidInputError(f"{place}: expected a sentence and a whole number, separated by a tab")
        texts.append(fields[1] if number is fields[0] else fields[0])
        labels.append(int(number))
    if len(set(labels)) < 2:
        raise InvalidInputError(f"{path}: expected at least two classes, got {len(set(labels))}")
    return Labelled(texts, np.unique(labels, return_inverse=True)[1].astype(np.int64))


def read_triples(files: Iterable[Path], num_triples: int) -> list[tuple[str, str, str]]:
    """Three sequences of two sentences each that follow each other in a paragraph (Chang 2022, section 5.2.1.4)."""
    triples = list(islice(_triples(files), num_triples))
    if not triples:
        raise ConfigError(f"expected paragraphs of {3 * _SENTENCES} sentences, got none")
    return triples


def _triples(files: Iterable[Path]) -> Iterator[tuple[str, str, str]]:
    for document in (document for file in files for document in read_documents(file)):
        for paragraph in document:
            sentences = [sentence.text for sentence in sentences_of(clean_paragraph(paragraph))]
            for start in range(0, len(sentences) - 3 * _SENTENCES + 1, 3 * _SENTENCES):
                parts = [" ".join(sentences[start + k * _SENTENCES :][:_SENTENCES]) for k in range(3)]
                yield parts[0], parts[1], parts[2]


class ClassifierConfig(TrainingConfig):
    """A classifier on pooled class tokens and its run."""

    max_pieces: AtLeastOne = 48
    head_rate: Positive = 10.0  # times the learning rate of the encoder


class ClassifierTrainer(Trainer[ClassifierConfig, NDArray[np.int64]]):
    """Fine-tunes an encoder, and a new linear classifier, with the cross-entropy of the examples' classes."""

    def __init__(
        self, config: ClassifierConfig, backbone: Backbone, *, encoder: MultiClassEncoder, examples: Labelled
    ) -> None:
        super().__init__(config)
        torch.manual_seed(config.seed)
        dim, num_labels = encoder.tokens.shape[1], int(examples.labels.max()) + 1
        self._encoder = encoder
        self._head = nn.Sequential(nn.LayerNorm(dim), nn.Dropout(0.1), nn.Linear(dim, num_labels))
        self.network = nn.ModuleList([self._encoder, self._head]).to(self.device)
        self._backbone, self._labels = backbone, examples.labels
        self._rows = backbone.rows(examples.texts, config.max_pieces)

    def batches(self, start_step: int) -> Iterator[NDArray[np.int64]]:
        """Rows of examples, each once per round."""
        size = min(self.config.batch_size, len(self._rows))
        for step in count(start_step):
            number, within = divmod(step, len(self._rows) // size)
            order = np.random.default_rng((self.config.seed, number)).permutation(len(self._rows))
            yield order[within * size :][:size]

    def step(self, batch: NDArray[np.int64], number: int) -> dict[str, Tensor]:
        """The cross-entropy of a batch."""
        logits_BC = self._logits([self._rows[row] for row in batch])
        return {LOSS: functional.cross_entropy(logits_BC, self.tensor(self._labels[batch]))}

    def parameter_groups(self) -> list[dict[str, object]]:
        """The classifier starts at random and learns faster."""
        rate = self.config.optimizer.learning_rate
        head = {"params": [*self._head.parameters()], "lr": rate * self.config.head_rate}
        return [{"params": [weights for weights in self._encoder.parameters() if weights.requires_grad]}, head]

    @torch.no_grad()
    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Probability of each class, ``[N, C]``."""
        self.network.eval()
        rows = self._backbone.rows(texts, self.config.max_pieces)
        starts = range(0, len(rows), _MEASURED_AT_ONCE)
        parts = [self._logits(rows[start : start + _MEASURED_AT_ONCE]).softmax(dim=-1) for start in starts]
        return torch.cat(parts).cpu().numpy()

    def _logits(self, rows: Sequence[Sequence[int]]) -> Tensor:
        with self.autocast():
            logits_BC: Tensor = self._head(self._encoder.pooled(rows))
        return logits_BC.float()


def measure_regression(examples: Labelled, held_out: Labelled) -> dict[str, float]:
    """``figures`` of a logistic regression on MiniLM's vectors."""
    from sklearn.linear_model import LogisticRegression

    embed = minilm()
    regression = LogisticRegression(max_iter=1000, C=10.0).fit(embed(examples.texts), examples.labels)
    return figures(regression.predict_proba(embed(held_out.texts)), held_out.labels)


def figures(probabilities_NC: NDArray[np.floating], labels_N: NDArray[np.int64]) -> dict[str, float]:
    """``accuracy``, ``matthews`` and ``ece``, the expected calibration error of the likeliest class, times 100."""
    from sklearn.metrics import matthews_corrcoef

    predicted_N = probabilities_NC.argmax(axis=1)
    is_right_N = predicted_N == labels_N
    error = expected_calibration_error(probabilities_NC.max(axis=1), is_right_N)
    matthews = float(matthews_corrcoef(labels_N, predicted_N))
    return {"accuracy": 100 * float(is_right_N.mean()), "matthews": 100 * matthews, "ece": 100 * float(error)}
