"""The table of similarity methods; the proto enum has the same names."""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

import torch
from torch import Tensor

from facets import scoring
from facets.errors import ConfigError, InvalidInputError
from facets.extras import require_extra
from facets.texts.pairs import PairTexts, Weighting

# Pairs of facets with a smaller share of a score are left out of explanations.
_MIN_CONTRIBUTION = 1e-4
_MINUS_DISTANCE = (-2.0, 0.0)


class SimilarityMethod(StrEnum):
    """Scoring method of pairs. All are symmetric, and a higher score means more similar; see docs/use/similarity.md.

    Word methods compare the known words of texts, without punctuation; facets can weight them. For a text without known
    words cosines are 0, and word mover's distances are those of unrelated words.
    """

    CODEBOOK = "codebook"
    MAX_FACET = "max_facet"
    AVERAGE = "average"
    PROBABILITY_AVERAGE = "probability_average"
    SIF = "sif"
    WMD = "wmd"
    PROBABILITY_WMD = "probability_wmd"
    ENCODER = "encoder"
    ALIGNMENT = "alignment"

    @property
    def row(self) -> "MethodRow":
        """What the method does."""
        return _ROWS[self]

    def require(self) -> None:
        """Checks that the extra of the method is installed."""
        if self.row.needs_pot:
            try:
                require_extra("wmd", "ot")
            except ImportError as error:
                raise ConfigError(f"{self.value} needs the extra 'wmd': {error}") from error


def mutual_shares(first_PKD: Tensor, second_PKD: Tensor) -> Tensor:
    """Share of each pair of facets in the mutual reconstruction of eq. 3.5, ``[P, K, K]``."""
    contributions_PKK = scoring.codebook_contributions(first_PKD, second_PKD)
    shares_PKK = contributions_PKK / contributions_PKK.sum(dim=(1, 2), keepdim=True).clamp_min(1e-12)
    shares_PKK = torch.where(shares_PKK >= _MIN_CONTRIBUTION, shares_PKK, 0.0)
    return shares_PKK / shares_PKK.sum(dim=(1, 2), keepdim=True).clamp_min(1e-12)


def _best_match_shares(first_PKD: Tensor, second_PKD: Tensor) -> Tensor:
    """1 for the two closest facets of each pair of texts, else 0, ``[P, K, K]``."""
    _, first_P, second_P = scoring.best_facet_match(first_PKD, second_PKD)
    shares_PKK = torch.zeros(len(first_PKD), first_PKD.shape[1], second_PKD.shape[1])
    shares_PKK[torch.arange(len(first_PKD)), first_P, second_P] = 1.0
    return shares_PKK


class MethodRow(NamedTuple):
    """What a method does."""

    score: Callable[[PairTexts, Weighting], Tensor]  # scores ``[P]`` of pairs, with the given word weighting
    range: tuple[float, float] = (-1.0, 1.0)  # lowest and highest score; a text has the highest score with itself
    compares_words: bool = False
    by_probability: bool = False  # whether frequent words get less weight
    task: str = "sentences"  # task whose default model is used when the caller names no model
    # Share of each pair of facets in a score, ``[P, K, K]``, for explanations.
    shares: Callable[[Tensor, Tensor], Tensor] = mutual_shares
    needs_common_component: bool = False  # whether the model must have the direction that all texts share
    needs_pot: bool = False


def _average(texts: PairTexts, weighting: Weighting) -> Tensor:
    return texts.cosines(texts.averages(weighting))


def _sif(texts: PairTexts, weighting: Weighting) -> Tensor:
    return texts.cosines(texts.without_common_direction(texts.averages(weighting), weighting))


def _wmd(texts: PairTexts, weighting: Weighting) -> Tensor:
    return texts.words.wmd(texts.pairs_P2, texts.weights(weighting))


_ROWS = {
    SimilarityMethod.CODEBOOK: MethodRow(
        lambda texts, _: texts.compare_facets(scoring.codebook_score), _MINUS_DISTANCE
    ),
    SimilarityMethod.MAX_FACET: MethodRow(
        lambda texts, _: texts.compare_facets(lambda first, second: scoring.best_facet_match(first, second)[0]),
        shares=_best_match_shares,
    ),
    SimilarityMethod.AVERAGE: MethodRow(_average, compares_words=True),
    SimilarityMethod.PROBABILITY_AVERAGE: MethodRow(_average, compares_words=True, by_probability=True),
    SimilarityMethod.SIF: MethodRow(_sif, compares_words=True, by_probability=True, needs_common_component=True),
    SimilarityMethod.WMD: MethodRow(_wmd, _MINUS_DISTANCE, compares_words=True, needs_pot=True),
    SimilarityMethod.PROBABILITY_WMD: MethodRow(
        _wmd, _MINUS_DISTANCE, compares_words=True, by_probability=True, needs_pot=True
    ),
    SimilarityMethod.ENCODER: MethodRow(lambda texts, _: texts.cosines(texts.states), task="passages"),
    SimilarityMethod.ALIGNMENT: MethodRow(
        lambda texts, _: torch.tensor([comparison.score for comparison in texts.comparisons]),
        (0.0, 1.0),
        task="passages",
    ),
}
WORD_METHODS = frozenset(method for method, row in _ROWS.items() if row.compares_words)


def default_method(task: str) -> SimilarityMethod:
    """Default method of a task: the one that agrees best with human judgements (``docs/use/similarity.md``)."""
    return SimilarityMethod.ALIGNMENT if task == "passages" else SimilarityMethod.CODEBOOK


def method_named(name: str) -> SimilarityMethod:
    """The method with this name.

    Raises:
        InvalidInputError: There is no such method.
    """
    if name in set(SimilarityMethod):
        return SimilarityMethod(name)
    raise InvalidInputError(f"must be one of {', '.join(SimilarityMethod)}, got {name!r}", path="method")
