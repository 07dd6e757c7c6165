"""How well the facets and words of a summary cover the words of a document.

Shape suffixes: S sentences, K facets, L words of a sentence, U words of the document, D dimensions.
"""

import torch
from torch import Tensor

from facets.scoring.facets import unit_facets


def word_coverage(facets_SKD: Tensor, words_UD: Tensor) -> Tensor:
    """How well each sentence covers each word: the cosine with its closest facet, at least 0.

    With the words of a sentence in place of its facets, padded with zero vectors, the closest word counts.

    Args:
        facets_SKD: Facets, ``[S, K, D]``, any lengths.
        words_UD: Unit word vectors, ``[U, D]``.

    Returns:
        ``[S, U]`` in ``[0, 1]``. A word that all facets point away from is not covered, as by no sentence at all.
    """
    # [S, K, D] @ [D, U] -> [S, K, U]
    return (unit_facets(facets_SKD) @ words_UD.mT).amax(dim=1).clamp_(0.0, 1.0)


def added_coverage(covered_TU: Tensor, repetition: float) -> Tensor:
    """What several sentences cover of each word together: ``(sum_t c_t ** (1 / repetition)) ** repetition``.

    Args:
        covered_TU: ``word_coverage`` of the sentences of a summary, ``[T, U]``.
        repetition: What covering a word again is worth, in ``[0, 1]``: 0 is the maximum (eq. 3.7), 1 the sum.

    Returns:
        ``[U]``; zeros for no sentence.
    """
    if not len(covered_TU):
        return torch.zeros(covered_TU.shape[1], dtype=covered_TU.dtype)
    if repetition == 0:
        return covered_TU.amax(dim=0)
    return covered_TU.pow(1 / repetition).sum(dim=0).pow(repetition)


def coverage(covered_TU: Tensor, weights_U: Tensor, *, repetition: float = 0.0) -> Tensor:
    """What a summary covers of a document.

    Args:
        covered_TU: ``word_coverage`` of the summary's sentences, ``[T, U]``.
        weights_U: Weight of each word, ``[U]``, >= 0: in the paper ``alpha / (alpha + p(w))`` times the number of
            its occurrences.
        repetition: As for ``added_coverage``.

    Returns:
        A scalar, >= 0.

    References:
        Chang 2022, eq. 3.7 (``repetition`` 0).
    """
    return added_coverage(covered_TU, repetition) @ weights_U


def coverage_gain(powers_SU: Tensor, summed_U: Tensor, weights_U: Tensor, *, repetition: float = 0.0) -> Tensor:
    """What each sentence would add to the coverage of a summary.

    Args:
        powers_SU: ``word_coverage ** (1 / repetition)`` of the candidates, ``[S, U]``; plain when it is 0.
        summed_U: The same of the summary so far, added up, ``[U]``; its maximum when ``repetition`` is 0. Zeros for
            an empty summary.
        weights_U: As for ``coverage``.
        repetition: As for ``added_coverage``.

    Returns:
        ``[S]``, >= 0; never grows when the summary does (submodular).

    References:
        Chang 2022, eq. 3.7 (``repetition`` 0).
    """
    if repetition == 0:
        return (powers_SU - summed_U).clamp_min_(0.0) @ weights_U
    return ((powers_SU + summed_U).pow_(repetition) - summed_U.pow(repetition)).clamp_min_(0.0) @ weights_U
