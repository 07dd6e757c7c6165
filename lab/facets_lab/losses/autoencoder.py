"""Autoencoder losses: the average facet of a text stays near the weighted average of its words.

Shape suffixes: B texts, L words, K facets, D dimensions of the target space, W of the word vectors.
"""

from torch import Tensor
from torch.nn import functional

__all__ = ["paper_autoencoder_loss", "pattern_autoencoder_loss", "weighted_word_sum"]


def weighted_word_sum(words_BLW: Tensor, probabilities_BL: Tensor, *, nu: float = 1e-4) -> Tensor:
    """``sum over w of nu / (nu + p(w)) w``; the linear map H after it is the caller's.

    Args:
        words_BLW: Word vectors, ``[B, L, W]``, zero at padding and unknown words.
        probabilities_BL: p(w), ``[B, L]``, any value at padding.
        nu: Smooths the inverse frequency.

    Returns:
        ``[B, W]``.

    References:
        Chang 2022, eq. B.2, B.4.
    """
    weights_BL = nu / (nu + probabilities_BL)
    return (words_BLW * weights_BL.unsqueeze(-1)).sum(dim=1)


def pattern_autoencoder_loss(facets_BKD: Tensor, words_BD: Tensor, negatives_B: Tensor) -> Tensor:
    """Mean of ``||s_i - mu_i||^2 - ||s_q - mu_i||^2``, s and mu at unit length.

    Eq. B.1 has no lower limit: both sides may grow without end, and the released code flips the sign of the negative
    term when it exceeds 1. At unit length the same difference stays in ``[-4, 4]`` and needs no such rule.

    Args:
        facets_BKD: Facets, ``[B, K, D]``.
        words_BD: H of ``weighted_word_sum`` of each text, ``[B, D]``; a zero vector (no known word) adds nothing.
        negatives_B: Text whose words are the negative of each, ``[B]`` int64.

    Returns:
        A scalar in ``[-4, 4]``.

    References:
        Chang 2022, eq. B.1, without its weight gamma.
    """
    mean_BD = functional.normalize(facets_BKD.float().mean(dim=1), dim=-1)
    words_BD = functional.normalize(words_BD.float(), dim=-1)
    known_B = (words_BD.square().sum(dim=-1) > 0).float()
    own_B = (words_BD - mean_BD).square().sum(dim=-1)
    other_B = (words_BD[negatives_B] - mean_BD).square().sum(dim=-1)
    return (known_B * known_B[negatives_B] * (own_B - other_B)).mean()


def paper_autoencoder_loss(facets_BKD: Tensor, words_BD: Tensor, negatives_B: Tensor) -> Tensor:
    """Mean of ``((p_i . mu_i) - 1)^2 + (p_j . mu_i)^2``.

    Args:
        facets_BKD: Facets before their magnitudes are predicted, ``[B, K, D]``.
        words_BD: H of ``weighted_word_sum`` of each text, ``[B, D]``.
        negatives_B: Text whose words are the negative of each, ``[B]`` int64.

    Returns:
        A scalar >= 0.

    References:
        Chang 2022, eq. B.3, without its weight gamma.
    """
    mean_BD = facets_BKD.float().mean(dim=1)
    own_B = (words_BD * mean_BD).sum(dim=-1)
    other_B = (words_BD[negatives_B] * mean_BD).sum(dim=-1)
    return ((own_B - 1.0).square() + other_B.square()).mean()
