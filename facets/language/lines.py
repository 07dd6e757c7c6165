"""Lines of a text, and which of them go on in the next one because somebody wrapped them.

Licences, mails, docstrings and pages of PDFs wrap their lines: a newline there is a space. In lists, tables, headings,
verses and logs it is a border. A line goes on in the next one when that one's first word would not have fitted behind
it any more, the lines about it being as wide as they are, and nothing says that something new begins.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from facets.language.markup import LINE_ENDS, PREFIX, WIDE

_LINE = re.compile(f"[^{LINE_ENDS}]+")
_NARROWEST, _WIDEST = 30, 160  # characters; nobody wraps prose into narrower lines, nor into wider ones
_LONGEST_WORD = 30  # a longer one (an address, a path) hangs out of its line and tells nothing of its width
_PREFIX = re.compile(PREFIX)
_PREFIX_IN_COMMENT = re.compile(r"\*[ \t]+")  # between /* and */
_BLANK = re.compile(r"(?:>[ >]*|//+|#+|\*)$")  # an empty line of a quotation, of a comment
# What begins something new: items of lists, headings, rows of tables, fences and rules, fields ("Subject: ...").
_BEGINS = re.compile(
    r"[-*+\u2022\u2023\u25aa\u25e6\u2013\u2014]\s|[#|~=<>{]|[-_*=~]{3,}|`{3}|\(?(?:\d{1,3}|[A-Za-z]|[ivx]{1,4})[.)]\s"
    r"|@\w|(?:[A-Z][\w.-]*\s){0,1}[A-Z][\w.-]*:(?:\s|$)|:\w+|\*{0,2}\w+(?:, \*{0,2}\w+)* : \S"
)
ITEM = re.compile(r"(?:[-*+\u2022\u2023\u25aa\u25e6\u2013\u2014]|\(?(?:\d{1,3}|[A-Za-z]|[ivx]{1,4})[.)])\s+")
ENTRY = re.compile(r"[\w*`][\w.*`-]*(?: \([^()]*\))?: ")  # "name: what it is"; like an item it may hang
INFO = re.compile(r":(?:[\w-]+)(?: [\w *.]+)?:\s")  # ":param name: what it is"
# What is over with its line: headings, rows of tables, fences, rules, statements of programs.
_ENDS_WITH_LINE = re.compile(r"#{1,6}\s|\||[`~=]{3}|[-_*=~]{3,}$|.*[;{}|]$")
_NEAR = 9  # lines before and behind a line that say how wide it may be
# Nothing ends with these.
_NEVER_LAST = frozenset(
    "a an the of and or to in on at by for from with as that which who is are was were be been has have had its their"
    " his her our your my this these those between into than but if when while because"
    " unless until although though whether nor via per upon without within during whose whom every".split()
)
_ENDS_NOTHING = frozenset("a an the of and or".split())  # not even a line of a list, as "things to look at" may be
_GOES_ON = re.compile(r"[^\W\d_]")
_OPENERS = "\"'(\u2018\u201c"
_NUMBERS = "(0123456789"
_HYPHENS = "-\u00ad\u2010"
_WIDEST_INDENT = 20  # of the first line of a paragraph; more is a centred title
_IS_NUMBERED = re.compile(r"\d{1,2}(?:\.\d{1,3})*\.?\s+[A-Z]")  # probably a heading
_WRAPPED_SHARE = 0.25  # of full lines go on in lower case where lines are wrapped: some 80 of 100; in lists none


class Line(NamedTuple):
    """A line that holds something."""

    start: int  # offset of its first character that is no white space
    end: int  # offset behind its last
    indent: int  # characters before the first, tabs as four
    said: str  # the line without its prefix
    prefix: str  # mark of comments or quotations that it has
    first_word: str  # of what is said
    last_word: str  # of what is said, in lower case
    longest: int  # characters of its longest word
    width: int  # of the line with its indent
    gap: int  # what is between it and the line before: 0 a newline, 1 an empty line, 2 the end of a page


def lines_of(text: str) -> list[Line]:
    """The lines of a text, without those that are empty but for a mark of quotation."""
    lines: list[Line] = []
    behind, gap, in_comment = 0, 0, False
    for match in _LINE.finditer(text):
        line = match.group()
        between = text[behind : match.start()]
        gap = max(gap, 2 if "\f" in between else int(between.count("\n") > 1 or between.count("\r") > 1))
        behind = match.end()
        stripped = line.strip()
        if not stripped or _BLANK.match(stripped):
            gap = max(gap, 1)
        else:
            lines.append(_line(line, stripped, match.start(), gap=gap, in_comment=in_comment))
            gap = 0
        in_comment = "*/" not in stripped and (in_comment or stripped.startswith("/*"))
    return lines


def _line(text: str, stripped: str, offset: int, *, gap: int, in_comment: bool) -> Line:
    indent = len(text) - len(text.lstrip())
    prefix = _PREFIX.match(stripped) or (_PREFIX_IN_COMMENT.match(stripped) if in_comment else None)
    columns = len(text[:indent].expandtabs(4))
    said = stripped[prefix.end() :] if prefix else stripped
    start, mark, words = offset + indent, prefix[0].strip() if prefix else "", said.split()
    first, longest, width = words[0], max(map(len, words)), columns + len(stripped)
    if not stripped.isascii() and (num_wide := len(WIDE.findall(stripped))):
        first = first[:1] if WIDE.match(first) else first
        longest, width = min(longest, _LONGEST_WORD), width + num_wide
    return Line(start, start + len(stripped), columns, said, mark, first, words[-1].lower(), longest, width, gap)


def full_lines(block: Sequence[Line]) -> set[int]:
    """Lines that the first word of the next one would not have fitted into.

    Args:
        block: Lines without an empty one between them.
    """
    widths = [line.width for line in block if line.longest <= _LONGEST_WORD] or [line.width for line in block]
    if len(block) < 2 or max(widths) < _NARROWEST:
        return set()
    near = [0 if line.longest > _LONGEST_WORD else line.width for line in block]
    found = set()
    for place, line in enumerate(block[:-1]):
        width = max(near[max(0, place - _NEAR) : place + _NEAR]) or line.width
        if _NARROWEST <= width <= _WIDEST and line.width + 1 + len(block[place + 1].first_word) > width:
            found.add(place)
    # Of wrapped text nearly all lines are full, but for the last ones of sentences, items and the like.
    others = set(range(len(block) - 1)) - found
    num_short = sum(
        block[place].said[-1].isalnum()
        and block[place].indent == block[place + 1].indent
        and not _IS_NUMBERED.match(block[place].said)
        and not _is_cut(block[place], block[place + 1])
        and goes_on(block, place, place)
        # A short title right above its paragraph is no line of it.
        and not (place == 0 and block[1].said[0].isupper() and 2 * block[0].width < max(widths))
        for place in others
    )
    return found if num_short <= len(found) / 4 else set()


def cut_lines(block: Sequence[Line]) -> set[int]:
    """Lines of a wrapped text that end where no sentence does, although there was room for more: wrapped by hand.

    Args:
        block: Lines without an empty one between them.
    """
    found = set()
    for place, line in enumerate(block[:-1]):
        after = block[place + 1]
        is_wide = (
            line.width >= _NARROWEST
            and after.said.lstrip(_OPENERS)[:1].islower()
            and (line.said[-1].isalnum() or line.said[-1] == ",")
        )
        if (_is_cut(line, after) or is_wide) and goes_on(block, place, place):
            found.add(place)
    return found


def unfinished_lines(block: Sequence[Line]) -> set[int]:
    """Lines as wide as prose whose last word ends nothing: somebody pressed return, in however short a text.

    Args:
        block: Lines without an empty one between them.
    """
    return {
        place
        for place, line in enumerate(block[:-1])
        if line.width >= _NARROWEST and line.last_word in _ENDS_NOTHING and goes_on(block, place, place)
    }


def are_wrapped(pairs: Sequence[tuple[Line, Line]]) -> bool:
    """Whether a text has wrapped lines: enough of its full lines go on in lower case."""
    num_going_on = sum(_goes_on_surely(line, after) for line, after in pairs)
    return num_going_on > 0 and num_going_on >= _WRAPPED_SHARE * len(pairs)


def _goes_on_surely(line: Line, after: Line) -> bool:
    if after.said[:1].islower() or line.last_word in _NEVER_LAST:
        return True
    # Letters without case: a line that ends without a stop.
    return unicodedata.category(after.said[0]) == "Lo" and unicodedata.category(line.said[-1]) == "Lo"


def goes_on(block: Sequence[Line], first: int, place: int) -> bool:
    """Whether nothing says that the line after ``place`` begins something new.

    ``block``: lines without an empty one between them. ``first``: the one that began what ``place`` belongs to.
    ``place``: a line that is not the last one.
    """
    line, after = block[place], block[place + 1]
    if line.prefix != after.prefix or _ENDS_WITH_LINE.match(line.said):
        return False
    is_number = line.last_word in _NEVER_LAST and after.said[0] in _NUMBERS and not ITEM.match(block[first].said)
    if _BEGINS.match(after.said) and not is_number:
        return False
    if (
        not _GOES_ON.match(after.said)
        and not (line.said[-1:].isalpha() or line.said[-1:] == ",")
        and not after.said[:1].isdigit()
    ):
        return False
    if line.first_word == after.first_word and not after.said[:1].islower():
        return False  # lines of a log, of verse, of a list
    if line.said[:1].isdigit() and after.said[:1].isdigit() and place == first:
        return False
    if ENTRY.match(after.said) and ENTRY.match(block[first].said):
        return False
    if after.indent > line.indent:  # the rest of an item hangs; else a new paragraph is set in
        hangs = ITEM.match(block[first].said) or ENTRY.match(block[first].said)
        return hangs is not None and place == first
    return after.indent == line.indent or (place == first and line.indent <= _WIDEST_INDENT)


def hangs(first: Line, before: Line, line: Line) -> bool:
    """Whether a line is set in below an item or an entry so that it belongs to it, however short they are.

    ``first``: the line that began what ``before`` belongs to. ``before``: the line before. ``line``: one without an
    empty line before it.
    """
    if line.indent <= first.indent or _BEGINS.match(line.said) or line.prefix != first.prefix:
        return False
    if before is not first:
        return line.indent == before.indent
    item = ITEM.match(first.said)
    return line.indent == first.indent + item.end() if item else INFO.match(first.said) is not None


def _is_cut(line: Line, after: Line) -> bool:
    """Whether a line ends where no sentence does: behind a hyphen or a word that none ends with."""
    if line.said[-1] in _HYPHENS:
        return line.said[-2:-1].isalpha() and after.said[:1].islower()
    return line.last_word in _NEVER_LAST
