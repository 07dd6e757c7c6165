"""Does a stop end a sentence? Rules on the word before it and on what follows."""

import re

from spacy.lang.en.stop_words import STOP_WORDS

__all__ = ["is_boundary"]

# Followed by a name or a number, so their stop never ends a sentence.
_TITLES = frozenset(
    "mr mrs ms mx dr prof st sen rep gov gen col maj capt lt cmdr cpl sgt adm hon rev fr sr msgr pres supt"
    " vs v cf e.g i.e eg ie viz al mt ft messrs mmes".split()
)
# Theirs ends one unless a number follows: "p. 5", "No. 7", "Jan. 3", "ca. 1900".
_BEFORE_NUMBERS = frozenset(
    "p pp no nos vol vols fig figs eq eqs sec sect ch chap art ca c approx op ed eds para ver"
    " jan feb mar apr jun jul aug sep sept oct nov dec b d r est".split()
)
# These may stand at the end of a sentence: theirs ends one when a word follows that often begins a sentence.
_EITHER = frozenset(
    "inc ltd co corp bros jr sr etc dept univ assn ave blvd rd ph.d b.a m.a b.sc m.sc m.d a.m p.m a.d b.c u.s u.k"
    " u.n approx min max tel est esp".split()
)
_STARTERS = STOP_WORDS | {"mr.", "mrs.", "dr."}
_WORD_BEFORE = re.compile(r"[^\W\d_](?:[\w.&'-]*\w)?$")
_ACRONYM = re.compile(r"^(?:[^\W\d_]\.)+[^\W\d_]$")
_NEXT_WORD = re.compile(r"[^\W\d_]+")
_OPENERS = "\"'([{\u2018\u201c\u00ab\u00bf\u00a1*-\u2013\u2014"
_FULL_WIDTH = "\u3002\uff01\uff1f"
_LOOK_BACK_CHARS = 24


def is_boundary(text: str, stop: int, after: int, start: int, end: int) -> bool:
    """Whether the stop ``text[stop:after]`` (with closing quotes) ends a sentence of ``text[start:end]``.

    Args:
        text: The text.
        stop: Offset of the stop's first character.
        after: Offset behind the stop and what closes quotations after it.
        start: Offset where the line starts.
        end: Offset behind the line.

    Returns:
        True when the sentence ends at ``after``.
    """
    if text[stop] in _FULL_WIDTH:
        return True
    follow = _skip(text, after, end)
    if follow == end or text[follow].islower():
        # Text that goes on in lower case: '"Really?" he said', 'approx. three', 'and so on ... until'.
        return follow == end
    if text[stop] != "." or after - stop > 1:
        return True
    before = _WORD_BEFORE.search(text, max(start, stop - _LOOK_BACK_CHARS), stop)
    return before is None or _ends_after_word(before.group(), text, follow, end)


def _ends_after_word(word: str, text: str, follow: int, end: int) -> bool:
    key = word.lower()
    if key in _TITLES:
        return False
    if key in _BEFORE_NUMBERS and text[follow].isnumeric():
        return False
    if len(word) == 1 and word.isupper():
        return False  # an initial
    if key in _EITHER or _ACRONYM.match(word):
        following = _NEXT_WORD.match(text, follow, end)
        return following is None or following.group().lower() in _STARTERS
    return True


def _skip(text: str, position: int, end: int) -> int:
    """Offset of the first character from ``position`` on that is no white space and opens no quotation."""
    while position < end and (text[position].isspace() or text[position] in _OPENERS):
        position += 1
    return position
