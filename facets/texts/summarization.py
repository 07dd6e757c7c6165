"""Extractive summaries: greedy selection of the sentences that cover a document best.

Shape suffixes: S sentences, B sentences of one block, K facets, U words of the document, D dimensions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets import scoring
from facets.errors import ErrorPath, InvalidInputError
from facets.language.sentences import Sentence
from facets.language.tokenizer import check_text
from facets.model.contract import TextEncoder, TextModel, check_readable
from facets.texts.coverage import CoverageConfig, Covered, SentenceCoverageConfig, coverages_of
from facets.texts.prose import Prose, prose_of

# Gains computed at once: 16 MiB.
GAINS_AT_A_TIME = 4_000_000
FIRST_BLOCK = 8
# Gains this close count as equal, because rounding depends on the block in which a gain is computed.
_SAME_GAIN = 1e-6


@dataclass(frozen=True, slots=True)
class Selected:
    """A selected sentence and the coverage it adds."""

    sentence: int
    gain: float  # added coverage, as a share of the coverage by all sentences


def select_sentences(
    covered_SU: Tensor,
    weights_U: Tensor,
    *,
    costs_S: NDArray[np.int64],
    budget: int,
    repetition: float = 0.0,
    divisors_S: NDArray[np.float64] | None = None,
    prose: Prose | None = None,
) -> list[Selected]:
    """Repeatedly selects the sentence that adds the most coverage, while one fits the budget.

    Coverage is submodular, so an old gain is an upper bound of the new one. Only sentences whose bound is above the
    best known gain are computed again.

    Args:
        covered_SU: Coverage of each target by each sentence, ``[S, U]`` in ``[0, 1]``, S >= 1; it is overwritten.
        weights_U: Weights of the targets, ``[U]``, >= 0.
        costs_S: Cost of each sentence, ``[S]``, >= 0.
        budget: Maximum total cost. If no sentence fits, the best one is selected anyway.
        repetition: See ``scoring.added_coverage``.
        divisors_S: Divisors of the gains, ``[S]``, > 0, applied before gains are compared; None: no division.
        prose: Which sentences may be selected, which need the previous one, and which may come first. A sentence and
            the one it needs are selected together if half their joint gain is the greatest. None: no restrictions.

    Returns:
        At least one sentence, in the order of selection. Ties go to the earlier sentence.

    References:
        Chang 2022, eq. 3.7.
    """
    gains = _Gains(covered_SU, weights_U, repetition)
    units = _Units(len(covered_SU), prose)
    shares_N = units.shares(divisors_S)
    costs_N = units.sums(costs_S)
    bounds_N = units.sums(gains.first) * shares_N
    selected: list[Selected] = []
    is_open_N = units.is_open(selected, costs_N, budget)
    while is_open_N.any():
        best = _best(bounds_N, is_open_N, lambda some: gains.of(*units.sentences(some)) * shares_N[some])
        for sentence in units.of(best):
            gain = float(gains.of(np.array([sentence]), np.array([-1]))[0])
            selected.append(Selected(sentence, gain / gains.total))
            gains.add(sentence)
        budget -= int(costs_N[best])
        is_open_N = units.is_open(selected, costs_N, budget)
    return selected


class _Units:
    """Units of selection: a sentence, or a sentence together with the preceding one that it needs."""

    def __init__(self, num_sentences: int, prose: Prose | None) -> None:
        self._prose = prose
        leaning_P = np.empty(0, dtype=np.int64)
        if prose is not None:  # a longer chain is selected one by one, since each sentence makes the next one available
            needed_S = prose.leans_on
            leaning_P = np.flatnonzero(prose.may_stand & (needed_S >= 0) & (needed_S[needed_S] < 0))
        alone_S = np.arange(num_sentences)
        self._first_N = np.append(alone_S, leaning_P if prose is None else prose.leans_on[leaning_P])
        self._second_N = np.append(np.full(num_sentences, -1), leaning_P)
        self._num_sentences = num_sentences

    def shares(self, divisors_S: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """Factors by which gains are multiplied before they are compared, ``[N]``."""
        shares_S = np.ones(self._num_sentences) if self._prose is None else self._prose.worth
        if divisors_S is not None:
            shares_S = shares_S / divisors_S
        return self.sums(shares_S) / (1.0 + (self._second_N >= 0)) ** 2

    def sums(self, values_S: NDArray[Any]) -> NDArray[Any]:
        """Sums of the values of sentences, ``[N]``."""
        return values_S[self._first_N] + np.where(self._second_N >= 0, values_S[self._second_N], 0)

    def sentences(self, units: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First sentence of each unit, and its second sentence or -1."""
        return self._first_N[units], self._second_N[units]

    def of(self, unit: int) -> list[int]:
        """The sentences of a unit, in order."""
        return [int(side[unit]) for side in (self._first_N, self._second_N) if side[unit] >= 0]

    def is_open(self, selected: Sequence[Selected], costs_N: NDArray[np.int64], budget: int) -> NDArray[np.bool_]:
        """Whether each unit may be selected next, ``[N]``."""
        is_free_S = np.ones(self._num_sentences, dtype=np.bool_)
        is_free_S[[item.sentence for item in selected]] = False
        is_open_N = is_free_S[self._first_N] & (is_free_S[self._second_N] | (self._second_N < 0))
        if self._prose is not None:
            needed_S = self._prose.leans_on
            stands_S = self._prose.may_stand & ((needed_S < 0) | ~is_free_S[needed_S])
            is_open_N &= stands_S[self._first_N]
        fits_N = is_open_N & (costs_N <= budget)
        if selected:
            return fits_N
        is_open_N = fits_N if fits_N.any() else is_open_N
        if self._prose is None:
            return is_open_N
        named_N = self.sums(self._prose.names_subject.astype(np.int64)) > 0
        return is_open_N & named_N if (is_open_N & named_N).any() else is_open_N


def _best(
    bounds_N: NDArray[np.float64],
    is_open_N: NDArray[np.bool_],
    gains_of: Callable[[NDArray[np.int64]], NDArray[np.float64]],
) -> int:
    """The open unit with the greatest gain; tightens the bounds of the units that it computes."""
    candidates = np.flatnonzero(is_open_N)
    if bounds_N[candidates].max() <= 0:
        return int(candidates[0])
    candidates = candidates[np.argsort(-bounds_N[candidates], kind="stable")]
    start, size, best_gain = 0, FIRST_BLOCK, -1.0
    while start < len(candidates) and bounds_N[candidates[start]] >= best_gain * (1 - _SAME_GAIN):
        block = candidates[start : start + size]
        bounds_N[block] = np.minimum(bounds_N[block], gains_of(block))
        best_gain = max(best_gain, float(bounds_N[block].max()))
        start, size = start + size, 2 * size
    seen = candidates[:start]
    return int(seen[bounds_N[seen] >= best_gain * (1 - _SAME_GAIN)].min())


class _Gains:
    """Coverage that sentences add to the summary so far.

    Attributes:
        first: Gain of every sentence over an empty summary, ``[S]``.
        total: Coverage by all sentences together, or 1 if that is 0.
    """

    def __init__(self, covered_SU: Tensor, weights_U: Tensor, repetition: float) -> None:
        self._weights_U = weights_U
        self._repetition = repetition
        self._summed_U = torch.zeros(len(weights_U))
        self._step = max(1, GAINS_AT_A_TIME // max(1, len(weights_U)))
        self.first = (covered_SU @ weights_U).double().numpy()
        if repetition == 0:
            all_U = covered_SU.amax(dim=0)
        else:
            if repetition < 1:
                covered_SU.pow_(1 / repetition)
            all_U = covered_SU.sum(dim=0).pow_(repetition)
        self._powers_SU = covered_SU
        self.total = float(all_U @ weights_U) or 1.0

    def of(self, first_B: NDArray[np.int64], second_B: NDArray[np.int64]) -> NDArray[np.float64]:
        """Gains of sentences together with a second one (or -1 for none), ``[B]``."""
        gains = []
        for start in range(0, len(first_B), self._step):
            here = slice(start, start + self._step)
            powers_BU = self._powers_SU[torch.from_numpy(first_B[here])]
            paired = np.flatnonzero(second_B[here] >= 0)
            if len(paired):
                powers_BU[paired] = self._together(powers_BU[paired], self._powers_SU[second_B[here][paired]])
            gains.append(scoring.coverage_gain(powers_BU, self._summed_U, self._weights_U, repetition=self._repetition))
        return torch.cat(gains).double().numpy()

    def add(self, sentence: int) -> None:
        """Adds a sentence to the summary."""
        self._summed_U = self._together(self._powers_SU[sentence], self._summed_U)

    def _together(self, powers: Tensor, others: Tensor) -> Tensor:
        return torch.maximum(powers, others) if self._repetition == 0 else powers + others


Order = Literal["original", "selection"]
_ORDERS = ("original", "selection")
_DEFAULT_NUM_SENTENCES = 3
_COVERAGE = CoverageConfig()
_COVERAGES: Mapping[str, CoverageConfig | SentenceCoverageConfig] = {"passages": SentenceCoverageConfig()}
# Sentences encoded together: enough to fill batches; their facets take 80 MiB.
SENTENCES_AT_A_TIME = 8192


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
    """The summary of one document: at least one sentence, in the requested order."""

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
    order: Order = "original",
    query: str = "",
    coverage: CoverageConfig | SentenceCoverageConfig | None = None,
    encoder: TextEncoder | None = None,
    prose_only: bool = True,
) -> list[Summary]:
    """Summarizes each document by the sentences that cover it best.

    Args:
        model: The model.
        documents: Texts, or lists of their sentences.
        num_sentences: Number of sentences; fewer if there is less prose. Default 3.
        max_words: Alternative limit: most words (split at white space). If no sentence fits, the best one is taken.
        order: Order of the sentences: ``original`` or ``selection``.
        query: If not empty, parts of the document that are closer to it count more.
        coverage: How sentences cover a document; None: a ``SentenceCoverageConfig`` for passage models, otherwise a
            ``CoverageConfig``.
        encoder: Encodes sentences and query in place of the model, such as a server's queue.
        prose_only: Select prose if there is any, begin with a sentence that names the subject, and select a sentence
            that begins with a pronoun together with the previous one (``facets.texts.prose``). False: eq. 3.7 alone.

    Raises:
        InvalidInputError: A document or sentence is blank or in a foreign script, or an option is out of range; the
            path names it.
        TypeError: ``documents`` is a single ``str``.

    References:
        Chang 2022, section 3.2.2.4, eq. 3.7.
    """
    if isinstance(documents, str):
        raise TypeError(f"documents must be a sequence, got one str: try summarize(model, [{documents[:20]!r}])")
    _check_options(num_sentences, max_words, order)
    split = [_sentences(model, document, ("documents", i)) for i, document in enumerate(documents)]
    if query:
        check_text(query, ("query",))
        check_readable(model, query, ("query",))
    config = coverage or _COVERAGES.get(model.task, _COVERAGE)
    coverages = coverages_of(
        model, split, config, query=query, encoder=encoder or model, sentences_at_a_time=SENTENCES_AT_A_TIME
    )
    summaries = []
    for document, sentences, covered in zip(documents, split, coverages, strict=True):
        prose = None
        if prose_only:
            are_given = not isinstance(document, str)
            prose = prose_of(sentences, model.tokenizer, model.words.vocabulary, are_given=are_given)
        if prose is not None and query:  # the query is the subject
            prose = replace(prose, names_subject=np.zeros_like(prose.names_subject))
        selected = _select(sentences, covered, prose, num_sentences=num_sentences, max_words=max_words)
        summaries.append(Summary(_ordered(sentences, selected, order), len(sentences), prose is None or prose.found))
    return summaries


def _select(
    sentences: Sequence[Sentence],
    covered: Covered,
    prose: Prose | None,
    *,
    num_sentences: int | None,
    max_words: int | None,
) -> list[Selected]:
    if max_words is None:
        costs_S, budget = np.ones(len(sentences), dtype=np.int64), num_sentences or _DEFAULT_NUM_SENTENCES
    else:
        costs_S, budget = np.array([_num_words(sentence.text) for sentence in sentences]), max_words
    return select_sentences(
        covered.covered,
        covered.weights,
        costs_S=costs_S,
        budget=budget,
        repetition=covered.repetition,
        divisors_S=covered.divisors,
        prose=prose,
    )


def _check_options(num_sentences: int | None, max_words: int | None, order: str) -> None:
    if num_sentences is not None and max_words is not None:
        raise InvalidInputError(f"excludes num_sentences, got both ({max_words} and {num_sentences})", path="max_words")
    for argument, value in (("num_sentences", num_sentences), ("max_words", max_words)):
        if value is not None and value < 1:
            raise InvalidInputError(f"must be >= 1, got {value}", path=argument)
    if order not in _ORDERS:
        raise InvalidInputError(f"must be one of {', '.join(_ORDERS)}, got {order!r}", path="order")


def _sentences(model: TextModel, document: str | Sequence[str], path: ErrorPath) -> list[Sentence]:
    if isinstance(document, str):
        check_text(document, path)
        check_readable(model, document, path)
        return model.tokenizer.sentences(document)
    if not document:
        raise InvalidInputError("has 0 sentences, expected at least 1", path=path)
    sentences, start = [], 0
    for i, text in enumerate(document):
        check_text(text, (*path, "sentences", i))
        sentences.append(Sentence(text, start, start + len(text), text))
        start += len(text) + 1
    check_readable(model, " ".join(document), path)
    return sentences


def _ordered(sentences: Sequence[Sentence], selected: Sequence[Selected], order: Order) -> tuple[SummarySentence, ...]:
    picked = [
        SummarySentence(
            text=sentences[item.sentence].text,
            sentence=item.sentence,
            start=sentences[item.sentence].start,
            end=sentences[item.sentence].end,
            selection=selection,
            gain=item.gain,
        )
        for selection, item in enumerate(selected)
    ]
    return tuple(sorted(picked, key=lambda item: item.sentence) if order == "original" else picked)


def _num_words(text: str) -> int:
    return len(text.split())
