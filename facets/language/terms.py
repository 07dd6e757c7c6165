"""Terms of a text for lexical search: stemmed words in lower case, whole identifiers, quoted phrases.

Chinese, Japanese and Thai, which have no spaces, give a term for each two neighbouring characters, except in English
collections.

Example:
    >>> terms("Error AB-1234: the engines stalled")
    ['error', 'ab', '1234', 'ab-1234', 'the', 'engin', 'stall']
    >>> terms("\u6771\u4eac\u90fd", "ja") == ["\u6771\u4eac", "\u4eac\u90fd"]
    True
"""

import re
from dataclasses import dataclass
from itertools import pairwise

from facets.language.languages import DEFAULT_LANGUAGE, HAN, Language, language_of

_PHRASE = re.compile(r'"([^"]+)"')
_MAX_PHRASES = 32  # most distinct phrases of a query that must match; further ones count only as words


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The terms of a query."""

    words: tuple[tuple[str, str], ...]  # terms and the words they stem from; stop words only if there are no others
    phrases: tuple[tuple[str, ...], ...]  # terms of the first 32 distinct quoted phrases, stop words included
    language: str  # of the collection

    def is_stop_word(self, word: str) -> bool:
        """Whether a word says nothing by itself."""
        language = language_of(self.language)
        return language.fold(word) in language.stop_words


def terms(text: str, language: str = DEFAULT_LANGUAGE, *, stored: bool = False) -> list[str]:
    """The terms of a text, in order; an identifier (parts joined by ``-_./:`` with a digit) comes after its parts.

    ``stored``: those of a document, with single Chinese characters, of which a query may consist.
    """
    return [term for term, _ in _terms(text, language_of(language), stored=stored)]


def located_terms(text: str, start: int = 0, end: int | None = None, *, language: str) -> list[tuple[str, int, int]]:
    """Stored terms of ``text[start:end]`` with the offsets of their words; identifiers appear only as their parts."""
    rules = language_of(language)
    found: list[tuple[str, int, int]] = []
    for match in rules.patterns.located.finditer(text, start, len(text) if end is None else end):
        word = match.group()
        if word.isascii():
            found.append((word, *match.span()))
            continue
        for first, last in _spans(word, rules, stored=True):
            span = match.start() + first, match.start() + last
            found += [(part, *span) for part in rules.patterns.part.findall(rules.fold(text[slice(*span)]))]
    words = list({word for word, _, _ in found})
    folded = [rules.fold(word) if word.isascii() else word for word in words]
    stems = dict(zip(words, rules.stem(folded), strict=True))
    return [(stems[word], first, last) for word, first, last in found]


def query_terms(text: str, language: str = DEFAULT_LANGUAGE) -> QueryTerms:
    """Reads a query: words, and phrases between double quotes.

    Example:
        >>> query_terms('Who wrote "the origin of species"?').phrases
        (('the', 'origin', 'of', 'speci'),)
        >>> [term for term, _ in query_terms("to be or not to be").words]
        ['to', 'be', 'or', 'not', 'to', 'be']
    """
    rules = language_of(language)
    found = _terms(text, rules, stored=False)
    content = [(term, word) for term, word in found if word not in rules.stop_words]
    quoted = dict.fromkeys(tuple(terms(phrase, language)) for phrase in _PHRASE.findall(text))
    phrases = [phrase for phrase in quoted if len(phrase) > 1]
    return QueryTerms(tuple(content or found), tuple(phrases[:_MAX_PHRASES]), rules.code)


def _terms(text: str, rules: Language, *, stored: bool) -> list[tuple[str, str]]:
    """Terms and the folded words they stem from."""
    words: list[str] = []
    whole: list[bool] = []
    for match in rules.patterns.word.finditer(rules.fold(text)):
        word = match.group()
        parts = rules.patterns.part.findall(word)
        own = parts
        if not word.isascii():
            own = [part[slice(*span)] for part in parts for span in _spans(part, rules, stored=stored)]
        words += own
        whole += [False] * len(own)
        if len(parts) > 1 and any(character.isdigit() for character in word):
            words.append(word)
            whole.append(True)
    stems = rules.stem(words)
    return [(word if kept else stem, word) for word, stem, kept in zip(words, stems, whole, strict=True)]


def _spans(part: str, rules: Language, *, stored: bool) -> list[tuple[int, int]]:
    """Offsets of the terms of a part: neighbouring characters, if its script has no spaces; else the whole part."""
    characters = rules.characters(part)
    if len(characters) < 2:
        return [(0, len(part))]
    pairs = [(first, last) for (first, _), (_, last) in pairwise(characters)]
    return sorted(pairs + [span for span in characters if HAN.match(part, span[0])]) if stored else pairs
