"""Tokenizes with spaCy's English tokenizer, which needs no downloaded pipeline, and checks texts.

spaCy splits a text at white space first and then each piece separately. So the tokens of a piece can be cached, which
makes tokenizing about 40 times as fast and gives the same tokens.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from facets.errors import ErrorPath, InvalidInputError, path_text
from facets.language.interruption import FifoLock, check_interrupted

if TYPE_CHECKING:
    from spacy.language import Language

# UTF-16 surrogates, which spaCy cannot store.
_SURROGATE = re.compile("[\ud800-\udfff]")
# Longer pieces are cut, because spaCy needs quadratic time for an endless "word".
_MAX_PIECE_CHARS = 128
_MAX_CACHED_PIECE_CHARS = 48
_MAX_SUFFIX_CHARS = 8  # what spaCy splits from the end of a word has 5 at most, apart from dots
MAX_CACHED_PIECES = 500_000
# Characters that a thread splits before yielding to others: a few milliseconds, or about ten for the slowest texts.
_TURN_CHARS = 2_000

ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a text: ``text == source[start:end]``; offsets count characters."""

    text: str
    start: int
    end: int


class Tokenizer:
    """Splits texts into tokens; may be shared by threads.

    Example:
        >>> tokenizer = Tokenizer()
        >>> tokenizer.words(["Dr. Lee didn't come."])
        [['dr.', 'lee', 'did', "n't", 'come', '.']]
    """

    def __init__(self) -> None:
        self._lock = FifoLock()
        self._words: dict[str, tuple[str, ...]] = {}

    @cached_property
    def _nlp(self) -> "Language":
        import spacy  # half a second, which many programs do not need

        nlp = spacy.blank("en")
        tokenizer: Any = nlp.tokenizer
        tokenizer.suffix_search = partial(_suffix, tokenizer.suffix_search)
        return nlp

    def tokenize(self, texts: Sequence[str], *, most: int | None = None) -> list[list[Token]]:
        """``words`` with character offsets."""
        return [list(_located(text, words)) for text, words in zip(texts, self.words(texts, most=most), strict=True)]

    def words(self, texts: Sequence[str], *, most: int | None = None) -> list[list[str]]:
        """The tokens of each text in lower case, without offsets: the fast path for encoding.

        ``most``: maximum number of words per text; further words cost no time.
        """
        check_sequence(texts, "words")
        # Every piece has at least one word.
        pieces = [text.split() if most is None else text.split(None, most)[:most] for text in texts]
        cache, long = self._look_up(set(chain.from_iterable(pieces)), most)
        return [[word for piece in row for word in cache.get(piece) or long[piece]][:most] for row in pieces]

    def has_seen(self, texts: Iterable[str]) -> bool:
        """Whether all words of these texts are cached, so that ``words`` does not wait for spaCy."""
        return all(piece in self._words for text in texts for piece in text.split())

    def _look_up(self, pieces: set[str], most: int | None) -> tuple[dict[str, tuple[str, ...]], dict[str, list[str]]]:
        """The words of all pieces in two dictionaries: the cache, and the pieces that are too long for it."""
        cache = self._words
        missing = pieces.difference(cache)
        if not missing:
            return cache, {}
        if len(cache) + len(missing) > MAX_CACHED_PIECES:
            # Other threads may still be reading the old dictionary.
            cache, missing = {}, pieces
            self._words = cache
        long: dict[str, list[str]] = {}
        for turn in _turns(missing):
            with self._lock, self._nlp.memory_zone():
                for piece, part in turn:
                    if len(piece) <= _MAX_CACHED_PIECE_CHARS:
                        cache[piece] = tuple(self._split(part))
                    elif most is None or len(long.get(piece, ())) < most:
                        long.setdefault(piece, []).extend(self._split(part))
        return cache, long

    def _split(self, part: str) -> Iterator[str]:
        """Words of a part. The caller holds the lock and a memory zone, which frees spaCy's copies of the strings."""
        for token in self._nlp.tokenizer(_SURROGATE.sub("\ufffd", part)):
            # The only character that is longer in lower case would shift offsets.
            yield part[token.idx : token.idx + len(token)].replace("\u0130", "i").lower()


def _suffix(search: Callable[..., re.Match[str] | None], part: str) -> re.Match[str] | None:
    """The match of spaCy's suffixes at the end of a part, which spaCy asks for once for each mark of a run of marks.

    Only a row of dots is longer than ``_MAX_SUFFIX_CHARS``; any other match is found among the last characters.
    """
    start = max(0, len(part) - _MAX_SUFFIX_CHARS)
    match = search(part, start)
    return search(part) if match and match.start() == start > 0 else match


def _located(text: str, words: Iterable[str]) -> Iterator[Token]:
    """The tokens of a text whose first words are given."""
    end = 0
    for word in words:
        while text[end].isspace():
            end += 1
        start, end = end, end + len(word)
        yield Token(text[start:end], start, end)


def _turns(pieces: Iterable[str]) -> Iterator[list[tuple[str, str]]]:
    """Yields turns: lists of pieces with one of their parts.

    A turn is short enough that no thread waits long for spaCy; the work may be interrupted before each turn.
    """
    parts = (
        (piece, piece[start : start + _MAX_PIECE_CHARS])
        for piece in pieces
        for start in range(0, len(piece), _MAX_PIECE_CHARS)
    )
    for turn in grouped(parts, _TURN_CHARS, size=lambda pair: len(pair[1])):
        check_interrupted()
        yield turn


def grouped(items: Iterable[ItemT], most: int, *, size: Callable[[ItemT], int]) -> Iterator[list[ItemT]]:
    """Groups of items, in order, of total size ``most`` or less; a larger item forms a group by itself."""
    group: list[ItemT] = []
    total = 0
    for item in items:
        item_size = size(item)
        if group and total + item_size > most:
            yield group
            group, total = [], 0
        group.append(item)
        total += item_size
    if group:
        yield group


def check_sequence(texts: Sequence[str], method: str) -> None:
    """Raises TypeError for a single text, which would be read as a sequence of characters, and for no ``str``."""
    if isinstance(texts, str):
        raise TypeError(f"texts must be a sequence of str, got one str: try {method}([{texts[:20]!r}])")
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"texts[{position}] must be a str, got {type(text).__name__}")


def check_texts(texts: Sequence[str], method: str) -> None:
    """``check_sequence``, and ``check_text`` of each text."""
    check_sequence(texts, method)
    for position, text in enumerate(texts):
        check_text(text, ("texts", position))


def check_text(text: str, path: ErrorPath, *, max_bytes: int | None = None) -> None:
    """Raises InvalidInputError for a blank text, or one of more than ``max_bytes`` of UTF-8; TypeError for no ``str``.

    ``path``: where the text is in the caller's input.
    """
    if not isinstance(text, str):
        raise TypeError(f"{path_text(path)} must be a str, got {type(text).__name__}")
    if not text or text.isspace():
        raise InvalidInputError("has no words, expected at least one", path=path)
    if max_bytes is not None and len(text) * 4 > max_bytes:
        num_bytes = len(text.encode(errors="surrogatepass"))
        if num_bytes > max_bytes:
            raise InvalidInputError(f"has {num_bytes} bytes, the limit is {max_bytes}", path=path)
