"""Trains the answer reader on examples of questions and texts.

Shape suffixes: G questions of a batch, T texts of a batch, S sentences of a text, those of short texts padded.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress, count
from pathlib import Path

import numpy as np
import torch
from pydantic import Field
from sklearn.metrics import roc_auc_score
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from facets.config import AtLeastOne, NonNegativeInt, Positive, SentenceEncoderConfig
from facets.model.answer_reader import AnswerNetwork, AnswerReader, ReaderConfig, ReadRow, asked, read_row
from facets.model.checkpoint import read_settings, read_weights
from facets.model.passage_checkpoint import write_encoder
from facets.model.shipped import find_model
from facets.model.word_pieces import WordPieces
from facets_lab.documents.reader_data import (
    EXAMPLES,
    MARKED,
    NEIGHBOURS,
    Example,
    augmented,
    cropped,
    held_out_examples,
    load_examples,
    names_in,
)
from facets_lab.evaluation.statistics import fit_logistic
from facets_lab.training.loop import (
    LOSS,
    BatchSize,
    ConfigFile,
    OptimizerConfig,
    Resume,
    RunOut,
    Trainer,
    TrainingConfig,
    train,
)

# Of the losses, relative to that of sentences against each other.
_SEPARATE_WEIGHT, _TEXT_WEIGHT, _ANYWHERE_WEIGHT = 3.0, 1.0, 0.3
_DATA_WEIGHT, _TEACHER_WEIGHT, _DISTANCE_WEIGHT = 0.5, 3.0, 0.05  # beside a teacher: of the data, and of its log-odds
_MOST = 9.0  # log-odds of a teacher that are learned
_LOWEST = -1e4  # log-odds of no sentence
_LONGEST_NEGATIVE = 8  # sentences
_AT_A_TIME = 64  # texts that are read together
_TRAINING_FACTS = ("seed", "num_steps", "batch_size", "negatives", "start", "teacher")


class ReaderTrainingConfig(TrainingConfig):
    """Settings of the answer reader."""

    data: str  # folder of ``facets-train prepare-reader``
    shares: dict[str, Positive]  # of the sources of examples in a batch, relative to each other
    start: str = "facets-passages-small-en"  # passage model, or reader, with whose weights the training begins
    start_layers: list[NonNegativeInt] = Field(default_factory=list)  # of its layers, those kept; empty: all
    teacher: str = ""  # reader whose log-odds are learned besides the data; empty: none
    untaught: list[str] = Field(default_factory=list)  # beginnings of sources of which the data alone is learned
    name: str = "facets-reader-en"
    num_steps: NonNegativeInt = 1_900
    batch_size: BatchSize = 16  # questions per step
    negatives: AtLeastOne = 1  # other texts per question
    optimizer: OptimizerConfig = OptimizerConfig(learning_rate=2.5e-4, warmup_steps=100)
    model: SentenceEncoderConfig = SentenceEncoderConfig()


class ReaderTrainer(Trainer[ReaderTrainingConfig, list[Example]]):
    """The reader with its examples; a batch has the texts of each question one after the other, as many of each."""

    network: AnswerNetwork

    def __init__(self, config: ReaderTrainingConfig) -> None:
        super().__init__(config)
        self._examples = load_examples(Path(config.data) / EXAMPLES)
        self._neighbours = np.load(Path(config.data) / NEIGHBOURS)
        self._names = names_in(self._examples)
        self._by_source = defaultdict[str, list[int]](list)
        for number, example in enumerate(self._examples):
            self._by_source[example.source].append(number)
        torch.manual_seed(config.seed)
        folder = find_model(config.start)
        self.pieces = WordPieces.from_json((folder / "tokenizer.json").read_bytes())
        self.network = AnswerNetwork(config.model)
        weights = read_weights(folder)
        if config.start_layers:
            weights = with_layers(weights, config.start_layers)
        is_reader = read_settings(folder).get("task") == "answers"
        (self.network if is_reader else self.network.encoder).load_state_dict(weights)
        self.network.encoder.pieces.requires_grad_(False)
        self.network.to(self.device)
        self._teacher = AnswerReader.shared(config.teacher, device=str(self.device)).network if config.teacher else None

    def batches(self, start_step: int) -> Iterator[list[Example]]:
        """See ``Trainer``."""
        sources = list(self.config.shares)
        chances = np.array(list(self.config.shares.values())) / sum(self.config.shares.values())
        for step in count(start_step):
            random = np.random.default_rng((self.config.seed, step))
            chosen = random.choice(len(sources), self.config.batch_size, p=chances).tolist()
            batch = []
            for source in chosen:
                number = int(random.choice(self._by_source[sources[source]]))
                example = self._examples[number]
                others = random.choice(self._neighbours[number], self.config.negatives, replace=False).tolist()
                if example.source == MARKED:
                    batch += [example, *(self._examples[other] for other in others)]
                    continue
                batch.append(augmented(example, self._names, random))
                for other in others:
                    text = cropped(self._examples[other], random, _LONGEST_NEGATIVE)
                    batch.append(Example(text.source, example.question, text.heading, text.sentences, ()))
            yield batch

    def step(self, batch: list[Example], number: int) -> dict[str, Tensor]:
        """See ``Trainer``."""
        rows = rows_of(batch, self.pieces)
        with self.autocast():
            log_odds = self.network(rows)
        counts = [row.num_sentences for row in rows]
        log_odds_TS = pad_sequence(log_odds.split(counts), batch_first=True, padding_value=_LOWEST)
        losses = reader_losses([example.answers for example in batch], counts, log_odds_TS, self.config.batch_size)
        is_taught = [not example.source.startswith(tuple(self.config.untaught)) for example in batch]
        if self._teacher is not None and any(is_taught):
            learned = log_odds[torch.from_numpy(np.repeat(is_taught, counts)).to(self.device)]
            with torch.no_grad():
                taught = self._teacher(list(compress(rows, is_taught)))
            chance = functional.binary_cross_entropy_with_logits(learned, torch.sigmoid(taught))
            distance = functional.mse_loss(learned.clamp(-_MOST, _MOST), taught.clamp(-_MOST, _MOST))
            losses[LOSS] = _DATA_WEIGHT * losses[LOSS] + _TEACHER_WEIGHT * chance + _DISTANCE_WEIGHT * distance
        return losses

    def validate(self) -> dict[str, float]:
        """How well the reader chooses among the sentences of the written texts that are held out."""
        examples = held_out_examples()
        rows, read = rows_of(examples, self.pieces), list[np.ndarray]()
        for start in range(0, len(rows), _AT_A_TIME):
            part = rows[start : start + _AT_A_TIME]
            with self.autocast():
                log_odds_S = self.network(part).float().cpu().numpy()
            read += np.split(log_odds_S, np.cumsum([row.num_sentences for row in part])[:-1])
        return dict(choices(examples, read))


def with_layers(weights: Mapping[str, Tensor], kept: Sequence[int]) -> dict[str, Tensor]:
    """Weights of an encoder with some of its layers only, in the given order."""
    chosen = {}
    for name, values in weights.items():
        before, layers, rest = name.partition("layers.")
        number, _, rest = rest.partition(".")
        if not layers:
            chosen[name] = values
        elif int(number) in kept:
            chosen[f"{before}layers.{kept.index(int(number))}.{rest}"] = values
    return chosen


def reader_losses(
    answers: Sequence[tuple[int, ...] | None], counts: Sequence[int], log_odds_TS: Tensor, num_questions: int
) -> dict[str, Tensor]:
    """Cross-entropy of each sentence by itself, of the best one of each text, and of the sentences of a question.

    Where only the text is known to answer, any of its sentences may. ``counts``: sentences of each text.
    """
    places = np.arange(log_odds_TS.shape[1])
    is_real = places < np.array(counts)[:, None]
    is_answer = np.array(
        [real if own is None else real & np.isin(places, own) for own, real in zip(answers, is_real, strict=True)]
    )
    is_known = np.array([own is not None for own in answers])
    real_TS, answer_TS, known_T = (
        torch.from_numpy(array).to(log_odds_TS.device) for array in (is_real, is_answer, is_known)
    )
    judged_TS = real_TS & known_T[:, None]
    separate = functional.binary_cross_entropy_with_logits(log_odds_TS[judged_TS], answer_TS[judged_TS].float())
    right_TS, answered_T = log_odds_TS.masked_fill(~answer_TS, _LOWEST), answer_TS.any(dim=1)
    # The best sentence of a text decides whether the text counts as an answer.
    best_T = torch.where(answered_T, -right_TS.amax(dim=1), log_odds_TS.amax(dim=1))
    texts = functional.softplus(best_T[known_T]).mean()
    every_G, right_G = (values.reshape(num_questions, -1).logsumexp(dim=1) for values in (log_odds_TS, right_TS))
    listwise = (every_G - right_G)[answered_T.reshape(num_questions, -1).any(dim=1)].mean()
    loss = _SEPARATE_WEIGHT * separate + _TEXT_WEIGHT * texts + listwise
    if not is_known.all():
        loss = loss + _ANYWHERE_WEIGHT * functional.softplus(-log_odds_TS[~known_T].logsumexp(dim=1)).mean()
    return {LOSS: loss, "separate": separate.detach(), "texts": texts.detach(), "listwise": listwise.detach()}


def rows_of(examples: Sequence[Example], pieces: WordPieces) -> list[ReadRow]:
    """Pieces of examples, joined."""
    ids = iter(pieces.ids([text for e in examples for text in (asked(e.question), e.heading, *e.sentences)]))
    return [read_row(next(ids), next(ids), [next(ids) for _ in e.sentences], pieces) for e in examples]


def choices(examples: Sequence[Example], read: Sequence[np.ndarray]) -> Mapping[str, float]:
    """Share of answered questions whose best sentence answers, and how well it tells them from unanswered ones."""
    answered = [bool(example.answers) for example in examples]
    right = [
        int(own.argmax()) in example.answers for example, own in zip(examples, read, strict=True) if example.answers
    ]
    return {"right": float(np.mean(right)), "auc": float(roc_auc_score(answered, [own.max() for own in read]))}


def reader(config: ConfigFile, out: RunOut, resume: Resume = False) -> None:
    """Train the answer reader; Ctrl-C saves a checkpoint.

    Example: facets-train reader --config lab/configs/facets-reader-en.toml --out runs/facets-reader-en
    """
    settings = ReaderTrainingConfig.from_toml(config)
    trainer, result = train(lambda: ReaderTrainer(settings), out, resume=resume)
    facts = {name: value for name, value in settings.to_dict().items() if name in _TRAINING_FACTS}
    facts |= {"seconds": round(result.seconds), "step": result.step}
    plain = ReaderConfig(name=settings.name, encoder=settings.model, training=facts)
    exported = calibrated(AnswerReader(trainer.network, trainer.pieces, plain))
    write_encoder(out / "model", exported, trainer.network.state_dict(), trainer.pieces)


def calibrated(reader: AnswerReader) -> ReaderConfig:
    """The configuration of a reader with the confidence of its answers fitted to the held-out texts."""
    examples = held_out_examples()
    read = [reader.read(one.question, [(one.heading, one.sentences)])[0] for one in examples]
    pairs = zip(read, examples, strict=True)
    right = np.array([int(own.argmax()) in (one.answers or ()) for own, one in pairs])
    log_odds = np.array([[own.max()] for own in read])
    fitted = fit_logistic(log_odds, right, np.ones(len(right)), ["slope"])
    return reader.config.replaced(**fitted)
