"""Sentence vectors from weighted averages of word vectors; their cosine is the score.

Shape suffixes: B texts, L words, D dimensions, P pairs, T training texts.

``weights_BL`` multiplies every method's own weights: ones, or ``closest_facet_weight``, and always 0 for
padding and unknown words.
"""

import torch
from torch import Tensor
from torch.nn import functional

__all__ = [
    "ALPHA",
    "average",
    "cosine_score",
    "fit_common_component",
    "probability_average",
    "probability_weights",
    "remove_component",
    "sif",
]

ALPHA = 1e-4


def probability_weights(probabilities: Tensor, *, alpha: float = ALPHA) -> Tensor:
    """``alpha / (alpha + p(w))``: frequent words matter less.

    Args:
        probabilities: p(w) in ``[0, 1]``, any shape.
        alpha: > 0.

    Returns:
        Weights in ``(0, 1]``, the same shape.

    References:
        Chang 2022, section 3.2.2.3, after Arora et al. 2017.
    """
    return alpha / (alpha + probabilities)


def average(words_BLD: Tensor, weights_BL: Tensor) -> Tensor:
    """Weighted sum of the words, divided by the number of words with a weight above 0.

    Args:
        words_BLD: Unit word vectors, ``[B, L, D]``; finite also where the weight is 0.
        weights_BL: ``[B, L]``, >= 0.

    Returns:
        ``[B, D]``; zero for a text without weights.
    """
    # [B, 1, L] @ [B, L, D] -> [B, D]
    sums_BD = (weights_BL.unsqueeze(1) @ words_BLD).squeeze(1)
    return sums_BD / (weights_BL > 0).sum(dim=1, keepdim=True).clamp_min(1)


def probability_average(words_BLD: Tensor, probabilities_BL: Tensor, weights_BL: Tensor) -> Tensor:
    """``average`` with every word's weight multiplied by ``alpha / (alpha + p(w))``.

    Args:
        words_BLD: As for ``average``.
        probabilities_BL: p(w) of each word, ``[B, L]``.
        weights_BL: As for ``average``.

    Returns:
        ``[B, D]``; zero for a text without weights.

    References:
        Chang 2022, section 3.2.2.3 (Prob_avg).
    """
    return average(words_BLD, weights_BL * probability_weights(probabilities_BL))


def sif(words_BLD: Tensor, probabilities_BL: Tensor, weights_BL: Tensor, *, common_component_D: Tensor) -> Tensor:
    """``probability_average`` without the direction that all texts share.

    Args:
        words_BLD: As for ``average``.
        probabilities_BL: p(w) of each word, ``[B, L]``.
        weights_BL: As for ``average``.
        common_component_D: ``fit_common_component`` of training texts weighted in the same way, ``[D]``.

    Returns:
        ``[B, D]``; zero for a text without weights.

    References:
        Chang 2022, section 3.2.2.3 (SIF); Arora et al. 2017, algorithm 1.
    """
    return remove_component(probability_average(words_BLD, probabilities_BL, weights_BL), common_component_D)


def fit_common_component(vectors_TD: Tensor) -> Tensor:
    """First principal direction of training texts, not centred: the right singular vector of the largest value.

    Args:
        vectors_TD: ``probability_average`` of training texts, ``[T, D]``, T >= 1.

    Returns:
        ``[D]``, unit length, same dtype; its largest entry is positive.

    References:
        Arora et al. 2017, algorithm 1.
    """
    # The eigenvector of a [D, D] matrix: cheap for any number of texts.
    scatter_DD = vectors_TD.double().mT @ vectors_TD.double()
    component_D = torch.linalg.eigh(scatter_DD).eigenvectors[:, -1]
    sign = component_D[component_D.abs().argmax()].sign()
    return (component_D * sign).to(vectors_TD.dtype)


def remove_component(vectors_BD: Tensor, component_D: Tensor) -> Tensor:
    """``v - (v . u) u`` for a unit vector ``u``, ``[B, D]``."""
    return vectors_BD - (vectors_BD @ component_D).unsqueeze(1) * component_D


def cosine_score(first_PD: Tensor, second_PD: Tensor) -> Tensor:
    """Cosine of each pair of vectors.

    Args:
        first_PD: ``[P, D]``.
        second_PD: ``[P, D]``.

    Returns:
        ``[P]`` in ``[-1, 1]``; 0 when a side is zero.
    """
    first_PD, second_PD = functional.normalize(first_PD, dim=1), functional.normalize(second_PD, dim=1)
    return (first_PD * second_PD).sum(dim=1).clamp(-1.0, 1.0)
