"""Splits a text into sentences, using its blocks and rules about the words around a full stop."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from facets.language.blocks import Block, Kind, blocks
from facets.language.interruption import check_interrupted
from facets.language.markup import LINE_ENDS, PREFIX, STOPS, Hyphens, said
from facets.language.stop_words import STOP_WORDS
from facets.language.tables import Row, stripped
from facets.language.wrapping import BEFORE_ORDINALS, DAY

# Followed by a name or a number, so their full stop never ends a sentence.
_TITLES = frozenset(
    "mr mrs ms mx dr prof sen rep gov gen col maj capt lt cmdr cpl sgt adm hon rev fr sr msgr pres supt"
    " mt messrs mmes hr".split()
)
# The same, but in capitals they are different words ("in Dublin, IE. Paul wrote").
_CONNECTIVES = frozenset(
    "vs v cf e.g i.e eg ie viz incl excl bzw ggf evtl inkl zzgl vgl sog insb geb z.b d.h bl.a f.eks bijv tzv"
    " nap\u0159 med mme mlle sra srta dra avda hrn ing dipl.-ing mgr dhr mevr tel t\u00e9l tlf ul sv".split()
)
# Their full stop ends a sentence unless a number follows: "p. 5", "No. 7", "Jan. 3", "ca. 1900".
_BEFORE_NUMBERS = frozenset(
    "p pp no nos vol vols fig figs eq eqs sec sect ch chap art ca c approx op ed eds para ver"
    " jan feb mar apr jun jul aug sep sept oct nov dec b d r est"
    " abs nr str kap abb tab bd kl max min p\u00e1g n\u00fam pag \u010d".split()
)
# Their full stop ends a sentence if the next word often begins a sentence.
_EITHER = frozenset(
    "inc ltd co corp bros jr sr etc dept univ assn ave blvd rd st ft ph.d b.a m.a b.sc m.sc m.d a.d b.c u.s u.k"
    " u.n approx min max est esp mio mrd jh".split()
)
# Capitalised words that begin sentences far more often than they belong to a name.
_STARTERS = (
    STOP_WORDS
    | {"mr", "mrs", "dr"}
    | frozenset(
        "according additionally certainly consequently currently despite earlier eventually finally following"
        " furthermore instead later like likewise nearly officials originally people police previously recently"
        " similarly somebody soon subsequently today tomorrow tonight unfortunately unlike yesterday".split()
    )
)
# The same in German and Danish, of words that are no names in English.
_OTHER_STARTERS = frozenset(
    "aber alle auch bitte danach dann das der die dies diese dieser dort er es hier ich ihr ihre nach nun sie sonst"
    " wenn wer wir det han hun jeg".split()
)
# Starters that are also surnames: "K. He", "T. May".
_SURNAMES = frozenset(
    "an back call down due few front full go he keep last least made may mine more move much name part put say see"
    " show side six so still take ten third top well will you".split()
)
# A single capital after these is a label or numeral, not an initial: "vitamin C", "World War I".
_LABELS = frozenset(
    "act annex appendix article block book box building category chapter class coenzyme column company division"
    " drive element exhibit figure formula gate grade group grp hepatitis immunoglobulin influenza item label league"
    " letter level line model module note option part phase plan platform point pool question room route"
    " schedule section serie series site stage step subgroup subtype table team terminal theorem title type unit"
    " variable variant version vitamin volume war zone".split()
)
_WORD_BEFORE = re.compile(r"[^\W\d_](?:[\w.&'-]*\w)?$")
_ACRONYM = re.compile(r"^(?:[^\W\d_]\.)+[^\W\d_]$")
_NEXT_WORD = re.compile(r"[^\W\d_]\.|[^\W\d_]+")  # an initial keeps its stop
_LAST_WORD = re.compile(r"(?<![\w.])[\w.'-]+(?=\s+$)")
_OPENERS = "\"'([{\u2018\u201c\u00ab\u00bf\u00a1*-\u2013\u2014"
_FULL_WIDTH = "\u3002\uff01\uff1f\uff61"
_NARROW = STOPS.translate(dict.fromkeys(map(ord, _FULL_WIDTH)))
_LOOK_BACK_CHARS = 24
# A number and the word before it, but not in "I am 25." and "at 10 am 25."
_NUMBER = re.compile(r"(?:(?<!\bI )(?<!\d )\b([^\W\d_]+),?\s+)?((?<!\w)(?<!\d[.,:])\d{1,2})$")
_LETTER_BEFORE = re.compile(r"(?<![\w.])[a-z]\.\s$")
# A stop, closing quotation marks, then white space; full-width stops need no white space, and Thai, which separates
# neither words nor sentences by marks, has only a space after each clause.
# Possessive quantifiers, and only at the first stop of a run, so that endless runs of stops take linear time.
_CANDIDATE = re.compile(
    f"(?<![{_NARROW}])[{_NARROW}]++[\"')\\]}}\u2019\u201d\u00bb*]*+(?=\\s|<br|</)"
    f"|[{_FULL_WIDTH}]+[\u300d\u300f\u201d\uff09]*"
    "|(?<=[\u0e01-\u0e4e]{12})(?= [\u0e01-\u0e4e])"
)


class Sentence(NamedTuple):
    """A sentence without surrounding white space."""

    text: str  # ``source[start:end]``
    start: int  # offset of the first character
    end: int  # offset after the last character
    said: str  # text as it is read: on one line, without marks, with words split at line ends joined
    kind: Kind = "paragraph"  # kind of its block
    row: Row | None = None  # the row of a table that it belongs to


def sentences_of(text: str) -> list[Sentence]:
    """The sentences of a text, in order; at least one if there is anything but white space.

    The end of a block ends a sentence; a newline inside a block does not. A stop followed by white space ends a
    sentence, unless it belongs to an abbreviation, an initial or a number, or lower case follows. A heading and a short
    row of a table are one sentence each, and so is each line of code.
    """
    hyphens = Hyphens(text)
    sentences: list[Sentence] = []
    for block in blocks(text):
        start = block.said_start
        cells = block.row.cuts if block.row else ()
        for cut in _ends(text, block):
            check_interrupted()
            if span := stripped(text, start, cut):
                if read := said(text, *span, hyphens=hyphens, cells=cells):
                    sentences.append(Sentence(text[slice(*span)], *span, read, block.kind, block.row))
                start = _BETWEEN.match(text, cut).end()  # type: ignore[union-attr]  # it always matches
    if not sentences and (span := stripped(text, 0, len(text))):
        part = text[slice(*span)]
        sentences.append(Sentence(part, *span, part))  # only marks
    return sentences


_BETWEEN = re.compile(rf"(?:[ \t]*+[{LINE_ENDS}]\s*+(?:{PREFIX}|\*[ \t]+))?")
_LONGEST_ROW = 300  # characters; cells of a longer one hold sentences
_LINE = re.compile(f"[^{LINE_ENDS}]+")


def _ends(text: str, block: Block) -> Iterator[int]:
    """Ends of the sentences of a block, in order."""
    start, end = block.said_start, block.said_end
    if block.kind == "code":
        yield from (match.end() for match in _LINE.finditer(text, start, end))
    elif block.kind == "heading" or (block.kind == "row" and end - start <= _LONGEST_ROW):
        yield end
    else:
        for match in _CANDIDATE.finditer(text, start, end):
            if is_boundary(text, match.start(), match.end(), start=start, end=end):
                yield match.end()
        yield end


def is_boundary(text: str, stop: int, after: int, *, start: int, end: int) -> bool:
    """Whether ``text[stop:after]``, a stop with closing quotes, ends a sentence of ``text[start:end]``."""
    if stop == after or text[stop] in _FULL_WIDTH:
        return True
    follow = after
    while follow < end and (text[follow].isspace() or text[follow] in _OPENERS):
        follow += 1
    if follow == end or text[follow].islower():
        # '"Really?" he said', 'approx. three', 'and so on ... until'
        return follow == end
    if text[stop] != "." or after - stop > 1:
        return True
    before = _WORD_BEFORE.search(text, max(start, stop - _LOOK_BACK_CHARS), stop)
    following = _NEXT_WORD.match(text, follow, end)
    if before is None:
        if not text[stop - 1].isdigit() or text[stop - 3 : stop].isdigit():
            return True
        number = _NUMBER.search(text, max(start, stop - _LOOK_BACK_CHARS), stop)
        return not (number and following and _is_ordinal(text, number, following[0].lower(), end))
    context = text[max(start, before.start() - _LOOK_BACK_CHARS) : before.start()]
    return _ends_after_word(before.group(), context, following.group().lower() if following else "", text[follow])


def _is_ordinal(text: str, number: re.Match[str], following: str, end: int) -> bool:
    """Whether a number with a full stop is "25th" in a language such as German."""
    if DAY.match(text, number.start(2), end):
        return True
    before = (number[1] or "").lower()
    is_led = before in BEFORE_ORDINALS or before.endswith(("tag", "woch"))  # of weekdays
    return is_led and following not in _OTHER_STARTERS


def _ends_after_word(word: str, context: str, following: str, character: str) -> bool:
    """Whether the stop after a word ends a sentence.

    ``context``: the characters before the word. ``following``: the next word in lower case, or an empty string.
    ``character``: the next character that is not white space or an opening quote; never a lower-case letter.
    """
    key = word.lower()
    if key in _TITLES or (key in _CONNECTIVES and not word.isupper()):
        return key == "hr" and context[-2:-1].isdigit()  # "8 hr. Paul", but "Hr. Weber"
    if character.isnumeric() and (key.rpartition("'")[2] in _BEFORE_NUMBERS or key.endswith("str")):
        return False  # "l'art. 5", "Hauptstr. 5"
    if len(word) == 1 and word.isupper():
        return _ends_after_letter(word, context, following)
    if len(word) == 1 and following[1:] == "." and not context[-1:].isalnum():
        return False  # "z. B.", but "in the 1960s. H. habilis"
    if key == "al":  # "et al. (1983)", "et al. They"
        return following in _STARTERS
    is_second = len(word) <= 2 and word == key and _LETTER_BEFORE.search(context)  # "u. a.", "p. ex."
    if is_second or key in _EITHER or _ACRONYM.match(word):
        return not following or following in _STARTERS or following in _OTHER_STARTERS
    return True


def _ends_after_letter(letter: str, context: str, following: str) -> bool:
    """A single capital is an initial, unless it is a label or the next word begins sentences and is not a surname."""
    found = _LAST_WORD.search(context)
    before = found.group().lower() if found else ""
    if before in _LABELS:
        return True
    if not before or following not in _STARTERS:
        return False
    # "So did I. He ...", "Charles I. He ...", "She got an A. He ..."; but "by K. He".
    return letter == "I" or following not in _SURNAMES or before in ("a", "an")
