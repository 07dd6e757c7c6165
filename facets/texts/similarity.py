"""Similarity of two texts by facets or words; the model's curve calibrates it from 0 (unrelated) to 1 or 5.

The facets, words and states of each distinct text are computed once.
Shape suffixes: P pairs, T distinct texts, B pairs of one block, L words or tokens, K facets, D dimensions, N points of
a curve.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from facets import scoring
from facets.arrays import Doubles, Floats
from facets.errors import ConfigError, ErrorPath, InvalidInputError
from facets.language.interruption import check_interrupted, computed_once
from facets.language.tokenizer import check_text
from facets.model.contract import TextEncoder, TextModel, check_readable
from facets.model.pair_reader import PairReader
from facets.model.score_curves import apply_curve
from facets.texts.comparison import Comparison, compare_texts
from facets.texts.explanation import NearestWord, TextExplanation, TokenAttention, explain_encoded, with_weights
from facets.texts.words import COMPONENT_KEYS, TextWords

# Most facet values in one block of pairs: 64 MiB.
NUMBERS_AT_A_TIME = 16_000_000
# Pairs of facets with a smaller share of a score are left out of explanations.
_MIN_CONTRIBUTION = 1e-4
_MINUS_DISTANCE = (-2.0, 0.0)
_pair_reader = cache(PairReader.shared)  # kept, because it loads ten times as long as it reads a pair


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
    CROSS_ENCODER = "cross_encoder"

    @property
    def row(self) -> "MethodRow":
        """What the method does."""
        return _ROWS[self]


def default_method(task: str) -> SimilarityMethod:
    """Default method of a task: the one that agrees best with human judgements (``docs/use/similarity.md``)."""
    return SimilarityMethod.CROSS_ENCODER if task == "passages" else SimilarityMethod.CODEBOOK


def method_named(name: str) -> SimilarityMethod:
    """The method with this name; raises InvalidInputError if there is none."""
    if name in set(SimilarityMethod):
        return SimilarityMethod(name)
    raise InvalidInputError(f"must be one of {', '.join(SimilarityMethod)}, got {name!r}", path="method")


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

    scores: Floats  # `[P]` float32, finite; for the range see `SimilarityMethod`
    method: SimilarityMethod
    explanations: tuple[PairExplanation, ...] = ()  # one for each pair if requested
    calibrated: Floats | None = None  # `[P]` float32, calibrated scores if requested
    comparisons: tuple[Comparison, ...] = ()  # label and differences of each pair; only for `cross_encoder`


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

    A text that occurs several times is encoded once. ``method``: a ``SimilarityMethod`` or its name; None:
    ``default_method`` of the model's task. ``attention``: also weight each word by its closest facet (word methods
    only). ``explain``: also return the matched facets, with ``num_words`` (>= 1) nearest words each, and the token
    weights. ``calibrated``: also return scores on a human scale from 0, unrelated, to 1, equivalent. ``encoder``:
    encodes the texts in place of the model, such as a server's queue.

    Raises InvalidInputError, and ConfigError if the model has no common component for ``sif`` or no calibration curve,
    or the package for ``wmd`` is missing.
    """
    chosen = default_method(model.task) if method is None else method_named(method)
    scorer = PairScorer(model, pairs, encoder=encoder)
    curve_2N = scorer.curve(chosen, attention=attention) if calibrated else None
    scores_P = scorer.scores(chosen, attention=attention)
    calibrated_P = None if curve_2N is None else apply_curve(curve_2N, scores_P).astype(np.float32)
    return PairScores(
        scores_P,
        chosen,
        explanations=scorer.explanations(chosen, attention=attention, num_words=num_words) if explain else (),
        calibrated=calibrated_P,
        comparisons=scorer.comparisons if chosen is SimilarityMethod.CROSS_ENCODER else (),
    )


class Weighting(NamedTuple):
    """How the words of a text are weighted in a score."""

    by_facets: bool  # by the closest facet (`scoring.closest_facet_weight`); callers know this as `attention`
    by_probability: bool  # by `alpha / (alpha + p(w))`


class PairScorer:
    """Scores pairs of texts by any number of methods, encoding each text once."""

    def __init__(
        self, model: TextModel, pairs: Sequence[tuple[str, str]], *, encoder: TextEncoder | None = None
    ) -> None:
        """``encoder``: encodes the texts instead of the model.

        Raises InvalidInputError for a text that is blank or in a foreign script.
        """
        rows: dict[str, int] = {}
        self._paths: dict[str, ErrorPath] = {}  # path of the first occurrence of each text
        for i, pair in enumerate(pairs):
            if isinstance(pair, str) or len(pair) != 2:
                raise TypeError(f"pairs[{i}] must be a pair of texts, got {pair!r:.60}")
            for side, text in zip(("first", "second"), pair, strict=True):
                check_text(text, ("pairs", i, side))
                if pair[0].split() != pair[1].split():  # equal texts need not be readable
                    check_readable(model, text, ("pairs", i, side))
                rows.setdefault(text, len(rows))
                self._paths.setdefault(text, ("pairs", i, side))
        self.model = model
        self.texts = tuple(rows)  # the distinct ones
        self.pairs_P2 = torch.tensor([(rows[a], rows[b]) for a, b in pairs], dtype=torch.int64).reshape(-1, 2)
        self._encoder = encoder or model
        self._weights: dict[Weighting, Tensor] = {}

    @computed_once
    def facets(self) -> Tensor:
        """Facets of the texts, ``[T, K, D]``."""
        if not self.texts:
            return torch.zeros(0, self.model.num_facets, 1)
        return self._encoded(self._encoder.encode)

    @computed_once
    def states(self) -> Tensor:
        """Mean contextual states of the encoder, ``[T, H]``."""
        return self._encoded(self._encoder.embed) if self.texts else torch.zeros(0, 1)

    @computed_once
    def comparisons(self) -> tuple[Comparison, ...]:
        """Comparison of the two texts of each pair."""
        if not self.texts:
            return ()
        pairs = [(self.texts[first], self.texts[second]) for first, second in self.pairs_P2.tolist()]
        cosines_P = self.cosines(self.states).numpy()
        return tuple(compare_texts(_pair_reader(), pairs, cosines_P, self._encoder.embed))

    def _encoded(self, encode: Callable[[Sequence[str]], Floats]) -> Tensor:
        try:
            return torch.from_numpy(encode(self.texts))
        except InvalidInputError as error:
            match error.path:
                case ("texts", int(number)):
                    raise error.at(self._paths[self.texts[number]]) from error
            raise

    @computed_once
    def words(self) -> TextWords:
        """The words of the texts."""
        return TextWords(self.model, self.texts)

    def weights(self, weighting: Weighting) -> Tensor:
        """Weights of the words, ``[T, L]``, for scores and for their explanations."""
        if weighting not in self._weights:
            facets = self.facets.numpy() if weighting.by_facets else None
            self._weights[weighting] = self.words.weights(facets, by_probability=weighting.by_probability)
        return self._weights[weighting]

    def averages(self, weighting: Weighting) -> Tensor:
        """Weighted average of the words of each text, ``[T, D]``."""
        return self.words.average(self.weights(weighting))

    def cosines(self, vectors_TD: Tensor) -> Tensor:
        """Cosine of the two vectors of each pair, ``[P]``."""
        first_P, second_P = self.pairs_P2.unbind(dim=1)
        return scoring.cosine_score(vectors_TD[first_P], vectors_TD[second_P])

    def compare_facets(self, score: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """Scores ``[P]`` of all pairs, given a function of the first and second texts' facets ``[B, K, D]``."""
        return torch.cat([score(*self.facets[pairs_B2.T]) for pairs_B2 in self.blocks()])

    def blocks(self) -> Sequence[Tensor]:
        """Blocks of pairs ``[B, 2]`` whose facets fit ``NUMBERS_AT_A_TIME``."""
        num_facets, dim = self.facets.shape[1:]
        size = max(1, NUMBERS_AT_A_TIME // (2 * num_facets * max(dim, num_facets)))
        return [self.pairs_P2[start : start + size] for start in range(0, max(1, len(self.pairs_P2)), size)]

    def scores(self, method: str, *, attention: bool = False) -> Floats:
        """``[P]`` float32 scores of one method; see ``score_pairs``."""
        checked = _checked(method, attention)
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
            first_BKD, second_BKD = self.facets[pairs_B2.T]
            cosines_BKK = (scoring.unit_facets(first_BKD) @ scoring.unit_facets(second_BKD).mT).clamp(-1.0, 1.0)
            shares_BKK = checked.row.shares(first_BKD, second_BKD)
            explanations += [
                _explanation(texts[first], texts[second], cosines_KK, shares_KK)
                for (first, second), cosines_KK, shares_KK in zip(
                    pairs_B2.tolist(), cosines_BKK.numpy(), shares_BKK.numpy(), strict=True
                )
            ]
        return tuple(explanations)

    def curve(self, method: str, *, attention: bool) -> Doubles:
        """The calibration curve ``[2, N]`` of a method (``sif``, ``sif+attention``), fitted on human scores."""
        name, curves = f"{method}+attention" if attention else str(method), self.model.score_curves
        if name not in curves:
            known = ", ".join(sorted(curves)) or "none"
            raise ConfigError(f"calibrated scores need the model's curve for {name}, it has {known}")
        return curves[name]


def _checked(method: str, attention: bool) -> SimilarityMethod:
    named = method_named(method)
    if attention and named not in WORD_METHODS:
        raise InvalidInputError(f"must be off for {named.value}, which does not compare words", path="attention")
    return named


def _explanation(
    first: TextExplanation, second: TextExplanation, cosines_KK: Floats, shares_KK: Floats
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

    score: Callable[[PairScorer, Weighting], Tensor]  # scores ``[P]`` of pairs, with the given word weighting
    range: tuple[float, float] = (-1.0, 1.0)  # lowest and highest score; a text has the highest score with itself
    compares_words: bool = False
    by_probability: bool = False  # whether frequent words get less weight
    task: str = "sentences"  # task whose default model is used when the caller names no model
    # Share of each pair of facets in a score, ``[P, K, K]``, for explanations.
    shares: Callable[[Tensor, Tensor], Tensor] = mutual_shares
    needs_common_component: bool = False  # whether the model must have the direction that all texts share
    needs_pot: bool = False


def _average(texts: PairScorer, weighting: Weighting) -> Tensor:
    return texts.cosines(texts.averages(weighting))


def _sif(texts: PairScorer, weighting: Weighting) -> Tensor:
    key, components = COMPONENT_KEYS[weighting.by_facets], texts.model.common_components
    if key not in components:
        raise ConfigError(
            f"sif needs the model's common component {key!r}, got {sorted(components)}: "
            "fit_common_components(model, texts) computes it"
        )
    return texts.cosines(scoring.remove_component(texts.averages(weighting), torch.from_numpy(components[key])))


def _wmd(texts: PairScorer, weighting: Weighting) -> Tensor:
    try:
        return texts.words.wmd(texts.pairs_P2, texts.weights(weighting))
    except ImportError as error:
        raise ConfigError(f"wmd needs the extra 'wmd': {error}") from error


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
    SimilarityMethod.CROSS_ENCODER: MethodRow(
        lambda texts, _: torch.tensor([comparison.score for comparison in texts.comparisons]),
        (0.0, 1.0),
        task="passages",
    ),
}
WORD_METHODS = frozenset(method for method, row in _ROWS.items() if row.compares_words)
