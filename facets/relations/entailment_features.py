"""Features of a pair of patterns: what its facets, its meaning as a whole and its words say about entailment.

Every feature has a direction: it is computed for "the premise entails the hypothesis", and again with the sides
exchanged. A feature of paraphrases is the mean or the difference of both, so exchanging the sides cannot change it.
Wording is not parsed: patterns are short, and lists of function words do.

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
from facets.relations.assertion import MODALS, negation_cue
from facets.relations.model import PatternEncoder
from facets.relations.patterns import ARG1, ARG2, ENTITY
from facets.relations.scoring import asymmetric_score, generality_score
from facets.relations.thresholds import FEATURES, WORD_FEATURES

# Features that are multiplied by the similarity: what words say about unlike patterns is noise.
_WITH_SIMILARITY = ("freed",)
_GENERALITY_UNIT = 0.1
_HYPERNYM_SHARE = 0.8  # of a more specific word, as of the same word
_MAX_CONTENT = 64  # each is compared with each of another pattern; patterns of people have fewer than ten
_BE = frozenset("is are was were be been being am 's 're".split())
_AUXILIARIES = _BE | frozenset("have has had having do does did done get got gets 've 'd".split())
_DOUBTS = frozenset("allegedly reportedly perhaps possibly probably alleged rumored rumoured supposedly likely".split())
# With "to": what was tried or planned need not have happened.
_ATTEMPTS = frozenset(
    "try tries tried trying attempt attempts attempted attempting plan plans planned want wants wanted hope hopes "
    "hoped intend intends intended seek seeks sought offer offers offered threaten threatened agree agreed expect "
    "expected refuse refused fail failed propose proposed prepare prepared decide decided claim claims claimed "
    "believed said alleged suspected accused thought".split()
)
_PREPOSITIONS = frozenset(
    "in on at of by to from with for into onto against over under about between among as near through during within "
    "around across after before upon off out up down via without toward towards inside outside behind beyond".split()
)
_FILLERS = frozenset(
    "a an the this that these those his her its their some any one another first also now later then however only just "
    "very more most much widely often usually commonly generally eventually soon finally once again still already even "
    "so and or who which whom whose it he she they there not n't".split()
)
# Both arguments stand alike, so that exchanging them changes nothing.
_MUTUAL = frozenset(
    "married marry marries border borders bordered bordering met meet meets neighbor neighbour neighboring sibling "
    "siblings cousin cousins spouse partner partners twin twins adjacent similar equal differs differ different ally "
    "allies allied related relative relatives friend friends colleague colleagues between".split()
)


@dataclass(frozen=True, slots=True)
class Wording:
    """The surface of a pattern.

    Attributes:
        content: Words that carry meaning, in order; the first 64.
        head_acts: ``$ARG1`` is what a verb in the active voice would start with.
        frame: The preposition after a participle, unless it is ``by``: ``of`` in ``is made of``. Who acts can be
            compared between patterns of one frame only.
        is_mutual: A word says the same of both arguments.
        is_hedged: It may, might, was tried or is said.
        is_negated: A cue negates it.
    """

    content: tuple[str, ...]
    head_acts: bool
    frame: str
    is_mutual: bool
    is_hedged: bool
    is_negated: bool


def read_wording(tokens: Sequence[str], words: WordNet) -> Wording:
    """The surface of a tokenized pattern.

    Args:
        tokens: In lower case, placeholders kept.
        words: Tells verbs.

    Example:
        >>> from facets.language.wordnet import wordnet
        >>> wording = read_wording("$ARG1 may have been killed by $ARG2".split(), wordnet())
        >>> wording.content, wording.head_acts, wording.is_hedged
        (('killed',), False, True)
    """
    starts_with_head = tokens.index(ARG1) < tokens.index(ARG2)
    spoken = [token for token in tokens if token not in (ARG1, ARG2, ENTITY)]
    content = tuple(token for token in spoken if _carries_meaning(token))[:_MAX_CONTENT]
    preposition = _after_participle(tokens, words)
    hedged = not MODALS.isdisjoint(spoken) or not _DOUBTS.isdisjoint(spoken)
    return Wording(
        content=content,
        head_acts=starts_with_head != (preposition == "by"),
        frame="" if preposition == "by" else preposition,
        is_mutual=not _MUTUAL.isdisjoint(spoken),
        is_hedged=hedged or ("to" in spoken and not _ATTEMPTS.isdisjoint(spoken)),
        is_negated=bool(negation_cue(tokens)),
    )


def _carries_meaning(token: str) -> bool:
    is_function_word = token in _AUXILIARIES or token in MODALS or token in _PREPOSITIONS or token in _FILLERS
    return token.isalpha() and not is_function_word and not token.endswith("ly")


def _after_participle(tokens: Sequence[str], words: WordNet) -> str:
    """The preposition that a participle has before the last argument: ``by`` in ``was written in Rome by``, or none."""
    arguments = [place for place, token in enumerate(tokens) if token in (ARG1, ARG2)]
    between = tokens[arguments[0] + 1 : arguments[1]]
    prepositions = [place for place, token in enumerate(between) if token in _PREPOSITIONS]
    if not prepositions:
        return ""
    if "by" in between:
        before = between[: between.index("by")]
        return "by" if any(_may_be_participle(word, words) for word in before) else ""
    before = between[: prepositions[0]]
    # Stricter without "by": husband is a verb too, but no participle.
    inflected = (word for word in before if _may_be_participle(word, words) and f"v:{word}" != words.lemmas(word)[0])
    return between[prepositions[0]] if before and before[0] in _BE and any(inflected) else ""


def _may_be_participle(word: str, words: WordNet) -> bool:
    return words.is_verb(word) and not word.endswith("ing") and _carries_meaning(word)


@dataclass(frozen=True, slots=True)
class PairFeatures:
    """Features of pairs.

    Attributes:
        forward: "The premise entails the hypothesis", ``[P, F]`` float64, in the order of ``FEATURES``.
        backward: The same with the sides exchanged.
    """

    forward: NDArray[np.float64]
    backward: NDArray[np.float64]

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
    model: PatternEncoder,
    premises: Sequence[tuple[str, ...]],
    hypotheses: Sequence[tuple[str, ...]],
    background_MD: Tensor,
) -> PairFeatures:
    """Features of tokenized pairs; each distinct pattern is encoded once.

    Args:
        model: Of the task relations.
        premises: Tokenized patterns, at least one.
        hypotheses: As many.
        background_MD: Unit facets of patterns in general, ``[M, D]``.
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
    forward = [coverage_P2[:, 0], generality_P, similarity_P]
    backward = [coverage_P2[:, 1], -generality_P, similarity_P]
    words = word_features(premises, hypotheses)
    for name in _WITH_SIMILARITY:
        place = WORD_FEATURES.index(name)
        words.forward[:, place] *= similarity_P
        words.backward[:, place] *= similarity_P
    return PairFeatures(
        np.column_stack([*forward, words.forward]).astype(np.float64),
        np.column_stack([*backward, words.backward]).astype(np.float64),
    )


def word_features(premises: Sequence[tuple[str, ...]], hypotheses: Sequence[tuple[str, ...]]) -> PairFeatures:
    """The features that need no model, from the words and WordNet; columns from ``hypernym`` on."""
    words = wordnet()
    wordings = {pattern: read_wording(pattern, words) for pattern in {*premises, *hypotheses}}
    pairs = [(wordings[first], wordings[second]) for first, second in zip(premises, hypotheses, strict=True)]
    forward = [_compared(premise, hypothesis, words) for premise, hypothesis in pairs]
    backward = [_compared(hypothesis, premise, words) for premise, hypothesis in pairs]
    return PairFeatures(np.array(forward, dtype=np.float64), np.array(backward, dtype=np.float64))


def _compared(premise: Wording, hypothesis: Wording, words: WordNet) -> list[float]:
    """The features from ``hypernym`` on."""
    check_interrupted()
    same = _highest(premise, hypothesis, words.sameness)
    opposition = _highest(premise, hypothesis, words.opposition)
    is_mutual = premise.is_mutual or hypothesis.is_mutual
    exchanged = premise.head_acts != hypothesis.head_acts and premise.frame == hypothesis.frame and not is_mutual

    def says(word: str, other: str) -> float:
        return max(words.sameness(word, other), _HYPERNYM_SHARE * words.hypernymy(word, other))

    return [
        _highest(premise, hypothesis, words.hypernymy),
        _covered(premise, hypothesis, says),
        min(_covered(premise, hypothesis, words.sameness), _covered(hypothesis, premise, words.sameness)),
        float(premise.is_hedged and not hypothesis.is_hedged),
        float(hypothesis.is_hedged and not premise.is_hedged),
        same if exchanged and not opposition else 0.0,
        0.0 if exchanged else opposition,
        opposition if exchanged else 0.0,
        float(premise.is_negated != hypothesis.is_negated),
    ]


def _highest(first: Wording, second: Wording, compare: Callable[[str, str], float]) -> float:
    return max((compare(word, other) for word in first.content for other in second.content), default=0.0)


def _covered(first: Wording, second: Wording, compare: Callable[[str, str], float]) -> float:
    """Mean over the second's words of the first's best."""
    if not second.content:
        return 1.0
    best = [max((compare(word, other) for word in first.content), default=0.0) for other in second.content]
    return sum(best) / len(best)
