"""Finds how two aligned sentences differ: in negation, opposites, roles, numbers, dates, quantifiers or prepositions.

The polarity of aligned words decides (natural logic, MacCartney and Manning 2007): words of different polarity differ
by a negation, opposites of the same polarity differ, and two negations cancel out, so that "not open" is "closed". The
weight of a difference depends on what else the sentences share: "no man is dancing" denies nothing about a man who
is praying.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from facets.arrays import Doubles
from facets.language import lexicon
from facets.texts.alignment import AlignedPair, Alignment, base_forms, share
from facets.texts.wording import Marker, ValueKind, Word, Wording


class DifferenceKind(StrEnum):
    """The way in which two texts differ."""

    NEGATION = "negation"
    ANTONYM = "antonym"
    ROLES = "roles"  # who does it to whom
    NUMBER = "number"
    DATE = "date"
    QUANTIFIER = "quantifier"
    PREPOSITION = "preposition"
    MODAL = "modal"


@dataclass(frozen=True, slots=True)
class Difference:
    """Words of two texts that say different things about the same thing."""

    kind: DifferenceKind
    first: str  # the words of the first text
    second: str  # the words of the second text
    first_start: int  # offset of the first character
    first_end: int  # offset after the last character
    second_start: int
    second_end: int
    weight: float  # how strongly it suggests that the texts cannot both be true, in `[0, 1]`

    def exchanged(self) -> "Difference":
        """The difference with the two texts swapped."""
        second = (self.second, self.first, self.second_start, self.second_end, self.first_start, self.first_end)
        return Difference(self.kind, *second, self.weight)


_PREPOSITION = 0.9
_QUANTIFIER = 0.9
_ROLES = 0.5  # a cat may chase a dog and the dog the cat; but not both are older than the other
_DATES = frozenset(ValueKind) - {ValueKind.NUMBER, ValueKind.COLOUR}
# Values that may differ although both texts are true: things have several colours, and days are relative to today.
_VALUE_WEIGHTS = {ValueKind.COLOUR: 0.6, ValueKind.RELATIVE_DAY: 0.8}
_COUNTERPART = 0.5


def find_differences(alignment: Alignment) -> tuple[Difference, ...]:
    """The differences between two aligned sentences, largest weight first."""
    pairs, roles, explained = _read_roles(alignment)
    alignment = replace(alignment, pairs=tuple(pairs))
    differences = [
        *roles,
        *_opposites(alignment),
        *_negations(alignment),
        # "The red one is heavier" says the same as "the blue one is lighter".
        *(value for value in _values(alignment) if not explained or value.kind is not DifferenceKind.ANTONYM),
        *(() if explained else _prepositions(alignment)),
        *_quantifiers(alignment),
    ]
    return tuple(sorted(differences, key=lambda difference: -difference.weight))


def _difference(kind: DifferenceKind, one: Word | Marker, other: Word | Marker, weight: float) -> Difference:
    return Difference(kind, one.text, other.text, one.start, one.end, other.start, other.end, weight)


def _aligned_words(alignment: Alignment) -> Iterator[tuple[AlignedPair, Word, Word]]:
    for pair in alignment.pairs:
        yield pair, alignment.first.words[pair.first], alignment.second.words[pair.second]


def _opposites(alignment: Alignment) -> Iterator[Difference]:
    shared = max(alignment.coverages)
    for pair, one, other in _aligned_words(alignment):
        if pair.opposite and one.negated == other.negated:
            are_counterparts = one.text in lexicon.COUNTERPARTS and other.text in lexicon.COUNTERPARTS
            yield _difference(DifferenceKind.ANTONYM, one, other, shared * (_COUNTERPART if are_counterparts else 1.0))


def _negations(alignment: Alignment) -> list[Difference]:
    """For each negation cue, the difference with the largest weight."""
    resolved = _resolved_cues(alignment)
    covered, shared = alignment.covered, max(alignment.coverages)
    sides, weights = (alignment.first, alignment.second), (alignment.first_weights, alignment.second_weights)
    found: dict[tuple[int, int], Difference] = {}
    for pair, one, other in _aligned_words(alignment):
        if one.negated == other.negated or pair.opposite:
            continue
        side = 0 if one.negated else 1
        cue = (one, other)[side].cues[-1]
        if (side, cue.start) in resolved:
            continue
        # The other sentence must say what the cue denies.
        scope = np.array([bool(word.cues) and word.cues[-1] == cue for word in sides[side].words])
        weight = share(covered[side][scope], weights[side][scope]) * shared * pair.alike
        known = found.get((side, cue.start))
        if known is None or weight > known.weight:
            is_modal = any(marker.kind == "modal" for marker in sides[1 - side].markers)
            kind = DifferenceKind.MODAL if is_modal else DifferenceKind.NEGATION
            found[side, cue.start] = _difference(kind, _as_written(one), _as_written(other), weight)
    return list(found.values())


def _resolved_cues(alignment: Alignment) -> set[tuple[int, int]]:
    """Cues whose negated word says the same as the aligned word: ``not open`` and ``closed``."""
    resolved = set()
    for pair, *words in _aligned_words(alignment):
        if (words[0].negated != words[1].negated) == pair.opposite:
            resolved |= {(side, word.cues[-1].start) for side, word in enumerate(words) if word.negated}
    return resolved


def _as_written(word: Word) -> Word:
    """A word together with the cue that negates it."""
    if not word.negated:
        return word
    cue = word.cues[-1]
    start, end = min(cue.start, word.start), max(cue.end, word.end)
    text = f"{cue.text} {word.text}" if cue.end <= word.start else f"{word.text} {cue.text}"
    return replace(word, text=text, start=start, end=end)


def _values(alignment: Alignment) -> Iterator[Difference]:
    """Aligned words with different numbers; then unaligned numbers and dates of the same kind."""
    first, second = alignment.first, alignment.second
    met = {pair.first: pair.second for pair in alignment.pairs}
    counted = {j + 1: j for j, word in enumerate(second.words) if word.kind}  # by the word after a number
    covered_F, covered_S = alignment.covered
    shared = max(_without_values(covered_F, first), _without_values(covered_S, second))
    taken = set(met.values())
    for i, one in enumerate(first.words):
        if one.kind is None:
            continue
        j = counted.get(met.get(i + 1, -1), -1)
        if j < 0 and i not in met:
            rest = (j for j, word in enumerate(second.words) if j not in taken and word.kind is one.kind)
            j = next((j for j in rest if _unit(second.words[j]) == _unit(one)), -1)
        if j >= 0 and second.words[j].kind is one.kind and not one.has_same_value(second.words[j]):
            taken.add(j)
            kind = DifferenceKind.DATE if one.kind in _DATES else DifferenceKind.NUMBER
            kind = DifferenceKind.ANTONYM if one.kind is ValueKind.COLOUR else kind
            yield _difference(kind, one, second.words[j], _VALUE_WEIGHTS.get(one.kind, 1.0) * shared)


def _without_values(covered: Doubles, wording: Wording) -> float:
    """Mean similarity of the words other than numbers and dates."""
    kept = [value for value, word in zip(covered.tolist(), wording.words, strict=True) if word.kind is None]
    return sum(kept) / len(kept) if kept else 1.0


def _unit(word: Word) -> str:
    return word.value.partition(" ")[2] if word.kind is ValueKind.NUMBER else ""


def _read_roles(alignment: Alignment) -> tuple[list[AlignedPair], list[Difference], bool]:
    """Finds swapped roles, and opposites that only express a swap.

    "Ann sold it to Ben" means the same as "Ben bought it from Ann", and "older than" the same as "younger than" with
    sides swapped. Returns the pairs, in which such words are no longer opposites; the difference in roles, if any; and
    whether a swap explains opposite prepositions ("before him", "after her").
    """
    first, second = alignment.first, alignment.second
    met = {pair.first: pair.second for pair in alignment.pairs if not pair.opposite}
    is_compared = _are_compared(alignment, met)
    pairs, found, explained = [], [], False
    for pair, one, other in _aligned_words(alignment):
        agents = _arguments(first, one), _arguments(second, other)
        exchanged = _is_exchanged(met, *agents) and lexicon.MUTUAL.isdisjoint(base_forms(one.text))
        if pair.opposite and (is_compared or exchanged):
            pair, is_compared = replace(pair, opposite=False), False
            explained = True
        elif exchanged and not pair.opposite and _is_predicate(one, first) and _is_predicate(other, second):
            words = first.words[agents[0][0]], second.words[agents[1][0]]
            patients = (first.words[agents[0][1]].preposition, second.words[agents[1][1]].preposition)
            if frozenset(patients) in lexicon.OPPOSITE_PREPOSITIONS:
                explained = True
            else:
                found.append(_difference(DifferenceKind.ROLES, *words, 1.0 if "than" in patients else _ROLES))
        pairs.append(pair)
    if is_compared and not found:
        one, other = (next(w for w in side.words if w.preposition == "than") for side in (first, second))
        found.append(_difference(DifferenceKind.ROLES, one, other, 1.0))
    return pairs, found[:1], explained


def _are_compared(alignment: Alignment, met: dict[int, int]) -> bool:
    """Whether, in both directions, the word after ``than`` comes before ``than`` in the other sentence."""
    first, second = (
        [i for i, word in enumerate(side.words) if word.preposition == "than"]
        for side in (alignment.first, alignment.second)
    )
    back = {other: one for one, other in met.items()}
    return any(met[i] < second[0] for i in first if i in met and second) and any(
        back[j] < first[0] for j in second if j in back
    )


def _is_exchanged(met: dict[int, int], first: tuple[int, int], second: tuple[int, int]) -> bool:
    """Whether agent and patient of one sentence are patient and agent of the other; -1 marks a missing one."""
    if -1 in (*first, *second):
        return False
    return met.get(first[0]) == second[1] and met.get(first[1]) == second[0]


def _is_predicate(word: Word, wording: Wording) -> bool:
    """Whether a word is a verb or is followed by a linking preposition: ``cheaper than``, ``north of``."""
    is_linked = any(m.text in lexicon.LINKS_PATIENT and m.token == word.token + 1 for m in wording.markers)
    return word.is_verb or (is_linked and not word.preposition)


def _arguments(wording: Wording, predicate: Word) -> tuple[int, int]:
    """Agent and patient of a predicate, by their positions around it; -1 where there is none."""
    words = wording.words
    before = [i for i, word in enumerate(words) if word.token < predicate.token and not word.is_verb]
    before = [i for i in before if not words[i].preposition]
    after = [i for i, word in enumerate(words) if word.token > predicate.token and not word.is_verb and not word.kind]
    agent = before[-1] if before else -1
    if predicate.token in wording.passive_verbs:
        return _head(words, [i for i in after if words[i].preposition == "by"]), agent
    direct = [i for i in after if not words[i].preposition]
    linked = [i for i in after if words[i].preposition in lexicon.LINKS_PATIENT]
    is_given = bool(linked) and words[linked[0]].preposition in ("to", "from")
    return agent, _head(words, linked if is_given or not direct else direct)


def _head(words: Sequence[Word], phrase: Sequence[int]) -> int:
    """The last word of the first unbroken run of words; -1 without words."""
    head = -1
    for i in phrase:
        if head >= 0 and (words[i].token != words[head].token + 1 or words[i].weak):  # "lent Tom her bicycle"
            break
        head = i
    return head


def _prepositions(alignment: Alignment) -> Iterator[Difference]:
    """Opposite prepositions before aligned words, and opposite particles."""
    for _, one, other in _aligned_words(alignment):
        is_opposite = frozenset((one.preposition, other.preposition)) in lexicon.OPPOSITE_PREPOSITIONS
        if is_opposite and one.negated == other.negated:
            markers = _marker(alignment.first, one), _marker(alignment.second, other)
            yield _difference(DifferenceKind.PREPOSITION, *markers, _PREPOSITION * max(alignment.coverages))
            return
    ones, others = (
        [m for m in side.markers if m.value == lexicon.PARTICLE] for side in (alignment.first, alignment.second)
    )
    for particle, rival in zip(ones, others, strict=False):
        if frozenset((particle.text, rival.text)) in lexicon.OPPOSITE_PREPOSITIONS:
            yield _difference(DifferenceKind.PREPOSITION, particle, rival, _PREPOSITION * max(alignment.coverages))


def _marker(wording: Wording, word: Word) -> Marker:
    """The preposition that governs a word."""
    before = (marker for marker in reversed(wording.markers) if marker.token < word.token)
    return next(marker for marker in before if marker.text == word.preposition)


def _quantifiers(alignment: Alignment) -> Iterator[Difference]:
    ones, others = (
        [marker for marker in side.markers if marker.kind == "quantifier"]
        for side in (alignment.first, alignment.second)
    )
    for one in ones:
        for other in others:
            if frozenset((one.value, other.value)) in lexicon.OPPOSITE_QUANTIFIERS:
                yield _difference(DifferenceKind.QUANTIFIER, one, other, _QUANTIFIER * max(alignment.coverages))
                return
