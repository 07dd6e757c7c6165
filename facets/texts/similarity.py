"""Similarity of two texts by facets or words; the model's curve calibrates it from 0 (unrelated) to 1 or 5.

Shape suffixes: P pairs, B pairs of one block, L tokens, K facets, D dimensions, N points of a curve.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets import scoring
from facets.errors import ConfigError, InvalidInputError
from facets.language.interruption import check_interrupted
from facets.model.contract import TextEncoder, TextModel
from facets.model.score_curves import apply_curve
from facets.texts.comparison import Comparison
from facets.texts.explanation import NearestWord, TextExplanation, TokenAttention, explain_encoded, with_weights
from facets.texts.pairs import PairTexts, Weighting
from facets.texts.similarity_methods import WORD_METHODS, SimilarityMethod, default_method, method_named


def _score_curve(model: TextModel, method: str, *, attention: bool) -> NDArray[np.float64]:
    """The calibration curve ``[2, N]`` of a method (``sif``, ``sif+attention``), fitted on pairs with human scores."""
    name = f"{method}+attention" if attention else str(method)
    curve_2N = model.score_curves.get(name)
    if curve_2N is None:
        known = ", ".join(sorted(model.score_curves)) or "none"
        raise ConfigError(f"calibrated scores need the model's curve for {name}, it has {known}")
    return curve_2N


@dataclass(frozen=True, slots=True)
class FacetMatch:
    """A pair of facets that contributes to a score."""

    first_facet: int
    second_facet: int
    cosine: float  # in [-1, 1]
    contribution: float  # share of the score, in [0, 1]; the shares of all matches sum to 1
    first_words: tuple[NearestWord, ...]  # closest first
    second_words: tuple[NearestWord, ...]


@dataclass(frozen=True, slots=True)
class PairExplanation:
    """The explanation of a score."""

    # Pairs of facets, largest contribution first. For `max_facet`, the pair that sets the score; else all pairs with
    # their share in the mutual reconstruction of eq. 3.5: the score of `codebook`, and an illustration for word
    # methods.
    matches: tuple[FacetMatch, ...]
    # Tokens of the first text with their attention (eq. 3.6) and, for word methods, their weight in the score.
    first_tokens: tuple[TokenAttention, ...]
    second_tokens: tuple[TokenAttention, ...]


@dataclass(frozen=True, slots=True)
class PairScores:
    """Scores, in the order of the pairs."""

    scores: NDArray[np.float32]  # `[P]` float32, finite; for the range see `SimilarityMethod`
    method: SimilarityMethod
    explanations: tuple[PairExplanation, ...] = ()  # one for each pair if requested
    calibrated: NDArray[np.float32] | None = None  # `[P]` float32, calibrated scores if requested
    comparisons: tuple[Comparison, ...] = ()  # label and differences of each pair; only for `alignment`


def score_pairs(
    model: TextModel,
    pairs: Sequence[tuple[str, str]],
    method: str | None = None,
    *,
    attention: bool = False,
    explain: bool = False,
    num_words: int = 5,
    calibrated: bool = False,
    encoder: TextEncoder | None = None,
) -> PairScores:
    """Scores the similarity of the two texts of each pair (Chang 2022, section 3.2.2.3).

    Args:
        model: The model.
        pairs: Any number of pairs. A text that occurs several times is encoded once.
        method: A ``SimilarityMethod`` or its name; None: ``default_method`` of the model's task.
        attention: Also weight each word by its closest facet (word methods only).
        explain: Also return the matched facets and the token weights.
        num_words: Number of nearest words per facet in an explanation, >= 1.
        calibrated: Also return scores on a human scale from 0, unrelated, to 1, equivalent.
        encoder: Encodes the texts in place of the model, such as a server's queue.

    Raises:
        InvalidInputError: A text is blank (the path names it), there is no such method, or ``attention`` is set for a
            method that does not compare words.
        ConfigError: The model has no common component for ``sif`` or no calibration curve, or the package for ``wmd``
            is missing.
    """
    chosen = default_method(model.task) if method is None else method_named(method)
    scorer = PairScorer(model, pairs, encoder=encoder)
    curve_2N = _score_curve(model, chosen, attention=attention) if calibrated else None
    scores_P = scorer.scores(chosen, attention=attention)
    calibrated_P = None if curve_2N is None else apply_curve(curve_2N, scores_P).astype(np.float32)
    return PairScores(
        scores_P,
        chosen,
        explanations=scorer.explanations(chosen, attention=attention, num_words=num_words) if explain else (),
        calibrated=calibrated_P,
        comparisons=scorer.comparisons if chosen is SimilarityMethod.ALIGNMENT else (),
    )


class PairScorer(PairTexts):
    """Scores pairs of texts by any number of methods, encoding each text once."""

    def scores(self, method: str, *, attention: bool = False) -> NDArray[np.float32]:
        """``[P]`` float32 scores of one method; see ``score_pairs``."""
        checked = _checked(method, attention)
        checked.require()
        scores_P = checked.row.score(self, Weighting(attention, checked.row.by_probability))
        return np.ascontiguousarray(scores_P.numpy(), dtype=np.float32)

    def explanations(self, method: str, *, attention: bool = False, num_words: int = 5) -> tuple[PairExplanation, ...]:
        """One explanation for each pair; see ``score_pairs``."""
        checked = _checked(method, attention)
        texts = explain_encoded(self.model, self.texts, self.facets.numpy(), num_words=num_words)
        if checked in WORD_METHODS:
            weights = self.words.token_weights(self.weights(Weighting(attention, checked.row.by_probability)))
            texts = [with_weights(text, weights_L) for text, weights_L in zip(texts, weights, strict=True)]
        explanations: list[PairExplanation] = []
        for pairs_B2 in self.blocks():
            check_interrupted()
            first_BKD, second_BKD = self.facets_of(pairs_B2)
            cosines_BKK = (scoring.unit_facets(first_BKD) @ scoring.unit_facets(second_BKD).mT).clamp(-1.0, 1.0)
            shares_BKK = checked.row.shares(first_BKD, second_BKD)
            explanations += [
                _explanation(texts[first], texts[second], cosines_KK, shares_KK)
                for (first, second), cosines_KK, shares_KK in zip(
                    pairs_B2.tolist(), cosines_BKK.numpy(), shares_BKK.numpy(), strict=True
                )
            ]
        return tuple(explanations)


def _checked(method: str, attention: bool) -> SimilarityMethod:
    named = method_named(method)
    if attention and named not in WORD_METHODS:
        raise InvalidInputError(f"must be off for {named.value}, which does not compare words", path="attention")
    return named


def _explanation(
    first: TextExplanation, second: TextExplanation, cosines_KK: NDArray[np.float32], shares_KK: NDArray[np.float32]
) -> PairExplanation:
    first_words, second_words = ({facet.facet: facet.words for facet in text.facets} for text in (first, second))
    order = np.argsort(-shares_KK, axis=None, kind="stable")[: np.count_nonzero(shares_KK)]
    matches = tuple(
        FacetMatch(
            int(i), int(j), float(cosines_KK[i, j]), float(shares_KK[i, j]), first_words[int(i)], second_words[int(j)]
        )
        for i, j in zip(*np.unravel_index(order, shares_KK.shape), strict=True)
    )
    return PairExplanation(matches, first.tokens, second.tokens)
