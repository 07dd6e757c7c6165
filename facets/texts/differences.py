"""What differs between two aligned sentences: negation, opposites, roles, numbers, dates, quantifiers, prepositions.

What is said of the same things decides (natural logic, MacCartney and Manning 2007): words that meet with different
polarity differ by a negation, opposites of one polarity differ, and two negations cancel each other, so that "not open"
is "closed". How much a difference speaks against both sentences holding depends on what else they share: "no man is
dancing" denies nothing of a man who prays.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from facets.language import lexicon
from facets.texts.alignment import AlignedPair, Alignment, base_forms, share
from facets.texts.quantities import ValueKind
from facets.texts.wording import Marker, Word, Wording


class DifferenceKind(StrEnum):
    """How two texts differ."""

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
    """Two places that do not say the same of the same things."""

    kind: DifferenceKind  # how they differ
    first: str  # what the first text says, as it is written there
    second: str  # what the second says
    first_start: int  # of the first, in characters
    first_end: int  # one past its end
    second_start: int  # of the second
    second_end: int  # one past its end
    weight: float  # how much it speaks against both texts holding, in `[0, 1]`

    def exchanged(self) -> "Difference":
        """The same with the texts exchanged."""
        return Difference(
            self.kind,
            self.second,
            self.first,
            self.second_start,
            self.second_end,
            self.first_start,
            self.first_end,
            self.weight,
        )


_SAME_THING = 0.6  # words that are at least so alike may have changed places
_PREPOSITION = 0.9
_QUANTIFIER = 0.9
_DATES = frozenset(ValueKind) - {ValueKind.NUMBER, ValueKind.COLOUR}
# What may differ though both hold: a thing of several colours, days that are told from where one stands.
_VALUE_WEIGHTS = {ValueKind.COLOUR: 0.6, ValueKind.RELATIVE_DAY: 0.8}
_COUNTERPART = 0.5
_OTHER_WORD_CLASS = 0.8  # "she left", "on the left"


def find_differences(alignment: Alignment) -> tuple[Difference, ...]:
    """What differs, the heaviest first.

    Args:
        alignment: Two sentences side by side.
    """
    pairs, roles, explained = _read_roles(alignment)
    alignment = replace(alignment, pairs=tuple(pairs))
    found = [
        *roles,
        *_opposites(alignment),
        *_negations(alignment),
        # "The red one is heavier" says what "the blue one is lighter" says.
        *(found for found in _values(alignment) if not explained or found.kind is not DifferenceKind.ANTONYM),
        *(() if explained else _prepositions(alignment)),
        *_quantifiers(alignment),
    ]
    return tuple(sorted(found, key=lambda difference: -difference.weight))


def _difference(kind: DifferenceKind, one: Word | Marker, other: Word | Marker, weight: float) -> Difference:
    return Difference(kind, one.text, other.text, one.start, one.end, other.start, other.end, weight)


def _met_words(alignment: Alignment) -> Iterator[tuple[AlignedPair, Word, Word]]:
    for pair in alignment.pairs:
        yield pair, alignment.first.words[pair.first], alignment.second.words[pair.second]


def _opposites(alignment: Alignment) -> Iterator[Difference]:
    shared = max(alignment.coverages)
    for pair, one, other in _met_words(alignment):
        if pair.opposite and one.negated == other.negated:
            weight = shared if one.is_verb == other.is_verb else shared * _OTHER_WORD_CLASS
            if one.text in lexicon.COUNTERPARTS and other.text in lexicon.COUNTERPARTS:
                weight *= _COUNTERPART
            yield _difference(DifferenceKind.ANTONYM, one, other, weight)


def _negations(alignment: Alignment) -> list[Difference]:
    """The heaviest difference of each cue."""
    resolved = _resolved_cues(alignment)
    covered, shared = alignment.covered, max(alignment.coverages)
    sides, weights = (alignment.first, alignment.second), (alignment.first_weights, alignment.second_weights)
    found: dict[tuple[int, int], Difference] = {}
    for pair, one, other in _met_words(alignment):
        if one.negated == other.negated or pair.opposite:
            continue
        side = 0 if one.negated else 1
        cue = (one, other)[side].cues[-1]
        if (side, cue.start) in resolved:
            continue
        # What is denied must be what the other sentence says.
        scope = np.array([bool(word.cues) and word.cues[-1] == cue for word in sides[side].words])
        weight = share(covered[side][scope], weights[side][scope]) * shared * pair.alike
        if weight > found[side, cue.start].weight if (side, cue.start) in found else True:
            found[side, cue.start] = _negation(one, other, sides[1 - side], weight)
    return list(found.values())


def _resolved_cues(alignment: Alignment) -> set[tuple[int, int]]:
    """Cues of which a word in the scope meets what says the same: ``not open`` and ``closed``."""
    resolved = set()
    for pair, *words in _met_words(alignment):
        if (words[0].negated != words[1].negated) == pair.opposite:
            resolved |= {(side, word.cues[-1].start) for side, word in enumerate(words) if word.negated}
    return resolved


def _negation(one: Word, other: Word, positive: Wording, weight: float) -> Difference:
    is_modal = any(marker.kind == "modal" for marker in positive.markers)
    kind = DifferenceKind.MODAL if is_modal else DifferenceKind.NEGATION
    return _difference(kind, _as_written(one), _as_written(other), weight)


def _as_written(word: Word) -> Word:
    """A word with the cue that negates it."""
    if not word.negated:
        return word
    cue = word.cues[-1]
    start, end = min(cue.start, word.start), max(cue.end, word.end)
    if cue.start == word.start:
        text = cue.text
    else:
        text = f"{cue.text} {word.text}" if cue.end <= word.start else f"{word.text} {cue.text}"
    return replace(word, text=text, start=start, end=end)


def _values(alignment: Alignment) -> Iterator[Difference]:
    """Numbers of what meets that differ; then numbers and dates of one kind that do not meet."""
    first, second = alignment.first, alignment.second
    met = {pair.first: pair.second for pair in alignment.pairs}
    counted = {head: j for j, (head, link) in enumerate(second.links) if link == "mod" and second.words[j].kind}
    covered_F, covered_S = alignment.covered
    shared = max(_without_values(covered_F, first), _without_values(covered_S, second))
    taken = set(met.values())
    for i, one in enumerate(first.words):
        if one.kind is None:
            continue
        head, link = first.links[i]
        j = counted.get(met.get(head, -1), -1) if link == "mod" else -1
        if j < 0 and i not in met:
            rest = (j for j, word in enumerate(second.words) if j not in taken and word.kind is one.kind)
            j = next((j for j in rest if _unit(second.words[j]) == _unit(one)), -1)
        if j >= 0 and second.words[j].kind is one.kind and second.words[j].value != one.value:
            taken.add(j)
            kind = DifferenceKind.DATE if one.kind in _DATES else DifferenceKind.NUMBER
            kind = DifferenceKind.ANTONYM if one.kind is ValueKind.COLOUR else kind
            yield _difference(kind, one, second.words[j], _VALUE_WEIGHTS.get(one.kind, 1.0) * shared)


def _without_values(covered: NDArray[np.float64], wording: Wording) -> float:
    """How well the words that are no numbers and dates are met."""
    kept = [value for value, word in zip(covered.tolist(), wording.words, strict=True) if word.kind is None]
    return sum(kept) / len(kept) if kept else 1.0


def _unit(word: Word) -> str:
    return word.value.partition(" ")[2]


def _read_roles(alignment: Alignment) -> tuple[list[AlignedPair], list[Difference], bool]:
    """The pairs with converses explained, who changed places, and whether opposite prepositions are explained by that.

    ``Ann sold it to Ben`` is what ``Ben bought from Ann`` says, ``older than`` what ``younger than`` says with the
    sides exchanged, ``before him`` what ``after her`` says: there the words are no opposites.
    """
    first, second = alignment.first, alignment.second
    met = {pair.first: pair.second for pair in alignment.pairs if pair.alike > _SAME_THING and not pair.opposite}
    is_compared = _are_compared(alignment, met)
    pairs, found, explained = [], [], False
    for pair, one, other in _met_words(alignment):
        agents = _arguments(first, one), _arguments(second, other)
        exchanged = _is_exchanged(met, *agents) and lexicon.MUTUAL.isdisjoint(base_forms(one.text))
        if pair.opposite and (is_compared or (exchanged and _is_converse(one.text, other.text))):
            pair, is_compared = replace(pair, opposite=False), False
            explained = True
        elif exchanged and not pair.opposite and _is_predicate(one, first) and _is_predicate(other, second):
            words = first.words[agents[0][0]], second.words[agents[1][0]]
            patients = (first.words[agents[0][1]].preposition, second.words[agents[1][1]].preposition)
            if frozenset(patients) in lexicon.OPPOSITE_PREPOSITIONS:
                explained = True
            else:
                found.append(_difference(DifferenceKind.ROLES, *words, 1.0))
        pairs.append(pair)
    if is_compared and not found:
        one, other = _than_words(alignment)
        found.append(_difference(DifferenceKind.ROLES, one, other, 1.0))
    return pairs, found[:1], explained


def _than_words(alignment: Alignment) -> list[Word]:
    """What each sentence compares with."""
    sides = (alignment.first.words, alignment.second.words)
    return [word for words in sides for word in words if word.preposition == "than"][:2]


def _are_compared(alignment: Alignment, met: dict[int, int]) -> bool:
    """Whether what stands behind ``than`` stands before it in the other sentence, both ways round."""
    first, second = (
        [i for i, word in enumerate(side.words) if word.preposition == "than"]
        for side in (alignment.first, alignment.second)
    )
    back = {other: one for one, other in met.items()}
    return any(met[i] < second[0] for i in first if i in met and second) and any(
        back[j] < first[0] for j in second if j in back
    )


def _is_exchanged(met: dict[int, int], first: tuple[int, int], second: tuple[int, int]) -> bool:
    """Whether agent and patient of the first are patient and agent of the second; -1: there is none."""
    if -1 in (*first, *second):
        return False
    return met.get(first[0]) == second[1] and met.get(first[1]) == second[0]


def _is_converse(one: str, other: str) -> bool:
    return any(
        frozenset((base, another)) in lexicon.CONVERSE for base in base_forms(one) for another in base_forms(other)
    )


def _is_predicate(word: Word, wording: Wording) -> bool:
    """A verb, or what is said with a preposition behind it: ``cheaper than``, ``north of``."""
    is_linked = any(m.text in lexicon.LINKS_PATIENT and m.token == word.token + 1 for m in wording.markers)
    return word.is_verb or (is_linked and not word.preposition)


def _arguments(wording: Wording, predicate: Word) -> tuple[int, int]:
    """Who acts and to whom it is done, by their places around the predicate; -1: nobody."""
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
    """The last of the words that stand next to each other; -1 of none."""
    head = -1
    for i in phrase:
        if head >= 0 and (words[i].token != words[head].token + 1 or words[i].weak):  # "lent Tom her bicycle"
            break
        head = i
    return head


def _prepositions(alignment: Alignment) -> Iterator[Difference]:
    """Opposite prepositions before words that meet."""
    for pair, one, other in _met_words(alignment):
        is_opposite = frozenset((one.preposition, other.preposition)) in lexicon.OPPOSITE_PREPOSITIONS
        if is_opposite and pair.alike > _SAME_THING and one.negated == other.negated:
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
    """The preposition before a word that has one."""
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
