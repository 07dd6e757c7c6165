"""How alike two texts are, by their facets or by their words, and what the score means to people.

Scores of each method are put on one scale, 0 unrelated, 1 (or 5) equivalent, by a curve of the model.
Shape suffixes: P pairs, B pairs of one block, L tokens, K facets, D dimensions, N points of a curve.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from facets import scoring
from facets.errors import ConfigError, InvalidInputError
from facets.model.contract import TextEncoder, TextModel
from facets.model.score_curves import apply_curve
from facets.texts.comparison import Comparison
from facets.texts.explanation import NearestWord, TextExplanation, TokenAttention, explain_encoded, with_weights
from facets.texts.pairs import PairTexts
from facets.texts.similarity_methods import WORD_METHODS, SimilarityMethod, default_method, method_named


class ScoreRange(StrEnum):
    """The scale of calibrated scores."""

    ZERO_TO_ONE = "0..1"
    ZERO_TO_FIVE = "0..5"  # the scale of the STS data sets

    @property
    def highest(self) -> float:
        """Its upper end."""
        return 5.0 if self is ScoreRange.ZERO_TO_FIVE else 1.0


def curve_name(method: str, *, attention: bool) -> str:
    """Name of a method's curve: ``sif``, or ``sif+attention`` where words are weighed."""
    return f"{method}+attention" if attention else str(method)


@dataclass(frozen=True, slots=True)
class ScoreCurve:
    """What the scores of one method mean, on one scale."""

    points: NDArray[np.float64]  # [2, N], see apply_curve
    score_range: ScoreRange

    def apply(self, scores_P: NDArray[np.floating]) -> NDArray[np.float32]:
        """Scores as people would give them, ``[P]``; order is kept (near ties may become ties)."""
        calibrated_P = apply_curve(self.points, scores_P) * self.score_range.highest
        return np.ascontiguousarray(calibrated_P, dtype=np.float32)


def score_curve(model: TextModel, method: str, *, attention: bool, score_range: ScoreRange) -> ScoreCurve:
    """The curve of a method.

    ``model``: the model that scores; its ``score_curves`` were fitted on pairs with people's scores. ``method``: how
    pairs are scored. ``attention``: whether words are weighed by attention.

    Raises:
        ConfigError: The model comes without a curve for the method.
        InvalidInputError: The scale is unknown.
    """
    if score_range not in list(ScoreRange):
        raise InvalidInputError(f"must be one of {', '.join(ScoreRange)}, got {score_range!r}", path="score_range")
    name = curve_name(method, attention=attention)
    curve_2N = model.score_curves.get(name)
    if curve_2N is None:
        known = ", ".join(sorted(model.score_curves)) or "none"
        raise ConfigError(f"calibrated scores need the model's curve for {name}, it has {known}")
    return ScoreCurve(curve_2N, ScoreRange(score_range))


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
    """Why a pair has its score."""

    # Which facet met which, largest contribution first. For `max_facet` the one match that is the score; otherwise
    # every match by what it explains in the mutual reconstruction of eq. 3.5, which is the score of `codebook` and only
    # an illustration for the word-based methods.
    matches: tuple[FacetMatch, ...]
    # Tokens of the first text with their attention (eq. 3.6) and, where the method compares words, the weight each had
    # in the score.
    first_tokens: tuple[TokenAttention, ...]
    second_tokens: tuple[TokenAttention, ...]  # tokens of the second text


@dataclass(frozen=True, slots=True)
class PairScores:
    """Scores of some pairs."""

    scores: NDArray[np.float32]  # `[P]` float32, finite; entry i belongs to pairs[i]. Range: see `SimilarityMethod`.
    method: SimilarityMethod  # how the pairs were scored
    explanations: tuple[PairExplanation, ...] = ()  # one a pair, empty unless asked for
    # `[P]` float32, the scores as people would give them, on the scale asked for; None unless asked for.
    calibrated: NDArray[np.float32] | None = None
    # What the texts of each pair say of each other: label and differences; empty but for `alignment`.
    comparisons: tuple[Comparison, ...] = ()


def score_pairs(
    model: TextModel,
    pairs: Sequence[tuple[str, str]],
    method: str | None = None,
    *,
    attention: bool = False,
    explain: bool = False,
    num_words: int = 5,
    score_range: ScoreRange | None = None,
    encoder: TextEncoder | None = None,
) -> PairScores:
    """Scores how alike the two texts of each pair are.

    Args:
        model: The model.
        pairs: Any number of pairs; a text that occurs often is encoded once.
        method: How to score: a ``SimilarityMethod`` or its name; None: ``default_method`` of the model's task.
        attention: Weigh each word by its closest facet, too (methods about words only).
        explain: Also say which facets met and what each token weighs.
        num_words: Nearest words of a facet in an explanation, >= 1.
        score_range: Also return what the scores mean to people, on the scale ``0..1`` or ``0..5``, where 0 is
            unrelated and the upper end equivalent; None: the scores alone.
        encoder: What encodes the texts, e.g. a queue before the model; None: the model itself.

    Returns:
        Scores and explanations in the order of the pairs.

    Raises:
        InvalidInputError: A text is blank (the field names it), no method has that name, or ``attention`` is asked of
            one that weighs no words.
        ConfigError: The model lacks what ``sif`` removes or the curve to calibrate with, or the package for ``wmd``
            is missing.

    References:
        Chang 2022, section 3.2.2.3.
    """
    found = default_method(model.task) if method is None else method_named(method)
    scorer = PairScorer(model, pairs, encoder=encoder)
    curve = None
    if score_range is not None:
        curve = score_curve(model, found, attention=attention, score_range=score_range)
    scores = scorer.scores(found, attention=attention)
    return PairScores(
        scores,
        found,
        explanations=scorer.explanations(found, attention=attention, num_words=num_words) if explain else (),
        calibrated=curve.apply(scores) if curve else None,
        comparisons=scorer.comparisons(found),
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
        self._texts = PairTexts(model, pairs, encoder=encoder)

    def scores(self, method: str, *, attention: bool = False) -> NDArray[np.float32]:
        """``[P]`` float32 scores of one method; see ``score_pairs``."""
        found = _checked(method, attention)
        found.require()
        scores_P = found.row.score(self._texts, found.row.weighting(attention))
        return np.ascontiguousarray(scores_P.numpy(), dtype=np.float32)

    def comparisons(self, method: str) -> tuple[Comparison, ...]:
        """What the texts of each pair say of each other; none by methods that do not read them."""
        return self._texts.comparisons if method_named(method) is SimilarityMethod.ALIGNMENT else ()

    def explanations(self, method: str, *, attention: bool = False, num_words: int = 5) -> tuple[PairExplanation, ...]:
        """One explanation a pair; see ``score_pairs``."""
        found = _checked(method, attention)
        texts = self._explained_texts(found, attention, num_words)
        explanations: list[PairExplanation] = []
        for pairs_B2 in self._texts.blocks():
            first_BKD, second_BKD = self._texts.facets_of(pairs_B2)
            cosines_BKK = (scoring.unit_facets(first_BKD) @ scoring.unit_facets(second_BKD).mT).clamp(-1.0, 1.0)
            shares_BKK = found.row.shares(first_BKD, second_BKD)
            explanations += [
                _explanation(texts[first], texts[second], cosines_KK, shares_KK)
                for (first, second), cosines_KK, shares_KK in zip(
                    pairs_B2.tolist(), cosines_BKK.numpy(), shares_BKK.numpy(), strict=True
                )
            ]
        return tuple(explanations)

    def _explained_texts(self, method: SimilarityMethod, attention: bool, num_words: int) -> list[TextExplanation]:
        """The distinct texts, each token with the weight it has in the score."""
        texts = self._texts
        explained = explain_encoded(texts.model, texts.texts, texts.facets.numpy(), num_words=num_words)
        if method not in WORD_METHODS:
            return explained
        weights = texts.words.token_weights(texts.weights(method.row.weighting(attention)))
        return [with_weights(text, weights_L) for text, weights_L in zip(explained, weights, strict=True)]


def _checked(method: str, attention: bool) -> SimilarityMethod:
    found = method_named(method)
    if attention and found not in WORD_METHODS:
        raise InvalidInputError(f"must be off for {found.value}: it weighs words, got attention=True", path="attention")
    return found


def _explanation(
    first: TextExplanation, second: TextExplanation, cosines_KK: NDArray[np.float32], shares_KK: NDArray[np.float32]
) -> PairExplanation:
    first_words, second_words = ({one.facet: one.words for one in text.facets} for text in (first, second))
    order = np.argsort(-shares_KK, axis=None, kind="stable")[: np.count_nonzero(shares_KK)]
    matches = tuple(
        FacetMatch(
            int(i), int(j), float(cosines_KK[i, j]), float(shares_KK[i, j]), first_words[int(i)], second_words[int(j)]
        )
        for i, j in zip(*np.unravel_index(order, shares_KK.shape), strict=True)
    )
    return PairExplanation(matches, first.tokens, second.tokens)
