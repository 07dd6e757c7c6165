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

from facets.arrays import Ints, Ints32
from facets.config import SentenceEncoderConfig
from facets.model.passage_network import RaggedBatch, SentenceEncoder
from facets.model.word_pieces import WordPieces

_QUESTION_PIECES, _HEADING_PIECES, _SENTENCE_PIECES = 48, 32, 80  # at most; the rest is not read
_MARKS = "?!.\uff1f \n"
_MATCH_WEIGHT = 6.0  # initial
WINDOW_PIECES = 256  # of a row


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
        self.matches = nn.Linear(3, 1)  # of embeddings, of states, and of mean states
        nn.init.zeros_(self.segments.weight)
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
