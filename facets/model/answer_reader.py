"""The answer reader: says how probably each sentence of a text answers a question.

It is a small cross-encoder. It reads English; see ``models/facets-reader-en/README.md``.
"""

import math
import re
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from pydantic import Field

from facets.arrays import Floats
from facets.config import NonNegative, Positive, SentenceEncoderConfig, Settings
from facets.devices import compute_device
from facets.model.answer_network import AnswerNetwork, ReadRow, asked, read_row
from facets.model.base import ModelConfig
from facets.model.checkpoint import fit_weights, read_config, read_table, read_weights, revision_of, shared
from facets.model.passage_checkpoint import read_word_pieces
from facets.model.precision import fastest_precision, wants_int8
from facets.model.shipped import DEFAULT_READER, find_model
from facets.model.word_pieces import WordPieces

_FILES = ("config.json", "model.safetensors", "tokenizer.json")
_MOST = 30.0  # log-odds that count
_LEAST = 1e-6  # probability that counts
NOT_READ = -np.inf  # log-odds of a sentence that did not fit
_LEAST_UNASKED = -2.0  # log-odds that count for a query that does not ask: a text about it may be all that is wanted
_ASKS = re.compile(
    r"(?:(?:about|at|by|for|from|in|of|on|since|to|under|until|with) )?(?:how|wh(?:at|en|ere|ich|y|o(?:m|se)?))\b"
    r"|(?:am|are|can|could|did|do|does|had|has|have|is|may|might|must|shall|should|was|were|will|would) ",
    re.IGNORECASE,
)


class HitWeights(Settings):
    """What the confidence of a hit depends on; by default the reader does not change it."""

    intercept: float = 0.0
    confidence: NonNegative = 1.0  # weight of its log-odds without the reader
    answer: NonNegative = 0.0  # weight of the log-odds of its best sentence


class ReaderConfig(ModelConfig):
    """``config.json`` of a reader."""

    task: Literal["answers"] = "answers"
    # The confidence of an answer is the logistic function of intercept + slope * log-odds.
    intercept: float = 0.0
    slope: Positive = 1.0
    # That of a hit is the logistic function of the intercept, its log-odds without the reader, and those of the answer.
    hits: HitWeights = HitWeights()
    encoder: SentenceEncoderConfig = SentenceEncoderConfig()
    training: dict[str, Any] = Field(default_factory=dict)  # facts about the training run, for human readers


class AnswerReader:
    """Reads a question with the sentences of a text; thread-safe."""

    task = "answers"

    def __init__(
        self,
        network: AnswerNetwork,
        pieces: WordPieces,
        config: ReaderConfig,
        *,
        revision: str = "unsaved",
        device: str = "cpu",
    ) -> None:
        target = torch.device(device)
        self.network = network.to(target, fastest_precision(target)).eval().requires_grad_(False)
        for layer in (self.network.score, self.network.importance, self.network.matches):
            layer.float()
        if wants_int8(target):
            self.network.encoder.use_int8()
        self.name, self.revision, self.config, self.pieces = config.name, revision, config, pieces
        self._read: Callable[[Sequence[ReadRow]], Sequence[Floats]] = self.read_rows

    def reading_by(self, read_rows: Callable[[Sequence[ReadRow]], Sequence[Floats]]) -> "AnswerReader":
        """The same reader, with another way to call ``read_rows``, such as through a queue."""
        other = copy(self)
        other._read = read_rows
        return other

    def read(self, question: str, texts: Sequence[tuple[str, Sequence[str]]]) -> list[Floats]:
        """Log-odds that each sentence answers the question, per text; ``NOT_READ`` for sentences that do not fit.

        ``texts``: heading and sentences of each; about 256 word pieces of it fit, of a sentence 80.
        """
        if not any(sentences for _, sentences in texts):
            return [np.empty(0, dtype=np.float32) for _ in texts]
        strings = [part for heading, sentences in texts for part in (heading, *sentences)]
        question_ids, *ids = self.pieces.ids([asked(question), *strings])
        parts, pieces = iter(ids), self.pieces
        rows = [read_row(question_ids, next(parts), [next(parts) for _ in own], pieces) for _, own in texts]
        found = []
        for (_, sentences), log_odds in zip(texts, self._read(rows), strict=True):
            found.append(np.full(len(sentences), NOT_READ, dtype=np.float32))
            found[-1][: len(log_odds)] = log_odds
        return found

    @torch.inference_mode()
    def read_rows(self, rows: Sequence[ReadRow]) -> Sequence[Floats]:
        """Log-odds that each sentence answers, of the sentences of each row that fit."""
        ends = np.cumsum([row.num_sentences for row in rows])
        return np.split(self.network(rows).cpu().numpy(), ends[:-1])

    def answer_confidence(self, log_odds: float) -> float:
        """Calibrated probability that a sentence with these log-odds answers, in [0, 1]."""
        return _probability(self.config.intercept + self.config.slope * log_odds)

    def hit_confidence(self, query: str, confidence: float, log_odds: float) -> float:
        """Calibrated probability that a hit answers, in [0, 1], from that without the reader and its best sentence."""
        weights, certain = self.config.hits, min(max(confidence, _LEAST), 1 - _LEAST)
        without_reader = math.log(certain / (1 - certain))
        return _probability(
            weights.intercept + weights.confidence * without_reader + weights.answer * counted(query, log_odds)
        )

    @classmethod
    def from_folder(cls, folder: Path, *, device: str = "cpu") -> Self:
        """Loads a checkpoint; raises CheckpointError if it is incomplete or damaged."""
        config = read_config(folder, ReaderConfig)
        pieces = read_word_pieces(folder, config.encoder)
        network = fit_weights(folder, lambda: AnswerNetwork(config.encoder), read_weights(folder))
        network.encoder.pieces = read_table(folder, "encoder.pieces.weight")
        revision = revision_of(*(folder / name for name in _FILES))
        return cls(network, pieces, config, revision=revision, device=device)


def counted(query: str, log_odds: float) -> float:
    """Log-odds of the best sentence of a hit as they count for the confidence of the hit."""
    return log_odds if _ASKS.match(query.strip()) else max(log_odds, _LEAST_UNASKED)


def _probability(log_odds: float) -> float:
    return 1 / (1 + math.exp(-min(max(log_odds, -_MOST), _MOST)))


def load_reader(name_or_path: str | Path = DEFAULT_READER, *, device: str = "cpu") -> AnswerReader:
    """Loads a reader by its name or folder, or shares one that is in use.

    Raises NotFoundError if it is not installed, CheckpointError if damaged.

    Example:
        >>> text = ("Opening hours", ["When does the pool open?", "It opens at nine.", "The pool is in the park."])
        >>> int(load_reader().read("When does the pool open?", [text])[0].argmax())
        1
    """
    target = compute_device(device)
    return shared(partial(AnswerReader.from_folder, device=target), find_model(name_or_path), _FILES, target)
