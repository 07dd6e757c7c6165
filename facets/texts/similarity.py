"""How alike two texts are, by their facets or by their words.

Shape suffixes: P pairs, T distinct texts, L words, K facets, D dimensions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets import scoring
from facets.errors import ConfigError, InvalidInputError
from facets.extras import require_extra
from facets.model.contract import TextEncoder, TextModel
from facets.text.checks import check_text
from facets.texts.explanation import NearestWord, TextExplanation, TokenAttention, explain_encoded
from facets.texts.score_curves import ScoreRange, score_curve
from facets.texts.text_words import COMPONENT_KEYS, TextWords

__all__ = [
    "WORD_METHODS",
    "FacetMatch",
    "PairExplanation",
    "PairScorer",
    "PairScores",
    "SimilarityMethod",
    "score_pairs",
]

# Numbers of the facets of one block of pairs (64 MiB).
_NUMBERS_AT_A_TIME = 16_000_000
# Meetings of facets that explain less of a score than this are left out.
_MIN_CONTRIBUTION = 1e-4


class SimilarityMethod(StrEnum):
    """How a pair is scored. Every method is symmetric; higher is more alike.

    Those from ``average`` to ``probability_wmd`` look at the known words of a text, without punctuation. A text that
    has none is no more like one text than another: cosines are 0, word mover's distances those of unrelated words.
    """

    CODEBOOK = "codebook"  # minus the mutual reconstruction error of the facets, eq. 3.5, in [-2, 0]
    MAX_FACET = "max_facet"  # cosine of the closest two facets, in [-1, 1]
    AVERAGE = "average"  # cosine of the average word vectors, in [-1, 1]
    PROBABILITY_AVERAGE = "probability_average"  # the same, frequent words weighing less, in [-1, 1]
    SIF = "sif"  # probability_average without the direction all texts share, in [-1, 1]
    WMD = "wmd"  # minus the word mover's distance, in [-2, 0]
    PROBABILITY_WMD = "probability_wmd"  # the same, frequent words weighing less, in [-2, 0]
    ENCODER = "encoder"  # cosine of the averages of the encoder's contextual states, in [-1, 1]


WORD_METHODS = frozenset(SimilarityMethod) - {
    SimilarityMethod.CODEBOOK,
    SimilarityMethod.MAX_FACET,
    SimilarityMethod.ENCODER,
}
_NEEDS_POT = (SimilarityMethod.WMD, SimilarityMethod.PROBABILITY_WMD)


@dataclass(frozen=True, slots=True)
class FacetMatch:
    """Two facets that met: what explains a score."""

    first_facet: int
    second_facet: int
    cosine: float  # in [-1, 1]
    contribution: float  # share of all matches, in [0, 1]; they sum to 1
    first_words: tuple[NearestWord, ...]  # closest first
    second_words: tuple[NearestWord, ...]


@dataclass(frozen=True, slots=True)
class PairExplanation:
    """Why a pair has its score.

    Attributes:
        matches: Which facet met which, largest contribution first. For ``max_facet`` the one match that is the
            score; otherwise every match by what it explains in the mutual reconstruction of eq. 3.5, which is
            the score of ``codebook`` and only an illustration for the word-based methods.
        first_tokens: Tokens of the first text with their attention (eq. 3.6).
        second_tokens: Tokens of the second text.
    """

    matches: tuple[FacetMatch, ...]
    first_tokens: tuple[TokenAttention, ...]
    second_tokens: tuple[TokenAttention, ...]


@dataclass(frozen=True, slots=True)
class PairScores:
    """Scores of some pairs.

    Attributes:
        scores: ``[P]`` float32, finite; entry i belongs to pairs[i]. Range: see ``SimilarityMethod``.
        explanations: One a pair, empty unless asked for.
        calibrated: ``[P]`` float32, the scores as people would give them, on the scale asked for; None unless
            asked for.
    """

    scores: NDArray[np.float32]
    explanations: tuple[PairExplanation, ...] = ()
    calibrated: NDArray[np.float32] | None = None


def score_pairs(
    model: TextModel,
    pairs: Sequence[tuple[str, str]],
    method: SimilarityMethod = SimilarityMethod.CODEBOOK,
    *,
    attention: bool = False,
    explain: bool = False,
    num_words: int = 3,
    score_range: ScoreRange | None = None,
    encoder: TextEncoder | None = None,
) -> PairScores:
    """Scores how alike the two texts of each pair are.

    Args:
        model: The model.
        pairs: Any number of pairs; a text that occurs often is encoded once.
        method: How to score.
        attention: Multiply each word's weight by its attention (word-based methods only).
        explain: Also tell which facets met and how much each token matters.
        num_words: Nearest words of a facet in an explanation, >= 1.
        score_range: Also return what the scores mean to people, on the scale ``0..1`` or ``0..5``, where 0 is
            unrelated and the upper end equivalent; None: the scores alone.
        encoder: What encodes the texts, e.g. a queue before the model; None: the model itself.

    Returns:
        Scores and explanations in the order of the pairs.

    Raises:
        InvalidInputError: A text is blank (the field names it), or ``attention`` is asked of a facet method.
        ConfigError: The model lacks what ``sif`` removes or the curve to calibrate with, or the package for ``wmd``
            is missing.

    References:
        Chang 2022, section 3.2.2.3.
    """
    scorer = PairScorer(model, pairs, encoder=encoder)
    curve = None
    if score_range is not None:
        curve = score_curve(model, method, attention=attention, score_range=score_range)
    scores = scorer.scores(method, attention=attention)
    return PairScores(
        scores,
        explanations=scorer.explanations(method, num_words=num_words) if explain else (),
        calibrated=curve.apply(scores) if curve else None,
    )


class PairScorer:
    """Pairs of texts, encoded once, scored by any number of methods."""

    def __init__(
        self, model: TextModel, pairs: Sequence[tuple[str, str]], *, encoder: TextEncoder | None = None
    ) -> None:
        """Checks the pairs; ``encoder`` as for ``score_pairs``.

        Raises:
            InvalidInputError: A text is blank; the field names it.
        """
        rows: dict[str, int] = {}
        numbers: list[tuple[int, int]] = []
        for i, (first, second) in enumerate(pairs):
            check_text(first, ("pairs", i, "first"))
            check_text(second, ("pairs", i, "second"))
            numbers.append((rows.setdefault(first, len(rows)), rows.setdefault(second, len(rows))))
        self._model = model
        self._encoder = encoder or model
        self._texts = tuple(rows)
        self._pairs_P2 = torch.tensor(numbers, dtype=torch.int64).reshape(-1, 2)

    def scores(self, method: SimilarityMethod, *, attention: bool = False) -> NDArray[np.float32]:
        """``[P]`` float32 scores of one method; see ``score_pairs``."""
        method = SimilarityMethod(method)
        if attention and method not in WORD_METHODS:
            raise InvalidInputError(
                f"must be off for {method.value}: it weighs words, got attention=True", path="attention"
            )
        if method is SimilarityMethod.CODEBOOK:
            scores_P = self._facet_scores(scoring.codebook_score)
        elif method is SimilarityMethod.MAX_FACET:
            scores_P = self._facet_scores(lambda first, second: scoring.best_facet_match(first, second)[0])
        elif method is SimilarityMethod.ENCODER:
            states = self._encoder.encode_states(self._texts) if self._texts else np.zeros((0, 1), dtype=np.float32)
            scores_P = self._vector_scores(torch.from_numpy(states))
        elif method in _NEEDS_POT:
            _require_transport(method)
            by_probability = method is SimilarityMethod.PROBABILITY_WMD
            weights_TL = self._weights(attention, by_probability)
            scores_P = self._words.wmd(self._pairs_P2, weights_TL, by_probability=by_probability)
        else:
            scores_P = self._vector_scores(self._text_vectors(method, attention))
        return np.ascontiguousarray(scores_P.numpy(), dtype=np.float32)

    def explanations(self, method: SimilarityMethod, *, num_words: int = 3) -> tuple[PairExplanation, ...]:
        """One explanation a pair; see ``score_pairs``."""
        texts = explain_encoded(self._model, self._texts, self._facets.numpy(), top_k=num_words)
        explanations: list[PairExplanation] = []
        for pairs_B2 in self._facet_blocks():
            first_BKD, second_BKD = self._facets[pairs_B2[:, 0]], self._facets[pairs_B2[:, 1]]
            cosines_BKK = (scoring.unit_facets(first_BKD) @ scoring.unit_facets(second_BKD).mT).clamp(-1.0, 1.0)
            shares_BKK = _shares(first_BKD, second_BKD, SimilarityMethod(method))
            explanations += [
                _explanation(texts[first], texts[second], cosines_KK, shares_KK)
                for (first, second), cosines_KK, shares_KK in zip(
                    pairs_B2.tolist(), cosines_BKK.numpy(), shares_BKK.numpy(), strict=True
                )
            ]
        return tuple(explanations)

    @cached_property
    def _facets(self) -> Tensor:
        if not self._texts:
            return torch.zeros(0, self._model.num_facets, 1)
        return torch.from_numpy(self._encoder.encode(self._texts))

    @cached_property
    def _words(self) -> TextWords:
        return TextWords(self._model, self._texts)

    @cached_property
    def _attention(self) -> dict[bool, Tensor]:
        """Attention of the words, by whether probabilities weigh them too."""
        facets = self._facets.numpy()
        return {flag: self._words.attention(facets, by_probability=flag) for flag in (False, True)}

    def _weights(self, attention: bool, by_probability: bool) -> Tensor:
        return self._attention[by_probability] if attention else self._words.uniform_TL

    def _facet_blocks(self) -> Sequence[Tensor]:
        """Pairs in blocks small enough for two codebooks each, ``[B, 2]``."""
        num_facets, dim = self._facets.shape[1:]
        size = max(1, _NUMBERS_AT_A_TIME // (2 * num_facets * max(dim, num_facets)))
        return [self._pairs_P2[start : start + size] for start in range(0, max(1, len(self._pairs_P2)), size)]

    def _facet_scores(self, score: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        facets = self._facets
        return torch.cat([score(facets[pairs_B2[:, 0]], facets[pairs_B2[:, 1]]) for pairs_B2 in self._facet_blocks()])

    def _vector_scores(self, vectors_TD: Tensor) -> Tensor:
        first_P, second_P = self._pairs_P2.unbind(dim=1)
        return scoring.cosine_score(vectors_TD[first_P], vectors_TD[second_P])

    def _text_vectors(self, method: SimilarityMethod, attention: bool) -> Tensor:
        """``[T, D]``: the vector of every distinct text."""
        if method is SimilarityMethod.AVERAGE:
            return self._words.average(self._weights(attention, by_probability=False))
        averages_TD = self._words.probability_average(self._weights(attention, by_probability=True))
        if method is SimilarityMethod.PROBABILITY_AVERAGE:
            return averages_TD
        return scoring.remove_component(averages_TD, self._common_component(attention))

    def _common_component(self, attention: bool) -> Tensor:
        key = COMPONENT_KEYS[attention]
        component_D = self._model.common_components.get(key)
        if component_D is None:
            raise ConfigError(
                f"sif needs the model's common component {key!r}, got {sorted(self._model.common_components)}: "
                "fit_common_components(model, texts) computes it"
            )
        return torch.from_numpy(component_D)


def _require_transport(method: SimilarityMethod) -> None:
    try:
        require_extra("wmd", "ot")
    except ImportError as error:
        raise ConfigError(f"{method.value} needs the optimal transport package POT: {error}") from error


def _shares(first_PKD: Tensor, second_PKD: Tensor, method: SimilarityMethod) -> Tensor:
    """``[P, K, K]``: contributions of the meetings, summing to 1 for each pair (or all 0)."""
    if method is not SimilarityMethod.MAX_FACET:
        contributions_PKK = scoring.codebook_contributions(first_PKD, second_PKD)
        shares_PKK = contributions_PKK / contributions_PKK.sum(dim=(1, 2), keepdim=True).clamp_min(1e-12)
        shares_PKK = torch.where(shares_PKK >= _MIN_CONTRIBUTION, shares_PKK, 0.0)
        return shares_PKK / shares_PKK.sum(dim=(1, 2), keepdim=True).clamp_min(1e-12)
    _, first_P, second_P = scoring.best_facet_match(first_PKD, second_PKD)
    shares_PKK = torch.zeros(len(first_PKD), first_PKD.shape[1], second_PKD.shape[1])
    shares_PKK[torch.arange(len(first_PKD)), first_P, second_P] = 1.0
    return shares_PKK


def _explanation(
    first: TextExplanation, second: TextExplanation, cosines_KK: NDArray[np.float32], shares_KK: NDArray[np.float32]
) -> PairExplanation:
    order = np.argsort(-shares_KK, axis=None, kind="stable")[: np.count_nonzero(shares_KK)]
    matches = tuple(
        FacetMatch(
            int(i),
            int(j),
            float(cosines_KK[i, j]),
            float(shares_KK[i, j]),
            first.facets[i].words,
            second.facets[j].words,
        )
        for i, j in zip(*np.unravel_index(order, shares_KK.shape), strict=True)
    )
    return PairExplanation(matches, first.tokens, second.tokens)
