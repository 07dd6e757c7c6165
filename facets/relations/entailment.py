"""Entailment between sentence patterns, from their facets alone.

The evidence of a pair is its asymmetric scores both ways (eq. 3.10), and how much better each side covers patterns in
general: against a background, since a pattern that covers everything tells little. A softmax whose weights were fitted
on development pairs turns these into labels: alike in both directions is a paraphrase, not entailment.

Shape suffixes: P pairs, K facets, M facets of other patterns, F features, D dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets.errors import InvalidInputError
from facets.relations.confidence import Confidence
from facets.relations.contract import PatternEncoder
from facets.relations.negation import negation_cue
from facets.relations.patterns import tokenize_patterns
from facets.relations.scoring import asymmetric_score, generality_score
from facets.scoring.facet_match import unit_facets

__all__ = [
    "EntailmentArrays",
    "EntailmentLabel",
    "EntailmentResult",
    "background_facets",
    "detect_entailment",
    "entailment_arrays",
    "label_features",
    "label_probabilities",
]


class EntailmentLabel(StrEnum):
    """What holds between premise and hypothesis."""

    ENTAILS = "entails"  # the premise entails the hypothesis
    ENTAILED_BY = "entailed_by"  # the hypothesis entails the premise
    PARAPHRASE = "paraphrase"  # each entails the other
    NEUTRAL = "neutral"  # neither


# Patterns that stand for patterns in general.
_BACKGROUND_PATTERNS = 500
_LABELS = (
    EntailmentLabel.ENTAILS,
    EntailmentLabel.ENTAILED_BY,
    EntailmentLabel.PARAPHRASE,
    EntailmentLabel.NEUTRAL,
)


@dataclass(frozen=True, slots=True)
class EntailmentResult:
    """Both directions of a pair of patterns.

    Attributes:
        premise: Normalised pattern.
        hypothesis: Normalised pattern.
        forward: ``asymmetric_score(premise, hypothesis)``, eq. 3.10, in ``[-1, 1]``.
        backward: ``asymmetric_score(hypothesis, premise)``.
        direction: Probability of ``ENTAILS`` less that of ``ENTAILED_BY``, in ``[-1, 1]``; above 0 the premise is the
            more specific pattern.
        label: The decision.
        confidence: Probability of ``label``, fitted on development data, in ``[0, 1]``.
        negation_differs: One side is negated and the other is not; the label is then ``NEUTRAL``.
    """

    premise: str
    hypothesis: str
    forward: float
    backward: float
    direction: float
    label: EntailmentLabel
    confidence: float
    negation_differs: bool


@dataclass(frozen=True, slots=True)
class EntailmentArrays:
    """Scores of pairs, ``[P]`` float32 each.

    Attributes:
        forward: ``asymmetric_score(premise, hypothesis)``.
        backward: ``asymmetric_score(hypothesis, premise)``.
        generality: ``generality_score`` of the premise less that of the hypothesis.
    """

    forward: NDArray[np.float32]
    backward: NDArray[np.float32]
    generality: NDArray[np.float32]


@torch.inference_mode()
def background_facets(model: PatternEncoder) -> Tensor:
    """Unit facets of the patterns that the model saw with most entity pairs, ``[M, D]``."""
    order = np.argsort(-model.table.counts, kind="stable")[:_BACKGROUND_PATTERNS]
    patterns = list(model.table.rows)
    facets = model.encode_patterns([patterns[row].split() for row in order.tolist()])
    return unit_facets(torch.from_numpy(facets)).flatten(0, 1)


@torch.inference_mode()
def entailment_arrays(
    model: PatternEncoder,
    premises: Sequence[Sequence[str]],
    hypotheses: Sequence[Sequence[str]],
    background_MD: Tensor,
) -> EntailmentArrays:
    """Scores tokenized pairs in both directions."""
    facets_BKD = torch.from_numpy(model.encode_patterns([*premises, *hypotheses]))
    first_PKD, second_PKD = facets_BKD[: len(premises)], facets_BKD[len(premises) :]
    generality_B = generality_score(facets_BKD, background_MD).numpy()
    return EntailmentArrays(
        forward=asymmetric_score(first_PKD, second_PKD).numpy(),
        backward=asymmetric_score(second_PKD, first_PKD).numpy(),
        generality=generality_B[: len(premises)] - generality_B[len(premises) :],
    )


def label_features(arrays: EntailmentArrays) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Features of the labels, ``[P, 5]``, the same both ways round; of the direction, ``[P, 2]``, which change sign."""
    similarity_P = (arrays.forward + arrays.backward).astype(np.float64) / 2
    direction_P2 = np.stack([arrays.forward - arrays.backward, arrays.generality], axis=1).astype(np.float64)
    sizes_P2 = np.abs(direction_P2)
    labels_P5 = np.stack(
        [similarity_P, similarity_P**2, sizes_P2[:, 0], sizes_P2[:, 1], np.ones_like(similarity_P)], axis=1
    )
    return labels_P5, direction_P2


def label_probabilities(arrays: EntailmentArrays, confidence: Confidence) -> NDArray[np.float64]:
    """Probabilities of the labels in their order, ``[P, 4]``.

    A softmax tells entailment, paraphrase and neither apart; a logistic curve of the direction, which has no constant,
    splits entailment into its two directions. So exchanging the sides exchanges the first two columns.
    """
    features_P5, direction_P2 = label_features(arrays)
    logits_P3 = np.stack(
        [
            features_P5 @ np.array(confidence.entailment_weights),
            features_P5 @ np.array(confidence.paraphrase_weights),
            np.zeros(len(features_P5)),
        ],
        axis=1,
    )
    shares_P3 = np.exp(logits_P3 - logits_P3.max(axis=1, keepdims=True))
    shares_P3 /= shares_P3.sum(axis=1, keepdims=True)
    forward_P = 1.0 / (1.0 + np.exp(-direction_P2 @ np.array(confidence.direction_weights)))
    entailed_P = shares_P3[:, 0]
    return np.stack([entailed_P * forward_P, entailed_P * (1 - forward_P), shares_P3[:, 1], shares_P3[:, 2]], axis=1)


def detect_entailment(
    model: PatternEncoder, premises: Sequence[str], hypotheses: Sequence[str], background_MD: Tensor
) -> list[EntailmentResult]:
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
    first = tokenize_patterns(premises, model.tokenizer, path=("premises",))
    second = tokenize_patterns(hypotheses, model.tokenizer, path=("hypotheses",))
    if len(first) != len(second):
        raise InvalidInputError(
            f"must have one item for each of {len(first)} premises, got {len(second)}", path="hypotheses"
        )
    if not first:
        return []
    arrays = entailment_arrays(model, first, second, background_MD)
    probabilities_P4 = label_probabilities(arrays, model.relations.confidence)
    return [
        _result(
            premise, hypothesis, float(arrays.forward[place]), float(arrays.backward[place]), probabilities_P4[place]
        )
        for place, (premise, hypothesis) in enumerate(zip(first, second, strict=True))
    ]


def _result(
    premise: Sequence[str], hypothesis: Sequence[str], forward: float, backward: float, shares_4: NDArray[np.float64]
) -> EntailmentResult:
    differs = bool(negation_cue(premise)) != bool(negation_cue(hypothesis))
    best = int(shares_4.argmax())
    return EntailmentResult(
        premise=" ".join(premise),
        hypothesis=" ".join(hypothesis),
        forward=forward,
        backward=backward,
        direction=float(shares_4[0] - shares_4[1]),
        label=EntailmentLabel.NEUTRAL if differs else _LABELS[best],
        confidence=1.0 if differs else float(shares_4[best]),
        negation_differs=differs,
    )
