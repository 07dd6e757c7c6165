"""Greedy choice of the sentences that cover the words of a document best.

Shape suffixes: S sentences, K facets, U distinct words, D dimensions, B sentences of one block.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets import scoring

__all__ = ["Selected", "select_sentences"]

# Cosines computed at once (128 MiB) and cosines kept for the whole document (256 MiB).
_COSINES_AT_A_TIME = 32_000_000
_KEPT_COSINES = 64_000_000
_FIRST_BLOCK = 8
# Gains this close are equal: rounding depends on the block a sentence is computed in.
_SAME_GAIN = 1e-6


@dataclass(frozen=True, slots=True)
class Selected:
    """A picked sentence and what it added to the coverage."""

    sentence: int
    gain: float


def select_sentences(
    facets_SKD: Tensor,
    words_UD: Tensor,
    weights_U: Tensor,
    *,
    costs_S: NDArray[np.int64],
    budget: int,
) -> list[Selected]:
    """Picks the sentence with the greatest gain of coverage again and again, as long as one fits the budget.

    Coverage is submodular, so an old gain is an upper bound of the new one: only sentences whose bound is still
    above the best known gain are looked at again.

    Args:
        facets_SKD: Facets of the sentences, ``[S, K, D]``, S >= 1.
        words_UD: Unit vectors of the document's words, ``[U, D]``; U may be 0.
        weights_U: Weight of each word, ``[U]``, >= 0, summing to 1.
        costs_S: What each sentence takes of the budget, ``[S]``, >= 0.
        budget: Most the sentences may cost together. When not even one fits, the best one is picked all the same.

    Returns:
        At least one sentence, in the order of selection; gains never grow. Ties go to the earlier sentence.

    References:
        Chang 2022, eq. 3.7.
    """
    gains = _Gains(scoring.unit_facets(facets_SKD), words_UD, weights_U)
    bounds_S = gains.all()
    is_open_S = np.ones(len(bounds_S), dtype=np.bool_)
    if (costs_S <= budget).any():
        is_open_S &= costs_S <= budget
    selected: list[Selected] = []
    while is_open_S.any():
        best = _best(bounds_S, is_open_S, gains.of)
        selected.append(Selected(best, float(bounds_S[best])))
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
    start, size, best_gain = 0, _FIRST_BLOCK, -1.0
    while start < len(candidates) and bounds_S[candidates[start]] >= best_gain * (1 - _SAME_GAIN):
        block = candidates[start : start + size]
        bounds_S[block] = np.minimum(bounds_S[block], gains_of(block))
        best_gain = max(best_gain, float(bounds_S[block].max()))
        start, size = start + size, 2 * size
    seen = candidates[:start]
    return int(seen[bounds_S[seen] >= best_gain * (1 - _SAME_GAIN)].min())


class _Gains:
    """Gains of sentences over the summary so far."""

    def __init__(self, unit_facets_SKD: Tensor, words_UD: Tensor, weights_U: Tensor) -> None:
        self._facets_SKD = unit_facets_SKD
        self._words_UD = words_UD
        self._weights_U = weights_U
        self._best_U = torch.zeros(len(words_UD))
        self._block = max(1, _COSINES_AT_A_TIME // max(1, len(words_UD) * unit_facets_SKD.shape[1]))
        self._kept_SU: Tensor | None = None
        if len(unit_facets_SKD) * len(words_UD) <= _KEPT_COSINES:
            blocks = self._blocks(torch.arange(len(unit_facets_SKD)))
            self._kept_SU = torch.cat([self._coverage(rows_B) for rows_B in blocks])

    def all(self) -> NDArray[np.float64]:
        """``[S]``: the gain of every sentence."""
        return self.of(np.arange(len(self._facets_SKD)))

    def of(self, sentences: NDArray[np.int64]) -> NDArray[np.float64]:
        """``[B]``: the gains of some sentences."""
        gains = [
            scoring.coverage_gain(self._coverage(rows_B), self._best_U, self._weights_U)
            for rows_B in self._blocks(torch.from_numpy(sentences))
        ]
        return torch.cat(gains).double().numpy()

    def add(self, sentence: int) -> None:
        """Takes a sentence into the summary."""
        self._best_U = torch.maximum(self._best_U, self._coverage(torch.tensor([sentence]))[0])

    def _blocks(self, sentences_S: Tensor) -> list[Tensor]:
        return [sentences_S[start : start + self._block] for start in range(0, len(sentences_S), self._block)]

    def _coverage(self, rows_B: Tensor) -> Tensor:
        if self._kept_SU is not None:
            return self._kept_SU[rows_B]
        return scoring.word_coverage(self._facets_SKD[rows_B], self._words_UD)
