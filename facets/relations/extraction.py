"""Pairs of entity mentions and their patterns, from texts whose entities are known."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from facets.errors import InvalidInputError
from facets.relations.entities import EntityFinder, EntitySpan, check_spans
from facets.relations.patterns import PatternLimits, sentence_groups, sentence_patterns
from facets.relations.results import EntityMention, PairRelations, PatternScores, RankedTail
from facets.text.tokenizer import Tokenizer

__all__ = ["PairMention", "group_tails", "head_spans", "pair_mentions", "resolve_spans"]


@dataclass(frozen=True, slots=True)
class PairMention:
    """An ordered pair of mentions of a sentence.

    Attributes:
        text_position: Which text.
        head: ``$ARG1``.
        tail: ``$ARG2``.
        sentence: Where the sentence stands.
        tokens: The pattern.
        before: Tokens of the sentence before the first of the two.
    """

    text_position: int
    head: EntitySpan
    tail: EntitySpan
    sentence: EntitySpan
    tokens: tuple[str, ...]
    before: tuple[str, ...]

    def is_between(self, texts: Sequence[str], head: str) -> bool:
        """Whether the head is the named entity and the tail another one."""
        text = texts[self.text_position]
        first, second = text[self.head.start : self.head.end], text[self.tail.start : self.tail.end]
        return first.casefold() == head.strip().casefold() != second.casefold()

    def result(self, texts: Sequence[str], scores: PatternScores) -> PairRelations:
        """The mention with what its pattern says."""
        text = texts[self.text_position]
        return PairRelations(
            text_position=self.text_position,
            head=EntityMention(text[self.head.start : self.head.end], self.head.start, self.head.end),
            tail=EntityMention(text[self.tail.start : self.tail.end], self.tail.start, self.tail.end),
            sentence_start=self.sentence.start,
            sentence_end=self.sentence.end,
            scores=scores,
        )


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
        heads = [EntitySpan(*match.span()) for match in pattern.finditer(text)]
        others = [s for s in own if all(s.end <= h.start or h.end <= s.start for h in heads)]
        result.append(sorted(heads + others))
    return result


def pair_mentions(
    texts: Sequence[str], spans: Sequence[Sequence[EntitySpan]], tokenizer: Tokenizer, limits: PatternLimits
) -> list[PairMention]:
    """Every ordered pair of mentions of a sentence within the limits, in the order of the texts."""
    mentions: list[PairMention] = []
    for place, (text, own) in enumerate(zip(texts, spans, strict=True)):
        found = list(_text_mentions(place, text, own, tokenizer, limits))
        mentions += sorted(found, key=lambda m: (m.head, m.tail))
    return mentions


def _text_mentions(
    place: int, text: str, spans: Sequence[EntitySpan], tokenizer: Tokenizer, limits: PatternLimits
) -> Iterator[PairMention]:
    for sentence, members in sentence_groups(text, spans, tokenizer):
        own = [spans[member] for member in members]
        starts = [sentence.start, *(span.end for span in own)]
        pieces = [text[start : span.start] for start, span in zip(starts, own, strict=False)]
        words = tokenizer.words(pieces)
        for pattern in sentence_patterns(words[1:], limits):
            # A negation of the whole clause stands right before the first argument.
            before = words[min(pattern.head, pattern.tail)]
            yield PairMention(
                place,
                own[pattern.head],
                own[pattern.tail],
                EntitySpan(sentence.start, sentence.end),
                pattern.tokens,
                tuple(before),
            )


def group_tails(pairs: Sequence[PairRelations]) -> list[RankedTail]:
    """Pairs of one head and one relation, by tail; best first, ties by name."""
    by_tail: dict[str, list[PairRelations]] = {}
    for pair in pairs:
        by_tail.setdefault(pair.tail.text.casefold(), []).append(pair)
    ranked = []
    for mentions in by_tail.values():
        mentions.sort(key=lambda pair: -pair.scores.relations[0].score)
        best = mentions[0].scores.relations[0]
        ranked.append(RankedTail(mentions[0].tail.text, best.score, best.probability, best.accepted, tuple(mentions)))
    return sorted(ranked, key=lambda tail: (-tail.score, tail.tail))
