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
from torch.nn import functional

from facets.arrays import Bools, Ints, Ints32
from facets.config import SentenceEncoderConfig
from facets.model.passage_network import RaggedBatch, SentenceEncoder
from facets.model.word_pieces import WordPieces

_QUESTION_PIECES, _HEADING_PIECES, _SENTENCE_PIECES = 48, 32, 80  # at most; the rest is not read
_MATCH_WEIGHT = 6.0  # initial
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
    """A few layers of a sentence encoder with a score for each sentence.

    The score of a sentence adds a mean over its tokens, weighted by an attention of one query, and what its tokens have
    in common with those of the question: the best cosine for each token of the question, among the embeddings and
    among the states, weighted by the importance of that token.
    """

    def __init__(self, config: SentenceEncoderConfig) -> None:
        super().__init__()
        self.encoder = SentenceEncoder(config)
        self.segments = nn.Embedding(2, config.width)  # text, question
        self.score = nn.Linear(config.width, 2)  # weight of a token in its sentence, and its score
        self.importance = nn.Linear(config.width, 1)  # of a token of the question
        self.matches = nn.Linear(2, 1)  # of embeddings and of states
        nn.init.zeros_(self.segments.weight)
        nn.init.constant_(self.matches.weight, _MATCH_WEIGHT)
        nn.init.constant_(self.matches.bias, -_MATCH_WEIGHT)

    def forward(self, rows: Sequence[ReadRow]) -> Tensor:
        """Log-odds that each sentence answers, of the sentences of all rows that fit, ``[S]`` float32."""
        device = self.importance.weight.device
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
        read_S = totals_2S[0] / totals_2S[1].clamp_min(1e-9)
        return read_S + self._matched(batch, states_TW, in_question, sentence_of, int(counts.sum()))

    def _matched(
        self, batch: RaggedBatch, states_TW: Tensor, in_question: Bools, sentence_of: Ints, num_sentences: int
    ) -> Tensor:
        """What the tokens of each sentence have in common with those of its question, ``[S]``."""
        special = np.isin(batch.ids.cpu().numpy(), [batch.ids[0].item(), batch.ids[-1].item()])
        rows_T = batch.text_numbers
        asked_T = torch.from_numpy(np.flatnonzero(in_question & ~special)).to(rows_T.device)
        said_T = torch.from_numpy(np.flatnonzero(sentence_of >= 0)).to(rows_T.device)
        sentences_T = torch.from_numpy(sentence_of[sentence_of >= 0]).to(rows_T.device)
        importance_T = torch.exp(self.importance(states_TW[asked_T].float()).float().clamp(-20, 20))[:, 0]
        total_B = torch.zeros(len(batch.lengths), device=rows_T.device).index_add(0, rows_T[asked_T], importance_T)
        share_T = importance_T / total_B[rows_T[asked_T]].clamp_min(1e-9)
        row_of_S = torch.zeros(num_sentences, dtype=torch.long, device=rows_T.device)
        row_of_S = row_of_S.index_copy(0, sentences_T, rows_T[said_T])
        ahead_B = torch.cumsum(torch.bincount(rows_T[asked_T], minlength=len(batch.lengths)), 0)
        counts_B = torch.diff(ahead_B, prepend=ahead_B.new_zeros(1))
        most = int(counts_B.max())
        places_T = torch.arange(len(asked_T), device=rows_T.device) - (ahead_B - counts_B)[rows_T[asked_T]]
        shares_BQ = share_T.new_zeros(len(batch.lengths), most).index_put((rows_T[asked_T], places_T), share_T)
        found = []
        for vectors_TW in (self.encoder.pieces(batch.ids), states_TW):
            units_TW = functional.normalize(vectors_TW.float(), dim=1)
            asked_BQW = units_TW.new_zeros(len(batch.lengths), most, units_TW.shape[1])
            asked_BQW = asked_BQW.index_put((rows_T[asked_T], places_T), units_TW[asked_T])
            said_BLW = batch.pad(units_TW)
            cosines_BLQ = said_BLW @ asked_BQW.transpose(1, 2)
            cosines_TQ = cosines_BLQ[rows_T[said_T], batch.positions[said_T]]
            best_SQ = cosines_TQ.new_full((num_sentences, most), -1.0)
            index_TQ = sentences_T[:, None].expand_as(cosines_TQ)
            best_SQ = best_SQ.scatter_reduce(0, index_TQ, cosines_TQ, "amax")
            found.append((best_SQ * shares_BQ[row_of_S]).sum(1))
        matched: Tensor = self.matches(torch.stack(found, dim=1)).float()[:, 0]
        return matched
