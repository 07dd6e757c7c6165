"""Pairs of entity mentions and their patterns, from texts whose entities are known, and which way round each is meant.

A symmetric relation scores as its better order; of both orders of a pair the more probable relation is asserted. That a
name means a relation with head and tail exchanged (``capitalOf``) is known to ``additions``, from the details.

Shape suffixes: P patterns, M mentions (ordered pairs), R relations, C candidates.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError
from facets.language.interruption import check_interrupted
from facets.language.sentences import Sentence
from facets.language.tokenizer import Tokenizer
from facets.relations.assertion import Assertion, AssertionStatus, assertion_of, quotations
from facets.relations.entities import VALUES, EntityFinder, EntitySpan, EntityType, check_spans
from facets.relations.patterns import (
    ARG1,
    ARG2,
    ENTITY,
    PairLimits,
    SentencePattern,
    mirrored,
    sentence_groups,
    sentence_patterns,
)
from facets.relations.results import EntityMention, EntityPair, PatternScore, RankedTail, TailMention
from facets.relations.scoring import ScoreArrays

TypedPattern = tuple[tuple[str, ...], EntityType, EntityType]


@dataclass(frozen=True, slots=True)
class PairMention:
    """An ordered pair of mentions of a sentence."""

    text_position: int  # which text
    head: EntitySpan  # `$ARG1`
    tail: EntitySpan  # `$ARG2`
    sentence: EntitySpan  # where the sentence stands
    tokens: tuple[str, ...]  # the pattern
    assertion: Assertion  # whether the sentence asserts what the pattern says

    @property
    def pattern(self) -> TypedPattern:
        """What the scores depend on: the tokens, and what the two entities are."""
        return self.tokens, self.head.type, self.tail.type

    @property
    def mirrored_pattern(self) -> TypedPattern:
        """The same of the pair the other way round."""
        return mirrored(self.tokens), self.tail.type, self.head.type

    @property
    def place(self) -> tuple[object, ...]:
        """Where its two entities stand."""
        return self.text_position, self.head, self.tail

    @property
    def mirrored_place(self) -> tuple[object, ...]:
        """The same of the pair the other way round."""
        return self.text_position, self.tail, self.head

    def is_about(self, texts: Sequence[str], name: str) -> bool:
        """Whether one of its two entities, not both, is called so."""
        text = texts[self.text_position]
        head, tail = text[self.head.start : self.head.end], text[self.tail.start : self.tail.end]
        return (head.casefold() == name.casefold()) != (tail.casefold() == name.casefold())

    def result(self, texts: Sequence[str], scores: PatternScore) -> EntityPair:
        """The mention with what its pattern says."""
        text = texts[self.text_position]
        return EntityPair(
            text_position=self.text_position,
            head=_mention(text, self.head),
            tail=_mention(text, self.tail),
            sentence_start=self.sentence.start,
            sentence_end=self.sentence.end,
            pattern_score=scores,
        )


def _mention(text: str, span: EntitySpan) -> EntityMention:
    return EntityMention(text[span.start : span.end], span.start, span.end, span.type)


def resolve_spans(
    texts: Sequence[str], spans: Sequence[Sequence[EntitySpan]] | None, finder: EntityFinder | None
) -> list[list[EntitySpan]]:
    """Entities of each text in order, from the caller or from a finder.

    Raises:
        InvalidInputError: Both or neither source, not one list a text, or a bad span.
    """
    if (spans is None) == (finder is None):
        raise InvalidInputError(f"or a finder must be given, got {'both' if finder else 'neither'}", path="spans")
    if finder is not None:
        return finder.find(texts)
    assert spans is not None
    if len(spans) != len(texts):
        raise InvalidInputError(f"must have one list for each of {len(texts)} texts, got {len(spans)}", path="spans")
    return [
        check_spans(text, own, ("spans", place)) for place, (text, own) in enumerate(zip(texts, spans, strict=True))
    ]


def head_spans(texts: Sequence[str], spans: Sequence[Sequence[EntitySpan]], head: str) -> list[list[EntitySpan]]:
    """The spans with every mention of the head among them; what overlaps such a mention gives way."""
    pattern = re.compile(rf"(?<!\w){re.escape(head.strip())}(?!\w)", re.IGNORECASE)
    result = []
    for text, own in zip(texts, spans, strict=True):
        check_interrupted()
        heads = [EntitySpan(*match.span()) for match in pattern.finditer(text)]
        ends = [head.end for head in heads]
        following = [(span, bisect_right(ends, span.start)) for span in own]  # the first to end behind it
        others = [span for span, place in following if place == len(heads) or span.end <= heads[place].start]
        result.append(sorted(heads + others))
    return result


def pair_mentions(
    texts: Sequence[str], spans: Sequence[Sequence[EntitySpan]], tokenizer: Tokenizer, limits: PairLimits
) -> list[PairMention]:
    """Ordered pairs of mentions of a sentence within the limits, in the order of the texts.

    Two mentions of one entity are no pair, nor are two dates or numbers, nor entities of different clauses; a date or
    number is nothing's head.
    """
    mentions: list[PairMention] = []
    for place, (text, own) in enumerate(zip(texts, spans, strict=True)):
        quoted = quotations(text)
        found = [
            mention
            for sentence, members in sentence_groups(text, own, tokenizer)
            for mention in _sentence_mentions(
                place, text, sentence, [own[member] for member in members], (tokenizer, limits, quoted)
            )
        ]
        mentions += sorted(found, key=lambda m: (m.head, m.tail))
    return mentions


def _sentence_mentions(
    place: int,
    text: str,
    sentence: Sentence,
    own: Sequence[EntitySpan],
    how: tuple[Tokenizer, PairLimits, Sequence[tuple[int, int]]],
) -> Iterator[PairMention]:
    tokenizer, limits, quoted = how
    borders = zip(
        [sentence.start, *(span.end for span in own)], [*(span.start for span in own), sentence.end], strict=True
    )
    words = tokenizer.words([text[start:end] for start, end in borders])
    flat, places = _with_placeholders(words)
    whole = EntitySpan(sentence.start, sentence.end)
    assertions: dict[tuple[int, int], Assertion] = {}
    for pattern in sentence_patterns(words[1:-1], limits, before=words[0], after=words[-1]):
        check_interrupted()
        head, tail = own[pattern.head], own[pattern.tail]
        if head.type in VALUES or _are_apart(head, tail, pattern) or _are_same(text, head, tail):
            continue
        first, last = sorted((pattern.head, pattern.tail))
        if (first, last) not in assertions:
            ahead, behind = _widening(pattern.tokens)
            assertions[first, last] = assertion_of(
                pattern.tokens,
                before=flat[: places[first] - ahead],
                after=flat[places[last] + 1 + behind :],
                quoted=any(start < own[first].start and own[last].end < end for start, end in quoted),
            )
        yield PairMention(place, head, tail, whole, pattern.tokens, assertions[first, last])


def _with_placeholders(words: Sequence[Sequence[str]]) -> tuple[list[str], list[int]]:
    """Tokens of a sentence with a placeholder for each entity, and where these stand."""
    flat, places = list(words[0]), []
    for gap in words[1:]:
        places.append(len(flat))
        flat += [ENTITY, *gap]
    return flat, places


def _widening(tokens: Sequence[str]) -> tuple[int, int]:
    """How many tokens of a pattern stand before its first and behind its last argument."""
    arguments = [place for place, token in enumerate(tokens) if token in (ARG1, ARG2)]
    return arguments[0], len(tokens) - 1 - arguments[-1]


def _are_apart(head: EntitySpan, tail: EntitySpan, pattern: SentencePattern) -> bool:
    """Two entities of which nothing is said: of different clauses, of one list, or (``met Ann in Oslo``) by a verb."""
    if head.clauses and tail.clauses and head.clauses.isdisjoint(tail.clauses):
        return True
    if pattern.is_list:
        return True
    later = max(head, tail)
    is_aside = later.is_adjunct or (later.type in VALUES and head.type is not EntityType.EVENT)
    return is_aside and len(pattern.between) == 1 and pattern.between[0].isalpha()


def _are_same(text: str, head: EntitySpan, tail: EntitySpan) -> bool:
    """Two mentions of one entity: the same name, or a person's last name."""
    names = [text[span.start : span.end].casefold().split() for span in (head, tail)]
    short, long = sorted(names, key=len)
    are_people = {head.type, tail.type} <= {EntityType.PERSON, EntityType.UNKNOWN} and head.type != tail.type
    are_people |= head.type is tail.type is EntityType.PERSON
    return short == long or (are_people and len(short) == 1 and short == long[-1:])


def group_tails(pairs: Sequence[EntityPair], *, is_inverse: bool = False) -> list[RankedTail]:
    """Pairs of one head and one relation, by tail; best first, ties by name.

    ``is_inverse``: the relation was asked for the other way round: heads are the answers.
    """

    def answer(pair: EntityPair) -> str:
        return pair.head.text if is_inverse else pair.tail.text

    by_tail: dict[str, list[EntityPair]] = {}
    for pair in pairs:
        by_tail.setdefault(answer(pair).casefold(), []).append(pair)
    ranked = []
    for mentions in by_tail.values():
        mentions.sort(key=lambda pair: -pair.pattern_score.relations[0].score)
        best = mentions[0].pattern_score.relations[0]
        found = tuple(TailMention(pair.text_position, pair) for pair in mentions)
        ranked.append(RankedTail(answer(mentions[0]), best.score, best.probability, best.accepted, found))
    return sorted(ranked, key=lambda tail: (-tail.score, tail.tail))


def symmetrised(
    arrays: ScoreArrays, mirror_images: Mapping[TypedPattern, TypedPattern], symmetric_R: NDArray[np.bool_]
) -> ScoreArrays:
    """Scores in which symmetric relations have the higher one of a pattern and its mirror image.

    ``mirror_images``: the patterns, in the order of the rows, each with its mirror image. ``symmetric_R``: which
    relations are symmetric.
    """
    if not symmetric_R.any():
        return arrays
    partners_P = partners_of(list(mirror_images), list(mirror_images.values()))
    take_PR = symmetric_R & (arrays.scores[partners_P] > arrays.scores)
    names = ("symmetric", "asymmetric", "universal_schema", "scores", "probabilities", "accepted")
    columns = {name: getattr(arrays, name) for name in names}
    return replace(arrays, **{name: np.where(take_PR, own[partners_P], own) for name, own in columns.items()})


def asserted_relations(
    mentions: Sequence[PairMention],
    accepted_MR: NDArray[np.bool_],
    probabilities_MR: NDArray[np.float32],
    *,
    symmetric_R: NDArray[np.bool_],
    most: int | None,
) -> NDArray[np.bool_]:
    """Which relations of mentions are asserted, ``[M, R]``; a symmetric one in the order of the text alone.

    Args:
        mentions: Ordered pairs; where both orders are there, they stand for the same two entities.
        accepted_MR: Relations that reach their thresholds.
        probabilities_MR: How sure each is.
        symmetric_R: Which relations are symmetric.
        most: See ``best_of_pairs``.
    """
    possible_MR = accepted_MR.copy()
    possible_MR[[m.assertion.status is not AssertionStatus.ASSERTED for m in mentions]] = False
    backwards_M = np.array([mention.tail < mention.head for mention in mentions], dtype=np.bool_)
    possible_MR[np.ix_(backwards_M, symmetric_R)] = False
    partners_M = partners_of([m.place for m in mentions], [m.mirrored_place for m in mentions])
    return best_of_pairs(possible_MR, probabilities_MR, partners_M, most=most)


def partners_of(keys: Sequence[tuple[object, ...]], mirrored_keys: Sequence[tuple[object, ...]]) -> NDArray[np.int64]:
    """Place of each item's mirror image, ``[M]``; its own place where there is none."""
    places = {key: place for place, key in enumerate(keys)}
    return np.fromiter(
        (places.get(key, place) for place, key in enumerate(mirrored_keys)), dtype=np.int64, count=len(keys)
    )


def best_of_pairs(
    accepted_MR: NDArray[np.bool_],
    probabilities_MR: NDArray[np.float32],
    partners_M: NDArray[np.int64],
    *,
    most: int | None,
) -> NDArray[np.bool_]:
    """Which of the accepted relations are asserted.

    Args:
        accepted_MR: Relations that could hold; False where a mention asserts nothing.
        probabilities_MR: How sure each is.
        partners_M: Place of the mention of the same two entities the other way round, see ``partners_of``.
        most: Relations of two entities at most, both directions together; None: all.

    Returns:
        ``[M, R]``, the most probable ones of each two entities; ties go to the earlier mention and relation.

    Example:
        >>> accepted, probable = np.array([[True, True], [True, False]]), np.array([[0.7, 0.9], [0.8, 0.1]])
        >>> best_of_pairs(accepted, probable, np.array([1, 0]), most=1).tolist()
        [[False, True], [False, False]]
    """
    if most is None:
        return accepted_MR
    mentions_C, relations_C = np.nonzero(accepted_MR)
    pairs_C = np.minimum(mentions_C, partners_M[mentions_C])
    order_C = np.lexsort((relations_C, mentions_C, -probabilities_MR[mentions_C, relations_C], pairs_C))
    sorted_C = pairs_C[order_C]
    # Place among the candidates of the same pair: how many stand since its first.
    places_C = np.arange(len(sorted_C)) - np.searchsorted(sorted_C, sorted_C)
    kept_C = order_C[places_C < most]
    best_MR = np.zeros_like(accepted_MR)
    best_MR[mentions_C[kept_C], relations_C[kept_C]] = True
    return best_MR
