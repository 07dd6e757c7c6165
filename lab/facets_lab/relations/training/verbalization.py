"""Patterns that say a relation: phrases from a file, and the words of its name."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from facets.errors import InvalidInputError
from facets.language.files import read_lines
from facets.language.tokenizer import Tokenizer
from facets.relations.patterns import ARG1, ARG2, tokenize_patterns

__all__ = ["name_patterns", "name_words", "phrase_patterns", "read_phrases"]

_CAMEL = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_PREPOSITIONS = frozenset("at by for from in of on to with".split())
_SPACES = re.compile(r"\s+")


def read_phrases(path: Path) -> dict[str, list[str]]:
    """Phrases by relation: ``relation<TAB>pattern`` a line.

    Raises:
        InvalidInputError: A bad line; the message names file and line.
        ConfigError: The file cannot be read.
    """
    phrases: dict[str, list[str]] = {}
    for number, line in enumerate(read_lines(path), start=1):
        relation, tab, pattern = line.partition("\t")
        tokens = pattern.split()
        if not tab or not relation or tokens.count(ARG1) != 1 or tokens.count(ARG2) != 1:
            raise InvalidInputError(
                f"{path}, line {number}: expected relation<TAB>pattern with {ARG1} and {ARG2}, got {line[:80]!r}"
            )
        phrases.setdefault(relation, []).append(" ".join(tokens))
    return phrases


def phrase_patterns(phrases: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Phrases by relation -> relations by pattern as it is mined: lower-case tokens joined by blanks.

    Example:
        >>> phrase_patterns({"author": ["$ARG2 , who wrote $ARG1"], "creator": ["$ARG2, who wrote $ARG1"]})
        {'$ARG2 , who wrote $ARG1': ['author', 'creator']}
    """
    flat = [(relation, phrase) for relation, own in phrases.items() for phrase in own]
    relations: dict[str, list[str]] = {}
    for (relation, _), tokens in zip(flat, tokenize_patterns([p for _, p in flat], Tokenizer()), strict=True):
        own = relations.setdefault(" ".join(tokens), [])
        if relation not in own:
            own.append(relation)
    return relations


def name_words(relation: str) -> list[str]:
    """Lower-case words of a relation's name.

    Example:
        >>> name_words("leaderName"), name_words("associatedBand/associatedMusicalArtist")[:3]
        (['leader', 'name'], ['associated', 'band', 'associated'])
    """
    return [word.lower() for word in _CAMEL.findall(relation.replace("_", " "))]


def name_patterns(relation: str) -> list[str]:
    """Patterns that say a relation by the words of its name.

    Example:
        >>> name_patterns("leaderName")[0], name_patterns("worksFor")
        ("$ARG1 's leader name is $ARG2", ['$ARG1 works for $ARG2'])
    """
    patterns = []
    for alternative in re.split(r"[/(]", relation):
        own = name_words(alternative)
        words = " ".join(own)
        # ``worksFor`` says a relation as a verb does; nobody is "the works for of" anybody.
        if own and own[-1] not in _PREPOSITIONS:
            patterns += [
                f"{ARG1} 's {words} is {ARG2}",
                f"{ARG1} has the {words} {ARG2}",
                f"{ARG2} is the {words} of {ARG1}",
            ]
        if own:
            patterns.append(f"{ARG1} {words} {ARG2}")
    return [_SPACES.sub(" ", pattern) for pattern in dict.fromkeys(patterns)]
