"""Lines of a text, and which of them continue on the next line because the text was wrapped.

In licences, mails, docstrings and PDF pages, which wrap their lines, a newline is a space. In lists, tables, headings,
verse and logs it is a border. A line continues on the next one if that line's first word would not have fitted, judging
by the width of the surrounding lines, and there is no sign that something new begins.
"""

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from facets.language.markup import LINE_ENDS, PREFIX, WIDE

_LINE = re.compile(f"[^{LINE_ENDS}]+")
_NARROWEST, _WIDEST = 24, 160  # characters; prose is not wrapped into narrower or wider lines
_LONGEST_WORD = 30  # a longer one (an address, a path) overflows its line and says nothing about the width
_PREFIX = re.compile(PREFIX)
_PREFIX_IN_COMMENT = re.compile(r"\*[ \t]+")  # between /* and */
_BLANK = re.compile(r"(?:>[ >]*|//+|#+|\*)$")  # an empty line of a quotation or a comment
_MARK = r"[-*+\u2022\u2023\u25aa\u25e6\u2013\u2014]|\(?(?:\d{1,3}|[A-Za-z]|[ivx]{1,4})[.)]"
ITEM = re.compile(rf"(?:{_MARK})\s+")
ENTRY = re.compile(r"[\w*`][\w.*`-]*(?: \([^()]*\))?: ")  # "name: what it is"; may have a hanging indent
INFO = re.compile(r":(?:[\w-]+)(?: [\w *.]+)?:\s")  # ":param name: what it is"
# The beginning of something new: an item, a heading, a row, a fence, a rule, a field ("Subject: ...").
_BEGINS = re.compile(
    rf"(?:{_MARK})\s|#{{1,6}}\s|[|~=<>{{]|[-_*=~]{{3,}}|`{{3}}|@\w|(?:[A-Z][\w.-]*\s)?[A-Z][\w.-]*:(?:\s|$)|:\w+"
    r"|\*{0,2}\w+(?:, \*{0,2}\w+)* : \S"
)
# Marks that also occur in prose: initials and dashes. They begin an item only below another item.
_WEAK_MARK = re.compile(r"[A-Z]\.\s|[\u2013\u2014]\s")
# Words that do not end a sentence.
_NEVER_LAST = frozenset(
    "a an the of and or to in on at by for from with as that which who is are was were be been has have had its their"
    " his her our your my this these those between into than but if when while because"
    " unless until although though whether nor via per upon without within during whose whom every".split()
)
_ENDS_NOTHING = frozenset("a an the of and or".split())  # do not end even an item, unlike "to look at"
_HYPHENS = "-\u00ad\u2010"
_WIDEST_INDENT = 20  # columns before the first line of a paragraph; a wider indent means a centred title
# In wrapped texts about 80 % of full lines are followed by a line in lower case; in lists hardly any are.
_LEAST_CONTINUED = 0.25


class Line(NamedTuple):
    """A non-empty line."""

    start: int  # offset of its first character that is not white space
    end: int  # offset after its last such character
    indent: int  # columns before the first character; a tab counts as four
    said: str  # the line without its prefix
    prefix: str  # mark of a comment or quotation, or an empty string
    first_word: str  # first word of `said`
    last_word: str  # last word of `said`, in lower case
    longest: int  # length of the longest word
    width: int  # columns of the line with its indent
    gap: int  # what separates it from the previous line: 0 a newline, 1 an empty line, 2 the end of a page


def lines_of(text: str) -> list[Line]:
    """The non-empty lines of a text; an empty line inside a quotation counts as empty."""
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


def paragraph_ends(stretches: Sequence[Sequence[Line]]) -> list[list[int]]:
    """Indexes of the last lines of the paragraphs in each stretch.

    ``stretches``: all prose of a text, as groups of lines without an empty line between them.
    """
    full = [_full_lines(lines) for lines in stretches]
    pairs = [(lines[i], lines[i + 1]) for lines, places in zip(stretches, full, strict=True) for i in sorted(places)]
    num_continued = sum(_continues_surely(*pair) for pair in pairs)
    is_wrapped = num_continued > 0 and num_continued >= _LEAST_CONTINUED * len(pairs)
    return [
        _paragraph_ends(lines, places if is_wrapped else set(), is_wrapped=is_wrapped)
        for lines, places in zip(stretches, full, strict=True)
    ]


def _paragraph_ends(lines: Sequence[Line], full: set[int], *, is_wrapped: bool) -> list[int]:
    ends, first = [], 0
    for i, (line, after) in enumerate(pairwise(lines)):
        is_broken = i in full or _breaks_off(line, after, is_wrapped=is_wrapped)
        if not (is_broken and _may_continue(lines, first, i)) and not _hangs(lines[first], line, after):
            ends.append(i)
            first = i + 1
    return [*ends, len(lines) - 1] if lines else []


def _full_lines(lines: Sequence[Line]) -> set[int]:
    """Indexes of the lines that had no room for the first word of the next line; none if the text is not wrapped."""
    widths = [line.width for line in lines if line.longest <= _LONGEST_WORD] or [line.width for line in lines]
    if len(lines) < 2 or max(widths) < _NARROWEST:
        return set()
    width = max(widths)
    full = {
        i
        for i, line in enumerate(lines[:-1])
        if width <= _WIDEST and line.width + 1 + len(lines[i + 1].first_word) > width
    }
    # In wrapped text few lines are short, except at the end of sentences, items and the like.
    num_short = sum(
        line.said[-1].isalnum()
        and not _ends_mid_sentence(line, after)
        and _may_continue(lines, i, i)
        # A short title right above its paragraph
        and not (i == 0 and after.said[0].isupper() and 2 * line.width < width)
        for i, (line, after) in enumerate(pairwise(lines))
        if i not in full
    )
    return full if num_short <= len(full) / 4 else set()


def _continues_surely(line: Line, after: Line) -> bool:
    """Whether a line certainly continues: before lower case, after "of the", or within a script without case."""
    if after.said[:1].islower() or line.last_word in _NEVER_LAST:
        return True
    return unicodedata.category(after.said[0]) == "Lo" and unicodedata.category(line.said[-1]) == "Lo"


def _breaks_off(line: Line, after: Line, *, is_wrapped: bool) -> bool:
    """Whether a line ends within a sentence although it had room for more: its author pressed return.

    In unwrapped text, only a prose-length line whose last word cannot end anything breaks off.
    """
    if not is_wrapped:
        return line.width >= _NARROWEST and line.last_word in _ENDS_NOTHING
    is_lower = after.said[:1].islower() and (line.said[-1].isalnum() or line.said[-1] == ",")
    return _ends_mid_sentence(line, after) or (line.width >= _NARROWEST and is_lower)


def _ends_mid_sentence(line: Line, after: Line) -> bool:
    """Whether a line ends with a hyphen or with a word that ends no sentence."""
    if line.said[-1] in _HYPHENS:
        return line.said[-2:-1].isalpha() and after.said[:1].islower()
    return line.last_word in _NEVER_LAST


def _may_continue(lines: Sequence[Line], first: int, i: int) -> bool:
    """Whether nothing shows that the line after ``i`` begins something new; ``first`` began the paragraph of ``i``."""
    line, after = lines[i], lines[i + 1]
    if line.prefix != after.prefix:
        return False
    is_item = ITEM.match(lines[first].said) is not None
    is_word = not is_item and _WEAK_MARK.match(after.said)
    if _BEGINS.match(after.said) and not is_word:
        return False
    is_entry = ENTRY.match(lines[first].said) is not None
    if is_entry and ENTRY.match(after.said):
        return False
    if after.indent > line.indent:  # the rest of an item; otherwise an indented paragraph begins
        return (is_item or is_entry) and i == first
    return after.indent == line.indent or (i == first and line.indent <= _WIDEST_INDENT)


def _hangs(first: Line, line: Line, after: Line) -> bool:
    """Whether a line is indented below an item or entry so that it belongs to it, however short the lines are."""
    if after.indent <= first.indent or _BEGINS.match(after.said) or after.prefix != first.prefix or after.gap:
        return False
    if line is not first:
        return after.indent == line.indent
    item = ITEM.match(first.said)
    return after.indent == first.indent + item.end() if item else INFO.match(first.said) is not None
