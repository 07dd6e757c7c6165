"""Sentence patterns: what stands between two entities, as ``$ARG1 , the partner of fellow $ARG2``."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from facets.errors import ConfigError, ErrorPath, InvalidInputError, path_text
from facets.language.sentences import Sentence
from facets.language.tokenizer import Tokenizer
from facets.relations.entities import EntitySpan

ARG1 = "$ARG1"
ARG2 = "$ARG2"
ENTITY = "$ENT"
PHRASE_BORDERS = frozenset(", ; : ( ) but".split())  # nothing said on one side is said on the other

_PLACEHOLDER = re.compile(r"(\$ARG1|\$ARG2|\$ENT)(?![A-Za-z0-9])")
_MIRROR = {ARG1: ARG2, ARG2: ARG1}
# Between two entities these alone say nothing; what stands before or behind them does.
_AND = frozenset(["and", "&", "or"])
_COMMA = frozenset([",", "-", "\u2013", "(", ")"])
_THIN = _AND | _COMMA | frozenset("is are was were be been has have had not n't : the a an also named called".split())
_PLAIN = frozenset("in on at of to for by with from as it he she they this that there these those".split())
_PARTICIPLES = frozenset("born written built made known set sung drawn run led held won".split())
_ENDS = PHRASE_BORDERS | frozenset(". ? ! and or".split())  # of what a pattern is widened by
_POSSESSIVE = frozenset(["'s", "\u2019s", "'", "\u2019"])
_MAX_WIDENING = 6  # tokens


@dataclass(frozen=True, kw_only=True, slots=True)
class PairLimits:
    """What is a pattern."""

    max_tokens_between: int = 12  # tokens between the two entities at most, a `$ENT` counts as one
    max_entities_between: int = 2  # other entities between them at most, each is one `$ENT`
    max_pairs: int = 200  # pairs of one sentence at most, the closest first

    def __post_init__(self) -> None:
        for name in ("max_tokens_between", "max_entities_between"):
            if getattr(self, name) < 0:
                raise ConfigError(f"PairLimits.{name} must be >= 0, got {getattr(self, name)}")
        if self.max_pairs < 1:
            raise ConfigError(f"PairLimits.max_pairs must be >= 1, got {self.max_pairs}")


@dataclass(frozen=True, slots=True)
class SentencePattern:
    """One ordered pair of entities of a sentence."""

    head: int  # position of `$ARG1` among the sentence's entities
    tail: int  # position of `$ARG2`
    tokens: tuple[str, ...]  # lower-case tokens with the placeholders

    @property
    def is_list(self) -> bool:
        """Nothing but ``and`` joins the two, and nothing is said of both behind it."""
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
    """Lower-case tokens of patterns that people or files give.

    ``patterns``: each holds ``$ARG1`` and ``$ARG2`` exactly once; other entities may be ``$ENT``. ``tokenizer``: splits
    what stands between the placeholders. ``path``: where the patterns stand in what the caller gave. Returns the tokens
    of each, placeholders kept as they are.

    Raises:
        InvalidInputError: A pattern lacks an argument or has one twice; ``field`` is ``patterns[i]``.
        TypeError: ``patterns`` is one ``str``, or one of them is no ``str``.

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
        parts = _PLACEHOLDER.split(pattern)  # every other one is a placeholder
        for argument in (ARG1, ARG2):
            found = parts[1::2].count(argument)
            if found != 1:
                raise InvalidInputError(
                    f"must hold {argument} exactly once, got it {found} times in {pattern[:80]!r}", path=where
                )
        split.append(parts)
    words = iter(tokenizer.words([piece for parts in split for piece in parts[::2]]))
    return [
        tuple(token for place, part in enumerate(parts) for token in ([part] if place % 2 else next(words)))
        for parts in split
    ]


def sentence_patterns(
    gaps: Sequence[Sequence[str]], limits: PairLimits, *, before: Sequence[str] = (), after: Sequence[str] = ()
) -> list[SentencePattern]:
    """Patterns of every pair of a sentence's entities within the limits, in both directions.

    Where nothing with a meaning stands between the two, the pattern is widened: ``the capital of $ARG1 is $ARG2``,
    ``$ARG1 and $ARG2 are married``.

    Args:
        gaps: Tokens between each entity and the next; one less than there are entities.
        limits: How far apart two entities may be.
        before: Tokens of the sentence before its first entity.
        after: Tokens of the sentence behind its last entity.

    Returns:
        Closest pairs first, then in the order of the sentence; the direction of the sentence first.

    Example:
        >>> for pattern in sentence_patterns([["met"]], PairLimits()):
        ...     print(pattern.head, pattern.tail, " ".join(pattern.tokens))
        0 1 $ARG1 met $ARG2
        1 0 $ARG2 met $ARG1
    """
    found: list[SentencePattern] = []
    num_entities = len(gaps) + 1
    around = [before, *gaps, after]
    for distance in range(1, min(limits.max_entities_between + 1, num_entities - 1) + 1):
        for first in range(num_entities - distance):
            between: list[str] = list(gaps[first])
            for gap in gaps[first + 1 : first + distance]:
                between.append(ENTITY)
                between += gap
            if len(between) > limits.max_tokens_between:
                continue
            if len(found) + 2 > 2 * limits.max_pairs:
                return found
            last = first + distance
            behind = around[last + 1]
            if last + 1 < num_entities:
                behind = _without_object(behind)
            tokens = _widened((ARG1, *between, ARG2), around[first], behind)
            found.append(SentencePattern(first, last, tokens))
            found.append(SentencePattern(last, first, mirrored(tokens)))
    return found


def _widened(tokens: tuple[str, ...], before: Sequence[str], after: Sequence[str]) -> tuple[str, ...]:
    """A pattern with what stands around it, where nothing with a meaning stands between its arguments."""
    between = frozenset(tokens[1:-1])
    if not between or not between <= _THIN:
        return tokens
    if between <= _AND or not _POSSESSIVE.isdisjoint(after[:1]):  # "Ann and Bo married", "Lima is Peru 's capital"
        behind = _up_to_border(after)
        return (*tokens, *behind) if _has_meaning(behind) else tokens
    ahead = _up_to_border(before[::-1])[::-1]
    # "Lima , Peru" is complete wherever it stands; "Directed by Ann , the film" is not.
    is_complete = between <= _COMMA and not (len(ahead) == len(before) and _is_participle(ahead[:1]))
    return tokens if is_complete or not _has_meaning(ahead) else (*ahead, *tokens)


def _without_object(behind: Sequence[str]) -> Sequence[str]:
    """What stands before another entity: ``married in``, but not ``border``, which is about that entity."""
    is_object = not behind or (behind[-1] not in _PLAIN and behind[0] not in _POSSESSIVE)
    return () if is_object else behind


def _up_to_border(tokens: Sequence[str]) -> tuple[str, ...]:
    border = next((place for place, token in enumerate(tokens) if token in _ENDS), len(tokens))
    return tuple(tokens[: min(border, _MAX_WIDENING)])


def _has_meaning(tokens: Sequence[str]) -> bool:
    return any(token.isalpha() and token not in _THIN and token not in _PLAIN for token in tokens)


def _is_participle(tokens: Sequence[str]) -> bool:
    return any(token.endswith("ed") or token in _PARTICIPLES for token in tokens)


def sentence_groups(
    text: str, spans: Sequence[EntitySpan], tokenizer: Tokenizer
) -> Iterator[tuple[Sentence, list[int]]]:
    """Sentences that hold at least two entities.

    A sentence border inside an entity (``J. R. Ewing``) is none: its sentences are joined.

    ``spans``: entities in the order of the text, not overlapping.

    Yields:
        A sentence and the positions of its entities in ``spans``.
    """
    position = 0
    sentences = tokenizer.sentences(text)
    number = 0
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
            yield Sentence(text[start:end], start, end, text[start:end]), members


def mirrored(tokens: Sequence[str]) -> tuple[str, ...]:
    """The same pattern with its arguments exchanged."""
    return tuple(_MIRROR.get(token, token) for token in tokens)
