"""The network of the answer reader: reads a question and the sentences of a text at once, and scores each sentence.

A row is ``[CLS] question [SEP] heading [SEP] sentence sentence ... [SEP]``. The score of a sentence is a mean over its
tokens, weighted by an attention of one query.

Shape suffixes: T tokens of all rows, S sentences of all rows, W width.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from facets.arrays import Ints, Ints32
from facets.config import SentenceEncoderConfig
from facets.model.passage_network import RaggedBatch, SentenceEncoder
from facets.model.word_pieces import WordPieces

_QUESTION_PIECES, _HEADING_PIECES, _SENTENCE_PIECES = 48, 32, 80  # at most; the rest is not read
WINDOW_PIECES = 256  # of a row


@dataclass(frozen=True, slots=True)
class ReadRow:
    """A question and a text, as pieces."""

    ids: Ints
    num_question: int  # pieces of the question, special ones included
    sentence_of: Ints  # index of the sentence of each piece, -1 outside sentences
    num_sentences: int  # sentences that fit; the others are not read


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
    return ReadRow(ids, len(question) + 2, sentence_of, len(kept))


class AnswerNetwork(nn.Module):
    """Three layers of a sentence encoder with a score for each sentence."""

    def __init__(self, config: SentenceEncoderConfig) -> None:
        super().__init__()
        self.encoder = SentenceEncoder(config)
        self.segments = nn.Embedding(2, config.width)  # text, question
        self.score = nn.Linear(config.width, 2)  # weight of a token in its sentence, and its score
        nn.init.zeros_(self.segments.weight)

    def forward(self, rows: Sequence[ReadRow]) -> Tensor:
        """Log-odds that each sentence answers, of the sentences of all rows that fit, ``[S]`` float32."""
        device = self.score.weight.device
        batch = RaggedBatch.of([row.ids for row in rows], device)
        counts = np.array([row.num_sentences for row in rows])
        starts = np.cumsum(counts) - counts
        in_question = np.concatenate([np.arange(len(row.ids)) < row.num_question for row in rows])
        sentence_of = np.concatenate([row.sentence_of for row in rows])
        sentence_of += (sentence_of >= 0) * np.repeat(starts, [len(row.ids) for row in rows])
        states_TW = self.encoder(batch, self.segments(torch.from_numpy(in_question.astype(np.int64)).to(device)))
        places_T = torch.from_numpy(np.flatnonzero(sentence_of >= 0)).to(device)
        sentences_T = torch.from_numpy(sentence_of[sentence_of >= 0]).to(device)
        weights_T, scores_T = self.score(states_TW.index_select(0, places_T).float()).float().unbind(1)
        weights_T = torch.exp(weights_T.clamp(-20, 20))
        sums = weights_T.new_zeros(2, int(counts.sum()))
        totals_2S = sums.index_add(1, sentences_T, torch.stack([weights_T * scores_T, weights_T]))
        return totals_2S[0] / totals_2S[1].clamp_min(1e-9)
