"""What lines of a text are by their marks, and which of them belong together; what that is, :mod:`blocks` tells."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from facets.language.lines import (
    ITEM,
    Line,
    are_wrapped,
    cut_lines,
    full_lines,
    goes_on,
    hangs,
    lines_of,
    unfinished_lines,
)
from facets.language.markup import Hyphens, said

Kind = Literal["paragraph", "heading", "item", "row", "code", "quotation"]
Role = Literal["", "field", "greeting", "farewell", "signature", "speaker", "navigation", "copyright", "licence"]

_FENCE = re.compile(r"(`{3,}|~{3,})[^`]*$")
_RULE_MARKS = frozenset("-=:|+ ")
_RULES = frozenset("-=_*~^\"'`#+.:<>")
_HTML_HEADING = re.compile(r"<h([1-6])\b", re.IGNORECASE)
_DIRECTIVE = re.compile(r"\.\.(?: ([\w-]+(?::[\w-]+)?)::)?(?:\s+(.*))?$")
_CODE_DIRECTIVES = frozenset("code code-block sourcecode highlight doctest testcode parsed-literal math prompt".split())
_TEXT_DIRECTIVES = frozenset(
    "note warning tip hint important attention caution danger error admonition seealso topic sidebar rubric deprecated"
    " epigraph pull-quote highlights compound container todo".split()
)
_OPTION = re.compile(r":[\w-]+:(?:\s|$)")
_REFERENCE = re.compile(r"\[[^\[\]]+\]:\s+\S+(?:\s+[\"'(].*)?$")
_DOCTEST = re.compile(r">>> ?(?:.*[(=\[]|import |from |[\w.]+$|[\d\"'{]|(?:for|with|def|class|if|while|try)\b.*:$)")
_STATEMENT = re.compile(
    r".*[;{}]$|[})\]]+[;,]?$|[\w.\[\]\"']+(?:: [\w.\[\]]+)? ?(?:[-+*/|&:]?=|<-) ?\S|\$ \S|[\w.]+\(.*\)[;:]?$"
    r"|(?:def|class|if|elif|for|while|with|fn|func|function|public|private|static) .*[:({]$|(?:else|try|finally):$"
    r"|(?:import [\w.]+(?: as \w+)?|from [\w.]+ import .*|#include .*|return\b.*|package [\w.]+)$"
    r"|(?:pip|npm|git|docker|sudo|curl|cd|conda|brew|apt-get|cargo|facets) [\w./-].*|[A-Z_]+ .*[(,]$|@\w+(?:\(.*\))?$"
)
_CALL = re.compile(r"\$ \S|[\w.\s*]+\([^()]*\);$|(?:import|from) [\w.]+(?: import [\w, ]+)?$|@\w+\(.*\)$")
_COLUMNS = re.compile(r"\S {3,}\S")
_PAGE = re.compile(r"(?:page )?\d{1,4}(?: of \d{1,4})?$|- \d{1,4} -$|.*\[page \d{1,4}\]$", re.IGNORECASE)
CHAPTER = re.compile(
    r"(?i:chapter|part|book|section|article|appendix|annex)\s+(?:\d{1,3}|[IVXLC]{1,6}|[A-Z])(?:[.:\u2013\u2014 \t-]|$)"
)
"""What begins as a heading of a chapter does."""
_DIGITS = re.compile(r"\d+")
_COMMENT = re.compile(r"/\*+$|\*+/$")  # where one begins or ends
_COMMENTS = frozenset(("#", "//", "--", ";", "%", "*"))
_FEWEST_ROWS = {"tab": 1, "bar": 2, "columns": 2, "comma": 3}


@dataclass(slots=True)
class Run:
    """Lines that are one block."""

    kind: Kind | Literal[""]  # what it is, or empty: to be found out
    first: int  # number of the first line
    last: int  # number of the last line
    level: int = 0  # as in `Block`
    end: int = 0  # offset behind marks that belong to it, such as the rule below a heading
    role: Role = ""  # as in `Block`
    skipped: int = 0  # characters of the mark before what it says
    gap: int = 0  # what is before it, see `Line`; 1 also where something was left out


def runs_of(text: str) -> tuple[list[Run], list[Line]]:
    """What stands together in a text, in order, and its lines; rules, fences and badges are left out.

    Returns runs of lines; those without a kind are prose, items, quotations or headings without a mark.
    """
    marked = _Marked(text)
    runs = marked.parted(marked.runs())
    return _joined_over_pages(runs, marked.lines, text), marked.lines


class _Marked:
    """The lines of one text and what their marks say."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._hyphens = Hyphens(text)
        self.lines = _said_lines(text)
        self._adornments: dict[tuple[str, bool], int] = {}  # of headings with a rule below: level
        self._closing: dict[str, list[int]] = {"`": [], "~": []}  # fences that may end code
        for number, line in enumerate(self.lines):
            if line.said[:3] in ("```", "~~~") and not line.said.strip(line.said[0]):
                self._closing[line.said[0]].append(number)

    def runs(self) -> list[Run]:
        """Code, tables, headings with marks; other lines one by one; rules and other marks are left out."""
        runs: list[Run] = []
        place = gap = 0
        while place < len(self.lines):
            gap = max(gap, self.lines[place].gap)
            found, behind = self._marked(place, runs)
            for run in found:
                run.gap = max(gap, run.gap)
                gap = 0
            gap = gap if found else max(gap, 1)
            runs += found
            place = behind
        return runs

    def _marked(self, place: int, runs: list[Run]) -> tuple[list[Run], int]:
        """Runs that begin with a line, and the number of the line behind them."""
        line = self.lines[place]
        if line.prefix:
            return self._prefixed(place)
        mark = line.said[0]
        if mark in "/*" and _COMMENT.match(line.said):
            return [], place + 1
        if mark == "." and (directive := _DIRECTIVE.match(line.said)):
            return self._directed(place, directive)
        if mark in "`~" and _FENCE.match(line.said):
            numbers = self._closing[mark]
            number = bisect_left(numbers, place + 1)
            if number < len(numbers):
                return _code(place + 1, numbers[number] - 1), numbers[number] + 1
            return [], place + 1
        if mark in _RULES or mark in _RULE_MARKS:
            if place == 0 and line.said == "---" and (behind := self._front_matter()):
                return _code(1, behind - 2), behind
            if _is_rule(line.said):
                return self._ruled(place, runs)
        if mark == "|" and (line.said.count("|") > 1):
            return [Run("row", place, place)], place + 1
        if mark == "[" and line.said.startswith("[![") and line.said.endswith("]("):
            return [], min(place + 2, len(self.lines))  # the badge goes on in the next line
        if mark in "<[!" and (found := self._tagged(place)) is not None:
            return found, place + 1
        before = self.lines[place - 1] if place else line
        if line.gap and before.said.endswith("::") and line.indent > before.indent:
            behind = self._behind_indented(place, before.indent)
            return _code(place, behind - 1), behind
        return [Run("", place, place)], place + 1

    def _prefixed(self, place: int) -> tuple[list[Run], int]:
        """Headings of Markdown, examples of doctest; other lines with a prefix are prose."""
        lines, line = self.lines, self.lines[place]
        before, after = lines[max(place - 1, 0)], lines[min(place + 1, len(lines) - 1)]
        if line.prefix == ">>>" and _DOCTEST.match(self._text, line.start, line.end):
            behind = place + 1
            while behind < len(lines) and not lines[behind].gap:
                behind += 1
            return _code(place, behind - 1, skipped=len(line.said) - (line.end - line.start)), behind
        if not set(line.prefix) - {"#"} and len(line.prefix) <= 6:
            beside = [one for one, gap in ((before, line.gap), (after, after.gap)) if one is not line and not gap]
            is_comment = any(one.prefix == line.prefix for one in beside) or (
                len(line.prefix) == 1 and after in beside and not after.prefix and _is_statement(after)
            )
            if not is_comment:
                return [Run("heading", place, place, level=len(line.prefix))], place + 1
        return [Run("", place, place)], place + 1

    def _directed(self, place: int, directive: re.Match[str]) -> tuple[list[Run], int]:
        """A directive, a label or a footnote of reStructuredText."""
        line, name = self.lines[place], directive[1]
        behind = self._behind_indented(place + 1, line.indent)
        if name is None:
            is_label = (directive[2] or "").startswith("_")
            return ([], place + 1) if is_label else ([Run("", place, place)], place + 1)
        if name in _CODE_DIRECTIVES:
            first = place + 1
            while first < behind and _OPTION.match(self.lines[first].said):
                first += 1
            return _code(first, behind - 1), behind
        if name.startswith("version") or name == "deprecated":
            return [], place + 1
        if name not in _TEXT_DIRECTIVES:
            return [], behind
        if directive[2]:  # what stands behind the directive goes on in the next line
            start = line.end - len(line.said) + directive.start(2)
            indent = self.lines[place + 1].indent if behind > place + 1 else line.indent
            first_word = directive[2].split()[0]
            self.lines[place] = line._replace(start=start, said=directive[2], indent=indent, first_word=first_word)
            return [Run("", place, place)], place + 1
        return [], place + 1

    def _ruled(self, place: int, runs: list[Run]) -> tuple[list[Run], int]:
        """A rule: below a heading, between rows of a table, or between parts."""
        lines, line = self.lines, self.lines[place]
        above = runs[-1] if runs and runs[-1].last == place - 1 and not line.gap else None
        behind = place + 1
        if above is None or above.kind:
            return [], behind
        before = lines[place - 1]
        if "|" in line.said and "|" in before.said:
            above.kind = "row"
            rows = []
            while behind < len(lines) and not lines[behind].gap and "|" in lines[behind].said:
                rows.append(Run("row", behind, behind))
                behind += 1
            return rows, behind
        is_even = len(set(line.said)) == 1
        is_title = (above.gap > 0 or place == 1) and len(before.said) <= 100 and before.said[-1] not in ".;,"
        if is_even and is_title and (line.said[0] in "=-" or len(line.said) > 3):
            is_overlined = place > 1 and not before.gap and _is_rule(lines[place - 2].said)
            above.kind, above.end = "heading", line.end
            above.level = self._adorned(line.said[0], is_overlined)
        return [], behind

    def _adorned(self, mark: str, is_overlined: bool) -> int:
        """Level of a heading by the rule below it: a new kind of rule lies below those so far."""
        known = self._adornments
        lowest = 2 if (mark, is_overlined) == ("-", False) else 1
        return min(6, known.setdefault((mark, is_overlined), max(lowest, max(known.values(), default=0) + 1)))

    def _tagged(self, place: int) -> list[Run] | None:
        """A line that begins with a tag, a link or a picture; None: it is prose."""
        line = self.lines[place]
        if _REFERENCE.match(line.said) or not said(self._text, line.start, line.end, hyphens=self._hyphens):
            return []
        if heading := _HTML_HEADING.match(line.said):
            return [Run("heading", place, place, level=int(heading[1]))]
        return None

    def _front_matter(self) -> int:
        """Number of the line behind the fields before a document; 0: there are none."""
        for number, line in enumerate(self.lines[1:100], start=1):
            if line.said in ("---", "..."):
                return number + 1 if number > 1 else 0
        return 0

    def _behind_indented(self, place: int, indent: int) -> int:
        while place < len(self.lines) and self.lines[place].indent > indent:
            place += 1
        return place

    def parted(self, runs: list[Run]) -> list[Run]:
        """Prose in paragraphs, items and single lines; code and rows that have no mark."""
        parts = [piece for stretch in self._stretches(runs) for piece in self._pieces(stretch)]
        lines = [self.lines[part[0].first : part[-1].last + 1] if not part[0].kind else [] for part in parts]
        full = [full_lines(some) for some in lines]
        if are_wrapped([(some[at], some[at + 1]) for some, places in zip(lines, full, strict=True) for at in places]):
            full = [places | cut_lines(some) for some, places in zip(lines, full, strict=True)]
        else:
            full = [unfinished_lines(some) for some in lines]
        found: list[Run] = []
        for part, some, places in zip(parts, lines, full, strict=True):
            if not some:
                found += part
                continue
            start = 0
            for at in range(len(some)):
                is_last = at == len(some) - 1
                if not is_last and at in places and goes_on(some, start, at):
                    continue
                if not is_last and hangs(some[start], some[at], some[at + 1]):
                    continue
                part[start].last = part[at].last
                found.append(part[start])
                start = at + 1
        return found

    def _stretches(self, runs: list[Run]) -> Iterator[list[Run]]:
        """Lines of prose without anything between them and of the same comment or quotation; else single runs."""
        stretch: list[Run] = []
        for run in runs:
            if stretch and (
                run.kind
                or run.gap
                or stretch[-1].kind
                or self.lines[run.first].prefix != self.lines[stretch[-1].last].prefix
            ):
                yield stretch
                stretch = []
            stretch.append(run)
        if stretch:
            yield stretch

    def _pieces(self, stretch: list[Run]) -> Iterator[list[Run]]:
        """A stretch of lines as code, as rows, or as prose between them."""
        lines = [self.lines[run.first] for run in stretch]
        if stretch[0].kind or lines[0].prefix:
            yield stretch
            return
        if self._is_code(lines, stretch[0].first):
            yield [replace(stretch[0], kind="code", last=stretch[-1].last)]
            return
        prose: list[Run] = []
        numbers = range(len(lines))
        for key, some in groupby(numbers, key=lambda number: _row_key(lines[number].said)):
            group = [stretch[number] for number in some]
            if key[0] and len(group) >= _FEWEST_ROWS[key[0]]:
                if prose:
                    yield prose
                yield [replace(run, kind="row") for run in group]
                prose = []
            else:
                prose += group
        if prose:
            yield prose

    def _is_code(self, lines: list[Line], first: int) -> bool:
        num = 0
        for number, line in enumerate(lines):
            is_inner = num == number and num > 0 and line.indent > lines[0].indent
            num += is_inner or _is_statement(line)
        if len(lines) > 1:
            return num > 1 and num >= 0.6 * len(lines)
        is_beside_comment = any(
            not gap and place in range(len(self.lines)) and self._is_comment(self.lines[place])
            for place, gap in ((first - 1, lines[0].gap), (first + 1, self._gap(first + 1)))
        )
        return num > 0 and (is_beside_comment or _CALL.match(lines[0].said) is not None)

    def _is_comment(self, line: Line) -> bool:
        return line.prefix in _COMMENTS or _COMMENT.match(line.said) is not None

    def _gap(self, place: int) -> int:
        return self.lines[place].gap if place < len(self.lines) else 1


def _code(first: int, last: int, *, skipped: int = 0) -> list[Run]:
    return [Run("code", first, last, skipped=skipped)] if last >= first else []


def _is_rule(line: str) -> bool:
    marks = set(line)
    if len(marks) == 1:
        return len(line) > 2 and line[0] in _RULES
    return len(line) > 2 and marks <= _RULE_MARKS and ("-" in marks or "=" in marks)


def _is_statement(line: Line) -> bool:
    return _STATEMENT.match(line.said) is not None and ITEM.match(line.said) is None


def _row_key(line: str) -> tuple[str, int]:
    """What rows of one table have in common; an empty name: it is no row."""
    if "\t" in line:
        return "tab", 0
    if num := line.count(" | "):
        return "bar", num
    if (num := line.count(",")) and ", " not in line and line[-1] not in ".,":
        return "comma", num
    return ("columns", 0) if _COLUMNS.search(line) else ("", 0)


def _said_lines(text: str) -> list[Line]:
    """The lines of a text without comments of HTML, running heads and numbers of pages."""
    lines = lines_of(text)
    if "<!--" in text:
        lines = _without(lines, _in_comments(text, lines))
    if "\f" in text:
        lines = _without(lines, _running(text, lines))
    return lines


def _without(lines: list[Line], left_out: set[int]) -> list[Line]:
    kept: list[Line] = []
    gap = 0
    for number, line in enumerate(lines):
        gap = max(gap, line.gap)
        if number not in left_out:
            kept.append(line if gap == line.gap else line._replace(gap=gap))
            gap = 0
    return kept


def _in_comments(text: str, lines: list[Line]) -> set[int]:
    found: set[int] = set()
    number = end = 0
    while (start := text.find("<!--", end)) >= 0 and (end := text.find("-->", start) + 3) > 2:
        while number < len(lines) and lines[number].end <= end:
            if lines[number].start >= start:
                found.add(number)
            number += 1
    return found


def _running(text: str, lines: list[Line]) -> set[int]:
    """First and last lines of pages that are numbers, or the same but for numbers on half of the pages or more.

    A chapter that begins on one page alone is none.
    """
    firsts = [0, *(number for number, line in enumerate(lines) if line.gap == 2)]
    edges = [(number, _DIGITS.sub("0", lines[number].said)) for number in firsts]
    edges += [(number - 1, _DIGITS.sub("0", lines[number - 1].said)) for number in [*firsts[1:], len(lines)] if number]
    counts = Counter(key for _, key in edges)
    begun = {number for number in firsts if CHAPTER.match(lines[number].said)}
    times = Counter(lines[number].said for number in begun)
    edges = [one for one in edges if one[0] not in begun or times[lines[one[0]].said] > 1]
    fewest = max(3, len(firsts) / 2 - 1)
    return {number for number, key in edges if counts[key] >= fewest or _PAGE.match(lines[number].said)}


def _joined_over_pages(runs: list[Run], lines: list[Line], text: str) -> list[Run]:
    """A paragraph that goes on on the next page is one, where nothing stands between."""
    joined: list[Run] = []
    for run in runs:
        before = joined[-1] if joined else None
        if before and not before.kind and not run.kind and run.gap == 2:
            above, below = lines[before.last], lines[run.first]
            is_cut = above.said[-1].isalnum() or above.said[-1] in ",-"
            if is_cut and below.said[0].islower() and text[above.end : below.start].isspace():
                before.last = run.last
                continue
        joined.append(run)
    return joined
