"""How well a summary covers the words of a document (Chang 2022, eq. 3.7).

Shape suffixes: S sentences, T sentences of a summary, K facets, U words of the document, D dimensions.
"""

import torch
from torch import Tensor

from facets.scoring.facets import unit_facets


def word_coverage(facets_SKD: Tensor, words_UD: Tensor) -> Tensor:
    """How well each sentence covers each word, ``[S, U]`` in ``[0, 1]``: the cosine with its closest facet, at least 0.

    ``facets_SKD``: of any lengths; or the words of each sentence, padded with zero vectors. ``words_UD``: unit vectors.
    """
    # [S, K, D] @ [D, U] -> [S, K, U]
    return (unit_facets(facets_SKD) @ words_UD.mT).amax(dim=1).clamp_(0.0, 1.0)


def added_coverage(covered_TU: Tensor, repetition: float) -> Tensor:
    """Joint coverage ``[U]`` of each word by several sentences: ``(sum_t c_t ** (1 / repetition)) ** repetition``.

    ``covered_TU``: their ``word_coverage``. ``repetition``: how much covering a word again counts, in ``[0, 1]``: 0
    takes the maximum (eq. 3.7), 1 the sum.
    """
    if not len(covered_TU):
        return torch.zeros(covered_TU.shape[1], dtype=covered_TU.dtype)
    if repetition == 0:
        return covered_TU.amax(dim=0)
    return covered_TU.pow(1 / repetition).sum(dim=0).pow(repetition)


def coverage_gain(powers_SU: Tensor, summed_U: Tensor, weights_U: Tensor, *, repetition: float = 0.0) -> Tensor:
    """Coverage ``[S]``, >= 0, that each candidate sentence would add; it never increases as the summary grows.

    ``powers_SU``: ``word_coverage ** (1 / repetition)`` of the candidates; ``word_coverage`` if ``repetition`` is 0.
    ``summed_U``: sum of these powers over the summary so far; the maximum if ``repetition`` is 0. ``weights_U``: of
    each word, >= 0; in the paper ``alpha / (alpha + p(w))`` times its number of occurrences.

    References:
        Chang 2022, eq. 3.7 (``repetition`` 0).
    """
    if repetition == 0:
        return (powers_SU - summed_U).clamp_min_(0.0) @ weights_U
    return ((powers_SU + summed_U).pow_(repetition) - summed_U.pow(repetition)).clamp_min_(0.0) @ weights_U
