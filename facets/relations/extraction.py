"""Pairs of entity mentions and their patterns, from texts whose entities are known."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from facets.errors import InvalidInputError
from facets.language.interruption import check_interrupted
from facets.language.sentences import Sentence
from facets.language.tokenizer import Tokenizer
from facets.relations.assertion import Assertion, assertion_of, quotations
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

TypedPattern = tuple[tuple[str, ...], EntityType, EntityType]


@dataclass(frozen=True, slots=True)
class PairMention:
    """An ordered pair of mentions of a sentence.

    Attributes:
        text_position: Which text.
        head: ``$ARG1``.
        tail: ``$ARG2``.
        sentence: Where the sentence stands.
        tokens: The pattern.
        assertion: Whether the sentence asserts what the pattern says.
    """

    text_position: int
    head: EntitySpan
    tail: EntitySpan
    sentence: EntitySpan
    tokens: tuple[str, ...]
    assertion: Assertion

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
        raise InvalidInputError(
            f"or a finder must be given, got {'both' if finder else 'neither'}",
            path="spans",
        )
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

    Args:
        pairs: Each with one relation.
        is_inverse: The relation was asked for the other way round: heads are the answers.
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
