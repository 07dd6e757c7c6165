"""How well the facets of a summary cover the words of a document.

Shape suffixes: S sentences, K facets, U words, D dimensions.
"""

from torch import Tensor

from facets.scoring.facet_match import unit_facets

__all__ = ["coverage", "coverage_gain", "word_coverage"]


def word_coverage(facets_SKD: Tensor, words_UD: Tensor) -> Tensor:
    """How well each sentence covers each word: the cosine with its closest facet, at least 0.

    Args:
        facets_SKD: Facets, ``[S, K, D]``, any lengths.
        words_UD: Unit word vectors, ``[U, D]``.

    Returns:
        ``[S, U]`` in ``[0, 1]``. A word that all facets point away from is not covered, as by no sentence at all.
    """
    # [S, K, D] @ [D, U] -> [S, K, U]
    return (unit_facets(facets_SKD) @ words_UD.mT).amax(dim=1).clamp_(0.0, 1.0)


def coverage(best_U: Tensor, weights_U: Tensor) -> Tensor:
    """What a summary covers of a document.

    Args:
        best_U: Elementwise maximum of ``word_coverage`` over the summary's sentences, ``[U]``.
        weights_U: ``alpha / (alpha + p(w))`` times the number of occurrences, ``[U]``, scaled to sum 1.

    Returns:
        A scalar in ``[0, 1]``.

    References:
        Chang 2022, eq. 3.7 (there a sum over all occurrences).
    """
    return best_U @ weights_U


def coverage_gain(word_coverage_SU: Tensor, best_U: Tensor, weights_U: Tensor) -> Tensor:
    """What each sentence would add to the coverage of a summary.

    Args:
        word_coverage_SU: ``word_coverage`` of the candidates, ``[S, U]``.
        best_U: Coverage of each word by the summary so far, ``[U]``; zeros for an empty summary.
        weights_U: As for ``coverage``.

    Returns:
        ``[S]``, >= 0; never grows when the summary does (submodular).

    References:
        Chang 2022, eq. 3.7.
    """
    return (word_coverage_SU - best_U).clamp_min_(0.0) @ weights_U
