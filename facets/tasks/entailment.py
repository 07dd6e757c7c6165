"""Entailment between sentence patterns, from their facets alone.

Shape suffixes: P pairs, K facets, D dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import torch
from numpy.typing import NDArray

from facets.errors import InvalidInputError
from facets.scoring.entailment import asymmetric_score
from facets.tasks.relations_interface import Calibration, RelationModel
from facets.text.patterns import tokenize_patterns
from facets.text.patterns_negation import negation_cue

__all__ = ["EntailmentArrays", "EntailmentLabel", "EntailmentResult", "detect_entailment", "entailment_arrays"]


class EntailmentLabel(StrEnum):
    """What holds between premise and hypothesis."""

    ENTAILS = "entails"  # the premise entails the hypothesis
    ENTAILED_BY = "entailed_by"  # the hypothesis entails the premise
    PARAPHRASE = "paraphrase"  # each entails the other
    NEUTRAL = "neutral"  # neither


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
        direction: ``forward - backward``, in ``[-2, 2]``; above 0 the premise is the more specific pattern.
        label: The decision.
        confidence: Calibrated probability of ``label``, in ``[0, 1]``.
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
        probabilities: Of the labels in their order, ``[P, 4]``.
    """

    forward: NDArray[np.float32]
    backward: NDArray[np.float32]
    probabilities: NDArray[np.float32]


@torch.inference_mode()
def entailment_arrays(
    model: RelationModel, premises: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]]
) -> EntailmentArrays:
    """Scores tokenized pairs in both directions."""
    facets = model.encode_patterns([*premises, *hypotheses])
    first_PKD, second_PKD = torch.from_numpy(facets[: len(premises)]), torch.from_numpy(facets[len(premises) :])
    forward_P = asymmetric_score(first_PKD, second_PKD).numpy()
    backward_P = asymmetric_score(second_PKD, first_PKD).numpy()
    return EntailmentArrays(
        forward_P, backward_P, label_probabilities(forward_P, backward_P, model.relations.calibration)
    )


def label_probabilities(
    forward_P: NDArray[np.float32], backward_P: NDArray[np.float32], calibration: Calibration
) -> NDArray[np.float32]:
    """Softmax over the labels, ``[P, 4]``: linear in score and direction, the same for both ways round."""
    direction_P = forward_P - backward_P
    score, direction, shift = calibration.entailment_weights
    alike, difference, alike_shift = calibration.paraphrase_weights
    logits_P4 = np.stack(
        [
            score * forward_P + direction * direction_P + shift,
            score * backward_P - direction * direction_P + shift,
            alike * np.minimum(forward_P, backward_P) + difference * np.abs(direction_P) + alike_shift,
            np.zeros_like(forward_P),
        ],
        axis=1,
    )
    shares_P4 = np.exp(logits_P4 - logits_P4.max(axis=1, keepdims=True))
    return (shares_P4 / shares_P4.sum(axis=1, keepdims=True)).astype(np.float32)


def detect_entailment(
    model: RelationModel, premises: Sequence[str], hypotheses: Sequence[str]
) -> list[EntailmentResult]:
    """Whether each premise entails the hypothesis beside it, and the other way round.

    Args:
        model: Of the task relations.
        premises: Patterns.
        hypotheses: As many patterns.

    Raises:
        InvalidInputError: Different lengths, or a bad pattern (``field`` is ``premises[i]`` or ``hypotheses[i]``).
        TypeError: One of them is one ``str``.
    """
    first = tokenize_patterns(premises, model.tokenizer, field="premises")
    second = tokenize_patterns(hypotheses, model.tokenizer, field="hypotheses")
    if len(first) != len(second):
        raise InvalidInputError(
            f"hypotheses must have one item for each of {len(first)} premises, got {len(second)}", field="hypotheses"
        )
    if not first:
        return []
    arrays = entailment_arrays(model, first, second)
    return [_result(place, first[place], second[place], arrays) for place in range(len(first))]


def _result(
    place: int, premise: Sequence[str], hypothesis: Sequence[str], arrays: EntailmentArrays
) -> EntailmentResult:
    differs = bool(negation_cue(premise)) != bool(negation_cue(hypothesis))
    best = int(arrays.probabilities[place].argmax())
    forward, backward = float(arrays.forward[place]), float(arrays.backward[place])
    return EntailmentResult(
        premise=" ".join(premise),
        hypothesis=" ".join(hypothesis),
        forward=forward,
        backward=backward,
        direction=forward - backward,
        label=EntailmentLabel.NEUTRAL if differs else _LABELS[best],
        confidence=1.0 if differs else float(arrays.probabilities[place, best]),
        negation_differs=differs,
    )
