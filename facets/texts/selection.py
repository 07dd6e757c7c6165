"""Greedy choice of the sentences that cover the words of a document best.

Shape suffixes: S sentences, U words of the document, B sentences of one block.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets import scoring

__all__ = ["Covered", "Selected", "select_sentences"]

# Gains computed at once (16 MiB).
GAINS_AT_A_TIME = 4_000_000
FIRST_BLOCK = 8
# Gains this close are equal: rounding depends on the block a sentence is computed in.
_SAME_GAIN = 1e-6


@dataclass(frozen=True, slots=True)
class Covered:
    """What there is to cover of a document, and how well its sentences do.

    Attributes:
        covered: How well each sentence covers each word, or whatever else the document is made of, ``[S, U]`` in
            ``[0, 1]``.
        weights: What each of these weighs, ``[U]``, >= 0.
        repetition: See ``scoring.added_coverage``.
        divisors: Gains are divided by these before they are compared, ``[S]``, > 0; None: by 1.
    """

    covered: Tensor
    weights: Tensor
    repetition: float
    divisors: NDArray[np.float64] | None = None


@dataclass(frozen=True, slots=True)
class Selected:
    """A picked sentence and what it added to the coverage."""

    sentence: int
    gain: float  # as a share of the coverage by all sentences


def select_sentences(
    covered_SU: Tensor,
    weights_U: Tensor,
    *,
    costs_S: NDArray[np.int64],
    budget: int,
    repetition: float = 0.0,
    divisors_S: NDArray[np.float64] | None = None,
) -> list[Selected]:
    """Picks the sentence with the greatest gain of coverage again and again, as long as one fits the budget.

    Coverage is submodular, so an old gain is an upper bound of the new one: only sentences whose bound is still
    above the best known gain are looked at again.

    Args:
        covered_SU: How well each sentence covers each word, ``[S, U]`` in ``[0, 1]``, S >= 1; U may be 0. It is
            overwritten.
        weights_U: Weight of each word, ``[U]``, >= 0.
        costs_S: What each sentence takes of the budget, ``[S]``, >= 0.
        budget: Most the sentences may cost together. When not even one fits, the best one is picked all the same.
        repetition: See ``scoring.added_coverage``.
        divisors_S: Gains are divided by these before they are compared, ``[S]``, > 0; None: by 1.

    Returns:
        At least one sentence, in the order of selection; without ``divisors_S`` gains never grow. Ties go to the
        earlier sentence.

    References:
        Chang 2022, eq. 3.7.
    """
    gains = _Gains(covered_SU, weights_U, repetition)
    divisors_S = np.ones(len(covered_SU)) if divisors_S is None else divisors_S
    bounds_S = gains.first / divisors_S
    is_open_S = np.ones(len(bounds_S), dtype=np.bool_)
    if (costs_S <= budget).any():
        is_open_S &= costs_S <= budget
    selected: list[Selected] = []
    while is_open_S.any():
        best = _best(bounds_S, is_open_S, lambda rows: gains.of(rows) / divisors_S[rows])
        selected.append(Selected(best, float(bounds_S[best] * divisors_S[best] / gains.total)))
        gains.add(best)
        budget -= int(costs_S[best])
        is_open_S[best] = False
        is_open_S &= costs_S <= budget
    return selected


def _best(
    bounds_S: NDArray[np.float64],
    is_open_S: NDArray[np.bool_],
    gains_of: Callable[[NDArray[np.int64]], NDArray[np.float64]],
) -> int:
    """The open sentence with the greatest gain; tightens the bounds it had to look at."""
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
    """Gains of sentences over the summary so far.

    Attributes:
        first: ``[S]``: the gain of every sentence over an empty summary.
        total: Coverage by all sentences together; 1 where there is none.
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

    def of(self, sentences: NDArray[np.int64]) -> NDArray[np.float64]:
        """``[B]``: the gains of some sentences."""
        rows_B = torch.from_numpy(sentences)
        gains = [
            scoring.coverage_gain(
                self._powers_SU[rows_B[start : start + self._step]],
                self._summed_U,
                self._weights_U,
                repetition=self._repetition,
            )
            for start in range(0, len(rows_B), self._step)
        ]
        return torch.cat(gains).double().numpy()

    def add(self, sentence: int) -> None:
        """Takes a sentence into the summary."""
        powers_U = self._powers_SU[sentence]
        self._summed_U = torch.maximum(self._summed_U, powers_U) if self._repetition == 0 else self._summed_U + powers_U
