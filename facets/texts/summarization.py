"""Extractive summaries: greedy selection of the sentences that cover a document best.

Shape suffixes: S sentences, B sentences of one block, K facets, U words of the document, D dimensions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from facets import scoring
from facets.arrays import Bools, Doubles, Ints
from facets.errors import ErrorPath, InvalidInputError
from facets.language.interruption import check_interrupted
from facets.language.sentences import Sentence, sentences_of
from facets.language.tokenizer import check_text
from facets.model.answer_reader import AnswerReader
from facets.model.contract import TextEncoder, TextModel, check_readable
from facets.texts.coverage import REPETITION, Covered, coverages_of
from facets.texts.importance import has_prose, importance

# Gains computed at once: 4 MiB.
GAINS_AT_A_TIME = 1_000_000
FIRST_BLOCK = 8
# Gains this close count as equal, because rounding depends on the block in which a gain is computed.
_SAME_GAIN = 1e-6

_shipped_reader = cache(AnswerReader.shared)  # kept, because it loads longer than it reads


@dataclass(frozen=True, slots=True)
class Selected:
    """A selected sentence and the coverage it adds."""

    sentence: int
    gain: float  # added coverage, as a share of the coverage by all sentences


def select_sentences(covered: Covered, *, costs_S: Ints, budget: int, worth_S: Doubles | None = None) -> list[Selected]:
    """Repeatedly selects the sentence that adds the most coverage, while one fits the budget (eq. 3.7).

    Coverage is submodular, so an old gain is an upper bound of the new one. Only sentences whose bound is above the
    best known gain are computed again. Returns at least one sentence, in the order of selection; ties go to the earlier
    one.

    ``covered``: by at least one sentence; ``covered.covered`` is overwritten. ``costs_S``: cost of each sentence, >= 0.
    ``budget``: maximum total cost; if no sentence fits, the best one is selected anyway. ``worth_S``: factor for the
    gain of each sentence, >= 0; None: 1.
    """
    gains, worth_S = _Gains(covered), np.ones(len(costs_S)) if worth_S is None else worth_S
    bounds_S = gains.first * worth_S
    selected: list[Selected] = []
    is_free_S = np.ones(len(costs_S), dtype=np.bool_)
    while True:
        fits_S = is_free_S & (costs_S <= budget)
        fits_S = fits_S if selected or fits_S.any() else is_free_S
        if not fits_S.any():
            return selected
        best = _best(bounds_S, fits_S, lambda some: gains.of(some) * worth_S[some])
        selected.append(Selected(best, float(gains.of(np.array([best]))[0]) / gains.total))
        gains.add(best)
        is_free_S[best] = False
        budget -= int(costs_S[best])


def _best(bounds_S: Doubles, is_open_S: Bools, gains_of: Callable[[Ints], Doubles]) -> int:
    """The open sentence with the greatest gain; tightens the bounds of the sentences that it computes."""
    candidates = np.flatnonzero(is_open_S)
    if bounds_S[candidates].max() <= 0:
        return int(candidates[0])
    candidates = candidates[np.argsort(-bounds_S[candidates], kind="stable")]
    start, size, best_gain = 0, FIRST_BLOCK, -1.0
    while start < len(candidates) and bounds_S[candidates[start]] >= best_gain * (1 - _SAME_GAIN):
        block = candidates[start : start + size]
        bounds_S[block] = np.minimum(bounds_S[block], gains_of(block))
        best_gain = max(best_gain, float(bounds_S[block].max()))
        start, size = start + size, 2 * size
    seen = candidates[:start]
    return int(seen[bounds_S[seen] >= best_gain * (1 - _SAME_GAIN)].min())


class _Gains:
    """Coverage that sentences add to the summary so far."""

    def __init__(self, covered: Covered) -> None:
        covered_SU, weights_U = covered.covered, covered.weights
        self._weights_U = weights_U
        self._summed_U = torch.zeros(len(weights_U))
        self._step = max(1, GAINS_AT_A_TIME // max(1, len(weights_U)))
        first, all_U = list[Tensor](), torch.zeros(len(weights_U))
        for covered_BU in torch.split(covered_SU, self._step):
            check_interrupted()
            first.append(covered_BU @ weights_U)
            all_U += covered_BU.pow_(1 / REPETITION).sum(dim=0)
        self.first = torch.cat(first).double().numpy()  # gain of every sentence over an empty summary, [S]
        self._powers_SU = covered_SU
        # Coverage by all sentences together, or 1 if that is 0.
        self.total = float(all_U.pow_(REPETITION) @ weights_U) or 1.0

    def of(self, sentences_B: Ints) -> Doubles:
        """Gains of sentences, ``[B]``."""
        gains = []
        for start in range(0, len(sentences_B), self._step):
            check_interrupted()
            powers_BU = self._powers_SU[torch.from_numpy(sentences_B[start : start + self._step])]
            gains.append(scoring.coverage_gain(powers_BU, self._summed_U, self._weights_U, repetition=REPETITION))
        return torch.cat(gains).double().numpy()

    def add(self, sentence: int) -> None:
        self._summed_U = self._summed_U + self._powers_SU[sentence]


_DEFAULT_NUM_SENTENCES = 3


@dataclass(frozen=True, slots=True)
class SummarySentence:
    """One sentence of a summary."""

    text: str
    sentence: int  # index in the document
    start: int  # offset of the first character; for given sentences, in the sentences joined by one space
    end: int  # offset after the last character
    selection: int  # position in the order of selection, from 0
    gain: float  # added coverage (eq. 3.7), as a share of the coverage by all sentences, in [0, 1]


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of one document: at least one sentence, in document order."""

    sentences: tuple[SummarySentence, ...]
    num_sentences_in_document: int
    has_prose: bool = True  # False if the document has no prose, so these are list items, headings and the like

    @property
    def text(self) -> str:
        """The sentences joined by one space."""
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def num_words(self) -> int:
        """Number of words, separated by white space."""
        return sum(_num_words(sentence.text) for sentence in self.sentences)


def summarize(
    model: TextModel,
    documents: Sequence[str | Sequence[str]],
    *,
    num_sentences: int | None = None,
    max_words: int | None = None,
    query: str = "",
    encoder: TextEncoder | None = None,
    reader: AnswerReader | Literal["shipped"] | None = "shipped",
    use_importance: bool = True,
) -> list[Summary]:
    """Summarizes each document by the sentences that cover it best (Chang 2022, section 3.2.2.4).

    ``documents``: texts, or lists of their sentences. ``num_sentences``: fewer if there is less prose; default 3.
    ``max_words``: alternative limit: most words (split at white space); if no sentence fits, the best one is taken.
    ``query``: if not empty, parts of the document that are closer to it count more. ``encoder``: encodes
    sentences and query in place of the model, such as a server's queue. ``use_importance``: multiply the gain of a
    sentence by the odds that a person picks it (``facets.texts.importance``); False: eq. 3.7 alone. ``reader``: says
    how important sentences are, without a query; None: their layout alone does.

    Raises InvalidInputError, whose path names the text, and NotFoundError if the shipped reader is not installed.
    """
    if isinstance(documents, str):
        raise TypeError(f"documents must be a sequence, got one str: try summarize(model, [{documents[:20]!r}])")
    _check_options(num_sentences, max_words)
    split = [_sentences(model, document, ("documents", i)) for i, document in enumerate(documents)]
    if query:
        check_text(query, ("query",))
        check_readable(model, query, ("query",))
        reader = None  # what matters to the asker is not what matters in the text
    coverages = coverages_of(model, split, query=query, encoder=encoder or model)
    summaries = []
    for sentences, covered in zip(split, coverages, strict=True):
        worth_S = None
        if use_importance:
            gains_S = (covered.covered @ covered.weights).double().numpy()
            worth_S = importance(sentences, gains_S, _shipped_reader() if reader == "shipped" else reader)
        costs, budget = [1] * len(sentences), num_sentences or _DEFAULT_NUM_SENTENCES
        if max_words is not None:
            costs, budget = [_num_words(sentence.text) for sentence in sentences], max_words
        selected = select_sentences(covered, costs_S=np.array(costs), budget=budget, worth_S=worth_S)
        summaries.append(Summary(_ordered(sentences, selected), len(sentences), has_prose(sentences)))
    return summaries


def _check_options(num_sentences: int | None, max_words: int | None) -> None:
    if num_sentences is not None and max_words is not None:
        raise InvalidInputError(f"excludes num_sentences, got both ({max_words} and {num_sentences})", path="max_words")
    for argument, value in (("num_sentences", num_sentences), ("max_words", max_words)):
        if value is not None and value < 1:
            raise InvalidInputError(f"must be >= 1, got {value}", path=argument)


def _sentences(model: TextModel, document: str | Sequence[str], path: ErrorPath) -> list[Sentence]:
    if isinstance(document, str):
        check_text(document, path)
        check_readable(model, document, path)
        return sentences_of(document)
    if not document:
        raise InvalidInputError("has 0 sentences, expected at least 1", path=path)
    sentences, start = [], 0
    for i, text in enumerate(document):
        check_text(text, (*path, "sentences", i))
        sentences.append(Sentence(text, start, start + len(text), text))
        start += len(text) + 1
    check_readable(model, " ".join(document), path)
    return sentences


def _ordered(sentences: Sequence[Sentence], selected: Sequence[Selected]) -> tuple[SummarySentence, ...]:
    picked = [
        SummarySentence(sentence.text, item.sentence, sentence.start, sentence.end, selection, item.gain)
        for selection, item in enumerate(selected)
        for sentence in [sentences[item.sentence]]
    ]
    return tuple(sorted(picked, key=lambda item: item.sentence))


def _num_words(text: str) -> int:
    return len(text.split())
