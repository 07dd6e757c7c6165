"""Terms of a text for lexical search: stemmed words in lower case, whole identifiers, quoted phrases.

Example:
    >>> terms("Error AB-1234: the engines stalled")
    ['error', 'ab', '1234', 'ab-1234', 'the', 'engin', 'stall']
"""

import re
import threading
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import Stemmer

_WORD = re.compile(r"\w+(?:[-_./:]\w+)*")
_PART = re.compile(r"[^\W_]+")
_LOCATED = re.compile(r"(?:[^\W_]|[\u0300-\u036f])+")  # with combining accents
_PHRASE = re.compile(r'"([^"]+)"')
_STOP_WORDS = frozenset(
    "a an and are as at be but by can could did do does for from had has have how i if in into is it its may no not of "
    "on or s should such t that the their then there these they this to was were what when where which who whom whose "
    "why will with would you your".split()
)
_MAX_PHRASES = 32  # most distinct phrases of a query that must match; further ones count only as words
_stemmers = threading.local()  # a stemmer must not be shared between threads


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The terms of a query."""

    words: tuple[tuple[str, str], ...]  # terms and the words they stem from; stop words only if there are no others
    phrases: tuple[tuple[str, ...], ...]  # terms of the first 32 distinct quoted phrases, stop words included


def is_stop_word(word: str) -> bool:
    """Whether a word in lower case is an English stop word."""
    return word in _STOP_WORDS


def terms(text: str) -> list[str]:
    """The terms of a text, in order; an identifier (parts joined by ``-_./:`` with a digit) comes after its parts."""
    return [term for term, _ in _terms(text)]


def located_terms(text: str, start: int = 0, end: int | None = None) -> list[tuple[str, int, int]]:
    """Terms of ``text[start:end]`` with the offsets of their words; identifiers appear only as their parts."""
    matches = _LOCATED.finditer(text, start, len(text) if end is None else end)
    if text.isascii():
        found = [(match.group().lower(), *match.span()) for match in matches]
    else:
        found = [
            (part, *match.span())
            for match in matches
            for part in _PART.findall(unicodedata.normalize("NFKC", match.group()).casefold())
        ]
    words = list({word for word, _, _ in found})
    stems = dict(zip(words, _stem(words), strict=True))
    return [(stems[word], first, last) for word, first, last in found]


def query_terms(text: str) -> QueryTerms:
    """Reads a query: words, and phrases between double quotes.

    Example:
        >>> query_terms('Who wrote "the origin of species"?').phrases
        (('the', 'origin', 'of', 'speci'),)
        >>> [term for term, _ in query_terms("to be or not to be").words]
        ['to', 'be', 'or', 'not', 'to', 'be']
    """
    found = _terms(text)
    content = [(term, word) for term, word in found if not is_stop_word(word)]
    quoted = dict.fromkeys(tuple(terms(phrase)) for phrase in _PHRASE.findall(text))
    phrases = [phrase for phrase in quoted if len(phrase) > 1]
    return QueryTerms(tuple(content or found), tuple(phrases[:_MAX_PHRASES]))


def _terms(text: str) -> list[tuple[str, str]]:
    words: list[str] = []
    whole: list[bool] = []
    for match in _WORD.finditer(unicodedata.normalize("NFKC", text).casefold()):
        word = match.group()
        parts = _PART.findall(word)
        words += parts
        whole += [False] * len(parts)
        if len(parts) > 1 and any(character.isdigit() for character in word):
            words.append(word)
            whole.append(True)
    stems = _stem(words)
    return [(word if kept else stem, word) for word, stem, kept in zip(words, stems, whole, strict=True)]


def _stem(words: Sequence[str]) -> list[str]:
    stemmer = getattr(_stemmers, "english", None)
    if stemmer is None:
        stemmer = _stemmers.english = Stemmer.Stemmer("english")
    return list(stemmer.stemWords(words))
