"""Features of a pair of patterns: what its facets, its meaning as a whole and its words say about entailment.

Every feature has a direction: it is computed for "the premise entails the hypothesis", and again with the sides
exchanged. A feature of paraphrases is the mean or the difference of both, so exchanging the sides cannot change it.

Shape suffixes: P pairs, F features, K facets, M facets of other patterns.
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
_HYPERNYM_SHARE = 0.8  # of a more specific word, as of the same word


@dataclass(frozen=True, slots=True)
class PairFeatures:
    """Features of pairs."""

    forward: NDArray[np.float64]  # "The premise entails the hypothesis", `[P, F]` float64, in the order of `FEATURES`
    backward: NDArray[np.float64]  # the same with the sides exchanged

    @property
    def symmetric(self) -> NDArray[np.float64]:
        """Means of both directions, then the sizes of their differences, ``[P, 2 F]``."""
        return np.concatenate(
            [(self.forward + self.backward) / 2, np.abs(self.forward - self.backward)], axis=1, dtype=np.float64
        )

    def column(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """One feature by name, ``[P]``, forward and backward."""
        # The features that need no model are the last ones, and may stand alone.
        place = FEATURES.index(name) - len(FEATURES) + self.forward.shape[1]
        return self.forward[:, place], self.backward[:, place]


@torch.inference_mode()
def pair_features(
    model: RelationModel,
    premises: Sequence[tuple[str, ...]],
    hypotheses: Sequence[tuple[str, ...]],
    background_MD: Tensor,
) -> PairFeatures:
    """Features of tokenized pairs; each distinct pattern is encoded once.

    ``premises``: tokenized patterns, at least one. ``background_MD``: unit facets of patterns in general, ``[M, D]``.
    """
    rows = {pattern: row for row, pattern in enumerate(dict.fromkeys([*premises, *hypotheses]))}
    patterns = list(rows)
    first_P, second_P = ([rows[pattern] for pattern in side] for side in (premises, hypotheses))
    facets_BKD = torch.from_numpy(model.encode_patterns(patterns))
    generality_B = generality_score(facets_BKD, background_MD).numpy()
    vectors_BD = model.pattern_vectors(patterns)
    similarity_P = np.einsum("pd,pd->p", vectors_BD[first_P], vectors_BD[second_P]).clip(0.0, 1.0)
    coverage_P2 = np.stack(
        [
            asymmetric_score(facets_BKD[first_P], facets_BKD[second_P]).numpy(),
            asymmetric_score(facets_BKD[second_P], facets_BKD[first_P]).numpy(),
        ],
        axis=1,
    )
    generality_P = (generality_B[second_P] - generality_B[first_P]) / _GENERALITY_UNIT
    words = word_features(premises, hypotheses)
    forward = [coverage_P2[:, 0], generality_P, similarity_P]
    backward = [coverage_P2[:, 1], -generality_P, similarity_P]
    return PairFeatures(
        np.column_stack([*forward, words.forward]).astype(np.float64),
        np.column_stack([*backward, words.backward]).astype(np.float64),
    )


def word_features(premises: Sequence[tuple[str, ...]], hypotheses: Sequence[tuple[str, ...]]) -> PairFeatures:
    """The features that need no model, from the words, WordNet and the table of relations; from ``hypernym`` on."""
    words, table = wordnet(), frames()
    wordings = {pattern: read_wording(pattern, words) for pattern in {*premises, *hypotheses}}
    pairs = [(wordings[first], wordings[second]) for first, second in zip(premises, hypotheses, strict=True)]
    forward = [_compared(premise, hypothesis, words, table) for premise, hypothesis in pairs]
    backward = [_compared(hypothesis, premise, words, table) for premise, hypothesis in pairs]
    return PairFeatures(np.array(forward, dtype=np.float64), np.array(backward, dtype=np.float64))


def _compared(premise: Wording, hypothesis: Wording, words: WordNet, table: Frames) -> list[float]:
    """The features from ``hypernym`` on."""
    check_interrupted()
    same = _highest(premise, hypothesis, words.sameness)
    opposition = _highest(premise, hypothesis, words.opposition)
    is_mutual = premise.is_mutual or hypothesis.is_mutual
    exchanged = premise.head_acts != hypothesis.head_acts and premise.frame == hypothesis.frame and not is_mutual
    finding = table.compare(premise, hypothesis)
    # What the table has read is not doubted by single words.
    reverse = table.compare(hypothesis, premise)
    unread = 1.0 - max(finding.implied, reverse.implied)

    def says(word: str, other: str) -> float:
        return max(words.sameness(word, other), _HYPERNYM_SHARE * words.hypernymy(word, other))

    return [
        (1.0 - 0.5 * min(finding.implied, reverse.implied)) * _highest(premise, hypothesis, words.hypernymy),
        _covered(premise, hypothesis, says),
        min(_covered(premise, hypothesis, words.sameness), _covered(hypothesis, premise, words.sameness)),
        float(premise.is_hedged and not hypothesis.is_hedged),
        unread * same if exchanged and not opposition else 0.0,
        0.0 if exchanged else unread * opposition,
        opposition if exchanged else 0.0,
        float(premise.is_negated != hypothesis.is_negated),
        float(premise.is_doubted != hypothesis.is_doubted),
        finding.implied,
        finding.apart,
    ]


_TOLD_FROM = 0.5  # of two words, to be a reason


def word_reason(premise: Wording, hypothesis: Wording, *, is_entailed: bool) -> str:
    """Two words by which the hypothesis follows, or by which it does not: ``killed is more general than murdered``.

    Example:
        >>> words = wordnet()
        >>> first, second = (read_wording(f"$ARG1 {verb} $ARG2".split(), words) for verb in ("strolled", "walked"))
        >>> word_reason(first, second, is_entailed=True)
        'walked is more general than strolled'
    """
    words = wordnet()
    pairs = [(word, other) for word in premise.content for other in hypothesis.content]
    kinds = [(words.opposition, "{0} and {1} are opposites")]
    if is_entailed:
        kinds = [(words.hypernymy, "{1} is more general than {0}"), (words.sameness, "{0} and {1} say the same")]
    for compare, sentence in kinds:
        strength, pair = max(((compare(*pair), pair) for pair in pairs), default=(0.0, ("", "")))
        if strength > _TOLD_FROM and pair[0] != pair[1]:
            return sentence.format(*pair)
    return ""


def _highest(first: Wording, second: Wording, compare: Callable[[str, str], float]) -> float:
    return max((compare(word, other) for word in first.content for other in second.content), default=0.0)


def _covered(first: Wording, second: Wording, compare: Callable[[str, str], float]) -> float:
    """Mean over the second's words of the first's best."""
    if not second.content:
        return 1.0
    best = [max((compare(word, other) for word in first.content), default=0.0) for other in second.content]
    return sum(best) / len(best)
