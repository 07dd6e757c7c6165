"""Asymmetric and symmetric scores of two sets of facets: entailment of patterns, patterns against relations.

Shape suffixes: P pairs, B patterns, R relations, K and J facets, M facets of other patterns, D dimensions.
"""

import torch
from torch import Tensor

from facets.language.interruption import check_interrupted
from facets.scoring.facet_match import unit_facets

__all__ = [
    "asymmetric_score",
    "asymmetric_scores",
    "distinct_facets",
    "generality_score",
    "reference_asymmetric_score",
    "symmetric_score",
    "symmetric_scores",
]

# Cosines held at a time by asymmetric_scores (64 MB).
COSINES_AT_A_TIME = 16_000_000


def asymmetric_score(premise_PKD: Tensor, hypothesis_PJD: Tensor) -> Tensor:
    """How well the premise covers the hypothesis: each facet of the hypothesis and its closest of the premise.

    ``Asym(premise, hypothesis) = sum_m max_k cos(premise_k, hypothesis_m) / J``. A premise often has facets far from
    all of its hypothesis, so ``asymmetric_score(a, b) - asymmetric_score(b, a) > 0`` says that a is the premise.

    Args:
        premise_PKD: Facets, ``[P, K, D]``, any lengths.
        hypothesis_PJD: Facets, ``[P, J, D]``, same dtype.

    Returns:
        ``[P]`` in ``[-1, 1]``.

    Example:
        >>> specific = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
        >>> general = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
        >>> asymmetric_score(specific, general).item(), asymmetric_score(general, specific).item()
        (1.0, 0.5)

    References:
        Chang 2022, eq. 3.10.
    """
    return _cosines(premise_PKD, hypothesis_PJD).amax(dim=1).mean(dim=1)


def generality_score(patterns_BKD: Tensor, background_MD: Tensor) -> Tensor:
    """How general each pattern is: the mean of ``asymmetric_score(pattern, other)`` over many others.

    Args:
        patterns_BKD: Facets, ``[B, K, D]``, any lengths.
        background_MD: All facets of the other patterns, ``[M, D]``, unit length.

    Returns:
        ``[B]`` in ``[-1, 1]``; what is near a pattern anyway, is not near it because of entailment.
    """
    # [B, K, D] @ [D, M] -> [B, K, M]
    return (unit_facets(patterns_BKD) @ background_MD.mT).amax(dim=1).mean(dim=1)


def symmetric_score(first_PKD: Tensor, second_PJD: Tensor) -> Tensor:
    """Mean of ``asymmetric_score`` in both directions, ``[P]`` in ``[-1, 1]``.

    References:
        Chang 2022, eq. 3.11.
    """
    cosines_PKJ = _cosines(first_PKD, second_PJD)
    return (cosines_PKJ.amax(dim=1).mean(dim=1) + cosines_PKJ.amax(dim=2).mean(dim=1)) / 2


def symmetric_scores(patterns_BKD: Tensor, relations_RJD: Tensor) -> Tensor:
    """``symmetric_score`` of every pattern with every relation, ``[B, R]``; see ``asymmetric_scores``.

    References:
        Chang 2022, eq. 3.11.
    """
    forward_BR, backward_BR = asymmetric_scores(patterns_BKD, *distinct_facets(relations_RJD))
    return (forward_BR + backward_BR) / 2


def asymmetric_scores(
    patterns_BKD: Tensor, relations_RJD: Tensor, shares_RJ: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """``asymmetric_score`` of every pattern with every relation, both ways.

    Args:
        patterns_BKD: Facets, ``[B, K, D]``, any lengths.
        relations_RJD: Facets, ``[R, J, D]``, same dtype.
        shares_RJ: How much each facet of a relation counts, ``[R, J]``, 1 together (``distinct_facets``); None: alike.

    Returns:
        Two times ``[B, R]`` in ``[-1, 1]``: the pattern as premise, the relation as premise.

    References:
        Chang 2022, eq. 3.10.
    """
    num_patterns, num_facets, dim = patterns_BKD.shape
    num_relations, num_relation_facets, _ = relations_RJD.shape
    shares_JR = patterns_BKD.new_full((1, 1), 1.0 / num_relation_facets) if shares_RJ is None else shares_RJ.mT
    # The relation's facets come first, so that both maxima run over long contiguous rows.
    relations_MD = unit_facets(relations_RJD).transpose(0, 1).reshape(-1, dim)
    units_BKD = unit_facets(patterns_BKD)
    forward_BR = torch.empty(num_patterns, num_relations, dtype=torch.float32, device=patterns_BKD.device)
    backward_BR = torch.empty_like(forward_BR)
    step = max(1, COSINES_AT_A_TIME // max(1, num_facets * len(relations_MD)))
    for start in range(0, num_patterns, step):
        check_interrupted()
        # [b, K, D] @ [D, J * R] -> [b, K, J, R]
        cosines_bKM = units_BKD[start : start + step] @ relations_MD.mT
        block_bKJR = cosines_bKM.view(-1, num_facets, num_relation_facets, num_relations)
        forward_BR[start : start + step] = (block_bKJR.amax(dim=1) * shares_JR).sum(dim=1).clamp(-1.0, 1.0)
        backward_BR[start : start + step] = block_bKJR.amax(dim=2).mean(dim=1).clamp(-1.0, 1.0)
    return forward_BR, backward_BR


def distinct_facets(facets_RJD: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct facets of each relation, ``[R, U, D]``, and how often each stands among its J, as shares ``[R, U]``.

    A relation with fewer than U repeats some with the share 0, which changes neither maximum nor mean.
    """
    num_facets = facets_RJD.shape[1]
    # [R, J, J]: the first place at which an equal facet stands
    equal_RJJ = (facets_RJD.unsqueeze(2) == facets_RJD.unsqueeze(1)).all(dim=-1)
    first_RJ = equal_RJJ.int().argmax(dim=2)
    counts_RJ = torch.zeros(first_RJ.shape, device=facets_RJD.device).scatter_add_(
        1, first_RJ, torch.ones(first_RJ.shape, device=facets_RJD.device)
    )
    width = int((counts_RJ > 0).sum(dim=1).amax()) if len(counts_RJ) else 1
    # Distinct facets first, in their order; the rest of the width has a count of 0.
    order_RU = (counts_RJ == 0).int().argsort(dim=1, stable=True)[:, :width]
    chosen_RUD = facets_RJD.gather(1, order_RU.unsqueeze(-1).expand(-1, -1, facets_RJD.shape[2]))
    return chosen_RUD, counts_RJ.gather(1, order_RU) / num_facets


def reference_asymmetric_score(premise_KD: Tensor, hypothesis_JD: Tensor) -> float:
    """``asymmetric_score`` of one pair, facet by facet; slow and obvious, for tests."""
    total = 0.0
    for hypothesis_D in hypothesis_JD:
        best = -1.0
        for premise_D in premise_KD:
            lengths = float(premise_D.norm()) * float(hypothesis_D.norm())
            best = max(best, float(premise_D @ hypothesis_D) / lengths)
        total += best
    return total / len(hypothesis_JD)


def _cosines(first_PKD: Tensor, second_PJD: Tensor) -> Tensor:
    return (unit_facets(first_PKD) @ unit_facets(second_PJD).mT).clamp(-1.0, 1.0)
