"""Entailment between sentence patterns, in both directions.

A pair has features in each direction (``pair_features``): how well the facets of one side cover the other's (eq. 3.10),
how alike the patterns are as a whole, what their words say. A softmax over the four labels weighs them; its weights
were fitted on development pairs of several sources. Exchanging the sides exchanges the labels.

Shape suffixes: P pairs, M facets of other patterns, F features, D dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets.errors import InvalidInputError
from facets.relations.assertion import negation_cue
from facets.relations.entailment_features import PairFeatures, pair_features
from facets.relations.model import PatternEncoder
from facets.relations.patterns import tokenize_patterns
from facets.relations.thresholds import CONSTANT, FEATURES, PARAPHRASE_FEATURES, EntailmentWeights
from facets.scoring.facets import unit_facets


class EntailmentLabel(StrEnum):
    """What holds between premise and hypothesis."""

    ENTAILS = "entails"  # the premise entails the hypothesis
    ENTAILED_BY = "entailed_by"  # the hypothesis entails the premise
    PARAPHRASE = "paraphrase"  # each entails the other
    NEUTRAL = "neutral"  # neither


# Directions that are closer than this are not told apart.
_LEAST_DIFFERENCE = 0.02
# Of pairs, so many are judged by what no feature shows: nothing is surer than that.
_LAPSE = 0.06
# Patterns that stand for patterns in general.
_BACKGROUND_PATTERNS = 500
# In the order of the columns of probabilities.
LABELS = (
    EntailmentLabel.ENTAILS,
    EntailmentLabel.ENTAILED_BY,
    EntailmentLabel.PARAPHRASE,
    EntailmentLabel.NEUTRAL,
)


@dataclass(frozen=True, slots=True)
class Entailment:
    """Both directions of a pair of patterns.

    Attributes:
        premise: Normalised pattern.
        hypothesis: Normalised pattern.
        forward_score: ``asymmetric_score(premise, hypothesis)``, eq. 3.10, in ``[-1, 1]``.
        backward_score: ``asymmetric_score(hypothesis, premise)``.
        direction: Probability of ``ENTAILS`` less that of ``ENTAILED_BY``, in ``[-1, 1]``; above 0 the premise is the
            more specific pattern.
        label: The decision.
        confidence: Probability of ``label``, fitted on development data, in ``[0, 1]``.
        negation_differs: One side is negated and the other is not; the label is then ``NEUTRAL``.
    """

    premise: str
    hypothesis: str
    forward_score: float
    backward_score: float
    direction: float
    label: EntailmentLabel
    confidence: float
    negation_differs: bool


@torch.inference_mode()
def background_facets(model: PatternEncoder) -> Tensor:
    """Unit facets of the patterns that the model saw with most entity pairs, ``[M, D]``."""
    order = np.argsort(-model.table.counts, kind="stable")[:_BACKGROUND_PATTERNS]
    patterns = list(model.table.rows)
    facets = model.encode_patterns([patterns[row].split() for row in order.tolist()])
    return unit_facets(torch.from_numpy(facets)).flatten(0, 1)


def detect_entailment(
    model: PatternEncoder, premises: Sequence[str], hypotheses: Sequence[str], background_MD: Tensor
) -> list[Entailment]:
    """Whether each premise entails the hypothesis beside it, and the other way round.

    Args:
        model: Of the task relations.
        premises: Patterns.
        hypotheses: As many patterns.
        background_MD: ``background_facets`` of the model.

    Raises:
        InvalidInputError: Different lengths, or a bad pattern (``field`` is ``premises[i]`` or ``hypotheses[i]``).
        TypeError: One of them is one ``str``.
    """
    first, second = _tokenized(model, premises, hypotheses)
    if not first:
        return []
    features = pair_features(model, first, second, background_MD)
    probabilities_P4 = label_probabilities(features, model.relations.confidence.entailment)
    forward_P, backward_P = features.column("coverage")
    return [
        _result(
            premise,
            hypothesis,
            probabilities_P4[place],
            forward=float(forward_P[place]),
            backward=float(backward_P[place]),
            threshold=model.relations.confidence.entailment.threshold,
        )
        for place, (premise, hypothesis) in enumerate(zip(first, second, strict=True))
    ]


def entailment_features(
    model: PatternEncoder, premises: Sequence[str], hypotheses: Sequence[str], background_MD: Tensor
) -> PairFeatures:
    """What ``detect_entailment`` decides by.

    Raises:
        InvalidInputError, TypeError: As for ``detect_entailment``.
    """
    return pair_features(model, *_tokenized(model, premises, hypotheses), background_MD)


def label_probabilities(features: PairFeatures, weights: EntailmentWeights) -> NDArray[np.float64]:
    """Probabilities of entails, entailed by, paraphrase and neutral, ``[P, 4]``; neutral has the logit 0."""
    entails_F = np.array([weights.entails.get(name, 0.0) for name in FEATURES])
    paraphrase_G = np.array([weights.paraphrase.get(name, 0.0) for name in PARAPHRASE_FEATURES])
    constant = weights.entails.get(CONSTANT, 0.0)
    logits_P4 = np.stack(
        [
            features.forward @ entails_F + constant,
            features.backward @ entails_F + constant,
            features.symmetric @ paraphrase_G + weights.paraphrase.get(CONSTANT, 0.0),
            np.zeros(len(features.forward)),
        ],
        axis=1,
    )
    shares_P4 = np.exp(logits_P4 - logits_P4.max(axis=1, keepdims=True))
    probabilities_P4 = shares_P4 / shares_P4.sum(axis=1, keepdims=True)
    probabilities: NDArray[np.float64] = (1 - _LAPSE) * probabilities_P4 + _LAPSE / len(LABELS)
    return probabilities


def _tokenized(
    model: PatternEncoder, premises: Sequence[str], hypotheses: Sequence[str]
) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    first = tokenize_patterns(premises, model.tokenizer, path=("premises",))
    second = tokenize_patterns(hypotheses, model.tokenizer, path=("hypotheses",))
    if len(first) != len(second):
        raise InvalidInputError(
            f"must have one item for each of {len(first)} premises, got {len(second)}", path="hypotheses"
        )
    return first, second


def decided_label(shares_4: NDArray[np.float64], threshold: float) -> EntailmentLabel:
    """The label by the probabilities of all four.

    Neutral, unless one side entails the other with a probability of at least ``threshold``, paraphrases included; then
    the most likely of the other three. Where both directions are equally likely, neither is the answer.

    Example:
        >>> decided_label(np.array([0.45, 0.05, 0.1, 0.4]), 0.5), decided_label(np.array([0.45, 0.45, 0.1, 0.0]), 0.5)
        (<EntailmentLabel.ENTAILS: 'entails'>, <EntailmentLabel.PARAPHRASE: 'paraphrase'>)
    """
    entails, entailed_by, paraphrase, _ = (float(share) for share in shares_4)
    if max(entails, entailed_by) + paraphrase < threshold:
        return EntailmentLabel.NEUTRAL
    if paraphrase >= max(entails, entailed_by) or abs(entails - entailed_by) < _LEAST_DIFFERENCE:
        return EntailmentLabel.PARAPHRASE
    return EntailmentLabel.ENTAILS if entails > entailed_by else EntailmentLabel.ENTAILED_BY


def _result(
    premise: Sequence[str],
    hypothesis: Sequence[str],
    shares_4: NDArray[np.float64],
    *,
    forward: float,
    backward: float,
    threshold: float,
) -> Entailment:
    is_negated = bool(negation_cue(premise))
    differs = is_negated != bool(negation_cue(hypothesis))
    # Who was not killed was not assassinated either.
    shares = shares_4[[1, 0, 2, 3]] if is_negated else shares_4
    label = EntailmentLabel.NEUTRAL if differs else decided_label(shares, threshold)
    return Entailment(
        premise=" ".join(premise),
        hypothesis=" ".join(hypothesis),
        forward_score=forward,
        backward_score=backward,
        direction=float(shares[0] - shares[1]),
        label=label,
        confidence=float(shares[LABELS.index(label)]),
        negation_differs=differs,
    )
