"""Sentence patterns: the words between two entities, as in ``$ARG1 , the partner of fellow $ARG2``."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from facets.errors import ErrorPath, InvalidInputError, path_text
from facets.language.sentences import Sentence
from facets.language.tokenizer import Tokenizer
from facets.relations.entities import EntitySpan

ARG1 = "$ARG1"
ARG2 = "$ARG2"
ENTITY = "$ENT"
PHRASE_BORDERS = frozenset(", ; : ( ) but".split())  # what is said on one side is not said about the other

_PLACEHOLDER = re.compile(r"(\$ARG1|\$ARG2|\$ENT)(?![A-Za-z0-9])")
_MIRROR = {ARG1: ARG2, ARG2: ARG1}
# Words that say nothing when alone between two entities; the words around the two entities may say something.
_AND = frozenset(["and", "&", "or"])
_COMMA = frozenset([",", "-", "\u2013", "(", ")"])
_EMPTY = _AND | _COMMA | frozenset("is are was were be been has have had not n't : the a an also named called".split())
_FUNCTION_WORDS = frozenset("in on at of to for by with from as it he she they this that there these those".split())
_WIDENING_ENDS = PHRASE_BORDERS | frozenset(". ? ! and or".split())
POSSESSIVE = frozenset(["'s", "\u2019s", "'", "\u2019"])
_MAX_WIDENING = 6  # tokens
# How far apart the two entities of a pattern may be; other entities between them count as one token each.
MAX_TOKENS_BETWEEN = 12
_MAX_ENTITIES_BETWEEN = 2
_MAX_PATTERNS = 400  # of a sentence, for the closest pairs


@dataclass(frozen=True, slots=True)
class SentencePattern:
    """One ordered pair of entities in a sentence."""

    head: int  # index of `$ARG1` among the sentence's entities
    tail: int  # index of `$ARG2`
    tokens: tuple[str, ...]  # lower-case tokens and placeholders

    @property
    def is_list(self) -> bool:
        """Whether only ``and`` joins the two, and nothing is said about both."""
        between = frozenset(self.between)
        return bool(between & _AND) and between <= _AND | _COMMA and len(self.tokens) == len(self.between) + 2

    @property
    def between(self) -> tuple[str, ...]:
        """The tokens between the two."""
        first, last = sorted((self.tokens.index(ARG1), self.tokens.index(ARG2)))
        return self.tokens[first + 1 : last]


def tokenize_patterns(
    patterns: Sequence[str], tokenizer: Tokenizer, *, path: ErrorPath = ("patterns",)
) -> list[tuple[str, ...]]:
    """Lower-case tokens of patterns, with placeholders kept.

    ``patterns``: each holds ``$ARG1`` and ``$ARG2`` exactly once, else InvalidInputError; other entities may be
    ``$ENT``. ``path``: where they are in the caller's input.

    Example:
        >>> tokenize_patterns(["$ARG1, the Partner of $ARG2"], Tokenizer())
        [('$ARG1', ',', 'the', 'partner', 'of', '$ARG2')]
    """
    if isinstance(patterns, str):
        raise TypeError(f"{path_text(path)} must be a sequence of str, got one str: try [{patterns[:20]!r}]")
    split: list[list[str]] = []
    for position, pattern in enumerate(patterns):
        where = (*path, position)
        if not isinstance(pattern, str):
            raise TypeError(f"{path_text(where)} must be a str, got {type(pattern).__name__}")
        parts = _PLACEHOLDER.split(pattern)  # every other part is a placeholder
        for argument in (ARG1, ARG2):
            count = parts[1::2].count(argument)
            if count != 1:
                rule = f"must hold {argument} exactly once, got it {count} times in {pattern[:80]!r}"
                raise InvalidInputError(rule, path=where)
        split.append(parts)
    words = iter(tokenizer.words([piece for parts in split for piece in parts[::2]]))
    return [
        tuple(token for index, part in enumerate(parts) for token in ([part] if index % 2 else next(words)))
        for parts in split
    ]


def sentence_patterns(
    gaps: Sequence[Sequence[str]], *, before: Sequence[str] = (), after: Sequence[str] = ()
) -> list[SentencePattern]:
    """Patterns for all pairs of entities in a sentence that are close enough, in both directions.

    If the words between two entities say nothing, the pattern is widened: ``the capital of $ARG1 is $ARG2``, ``$ARG1
    and $ARG2 are married``. ``gaps``: tokens between each entity and the next; ``before`` and ``after``: tokens before
    the first and after the last. Ordered by closeness of the pair, then by position; sentence order first.

    Example:
        >>> for pattern in sentence_patterns([["met"]]):
        ...     print(pattern.head, pattern.tail, " ".join(pattern.tokens))
        0 1 $ARG1 met $ARG2
        1 0 $ARG2 met $ARG1
    """
    patterns: list[SentencePattern] = []
    num_entities = len(gaps) + 1
    around = [before, *gaps, after]
    for distance in range(1, min(_MAX_ENTITIES_BETWEEN + 1, num_entities - 1) + 1):
        for first in range(num_entities - distance):
            between: list[str] = list(gaps[first])
            for gap in gaps[first + 1 : first + distance]:
                between += [ENTITY, *gap]
            if len(between) > MAX_TOKENS_BETWEEN:
                continue
            if len(patterns) == _MAX_PATTERNS:
                return patterns
            last = first + distance
            behind = around[last + 1]
            if last + 1 < num_entities and _is_about_next_entity(behind):
                behind = ()
            tokens = _widened((ARG1, *between, ARG2), around[first], behind)
            patterns.append(SentencePattern(first, last, tokens))
            patterns.append(SentencePattern(last, first, mirrored(tokens)))
    return patterns


def _widened(tokens: tuple[str, ...], before: Sequence[str], after: Sequence[str]) -> tuple[str, ...]:
    """The pattern, extended by the words around it if those between its arguments say nothing."""
    between = frozenset(tokens[1:-1])
    if not between or not between <= _EMPTY:
        return tokens
    if between <= _AND or not POSSESSIVE.isdisjoint(after[:1]):  # "Ann and Bo married", "Lima is Peru 's capital"
        behind = _up_to_border(after)
        return (*tokens, *behind) if _says_something(behind) else tokens
    if between <= _COMMA:  # "Lima , Peru"
        return tokens
    ahead = _up_to_border(before[::-1])[::-1]
    return (*ahead, *tokens) if _says_something(ahead) else tokens


def _is_about_next_entity(behind: Sequence[str]) -> bool:
    """Whether words before another entity are about that entity: ``border``, but not ``married in``, ``'s wife``."""
    return not behind or (behind[-1] not in _FUNCTION_WORDS and behind[0] not in POSSESSIVE)


def _up_to_border(tokens: Sequence[str]) -> tuple[str, ...]:
    border = next((index for index, token in enumerate(tokens) if token in _WIDENING_ENDS), len(tokens))
    return tuple(tokens[: min(border, _MAX_WIDENING)])


def _says_something(tokens: Sequence[str]) -> bool:
    return any(token.isalpha() and token not in _EMPTY and token not in _FUNCTION_WORDS for token in tokens)


def sentence_groups(
    sentences: Sequence[Sentence], spans: Sequence[EntitySpan]
) -> Iterator[tuple[EntitySpan, list[int]]]:
    """Spans of the sentences that hold at least two entities, and the positions of these in ``spans``.

    Sentences with a border inside an entity (``J. R. Ewing``) are joined. ``spans``: in text order, not overlapping.
    """
    position = number = 0
    while number < len(sentences) and position < len(spans) - 1:
        start, end = sentences[number].start, sentences[number].end
        number += 1
        members = []
        while position < len(spans) and spans[position].start < end:
            members.append(position)
            while spans[position].end > end and number < len(sentences):
                end = sentences[number].end
                number += 1
            position += 1
        if len(members) > 1:
            yield EntitySpan(start, end), members


def mirrored(tokens: Sequence[str]) -> tuple[str, ...]:
    """The pattern with its arguments exchanged."""
    return tuple(_MIRROR.get(token, token) for token in tokens)
