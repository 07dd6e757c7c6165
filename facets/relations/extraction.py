"""Pairs of entity mentions and their patterns, and which of their relations are asserted.

A symmetric relation gets the score of its better direction and is asserted only in text order. For other relations,
the more probable ones across both directions of a pair are asserted.
Shape suffixes: P patterns, M mentions (ordered pairs), R relations, C candidates.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress

import numpy as np

from facets.arrays import Bools, Floats, Ints
from facets.language.interruption import check_interrupted
from facets.language.sentences import Sentence
from facets.language.tokenizer import Tokenizer
from facets.relations.assertion import Assertion, AssertionStatus, assertion_of, quotations
from facets.relations.entities import VALUES, EntitySpan, EntityType
from facets.relations.patterns import ARG1, ARG2, ENTITY, SentencePattern, sentence_groups, sentence_patterns
from facets.relations.results import EntityMention, EntityPair, PatternScore, RankedTail, TailMention
from facets.relations.scoring import ScoreArrays

TypedPattern = tuple[tuple[str, ...], EntityType, EntityType]


@dataclass(frozen=True, slots=True)
class PairMention:
    """An ordered pair of mentions in a sentence."""

    text_position: int  # index of the text
    head: EntitySpan  # `$ARG1`
    tail: EntitySpan  # `$ARG2`
    sentence: EntitySpan  # span of the sentence
    tokens: tuple[str, ...]  # the pattern
    assertion: Assertion  # whether the sentence asserts the pattern

    @property
    def pattern(self) -> TypedPattern:
        """What the scores depend on: the tokens and the types of the two entities."""
        return self.tokens, self.head.type, self.tail.type

    def result(self, texts: Sequence[str], scores: PatternScore) -> EntityPair:
        """The mention combined with the scores of its pattern."""
        text = texts[self.text_position]
        head, tail = (EntityMention(text[s.start : s.end], s.start, s.end, s.type) for s in (self.head, self.tail))
        return EntityPair(self.text_position, head, tail, self.sentence.start, self.sentence.end, scores)


def head_spans(text: str, spans: Sequence[EntitySpan], head: str) -> list[EntitySpan]:
    """The spans with every mention of the head added; spans that overlap such a mention are dropped."""
    pattern = re.compile(rf"(?<!\w){re.escape(head)}(?!\w)", re.IGNORECASE)
    heads = [EntitySpan(*match.span()) for match in pattern.finditer(text)]
    ends = [mention.end for mention in heads]
    following = [bisect_right(ends, span.start) for span in spans]  # the first head that ends after the span's start
    stays = [
        place == len(heads) or span.end <= heads[place].start for place, span in zip(following, spans, strict=True)
    ]
    return sorted(chain(heads, compress(spans, stays)))


def pair_mentions(
    texts: Sequence[str],
    spans: Sequence[Sequence[EntitySpan]],
    tokenizer: Tokenizer,
    sentences: Callable[[str], Sequence[Sentence]],
    *,
    head: str | None = None,
) -> Iterator[PairMention]:
    """Ordered pairs of mentions in a sentence that are close enough, in the order of the texts.

    Two mentions of one entity, entities in different clauses, and items of a list are not paired. Dates and numbers are
    never heads. ``sentences``: those of a text. ``head``: mentions of this name are added, and only pairs with one.
    """
    name = None if head is None else head.casefold()
    for position, (text, text_spans) in enumerate(zip(texts, spans, strict=True)):
        check_interrupted()
        if head is not None and name is not None:
            text_spans = head_spans(text, text_spans, head) if name in text.casefold() else ()
        quoted = quotations(text) if text_spans else []
        pairs = [
            mention
            for sentence, members in sentence_groups(sentences(text) if text_spans else [], text_spans)
            if name is None or name in text[sentence.start : sentence.end].casefold()
            for mention in _sentence_mentions(
                position, text, sentence, [text_spans[m] for m in members], quoted, tokenizer=tokenizer, name=name
            )
        ]
        yield from sorted(pairs, key=lambda mention: (mention.head, mention.tail))


def _sentence_mentions(
    text_position: int,
    text: str,
    sentence: EntitySpan,
    spans: Sequence[EntitySpan],
    quoted: Sequence[tuple[int, int]],
    *,
    tokenizer: Tokenizer,
    name: str | None,
) -> Iterator[PairMention]:
    starts = [sentence.start, *(span.end for span in spans)]
    ends = [*(span.start for span in spans), sentence.end]
    gaps = tokenizer.words([text[start:end] for start, end in zip(starts, ends, strict=True)])
    # Tokens of the sentence with a placeholder for each entity, and the index of each placeholder.
    sentence_tokens, indexes = list(gaps[0]), []
    for gap in gaps[1:]:
        indexes.append(len(sentence_tokens))
        sentence_tokens += [ENTITY, *gap]
    assertions: dict[tuple[int, int], Assertion] = {}
    for pattern in sentence_patterns(gaps[1:-1], before=gaps[0], after=gaps[-1]):
        check_interrupted()
        head, tail = spans[pattern.head], spans[pattern.tail]
        if head.type in VALUES or _are_unrelated(head, tail, pattern) or _are_same(text, head, tail):
            continue
        if name is not None and (_name(text, head) == name) == (_name(text, tail) == name):
            continue
        first, last = sorted((pattern.head, pattern.tail))
        if (first, last) not in assertions:
            arguments = [index for index, token in enumerate(pattern.tokens) if token in (ARG1, ARG2)]
            num_behind = len(pattern.tokens) - 1 - arguments[-1]
            assertions[first, last] = assertion_of(
                pattern.tokens,
                before=sentence_tokens[: indexes[first] - arguments[0]],
                after=sentence_tokens[indexes[last] + 1 + num_behind :],
                quoted=any(start < spans[first].start and spans[last].end < end for start, end in quoted),
            )
        yield PairMention(text_position, head, tail, sentence, pattern.tokens, assertions[first, last])


def _are_unrelated(head: EntitySpan, tail: EntitySpan, pattern: SentencePattern) -> bool:
    """Whether two entities are in different clauses or one list, or one belongs to a verb (``met Ann in Oslo``)."""
    if pattern.is_list or (head.clauses and tail.clauses and head.clauses.isdisjoint(tail.clauses)):
        return True
    later = max(head, tail)
    belongs_to_verb = later.is_adjunct or (later.type in VALUES and head.type is not EntityType.EVENT)
    return belongs_to_verb and len(pattern.between) == 1 and pattern.between[0].isalpha()


def _name(text: str, span: EntitySpan) -> str:
    return text[span.start : span.end].casefold()


def _are_same(text: str, head: EntitySpan, tail: EntitySpan) -> bool:
    """Whether two mentions name one entity: the same name, or a person's last name."""
    short, long = sorted((_name(text, head).split(), _name(text, tail).split()), key=len)
    are_people = {head.type, tail.type} <= {EntityType.PERSON, EntityType.UNKNOWN} and head.type != tail.type
    are_people |= head.type is tail.type is EntityType.PERSON
    return short == long or (are_people and len(short) == 1 and short == long[-1:])


def group_tails(pairs: Sequence[EntityPair], *, is_inverse: bool = False) -> list[RankedTail]:
    """Pairs of one head and one relation, grouped by tail; best first, ties by name.

    ``is_inverse``: the relation was requested in the other direction, so the heads are the answers.
    """

    def answer(pair: EntityPair) -> str:
        return pair.head.text if is_inverse else pair.tail.text

    by_answer: dict[str, list[EntityPair]] = {}
    for pair in pairs:
        by_answer.setdefault(answer(pair).casefold(), []).append(pair)
    ranked = []
    for group in by_answer.values():
        group.sort(key=lambda pair: -pair.pattern_score.relations[0].score)
        best = group[0].pattern_score.relations[0]
        mentions = tuple(TailMention(pair.text_position, pair) for pair in group)
        ranked.append(RankedTail(answer(group[0]), best.score, best.probability, best.accepted, mentions))
    return sorted(ranked, key=lambda tail: (-tail.score, tail.tail))


def symmetrised(
    arrays: ScoreArrays, mirror_images: Mapping[TypedPattern, TypedPattern], symmetric_R: Bools
) -> ScoreArrays:
    """Scores in which a symmetric relation gets the higher score of a pattern and its mirror image.

    ``mirror_images``: the patterns, in the order of the rows, and the mirror image of each.
    """
    if not symmetric_R.any():
        return arrays
    partners_P = partners_of(list(mirror_images), list(mirror_images.values()))
    take_PR = symmetric_R & (arrays.scores[partners_P] > arrays.scores)
    names = ("symmetric", "asymmetric", "universal_schema", "scores", "probabilities", "accepted")
    columns = {name: getattr(arrays, name) for name in names}
    return replace(arrays, **{name: np.where(take_PR, own[partners_P], own) for name, own in columns.items()})


def asserted_relations(
    mentions: Sequence[PairMention], arrays: ScoreArrays, rows_M: Ints, *, symmetric_R: Bools, max_per_pair: int | None
) -> Bools:
    """Which relations of the mentions are asserted, ``[M, R]``.

    ``rows_M``: rows of their patterns in the arrays. ``max_per_pair``: as for ``best_of_pairs``.
    """
    possible_MR = arrays.accepted[rows_M]
    possible_MR[[mention.assertion.status is not AssertionStatus.ASSERTED for mention in mentions]] = False
    backwards_M = np.array([mention.tail < mention.head for mention in mentions], dtype=np.bool_)
    possible_MR[np.ix_(backwards_M, symmetric_R)] = False
    partners_M = partners_of(
        [(mention.text_position, mention.head, mention.tail) for mention in mentions],
        [(mention.text_position, mention.tail, mention.head) for mention in mentions],
    )
    return best_of_pairs(possible_MR, arrays.probabilities[rows_M], partners_M, max_per_pair=max_per_pair)


def partners_of(keys: Sequence[tuple[object, ...]], mirrored_keys: Sequence[tuple[object, ...]]) -> Ints:
    """Index of each item's mirror image, ``[M]``; its own index if there is none."""
    indexes = {key: index for index, key in enumerate(keys)}
    return np.array([indexes.get(key, index) for index, key in enumerate(mirrored_keys)], dtype=np.int64)


def best_of_pairs(accepted_MR: Bools, probabilities_MR: Floats, partners_M: Ints, *, max_per_pair: int | None) -> Bools:
    """The most probable of the accepted relations between each pair of entities, ``[M, R]``.

    Ties go to the earlier mention and relation. ``partners_M``: index of the mention of the same entities in the other
    direction; see ``partners_of``. ``max_per_pair``: most relations, counting both directions; None: all.
    """
    if max_per_pair is None:
        return accepted_MR
    mentions_C, relations_C = np.nonzero(accepted_MR)
    pairs_C = np.minimum(mentions_C, partners_M[mentions_C])
    order_C = np.lexsort((relations_C, mentions_C, -probabilities_MR[mentions_C, relations_C], pairs_C))
    sorted_C = pairs_C[order_C]
    rank_C = np.arange(len(sorted_C)) - np.searchsorted(sorted_C, sorted_C)  # among the candidates of the same pair
    kept_C = order_C[rank_C < max_per_pair]
    best_MR = np.zeros_like(accepted_MR)
    best_MR[mentions_C[kept_C], relations_C[kept_C]] = True
    return best_MR
