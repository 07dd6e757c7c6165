"""The answer reader: says how probably each sentence of a text answers a question.

It is a small cross-encoder. It reads English; see ``models/facets-reader-en/README.md``. A row of its network is
``[CLS] question [SEP] heading [SEP] sentence sentence ... [SEP]``.
Shape suffixes: T tokens of all rows, S sentences of all rows, W width.
"""

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from facets.arrays import Floats, Ints, Ints32
from facets.config import NonNegative, Positive, SentenceEncoderConfig, Settings
from facets.model.passage_checkpoint import EncoderConfig, TextReader
from facets.model.passage_network import CrossEncoder, RaggedBatch
from facets.model.shipped import DEFAULT_READER
from facets.model.word_pieces import WordPieces

_QUESTION_PIECES, _HEADING_PIECES, _SENTENCE_PIECES = 48, 32, 80  # at most; the rest is not read
_MARKS = "?!.\uff1f \n"
_MATCH_WEIGHT = 6.0  # initial
WINDOW_PIECES = 256  # of a row
_MOST = 30.0  # log-odds that count
_LEAST = 1e-6  # probability that counts
NOT_READ = -np.inf  # log-odds of a sentence that did not fit
_LEAST_READ = -4.0  # log-odds of an answer that count for its hit: a text about what is asked may be all that is wanted
_NEAR = (-2.5, 0.0)  # log-odds of a hit without the reader, between which it is near, but perhaps silent


@dataclass(frozen=True, slots=True)
class ReadRow:
    """A question and a text, as pieces."""

    ids: Ints
    num_question: int  # pieces of the question, which follow the first one
    sentence_of: Ints  # index of the sentence of each piece, -1 outside sentences
    num_sentences: int  # sentences that fit; the others are not read


def asked(question: str) -> str:
    """A question as it is read: whether it ends with a mark must not matter."""
    return question.strip().rstrip(_MARKS) or question


def read_row(question: Ints32, heading: Ints32, sentences: Sequence[Ints32], pieces: WordPieces) -> ReadRow:
    """Joins the pieces of a question, a heading (may be empty) and sentences."""
    question = question[:_QUESTION_PIECES]
    last = np.array([pieces.last_id])
    head = [np.array([pieces.first_id]), question, last, heading[:_HEADING_PIECES], last[: len(heading)]]
    kept, size = list[Ints32](), sum(map(len, head)) + 1
    for sentence in sentences:
        size += min(len(sentence), _SENTENCE_PIECES)
        if size > WINDOW_PIECES:
            break
        kept.append(sentence[:_SENTENCE_PIECES])
    ids = np.concatenate([*head, *kept, last])
    sentence_of = np.full(len(ids), -1, dtype=np.int64)
    start = len(ids) - 1 - sum(map(len, kept))
    sentence_of[start:-1] = np.repeat(np.arange(len(kept)), [len(sentence) for sentence in kept])
    return ReadRow(ids, len(question), sentence_of, len(kept))


class AnswerNetwork(CrossEncoder):
    """A few layers of a sentence encoder with a score for each sentence.

    The score of a sentence adds a mean over its tokens, weighted by an attention of one query, and what its tokens have
    in common with those of the question: the best cosine for each token of the question, among the embeddings and
    among the states, weighted by the importance of that token.
    """

    def __init__(self, config: SentenceEncoderConfig) -> None:
        super().__init__(config)
        self.score = nn.Linear(config.width, 2)  # weight of a token in its sentence, and its score
        self.importance = nn.Linear(config.width, 1)  # of a token of the question
        self.matches = nn.Linear(3, 1)  # of embeddings, of states, and of mean states
        nn.init.constant_(self.matches.weight, _MATCH_WEIGHT)
        nn.init.constant_(self.matches.bias, -_MATCH_WEIGHT)

    def forward(self, rows: Sequence[ReadRow]) -> Tensor:
        """Log-odds that each sentence answers, of the sentences of all rows that fit, ``[S]`` float32."""
        device = self.importance.weight.device
        batch = RaggedBatch.of([row.ids for row in rows], device)
        counts, lengths = (
            np.array(sizes) for sizes in zip(*((r.num_sentences, len(r.ids)) for r in rows), strict=True)
        )
        sentence_of = np.concatenate([row.sentence_of for row in rows])
        is_said = sentence_of >= 0
        sentence_of += np.repeat(np.cumsum(counts) - counts, lengths)
        said_T, sentences_T = (torch.from_numpy(a).to(device) for a in (np.flatnonzero(is_said), sentence_of[is_said]))
        num_asked_B = torch.tensor([row.num_question for row in rows], device=device)
        in_question_T = batch.positions < num_asked_B[batch.text_numbers] + 2  # with the pieces around it
        states_TW = self.encoder(batch, self.segments(in_question_T.long()))
        weights_T, scores_T = self.score(states_TW[said_T].float()).float().unbind(1)
        weights_T = torch.exp(weights_T.clamp(-20, 20))
        totals_2S = weights_T.new_zeros(2, int(counts.sum()))
        totals_2S = totals_2S.index_add(1, sentences_T, torch.stack([weights_T * scores_T, weights_T]))
        row_of_S = torch.from_numpy(np.repeat(np.arange(len(rows)), counts)).to(device)
        common_S3 = self._in_common(batch, states_TW, num_asked_B, said_T, sentences_T, row_of_S)
        return totals_2S[0] / totals_2S[1].clamp_min(1e-9) + self.matches(common_S3).float()[:, 0]

    def _in_common(self, batch: RaggedBatch, states_TW: Tensor, num_asked_B: Tensor, *places: Tensor) -> Tensor:
        """What the tokens of each sentence have in common with those of its question, ``[S, 3]``."""
        said_T, sentences_T, row_of_S = places
        num_asked = int(num_asked_B.max())
        is_asked_BQ = torch.arange(num_asked, device=num_asked_B.device) < num_asked_B[:, None]
        importance_BQ = batch.pad(self.importance(states_TW.float()).float())[:, 1 : 1 + num_asked, 0]
        shares_BQ = torch.softmax(importance_BQ.masked_fill(~is_asked_BQ, -torch.inf), dim=1)
        found = []
        for vectors_TW in (self.encoder.embed(batch.ids), states_TW):
            units_BLW = batch.pad(functional.normalize(vectors_TW.float(), dim=1))
            cosines_BLQ = units_BLW @ units_BLW[:, 1 : 1 + num_asked].transpose(1, 2)
            cosines_TQ = cosines_BLQ[batch.text_numbers[said_T], batch.positions[said_T]]
            best_SQ = cosines_TQ.new_full((len(row_of_S), num_asked), -1.0)
            best_SQ = best_SQ.scatter_reduce(0, sentences_T[:, None].expand_as(cosines_TQ), cosines_TQ, "amax")
            found.append((best_SQ * shares_BQ[row_of_S]).sum(1))
        in_question_T = batch.positions - 1 < num_asked_B[batch.text_numbers]
        asked_T = torch.nonzero(in_question_T & (batch.positions > 0))[:, 0]
        totals_BW = states_TW.new_zeros(len(num_asked_B), states_TW.shape[1], dtype=torch.float32)
        asked_BW = totals_BW.index_add(0, batch.text_numbers[asked_T], states_TW[asked_T].float())
        totals_SW = totals_BW.new_zeros(len(row_of_S), states_TW.shape[1])
        said_SW = totals_SW.index_add(0, sentences_T, states_TW[said_T].float())
        found.append(functional.cosine_similarity(asked_BW[row_of_S], said_SW, dim=1))
        return torch.stack(found, dim=1)


class HitWeights(Settings):
    """What the confidence of a hit depends on."""

    intercept: float
    confidence: NonNegative  # weight of its log-odds without the reader
    answer: NonNegative  # weight of the log-odds of its best sentence


class ReaderConfig(EncoderConfig):
    """``config.json`` of a reader."""

    task: Literal["answers"] = "answers"
    # The confidence of an answer is the logistic function of intercept + slope * log-odds.
    intercept: float = 0.0
    slope: Positive = 1.0
    # That of a hit is the logistic function of a weighted sum, see `counted`; None: the reader does not change it.
    hits: HitWeights | None = None
    # Of its log-odds for the question of `facets.texts.importance`; 0: it did not learn what belongs in a summary.
    summary_weight: NonNegative = 0.0


class AnswerReader(TextReader[AnswerNetwork, ReaderConfig]):
    """Reads a question with the sentences of a text; thread-safe.

    Example:
        >>> text = ("Opening hours", ["When does the pool open?", "It opens at nine.", "The pool is in the park."])
        >>> int(AnswerReader.shared().read("When does the pool open?", [text])[0].argmax())
        1
    """

    network_class, config_class, shipped = AnswerNetwork, ReaderConfig, DEFAULT_READER
    _read: Callable[[Sequence[ReadRow]], Sequence[Floats]] | None = None  # None: `read_rows`

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
        for (_, sentences), log_odds in zip(texts, (self._read or self.read_rows)(rows), strict=True):
            found.append(np.full(len(sentences), NOT_READ, dtype=np.float32))
            found[-1][: len(log_odds)] = log_odds
        return found

    def read_whole(self, question: str, heading: str, sentences: Sequence[str]) -> Floats:
        """Log-odds that each sentence of a text of any length answers, ``[S]``; it is read by windows."""
        question_ids, heading_ids, *ids = self.pieces.ids([asked(question), heading, *sentences])
        rows, num_read = list[ReadRow](), 0
        while num_read < len(ids):
            rows.append(read_row(question_ids, heading_ids, ids[num_read : num_read + WINDOW_PIECES], self.pieces))
            num_read += rows[-1].num_sentences
        return np.concatenate((self._read or self.read_rows)(rows))

    @torch.inference_mode()
    def read_rows(self, rows: Sequence[ReadRow]) -> Sequence[Floats]:
        """Log-odds that each sentence answers, of the sentences of each row that fit."""
        ends = np.cumsum([row.num_sentences for row in rows])
        return np.split(self.network(rows).cpu().numpy(), ends[:-1])

    def answer_confidence(self, log_odds: float) -> float:
        """Calibrated probability that a sentence with these log-odds answers, in [0, 1]."""
        return _probability(self.config.intercept + self.config.slope * log_odds)

    def hit_confidence(self, confidence: float, log_odds: float) -> float:
        """Calibrated probability that a hit answers, in [0, 1], from that without the reader and its best sentence."""
        if (weights := self.config.hits) is None:
            return confidence
        certain = min(max(confidence, _LEAST), 1 - _LEAST)
        without_reader, answer = counted(math.log(certain / (1 - certain)), log_odds)
        return _probability(weights.intercept + weights.confidence * without_reader + weights.answer * answer)


def counted(without_reader: float, log_odds: float) -> tuple[float, float]:
    """What counts for the confidence of a hit, of its log-odds without the reader and those of its best sentence.

    A question is as close to a text that comes near its answer as to one that answers: only what is far, or certain
    without the reader, counts. See docs/measure/experiments.md.
    """
    low, high = _NEAR
    return min(without_reader, low) + max(without_reader, high), max(log_odds, _LEAST_READ)


def _probability(log_odds: float) -> float:
    return 1 / (1 + math.exp(-min(max(log_odds, -_MOST), _MOST)))
