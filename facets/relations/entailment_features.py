"""Features of a pair of patterns: what facets, sentence vectors and words say about entailment.

Every feature has a direction: it is computed for "the premise entails the hypothesis", and again with the sides
exchanged. A feature of paraphrases is the mean or the absolute difference of both directions.

Shape suffixes: P pairs, F features, B patterns, K facets, M facets of other patterns, D dimensions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets.language.interruption import check_interrupted
from facets.language.wordnet import WordNet, wordnet
from facets.relations.frames import Frames, frames
from facets.relations.model import RelationModel
from facets.relations.scoring import asymmetric_score, generality_score
from facets.relations.thresholds import FEATURES
from facets.relations.wording import Wording, read_wording

_GENERALITY_UNIT = 0.1
_MIN_REASON = 0.5  # how closely two words must be related to be given as a reason


@dataclass(frozen=True, slots=True)
class PairFeatures:
    """Features of pairs."""

    forward: NDArray[np.float64]  # "the premise entails the hypothesis", `[P, F]`, in the order of `FEATURES`
    backward: NDArray[np.float64]  # the same with the sides exchanged

    @property
    def symmetric(self) -> NDArray[np.float64]:
        """Means over both directions, then absolute differences, ``[P, 2 F]``."""
        return np.concatenate(
            [(self.forward + self.backward) / 2, np.abs(self.forward - self.backward)], axis=1, dtype=np.float64
        )

    def column(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """One feature by name, forward and backward, ``[P]`` each."""
        column = FEATURES.index(name)
        return self.forward[:, column], self.backward[:, column]


@torch.inference_mode()
def pair_features(
    model: RelationModel,
    premises: Sequence[tuple[str, ...]],
    hypotheses: Sequence[tuple[str, ...]],
    background_MD: Tensor,
) -> PairFeatures:
    """Features of tokenized pairs, at least one.

    ``background_MD``: unit facets of many other patterns, ``[M, D]``.
    """
    rows = {pattern: row for row, pattern in enumerate(dict.fromkeys([*premises, *hypotheses]))}
    patterns = list(rows)
    first_P, second_P = ([rows[pattern] for pattern in side] for side in (premises, hypotheses))
    facets_BKD = torch.from_numpy(model.encode_patterns(patterns))
    generality_B = generality_score(facets_BKD, background_MD).numpy()
    generality_P = (generality_B[second_P] - generality_B[first_P]) / _GENERALITY_UNIT
    vectors_BD = model.pattern_vectors(patterns)
    similarity_P = np.einsum("pd,pd->p", vectors_BD[first_P], vectors_BD[second_P]).clip(0.0, 1.0)
    forward_P = asymmetric_score(facets_BKD[first_P], facets_BKD[second_P]).numpy()
    backward_P = asymmetric_score(facets_BKD[second_P], facets_BKD[first_P]).numpy()
    words = word_features(premises, hypotheses)
    return PairFeatures(
        np.column_stack([forward_P, generality_P, similarity_P, words.forward]).astype(np.float64),
        np.column_stack([backward_P, -generality_P, similarity_P, words.backward]).astype(np.float64),
    )


def word_features(premises: Sequence[tuple[str, ...]], hypotheses: Sequence[tuple[str, ...]]) -> PairFeatures:
    """The features that need no model: from words, WordNet and the table of relations."""
    words, table = wordnet(), frames()
    wordings = {pattern: read_wording(pattern, words) for pattern in {*premises, *hypotheses}}
    pairs = [(wordings[first], wordings[second]) for first, second in zip(premises, hypotheses, strict=True)]
    forward = [_compared(premise, hypothesis, words, table) for premise, hypothesis in pairs]
    backward = [_compared(hypothesis, premise, words, table) for premise, hypothesis in pairs]
    return PairFeatures(np.array(forward, dtype=np.float64), np.array(backward, dtype=np.float64))


def _compared(premise: Wording, hypothesis: Wording, words: WordNet, table: Frames) -> list[float]:
    """The word features of one direction, in the order of ``WORD_FEATURES``."""
    check_interrupted()
    opposition = _highest(premise, hypothesis, words.opposition)
    is_mutual = premise.is_mutual or hypothesis.is_mutual
    exchanged = premise.head_acts != hypothesis.head_acts and premise.frame == hypothesis.frame and not is_mutual
    finding, reverse = table.compare(premise, hypothesis), table.compare(hypothesis, premise)
    # Single words do not override what the table implies.
    unread = 1.0 - max(finding.implied, reverse.implied)
    same_words = min(_covered(premise, hypothesis, words.sameness), _covered(hypothesis, premise, words.sameness))

    return [
        (1.0 - 0.5 * min(finding.implied, reverse.implied)) * _highest(premise, hypothesis, words.hypernymy),
        same_words,
        float(premise.is_hedged and not hypothesis.is_hedged),
        unread * _highest(premise, hypothesis, words.sameness) if exchanged and not opposition else 0.0,
        0.0 if exchanged else unread * opposition,
        opposition if exchanged else 0.0,
        float(premise.is_negated != hypothesis.is_negated),
        float(premise.is_doubted != hypothesis.is_doubted),
        finding.implied,
        finding.apart,
    ]


def word_reason(premise: Wording, hypothesis: Wording, *, is_entailed: bool) -> str:
    """Two words that explain why the hypothesis does or does not follow; empty if there are none."""
    words = wordnet()
    pairs = [(word, other) for word in premise.content for other in hypothesis.content]
    kinds = [(words.opposition, "{0} and {1} are opposites")]
    if is_entailed:
        kinds = [(words.hypernymy, "{1} is more general than {0}"), (words.sameness, "{0} and {1} say the same")]
    for compare, sentence in kinds:
        strength, pair = max(((compare(*pair), pair) for pair in pairs), default=(0.0, ("", "")))
        if strength > _MIN_REASON and pair[0] != pair[1]:
            return sentence.format(*pair)
    return ""


def _highest(first: Wording, second: Wording, compare: Callable[[str, str], float]) -> float:
    return max((compare(word, other) for word in first.content for other in second.content), default=0.0)


def _covered(first: Wording, second: Wording, compare: Callable[[str, str], float]) -> float:
    """Mean over the words of the second of their best match in the first."""
    if not second.content:
        return 1.0
    best = [max((compare(word, other) for word in first.content), default=0.0) for other in second.content]
    return sum(best) / len(best)
