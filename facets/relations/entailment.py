"""Entailment between sentence patterns, in both directions.

A pair has features in each direction (``pair_features``). A softmax over four labels weights them; its weights were
fitted on development pairs from several sources. The table of relations adds contradictions. Swapping the sides swaps
the directions of the labels.
Shape suffixes: P pairs, B patterns, K facets, M facets of other patterns, F features, G features of paraphrases, D
dimensions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import torch
from torch import Tensor

from facets.arrays import Doubles
from facets.errors import InvalidInputError
from facets.language.interruption import check_interrupted
from facets.language.wordnet import WordNet, wordnet
from facets.model.contract import check_readable
from facets.relations.assertion import negation_cue
from facets.relations.frames import Frames, frames
from facets.relations.model import RelationModel
from facets.relations.patterns import ARG1, ARG2, tokenize_patterns
from facets.relations.scoring import asymmetric_score, generality_score
from facets.relations.tables import CONSTANT, FEATURES, PARAPHRASE_FEATURES, EntailmentWeights
from facets.relations.wording import Wording, read_wording
from facets.scoring import unit_facets

_GENERALITY_UNIT = 0.1
_MIN_REASON = 0.5  # how closely two words must be related to be given as a reason


@dataclass(frozen=True, slots=True)
class PairFeatures:
    """Features of pairs."""

    forward: Doubles  # "the premise entails the hypothesis", `[P, F]`, in the order of `FEATURES`
    backward: Doubles  # the same with the sides exchanged

    @property
    def symmetric(self) -> Doubles:
        """Means over both directions, then absolute differences, ``[P, 2 F]``."""
        return np.concatenate(
            [(self.forward + self.backward) / 2, np.abs(self.forward - self.backward)], axis=1, dtype=np.float64
        )

    def column(self, name: str) -> tuple[Doubles, Doubles]:
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
    exchanged = premise.head_acts != hypothesis.head_acts and premise.frame == hypothesis.frame
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


class EntailmentLabel(StrEnum):
    """What holds between premise and hypothesis."""

    ENTAILS = "entails"  # the premise entails the hypothesis
    ENTAILED_BY = "entailed_by"  # the hypothesis entails the premise
    PARAPHRASE = "paraphrase"  # each entails the other
    NEUTRAL = "neutral"  # neither
    CONTRADICTS = "contradicts"  # both cannot hold


_MIN_DIFFERENCE = 0.02  # scores of the two directions that are closer than this count as equal
_LAPSE = 0.06  # share of pairs judged by something that no feature captures; bounds every probability
_BACKGROUND_PATTERNS = 500
_NEGATED = "one is negated and the other is not"
LABELS = tuple(EntailmentLabel)[:4]  # in the order of the columns of probabilities
_REVERSED = {EntailmentLabel.ENTAILS: EntailmentLabel.ENTAILED_BY, EntailmentLabel.ENTAILED_BY: EntailmentLabel.ENTAILS}


@dataclass(frozen=True, slots=True)
class Entailment:
    """Entailment of a pair of patterns, in both directions."""

    premise: str  # normalised pattern
    hypothesis: str  # normalised pattern
    forward_score: float  # probability that the hypothesis follows from the premise, paraphrases included
    backward_score: float  # probability that the premise follows from the hypothesis, paraphrases included
    direction: float  # probability of `ENTAILS` minus that of `ENTAILED_BY`; above 0 the premise is more specific
    label: EntailmentLabel  # the decision
    confidence: float  # probability of `label`, fitted on development data, in `[0, 1]`
    negation_differs: bool  # one side is negated and the other is not
    facet_score: float  # eq. 3.11 of the facets of both sides, in `[-1, 1]`
    reason: str  # brief reason: `buy, so own`; empty if only similarity decides


@torch.inference_mode()
def background_facets(model: RelationModel) -> Tensor:
    """Unit facets of the most frequent training patterns, ``[M, D]``."""
    order = np.argsort(-model.table.counts, kind="stable")[:_BACKGROUND_PATTERNS]
    patterns = list(model.table.rows)
    facets = model.encode_patterns([patterns[row].split() for row in order.tolist()])
    return unit_facets(torch.from_numpy(facets)).flatten(0, 1)


def detect_entailment(
    model: RelationModel, premises: Sequence[str], hypotheses: Sequence[str], background_MD: Tensor
) -> list[Entailment]:
    """See ``RelationEngine.entailment``; ``background_MD``: ``background_facets`` of the model."""
    first, second = tokenize_pairs(model, premises, hypotheses)
    if not first:
        return []
    # A negated pattern is compared as its affirmative form.
    features = pair_features(model, list(map(_affirmed, first)), list(map(_affirmed, second)), background_MD)
    weights = model.relations.confidence.entailment
    probabilities_P4 = label_probabilities(features, weights)
    forward_P, backward_P = features.column("coverage")
    # If the table says that each implies the other, neither is more specific, whatever the other features say. Only
    # the label depends on this: scores that ignore it rank pairs better.
    both_implied_P = np.minimum(*features.column("implied"))
    facet_scores = ((forward_P + backward_P) / 2).tolist()
    pairs = zip(first, second, probabilities_P4, both_implied_P, facet_scores, strict=True)
    return [_result(*pair, threshold=weights.threshold) for pair in pairs]


def label_probabilities(features: PairFeatures, weights: EntailmentWeights) -> Doubles:
    """Probabilities of ``LABELS``, ``[P, 4]``; neutral has the logit 0."""
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
    probabilities: Doubles = (1 - _LAPSE) * probabilities_P4 + _LAPSE / len(LABELS)
    return probabilities


def decided_label(shares_4: Doubles, threshold: float) -> EntailmentLabel:
    """The label for the probabilities of ``LABELS``.

    Neutral, unless one direction of entailment (including paraphrase) has at least the probability ``threshold``; then
    the most likely other label, or paraphrase if both directions are equally likely.
    """
    entails, entailed_by, paraphrase, _ = (float(share) for share in shares_4)
    if max(entails, entailed_by) + paraphrase < threshold:
        return EntailmentLabel.NEUTRAL
    if paraphrase >= max(entails, entailed_by) or abs(entails - entailed_by) < _MIN_DIFFERENCE:
        return EntailmentLabel.PARAPHRASE
    return EntailmentLabel.ENTAILS if entails > entailed_by else EntailmentLabel.ENTAILED_BY


def tokenize_pairs(
    model: RelationModel, premises: Sequence[str], hypotheses: Sequence[str]
) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Tokens of patterns that form pairs; raises InvalidInputError for a bad pattern or different lengths."""
    first = tokenize_patterns(premises, model.tokenizer, path=("premises",))
    second = tokenize_patterns(hypotheses, model.tokenizer, path=("hypotheses",))
    if len(first) != len(second):
        rule = f"must have one item for each of {len(first)} premises, got {len(second)}"
        raise InvalidInputError(rule, path="hypotheses")
    for name, patterns in (("premises", premises), ("hypotheses", hypotheses)):
        for position, pattern in enumerate(patterns):
            if not pattern.isascii():
                check_readable(model, pattern.replace(ARG1, "").replace(ARG2, ""), (name, position))
    return first, second


def _affirmed(tokens: tuple[str, ...]) -> tuple[str, ...]:
    """A pattern without its negation cue."""
    cue = negation_cue(tokens)
    index = tokens.index(cue) if cue in tokens else len(tokens)
    return tokens[:index] + tokens[index + 1 :]


def _result(
    premise: tuple[str, ...],
    hypothesis: tuple[str, ...],
    shares_4: Doubles,
    both_implied: float,
    facet_score: float,
    *,
    threshold: float,
) -> Entailment:
    first, second = (read_wording(tokens, wordnet()) for tokens in (premise, hypothesis))
    affirmed = [read_wording(_affirmed(tokens), wordnet()) for tokens in (premise, hypothesis)]
    exclusion, reason = frames().contradiction(affirmed[0], affirmed[1])
    exclusion *= 1 - _LAPSE
    if first.is_negated != second.is_negated:
        # "murdered" contradicts "not killed"; "alive" entails "not dead".
        negated = int(first.is_negated)
        contradiction, reason = float(shares_4[negated] + shares_4[2]) * (1 - exclusion), _NEGATED
        shares = np.zeros(len(LABELS))
        shares[negated] = exclusion * (1 - contradiction)
        shares[3] = 1 - contradiction - shares[negated]
    elif first.is_negated:
        # "not killed" entails "not murdered"; "not open" and "not closed" do not contradict each other.
        contradiction, shares = 0.0, shares_4[[1, 0, 2, 3]]
    else:
        contradiction, shares = exclusion, shares_4 * (1 - exclusion)
    label_shares = shares + both_implied * np.array([-shares[0], -shares[1], shares[0] + shares[1], 0.0])
    is_contradiction = contradiction >= threshold
    label = EntailmentLabel.CONTRADICTS if is_contradiction else decided_label(label_shares, threshold)
    entails, entailed_by, paraphrase, _ = (float(share) for share in shares)
    return Entailment(
        premise=" ".join(premise),
        hypothesis=" ".join(hypothesis),
        forward_score=entails + paraphrase,
        backward_score=entailed_by + paraphrase,
        direction=entails - entailed_by,
        label=label,
        confidence=contradiction if is_contradiction else float(label_shares[LABELS.index(label)]),
        negation_differs=first.is_negated != second.is_negated,
        facet_score=facet_score,
        reason=reason if is_contradiction else _reason(first, second, label),
    )


def _reason(first: Wording, second: Wording, label: EntailmentLabel) -> str:
    """Support for a label from the table of relations or from single words; empty if there is none."""
    if first.is_negated != second.is_negated:
        return _NEGATED
    if first.is_negated:
        first, second = replace(first, is_negated=False), replace(second, is_negated=False)
        reason = _reason(first, second, _REVERSED.get(label, label))
        return f"both are negated; {reason}" if reason else ""
    if label is EntailmentLabel.ENTAILED_BY:
        return _reason(second, first, EntailmentLabel.ENTAILS)
    forward, backward = frames().compare(first, second), frames().compare(second, first)
    if label is EntailmentLabel.NEUTRAL:
        is_known = forward.apart > 0 and backward.apart > 0
        return (forward.reason if is_known else "") or word_reason(first, second, is_entailed=False)
    is_known = forward.implied > 0 and (backward.implied > 0 or label is EntailmentLabel.ENTAILS)
    return forward.reason if is_known else word_reason(first, second, is_entailed=True)
