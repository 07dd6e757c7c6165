"""Lines of a text, and which of them continue on the next line because the text was wrapped.

In licences, mails, docstrings and PDF pages, which wrap their lines, a newline is a space. In lists, tables, headings,
verse and logs it is a border. A line continues on the next one if that line's first word would not have fitted, judging
by the width of the surrounding lines, and there is no sign that something new begins.
"""

import re
import unicodedata
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from facets.language.markup import LINE_ENDS, PREFIX, STOPS, WIDE

_LINE = re.compile(f"[^{LINE_ENDS}]+")
_NARROWEST = 24  # characters; prose is not wrapped into narrower lines
_PREFIX = re.compile(PREFIX)
_PREFIX_IN_COMMENT = re.compile(r"\*[ \t]+")  # between /* and */
_BLANK = re.compile(r"(?:>[ >]*|//+|#+|\*)$")  # an empty line of a quotation or a comment
# Days as languages write them that have "25." for "25th"; without a year, "25. April was wet" may be two in English.
DAY = re.compile(
    r"\d{1,2}\.\s+(?:(?i:januar|februar|m\u00e4rz|marts|maj|mai|juni|juli|oktober|dezember|desember|ledna|\u00fanora"
    r"|b\u0159ezna|dubna|kv\u011btna|\u010dervna|\u010dervence|srpna|z\u00e1\u0159\u00ed|\u0159\u00edjna|listopadu|prosince|stycznia|lutego"
    r"|kwietnia|czerwca|sierpnia|wrze\u015bnia|pa\u017adziernika|listopada|grudnia|\w+kuuta)"
    r"|april|august|september|november|december|mars|maja|marca|lipca|(?:April|August|September|November)\s+\d{4})\b"
)
# Words before such numbers that end no sentence and are rare in English: "im 3. Stock", "den 2. Verdenskrig".
BEFORE_ORDINALS = frozenset(
    "der die das dem den des det im am zum zur vom bis ab beim einem einen einer eines dieser diesem diesen dieses"
    " jeder jedem jeden jedes seinem seinen seiner ihrem ihren ihrer unserem unseren unserer".split()
)
_MARK = r"[-*+\u2022\u2023\u25aa\u25e6\u2013\u2014]|\(?(?:\d{1,3}|[A-Za-z]|[ivx]{1,4})[.)]"
ITEM = re.compile(rf"(?!{DAY.pattern})(?:{_MARK})\s+")
ENTRY = re.compile(r"[\w*`][\w.*`-]*(?: \([^()]*\))?: ")  # "name: what it is"; may have a hanging indent
INFO = re.compile(r":(?:[\w-]+)(?: [\w *.]+)?:\s")  # ":param name: what it is"
# The beginning of something new: an item, a heading, a row, a fence, a rule, a field ("Subject: ...").
_BEGINS = re.compile(
    rf"(?:{_MARK})\s|#{{1,6}}\s|[|~=<>{{]|[-_*=~]{{3,}}|`{{3}}|@\w|(?:[A-Z][\w.-]*\s)?[A-Z][\w.-]*:(?:\s|$)|:\w+"
    r"|\*{0,2}\w+(?:, \*{0,2}\w+)* : \S"
)
# Words that do not end a sentence.
_NEVER_LAST = frozenset(
    "a an the of and or to in on at by for from with as that which who is are was were be been has have had its their"
    " his her our your my this these those between into than but if when while because"
    " unless until although though whether nor via per upon without within during whose whom every"
    " ein eine und oder sowie von f\u00fcr sehr".split()
) | (BEFORE_ORDINALS - {"ab", "am", "die"})
_WIDEST_INDENT = 20  # columns before the first line of a paragraph; a wider indent means a centred title
# In wrapped texts about 80 % of full lines are followed by a line in lower case; in lists hardly any are.
_LEAST_SURE = 0.4
_FEWEST = 4
_CLOSERS, _STOPS = "\"')]*_\u2019\u201d", frozenset(STOPS)


class Line(NamedTuple):
    """A non-empty line."""

    start: int  # offset of its first character that is not white space
    end: int  # offset after its last such character
    indent: int  # columns before the first character; a tab counts as four
    said: str  # the line without its prefix
    prefix: str  # mark of a comment or quotation, or an empty string
    first_word: str  # first word of `said`
    last_word: str  # last word of `said`, in lower case
    width: int  # columns of the line with its indent
    gap: int  # what separates it from the previous line: 0 a newline, 1 an empty line, 2 the end of a page

    def is_ended(self) -> bool:
        """Whether it ends like a sentence."""
        return self.said.rstrip(_CLOSERS)[-1:] in _STOPS


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
    first, width = words[0], columns + len(stripped)
    if not stripped.isascii() and (num_wide := len(WIDE.findall(stripped))):
        first = first[:1] if WIDE.match(first) else first
        width += num_wide
    return Line(start, start + len(stripped), columns, said, mark, first, words[-1].lower(), width, gap)


def paragraph_ends(stretches: Sequence[Sequence[Line]]) -> list[list[int]]:
    """Indexes of the last lines of the paragraphs in each stretch.

    ``stretches``: all prose of a text, as groups of lines without an empty line between them.
    """
    breaks = [_breaks(lines) for lines in stretches]
    short = [some for some in breaks if len(some) < _FEWEST]  # the others, such as tables, need not resemble them
    everywhere = list(chain.from_iterable(short if sum(map(len, short)) >= _FEWEST else breaks))
    return [
        _paragraph_ends(lines, own, own if len(own) >= _FEWEST else everywhere)
        for lines, own in zip(stretches, breaks, strict=True)
    ]


class _Break(NamedTuple):
    """A newline between two lines of prose."""

    line: int  # index of the line above
    is_sure: bool  # whether the sentence certainly continues
    is_odd: bool  # whether wrapping does not explain it: there was room for a word, and nothing ended
    room: int  # columns that the line above had left beyond the first word of the line below


def _breaks(lines: Sequence[Line]) -> list[_Break]:
    width = max((line.width for line in lines), default=0)
    if width < _NARROWEST:
        return []
    found = []
    for i, (line, after) in enumerate(pairwise(lines)):
        if _may_continue(lines, i, i):
            room, is_sure = width - line.width - len(after.first_word), _continues_surely(line, after)
            is_odd = not is_sure and room > 0 and line.said[-1] != "," and not line.is_ended()
            found.append(_Break(i, is_sure, is_odd, room))
    return found


def _paragraph_ends(lines: Sequence[Line], breaks: Sequence[_Break], known: Sequence[_Break]) -> list[int]:
    """``breaks``: of these lines. ``known``: those that tell whether and how the text is wrapped."""
    sure = [one.room for one in known if one.is_sure]
    is_wrapped = 0 < len(sure) >= _LEAST_SURE * sum(one.is_sure or one.is_odd for one in known)
    # A program leaves no room; who wraps by hand does.
    most = max(0, *sure) if is_wrapped else 0
    joined = {one.line for one in breaks if is_wrapped and (one.is_sure or one.room <= most)}
    ends, first = [], 0
    for i, (line, after) in enumerate(pairwise(lines)):
        # In wrapped prose, a sentence that began on an earlier line ends with a stop, however short this line is.
        is_ended = line.is_ended() or (line.said[-1] == ":" and after.said[0].isupper())
        is_within = i > first and not is_ended and not _BEGINS.match(lines[first].said)
        is_broken = i in joined or (is_wrapped and (line.said[-1] == "," or is_within))
        if not (is_broken and _may_continue(lines, first, i)) and not _hangs(lines[first], after):
            ends.append(i)
            first = i + 1
    return [*ends, len(lines) - 1] if lines else []


def _continues_surely(line: Line, after: Line) -> bool:
    """Whether a line certainly continues: before lower case, after "of the", or within a script without case."""
    is_led = line.last_word in _NEVER_LAST or (line.last_word in BEFORE_ORDINALS and DAY.match(after.said))
    if after.said[:1].islower() or is_led:
        return True
    return unicodedata.category(after.said[0]) == "Lo" and unicodedata.category(line.said[-1]) == "Lo"


def _may_continue(lines: Sequence[Line], first: int, i: int) -> bool:
    """Whether nothing shows that the line after ``i`` begins something new; ``first`` began the paragraph of ``i``."""
    line, after = lines[i], lines[i + 1]
    if _BEGINS.match(after.said) and (_BEGINS.match(lines[first].said) or line.said[-1] in ".:!?"):
        return False
    return after.indent == line.indent or (i == first and after.indent < line.indent <= _WIDEST_INDENT)


def _hangs(first: Line, after: Line) -> bool:
    """Whether a line is indented below an item or entry, to which it belongs, however short the lines are."""
    is_marked = ITEM.match(first.said) or INFO.match(first.said) or ENTRY.match(first.said)
    return bool(is_marked) and after.indent > first.indent and not _BEGINS.match(after.said)
