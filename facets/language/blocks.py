"""Blocks of a text: paragraphs, headings, list items, table rows, code and quotations.

A text is read in three steps. Marks (fences, rules, tags, directives) identify code, rows and headings. Other lines are
joined into paragraphs (:mod:`facets.language.wrapping`). Then items, labels and unmarked headings are found.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby, takewhile
from typing import Literal, NamedTuple

from facets.language.markup import MAY_BE_MARKED, STOPS, Hyphens, said
from facets.language.tables import Row, read_rows
from facets.language.wrapping import DAY, INFO, ITEM, Line, lines_of, paragraph_ends

Kind = Literal["paragraph", "heading", "item", "row", "code", "quotation"]


class Block(NamedTuple):
    """A paragraph, heading, list item or similar unit; no sentence crosses its borders."""

    kind: Kind
    start: int  # offset of the first character, marks included ("# ", "- ")
    end: int  # offset after the last character, marks included
    level: int  # heading level from 1 (highest) to 6; nesting depth of an item or quotation from 1; else 0
    said_start: int  # offset of the content, after the mark
    said_end: int  # offset after the content
    row: Row | None = None  # cells and names of the columns of a row


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
    r".*[;{}]$|[})\]]+[;,]?$|[\w.\[\]\"']+(?:, \w+)*(?:: [\w.\[\]]+)? ?(?:[-+*/|&:]?=|<-) ?\S|\$ \S|[\w.]+\(.*\)[;:]?$"
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
_RULE_ALONE = re.compile(r"\s*\n[|:+ -]*-[|:+ -]*\n\s*$")
_EMPTY_LINE = re.compile(r"\n[ \t\r]*\n|\r[ \t]*\r")
_DIGITS = re.compile(r"\d+")
_COMMENT = re.compile(r"/\*+$|\*+/$")  # the first or last line of a comment
_FEWEST_ROWS = {"tab": 1, "bar": 2, "columns": 2, "semicolon": 3, "comma": 3}
# Characters that may begin a one-line text that is not a paragraph.
_MAY_BE_MARK = frozenset("#-*+>|`=~_.:<[(\u2022\u2023\u25aa\u25e6\u2013\u2014")
_MOST_WORDS = 12  # most words of a heading
_ENDS = re.compile(rf"[{STOPS},;:\uff0c\uff1a\u060c]$")
_NUMBERED = re.compile(rf"(?!{DAY.pattern})(\d{{1,2}}(?:\.\d{{1,3}})*)(\.?)\s+(?=[^\W\d_a-z])")
_LABEL = re.compile(r"[A-Z][\w-]*(?: [\w-]+){0,2}:$")
_FIELD = re.compile(r"(?:[A-Z][\w-]*\s){0,2}[A-Z][\w.-]*:\s")
_MOST_SHORT = 3  # most successive short lines that may be headings


def blocks(text: str) -> list[Block]:
    r"""The blocks of a text, in order; rules, fences, badges and page numbers are in no block.

    Example:
        >>> text = "# Milk\n\nThe cow gives milk on the fourth of\nMarch.\n\n- cheese\n- butter"
        >>> [(block.kind, block.level, text[block.said_start : block.said_end]) for block in blocks(text)][::2]
        [('heading', 1, 'Milk'), ('item', 1, 'cheese')]
    """
    stripped = text.strip()
    outline = [] if is_plain_line(text) else _outline(text)
    if outline or not stripped:
        return outline
    start = len(text) - len(text.lstrip())  # one line, or only marks, which then count as the content
    return [Block("paragraph", start, start + len(stripped), 0, start, start + len(stripped))]


def is_plain_line(text: str) -> bool:
    """Whether a text is one line of prose without marks, as most texts are."""
    return MAY_BE_MARKED.search(text) is None and text[:1] not in _MAY_BE_MARK and not text[:1].isspace()


@dataclass(slots=True)
class _Run:
    kind: Kind | Literal[""]  # empty while it is unknown
    first: Line
    last: Line
    level: int = 0  # as in `Block`
    end: int = 0  # offset after further marks, such as the rule below a heading
    skipped: int = 0  # length of the mark before the content
    gap: int = 0  # what separates it from the previous run, see `Line`; 1 also where lines were left out

    def is_short(self) -> bool:
        """Whether it is short enough for a heading and does not end like a sentence."""
        line = self.first
        return (
            line is self.last
            and line.said.count(" ") < _MOST_WORDS + line.said.count("  ")
            and _ENDS.search(line.said) is None
            and not _FIELD.match(line.said)
        )

    def stands_over(self, after: "_Run") -> bool:
        """Whether a short line is right above a longer one that begins a sentence of prose."""
        line, below = self.first, after.first
        if after.gap or after.kind or ITEM.match(below.said) or line.indent != below.indent:
            return False
        is_prose = after.first is not after.last or below.said[-1] in ".!?"
        return is_prose and len(below.said) > len(line.said) and below.said[0].isupper()

    def block(self) -> Block:
        line = self.first
        said_start, said_end = line.end - len(line.said) + self.skipped, self.last.end
        if self.kind == "heading" and line.prefix.startswith("#"):
            said_end = said_start + len(line.said.rstrip("# \t")) or said_end
        elif self.kind == "row" and line.said[0] == "|":
            said_start += len(line.said) - len(line.said.lstrip("| \t"))
            said_end = max(said_start, said_end - len(self.last.said) + len(self.last.said.rstrip("| \t")))
        return Block(
            self.kind or "paragraph", line.start, max(self.end, self.last.end), self.level, said_start, said_end
        )


def _outline(text: str) -> list[Block]:
    marked = _Marked(text)
    runs = _joined_over_pages(_parted(marked.runs()), text)
    _find_items(runs)
    _find_headings(runs)
    return _with_rows([run.block() for run in runs if run.first.said != "--"], text)


def _with_rows(found: list[Block], text: str) -> list[Block]:
    """Reads the rows of each table together; an empty line ends a table, unless it follows the rule below a header."""
    done: list[Block] = []
    for kind, some in groupby(found, key=lambda block: block.kind):
        table: list[Block] = []
        for block in (*some, None):
            between = text[table[-1].end : block.start] if table and block else "\n\n"
            is_below_header = len(table) == 1 and _RULE_ALONE.match(between) is not None
            if block and (kind != "row" or is_below_header or not _EMPTY_LINE.search(between)):
                table.append(block)
                continue
            rows = read_rows(text, [(one.start, one.end) for one in table]) if table and kind == "row" else []
            done += [one._replace(row=row) for one, row in zip(table, rows, strict=True)] if rows else table
            table = [block] if block else []
    return done


def _find_items(runs: list[_Run]) -> None:
    """Finds items with their depth, quotations, and labels such as "Ingredients:"."""
    indents: list[int] = []  # indents of the enclosing items
    for number, run in enumerate(runs):
        line = run.first
        if run.kind:
            indents = [] if run.kind == "heading" else indents
            continue
        item = ITEM.match(line.said)
        if line.prefix.startswith(">"):
            run.kind, run.level = "quotation", line.prefix.count(">")
        elif (item or INFO.match(line.said)) and not _is_numbered_heading(number, runs):
            while indents and indents[-1] >= line.indent:
                indents.pop()
            indents.append(line.indent)
            run.kind, run.level, run.skipped = "item", len(indents), item.end() if item else 0
        else:
            if indents and line.indent <= indents[0]:
                indents = []
            if number + 1 < len(runs) and line is run.last and _LABEL.match(line.said):
                run.kind, run.level = "heading", 4


def _is_numbered_heading(number: int, runs: list[_Run]) -> bool:
    """Whether "3. Title" is a heading: short, set apart, without a full stop, and not part of a numbered list."""
    run, after = runs[number], runs[number + 1] if number + 1 < len(runs) else None
    found = _NUMBERED.match(run.first.said)
    if not found or not after or not run.is_short() or not (run.gap or number == 0):
        return False
    if not after.gap and not run.stands_over(after):
        return False
    count = int(found[1]) if found[1].isdigit() else -1
    beside = [other.first.said for other in (runs[number - 1] if number else None, after) if other]
    counts = [int(match[1]) for match in map(_NUMBERED.match, beside) if match and match[1].isdigit()]
    return count - 1 not in counts and count + 1 not in counts


def _find_headings(runs: list[_Run]) -> None:
    """Finds headings without marks: short lines over prose or a heading that are numbered or set apart."""
    is_below = False  # whether the short lines below are followed by prose or a heading
    num_short = 0
    for number in range(len(runs) - 1, -1, -1):
        run = runs[number]
        if run.kind or not run.is_short():
            is_below, num_short = run.kind != "quotation", 0
            continue
        num_short += 1
        level = _level(number, runs) if is_below and num_short <= _MOST_SHORT else 0
        if level:
            run.kind, run.level = "heading", level


def _level(number: int, runs: list[_Run]) -> int:
    """Heading level of a short line; 0 if it is not a heading, as when the next line begins in lower case."""
    run, said, is_first = runs[number], runs[number].first.said, number == 0
    after = runs[number + 1] if number + 1 < len(runs) else None
    if after is None or (not after.gap and after.first.said[0].islower()):
        return 0
    if found := _NUMBERED.match(said):
        return found[1].count(".") + 1 if said[found.end() : found.end() + 1].isalpha() else 0
    is_apart = (is_first or run.gap) and (after.gap or (not is_first and run.stands_over(after)))
    if not is_apart or said[0].islower() or not (said[0].isalnum() or said[0] in "\"'\u201c\u00bf\u00a1"):
        return 0
    return 1 if is_first or CHAPTER.match(said) else 2 if said.isupper() else 3


class _Marked:
    """The lines of a text and the runs that their marks identify."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._hyphens = Hyphens(text)
        self.lines = lines_of(text)
        if self.lines and "\f" in text:
            self.lines = _without(self.lines, _running(self.lines))
        self._adornments: dict[tuple[str, bool], int] = {}  # heading level by the kind of rule below
        self._closing: dict[str, list[int]] = {"`": [], "~": []}  # fences that may close code
        for number, line in enumerate(self.lines):
            if line.said[:3] in ("```", "~~~") and not line.said.strip(line.said[0]):
                self._closing[line.said[0]].append(number)

    def runs(self) -> list[_Run]:
        """Code, rows and headings with marks, and all other lines one by one."""
        runs: list[_Run] = []
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

    def _marked(self, place: int, runs: list[_Run]) -> tuple[list[_Run], int]:
        """The runs that begin at a line, and the index of the line after them."""
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
                return self._code(place + 1, numbers[number]), numbers[number] + 1
            return [], place + 1
        if mark in _RULES or mark in _RULE_MARKS:
            if place == 0 and line.said == "---" and (behind := self._front_matter()):
                return self._code(1, behind - 1), behind
            if _is_rule(line.said):
                return self._ruled(place, runs)
        if mark == "|" and line.said.count("|") > 1:
            return [_Run("row", line, line)], place + 1
        if mark in "<[!" and (found := self._tagged(line)) is not None:
            return found, place + 1
        before = self.lines[place - 1] if place else line
        if line.gap and before.said.endswith("::") and line.indent > before.indent:
            behind = self._behind_indented(place, before.indent)
            return self._code(place, behind), behind
        return [_Run("", line, line)], place + 1

    def _code(self, first: int, behind: int, *, skipped: int = 0) -> list[_Run]:
        some = self.lines[first:behind]
        return [_Run("code", some[0], some[-1], skipped=skipped)] if some else []

    def _prefixed(self, place: int) -> tuple[list[_Run], int]:
        """Markdown headings and doctest examples; other lines with a prefix are prose."""
        lines, line = self.lines, self.lines[place]
        if line.prefix == ">>>" and _DOCTEST.match(self._text, line.start, line.end):
            behind = place + 1
            while behind < len(lines) and not lines[behind].gap:
                behind += 1
            return self._code(place, behind, skipped=len(line.said) - (line.end - line.start)), behind
        if not set(line.prefix) - {"#"} and len(line.prefix) <= 6:
            before = lines[place - 1] if place and not line.gap else None
            after = lines[place + 1] if place + 1 < len(lines) and not lines[place + 1].gap else None
            is_comment = any(other and other.prefix == line.prefix for other in (before, after)) or (
                len(line.prefix) == 1 and after is not None and not after.prefix and _is_statement(after)
            )
            if not is_comment:
                return [_Run("heading", line, line, level=len(line.prefix))], place + 1
        return [_Run("", line, line)], place + 1

    def _directed(self, place: int, directive: re.Match[str]) -> tuple[list[_Run], int]:
        """A directive, a label or a footnote of reStructuredText."""
        line, name, said = self.lines[place], directive[1], directive[2] or ""
        behind = self._behind_indented(place + 1, line.indent)
        if name is None:
            return [] if said.startswith("_") else [_Run("", line, line)], place + 1
        if name in _CODE_DIRECTIVES:
            options = takewhile(lambda option: _OPTION.match(option.said), self.lines[place + 1 : behind])
            return self._code(place + 1 + sum(1 for _ in options), behind), behind
        if name not in _TEXT_DIRECTIVES:
            return [], place + 1 if name.startswith("version") else behind
        if not said or name == "deprecated":
            return [], place + 1
        # The text after the directive may continue on the next line.
        indent = self.lines[place + 1].indent if behind > place + 1 else line.indent
        start = line.end - len(line.said) + directive.start(2)
        text = line._replace(start=start, said=said, indent=indent, first_word=said.split()[0])
        return [_Run("", text, text)], place + 1

    def _ruled(self, place: int, runs: list[_Run]) -> tuple[list[_Run], int]:
        """A rule: below a heading, between rows of a table, or between parts."""
        lines, line, behind = self.lines, self.lines[place], place + 1
        if not runs or line.gap or runs[-1].kind or runs[-1].last is not lines[place - 1]:
            return [], behind
        above, before = runs[-1], lines[place - 1]
        if "|" in line.said and "|" in before.said:
            above.kind = "row"
            while behind < len(lines) and not lines[behind].gap and "|" in lines[behind].said:
                behind += 1
            return [_Run("row", row, row) for row in lines[place + 1 : behind]], behind
        is_title = (above.gap > 0 or place == 1) and len(before.said) <= 100 and before.said[-1] not in ".;,"
        if len(set(line.said)) == 1 and is_title and (line.said[0] in "=-" or len(line.said) > 3):
            is_overlined = place > 1 and not before.gap and _is_rule(lines[place - 2].said)
            above.kind, above.end = "heading", line.end
            above.level = self._adorned(line.said[0], is_overlined)
        return [], behind

    def _adorned(self, mark: str, is_overlined: bool) -> int:
        """Level of a heading by the rule below it: each new kind of rule is one level lower."""
        known = self._adornments
        lowest = 2 if (mark, is_overlined) == ("-", False) else 1
        return min(6, known.setdefault((mark, is_overlined), max(lowest, max(known.values(), default=0) + 1)))

    def _tagged(self, line: Line) -> list[_Run] | None:
        """The runs of a line that begins with a tag, link or picture; None if it is prose."""
        if _REFERENCE.match(line.said) or not said(self._text, line.start, line.end, hyphens=self._hyphens):
            return []
        heading = _HTML_HEADING.match(line.said)
        return [_Run("heading", line, line, level=int(heading[1]))] if heading else None

    def _front_matter(self) -> int:
        """Index of the line after the front matter; 0 if there is none."""
        ends = (number for number, line in enumerate(self.lines[:100]) if number and line.said in ("---", "..."))
        end = next(ends, 0)
        return end + 1 if end > 1 else 0

    def _behind_indented(self, place: int, indent: int) -> int:
        while place < len(self.lines) and self.lines[place].indent > indent:
            place += 1
        return place


def _parted(runs: list[_Run]) -> list[_Run]:
    """Joins lines of prose into paragraphs and items, and finds code and rows without marks."""
    parts = [piece for stretch in _stretches(runs) for piece in _pieces(stretch)]
    prose = [[] if part[0].kind else [run.first for run in part] for part in parts]
    found: list[_Run] = []
    for part, ends in zip(parts, paragraph_ends(prose), strict=True):
        found += part if part[0].kind else []
        start = 0
        for end in ends:
            part[start].last = part[end].last
            found.append(part[start])
            start = end + 1
    return found


def _stretches(runs: list[_Run]) -> Iterator[list[_Run]]:
    """Groups consecutive lines of prose, or of one comment or quotation; other runs stand alone."""
    stretch: list[_Run] = []
    for run in runs:
        if stretch and (run.kind or run.gap or stretch[-1].kind or run.first.prefix != stretch[-1].last.prefix):
            yield stretch
            stretch = []
        stretch.append(run)
    if stretch:
        yield stretch


def _pieces(stretch: list[_Run]) -> Iterator[list[_Run]]:
    """Splits a stretch of lines into code, rows, and the prose between them."""
    if stretch[0].kind or stretch[0].first.prefix:
        yield stretch
        return
    if _is_code([run.first for run in stretch]):
        yield [replace(stretch[0], kind="code", last=stretch[-1].last)]
        return
    prose: list[_Run] = []
    for (name, _), some in groupby(stretch, key=lambda run: _row_key(run.first.said)):
        group = list(some)
        if name and len(group) >= _FEWEST_ROWS[name]:
            if prose:
                yield prose
            yield [replace(run, kind="row") for run in group]
            prose = []
        else:
            prose += group
    if prose:
        yield prose


def _is_code(lines: list[Line]) -> bool:
    """Whether most lines are statements, beginning with the first; a single line must be a command or a call."""
    if len(lines) == 1:
        return _CALL.match(lines[0].said) is not None and _is_statement(lines[0])
    num = 0
    for number, line in enumerate(lines):
        is_inner = num == number and num > 0 and line.indent > lines[0].indent
        num += is_inner or _is_statement(line)
    return num > 1 and num >= 0.6 * len(lines)


def _is_rule(line: str) -> bool:
    marks = set(line)
    if len(marks) == 1:
        return len(line) > 2 and line[0] in _RULES
    return len(line) > 2 and marks <= _RULE_MARKS and ("-" in marks or "=" in marks)


def _is_statement(line: Line) -> bool:
    return _STATEMENT.match(line.said) is not None and ITEM.match(line.said) is None


def _row_key(line: str) -> tuple[str, int]:
    """What the rows of a table have in common; an empty name if the line is not a row."""
    if "\t" in line:
        return "tab", 0
    if num := line.count(" | "):
        return "bar", num
    for name, mark in (("semicolon", ";"), ("comma", ",")):
        if (num := line.count(mark)) and f"{mark} " not in line and line[-1] not in f".{mark}":
            return name, num
    return ("columns", 0) if _COLUMNS.search(line) else ("", 0)


def _without(lines: list[Line], left_out: set[int]) -> list[Line]:
    kept: list[Line] = []
    gap = 0
    for number, line in enumerate(lines):
        gap = max(gap, line.gap)
        if number not in left_out:
            kept.append(line if gap == line.gap else line._replace(gap=gap))
            gap = 0
    return kept


def _running(lines: list[Line]) -> set[int]:
    """First and last lines of pages that are page numbers, or that recur, except for numbers, on at least half of them.

    The heading of a chapter, which is on only one page, does not count.
    """
    firsts = [0, *(number for number, line in enumerate(lines) if line.gap == 2)]
    edges = [(number, _DIGITS.sub("0", lines[number].said)) for number in firsts]
    edges += [(number - 1, _DIGITS.sub("0", lines[number - 1].said)) for number in [*firsts[1:], len(lines)] if number]
    counts = Counter(key for _, key in edges)
    begun = {number for number in firsts if CHAPTER.match(lines[number].said)}
    times = Counter(lines[number].said for number in begun)
    edges = [edge for edge in edges if edge[0] not in begun or times[lines[edge[0]].said] > 1]
    fewest = max(3, len(firsts) / 2 - 1)
    return {number for number, key in edges if counts[key] >= fewest or _PAGE.match(lines[number].said)}


def _joined_over_pages(runs: list[_Run], text: str) -> list[_Run]:
    joined: list[_Run] = []
    for run in runs:
        before = joined[-1] if joined else None
        if before and not before.kind and not run.kind and run.gap == 2:
            above, below = before.last, run.first
            is_cut = above.said[-1].isalnum() or above.said[-1] in ",-"
            if is_cut and below.said[0].islower() and text[above.end : below.start].isspace():
                before.last = run.last
                continue
        joined.append(run)
    return joined
