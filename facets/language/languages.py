"""The languages of collections: how words are found, stemmed and left out, and which language texts are in.

Example:
    >>> language_of("fi").stem(["taloissa", "talo"])
    ['talo', 'talo']
    >>> detect(["La vache donne du lait depuis le matin, et le chat la regarde."])
    'fr'
"""

import re
import threading
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from typing import NamedTuple

import Stemmer

from facets.errors import InvalidInputError
from facets.language.stop_words import stop_words_of_spacy

DEFAULT_LANGUAGE = "en"
_NAMES = {
    **{"ar": "Arabic", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English"},
    **{"eo": "Esperanto", "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish"},
    **{"fr": "French", "ga": "Irish", "hi": "Hindi", "hu": "Hungarian", "hy": "Armenian", "id": "Indonesian"},
    **{"it": "Italian", "ja": "Japanese", "lt": "Lithuanian", "ne": "Nepali", "nl": "Dutch", "no": "Norwegian"},
    **{"pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sr": "Serbian", "st": "Sesotho"},
    **{"sv": "Swedish", "ta": "Tamil", "th": "Thai", "tr": "Turkish", "yi": "Yiddish", "zh": "Chinese"},
}
_UNSPACED_CODES = frozenset({"ja", "th", "zh"})
# Stored terms of English depend on its list; for the other three spaCy has none.
_STOP_WORDS = {
    "en": "a an and are as at be but by can could did do does for from had has have how i if in into is it its may no "
    "not of on or s should such t that the their then there these they this to was were what when where which who whom "
    "whose why will with would you your",
    "eo": "al anka\u016d a\u016d \u0109ar \u0109i \u0109iu da de dum el en estas estis \u011di ili je kaj ke kiam kie "
    "kiel kio kiu kiuj kun la li mi ne nek ni nur ol per plej pli por post pri se sed si sub sur tio tiu tiuj tra vi",
    "st": "a ba bona bone di e empa ena fela ha haholo hape ho hore ka kapa ke kgotsa la le lena mme mo na o re sa se "
    "tsa tse wa ya",
    "yi": "\u05d0\u05d5\u05df \u05d0\u05d9\u05df \u05d0\u05d9\u05d6 \u05d0\u05d6 \u05d3\u05d9 \u05d3\u05e2\u05e8 "
    "\u05d3\u05e2\u05dd \u05d4\u05d0\u05d8 \u05d6\u05d9\u05d9\u05df \u05de\u05d9\u05d8 \u05e0\u05d9\u05e9\u05d8 "
    "\u05e4\u05d5\u05df \u05e6\u05d5 \u05e2\u05e8 \u05d5\u05d5\u05d0\u05e1 \u05d5\u05d5\u05d9",
}
# Vowel signs and accents belong to a word, but `\w` does not match them.
_MARKS = "".join(mark for mark in map(chr, range(0x300, 0x3100)) if unicodedata.category(mark).startswith("M"))
_MARKS += "\uff9e\uff9f"  # of half-width kana
_HAN = "\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA, _THAI = "\u3041-\u30ff\uff66-\uff9d", "\u0e01-\u0e4e"
_UNSPACED = rf"(?=\w)[{_HAN}{_KANA}{_THAI}]"  # a character of a script without spaces between words
_SPACED = rf"(?!{_UNSPACED})[^\W_]|[{_MARKS}]"
HAN = re.compile(f"[{_HAN}]")
CHARACTER = re.compile(rf"{_UNSPACED}[{_MARKS}]*")
_SCRIPTS = {"ja": re.compile(f"[{_KANA}]"), "zh": HAN, "th": re.compile(f"[{_THAI}]")}
_LATIN = re.compile(r"[A-Za-z]")

_EXAMINED_TEXTS, _EXAMINED_CHARS = 50, 500  # texts, and characters of each, that decide the language
# A text is in another language than English if these are reached. A stop word of n languages counts 1/n.
_LEAST_SHARE, _LEAST_LEAD = 0.04, 2.0  # stop words among all words; factor to those of English
_LEAST_WORDS = 3  # different stop words of a language in Latin letters; 1 of another
_LETTERS_PER_CHARACTER = 4  # letters of all scripts to each Chinese, Japanese or Thai one, at most
_MOST_KANJI = 5  # Chinese characters to each kana in Japanese, at most

_stemmers = threading.local()  # a stemmer must not be shared between threads


class _Patterns(NamedTuple):
    word: re.Pattern[str]  # a word, or an identifier of several parts
    part: re.Pattern[str]  # a part of a word
    located: re.Pattern[str]  # a part of a word in a text that is not folded


# Terms that are stored of English collections depend on these.
_ENGLISH = _Patterns(
    re.compile(r"\w+(?:[-_./:]\w+)*"), re.compile(r"[^\W_]+"), re.compile(r"(?:[^\W_]|[\u0300-\u036f])+")
)
_PART = re.compile(rf"(?:{CHARACTER.pattern})+|(?:{_SPACED})+")
_OTHERS = _Patterns(
    re.compile(rf"(?:{CHARACTER.pattern})+|(?:{_SPACED})+(?:(?:[-./:]|_+)(?:{_SPACED})+)*"), _PART, _PART
)


@dataclass(frozen=True)
class Language:
    """Rules for the words of a language."""

    code: str  # ISO 639-1

    @property
    def patterns(self) -> _Patterns:
        """What words look like."""
        return _ENGLISH if self.code == "en" else _OTHERS

    @cached_property
    def stop_words(self) -> frozenset[str]:
        """Words that say nothing by themselves, folded."""
        words = _STOP_WORDS.get(self.code) or " ".join(stop_words_of_spacy(self.code))
        return frozenset(word for word in self.patterns.part.findall(self.fold(words)) if not word.isdecimal())

    def fold(self, text: str) -> str:
        """The text in one case and with compatible characters replaced (NFKC)."""
        if self.code != "tr" and text.isascii():
            return text.lower()
        text = unicodedata.normalize("NFKC", text)
        if self.code == "tr":
            text = text.replace("I", "\u0131").replace("\u0130", "i")
        if self.code != "en":  # NFKC takes the Thai vowel AM apart
            text = text.replace("\u0e4d\u0e32", "\u0e33")
        return text.casefold()

    def characters(self, part: str) -> list[tuple[int, int]]:
        """Offsets of the characters of a part if they form terms in pairs; empty for a word."""
        if self.code == "en" or not CHARACTER.match(part):
            return []
        return [match.span() for match in CHARACTER.finditer(part)]

    def stem(self, words: Sequence[str]) -> list[str]:
        """Stems of folded words."""
        algorithm = "english" if self.code in _UNSPACED_CODES else _NAMES[self.code].lower()
        stemmer = getattr(_stemmers, algorithm, None)
        if stemmer is None:
            stemmer = Stemmer.Stemmer(algorithm)
            setattr(_stemmers, algorithm, stemmer)
        return list(stemmer.stemWords(words))


@cache
def language_of(code: str) -> Language:
    """The language of an ISO 639-1 code; English for an empty one, of a collection without documents.

    Raises InvalidInputError (``language``) for an unknown code.
    """
    if code and code not in _NAMES:
        rule = f"must be empty (found in the first documents) or one of {' '.join(sorted(_NAMES))}, got {code[:20]!r}"
        raise InvalidInputError(rule, path="language")
    return Language(code or DEFAULT_LANGUAGE)


def detect(texts: Iterable[str]) -> str:
    """The code of the language that texts are in, from their script and stop words; short and unclear texts: ``en``."""
    text = "\n".join(text[:_EXAMINED_CHARS] for text in islice(texts, _EXAMINED_TEXTS))
    scripts = {code: len(script.findall(text)) for code, script in _SCRIPTS.items()}
    num_unspaced, num_letters = sum(scripts.values()), sum(map(str.isalpha, text))
    if num_unspaced and num_letters <= _LETTERS_PER_CHARACTER * num_unspaced:
        is_japanese = scripts["ja"] * _MOST_KANJI >= scripts["zh"] and scripts["ja"] >= scripts["th"]
        return "ja" if is_japanese else max(scripts, key=scripts.__getitem__)
    words = Counter(_PART.findall(unicodedata.normalize("NFKC", text).casefold()))
    languages = _languages_by_stop_word()
    shares, found = defaultdict[str, float](float), Counter[str]()
    for word, count in words.items():
        for code in languages.get(word, ()):
            shares[code] += count / len(languages[word]) / words.total()
            found[code] += 1
    best = max(shares, key=shares.__getitem__, default=DEFAULT_LANGUAGE)
    least_words = _LEAST_WORDS if 2 * len(_LATIN.findall(text)) >= num_letters else 1
    is_clear = found[best] >= least_words and shares[best] >= max(_LEAST_SHARE, _LEAST_LEAD * shares["en"])
    return best if is_clear else DEFAULT_LANGUAGE


@cache
def _languages_by_stop_word() -> dict[str, list[str]]:
    """The languages with spaces that have a stop word of several letters."""
    found = dict[str, list[str]]()
    for code in sorted(_NAMES.keys() - _UNSPACED_CODES):
        words = stop_words_of_spacy("en") if code == "en" else language_of(code).stop_words  # ours are fewer
        for word in words:
            if len(word) > 1 or not word.isascii():
                found.setdefault(word, []).append(code)
    return found
