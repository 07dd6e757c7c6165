"""Blocks of a text: paragraphs, headings, items of lists, rows of tables, code and quotations."""

import re
from collections import Counter
from typing import NamedTuple

from facets.language.lines import ENTRY, INFO, ITEM, Line
from facets.language.marks import CHAPTER, Kind, Role, Run, runs_of
from facets.language.markup import MAY_BE_MARKED


class Block(NamedTuple):
    """A part of a text that belongs together; no sentence crosses its borders."""

    kind: Kind  # what it is
    start: int  # offset of its first character, marks included ("# ", "- ")
    end: int  # offset behind its last one, marks included
    level: int  # of a heading from 1 (highest) to 6; how deep an item or a quotation lies, from 1; else 0
    said_start: int  # offset of what it says, behind its mark
    said_end: int  # offset behind what it says
    role: Role = ""  # what it is for, as far as that is certain; empty: what the text is about


# A text of one line that begins with another character is a paragraph.
_MAY_BE_MARK = frozenset("#-*+>|`=~_.:<[(\u2022\u2023\u25aa\u25e6\u2013\u2014")
_SHORT = 80  # characters of a line that may be a heading
_MOST_WORDS = 12
_ENDS = re.compile(r"[.!?,;:\u2026\u3002\uff01\uff1f\uff0c\uff1a\u060c\u061f]$")
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,3})*)(\.?)\s+(?=[^\W\d_a-z])")
_LABEL = re.compile(r"[A-Z][\w-]*(?: [\w-]+){0,2}:$")
_FIELD = re.compile(r"(?:[A-Z][\w-]*\s){0,2}[A-Z][\w.-]*:\s")
_TYPED = re.compile(r"\*{0,2}\w+(?:, \*{0,2}\w+)* : \S")
_SPEAKER = re.compile(r"((?:[A-Z][\w.'-]*)(?: [A-Z][\w.'-]*){0,2})(?: \([^()]*\))?: \S")
_HEADERS = frozenset(
    "From To Cc Bcc Subject Date Sent Reply-To Message-ID Note Example Warning Tip Usage Returns".split()
)
_GREETING = re.compile(
    r"(?:dear|hi|hello|hey|good (?:morning|afternoon|evening|day)|greetings|sehr geehrte[rs]?|liebe[rs]?|hallo|bonjour"
    r"|ch(?:er|\u00e8re)|hola|estimad[oa]s?)\b[^.?!:,]{0,60}[,!:]?$",
    re.IGNORECASE,
)
_FAREWELL = re.compile(
    r"(?:(?:with )?(?:best|kind|kindest|warm|many|all the)(?: (?:wishes|regards|best|thanks))?|regards"
    r"|yours(?: (?:sincerely|faithfully|truly))?|sincerely(?: yours)?|cheers|thank you(?: very much)?"
    r"|(?:many )?thanks(?: (?:a lot|again|in advance))?|love|see you(?: (?:soon|then|there|tomorrow))?|bye|take care"
    r"|mit freundlichen gr\u00fc\u00dfen|(?:viele|liebe|beste|herzliche) gr\u00fc\u00dfe|cordialement|saludos)[,.!]?$",
    re.IGNORECASE,
)
_MOST_SIGNATURE_LINES = 6
_NAVIGATION = re.compile(
    r"(?:skip to (?:main )?(?:content|navigation|search)|back to top|jump to navigation.*|cookie (?:settings|policy)"
    r"|sign in|log ?in|sign up|privacy policy|terms of (?:use|service)|share this|read more|print this page|menu"
    r"|toggle navigation|all rights reserved\.?|search)$",
    re.IGNORECASE,
)
_TRAIL = re.compile(r"\s[|\u00bb\u203a>\u00b7\u2022]\s")
_COPYRIGHT = re.compile(
    r"(?:copyright\b.{0,20}?(?:\d{4}|\(c\)|\u00a9)|\(c\) ?\d{4}|\u00a9).{0,200}$|.{0,200}\ball rights reserved\b",
    re.IGNORECASE,
)
_LICENCE = re.compile(r"(?:licen[cs]e|licen[cs]ing|copying|copyright|copyright and licen[cs]e)$", re.IGNORECASE)
_INITIAL = re.compile(r"[A-Z]\. ")
_MOST_SHORT = 3  # lines of a title


def blocks(text: str) -> list[Block]:
    r"""What a text is made of, in order; marks alone (rules, fences, badges, numbers of pages) are in no block.

    Example:
        >>> text = "# Milk\n\nThe cow gives milk on the fourth of\nMarch.\n\n- cheese\n- butter"
        >>> [(block.kind, block.level, text[block.said_start : block.said_end]) for block in blocks(text)][::2]
        [('heading', 1, 'Milk'), ('item', 1, 'cheese')]
    """
    stripped = text.strip()
    found = [] if is_plain_line(text) else _Outline(text).blocks()
    if found or not stripped:
        return found
    start = len(text) - len(text.lstrip())  # one line, or nothing but marks, which are what it says then
    return [Block("paragraph", start, start + len(stripped), 0, start, start + len(stripped))]


def is_plain_line(text: str) -> bool:
    """Whether a text is one line of prose that is said as it stands: most texts; it may be of megabytes."""
    return MAY_BE_MARKED.search(text) is None and text[:1] not in _MAY_BE_MARK and not text[:1].isspace()


class _Outline:
    """Tells what each run of lines of one text is."""

    def __init__(self, text: str) -> None:
        self._runs, self._lines = runs_of(text)

    def blocks(self) -> list[Block]:
        """Items, roles and headings, one after the other: each step goes by what those before have told."""
        runs = self._runs
        self._tell_items(runs)
        _tell_roles(runs, self._lines)
        self._tell_headings(runs)
        _tell_licences(runs, self._lines)
        return [self._block(run) for run in runs if self._lines[run.first].said != "--"]

    def _block(self, run: Run) -> Block:
        first, last = self._lines[run.first], self._lines[run.last]
        said_start = first.end - len(first.said) + run.skipped
        said_end = last.end
        if run.kind == "heading" and first.prefix.startswith("#"):
            said_end = said_start + len(first.said.rstrip("# \t")) or said_end
        elif run.kind == "row" and first.said[0] == "|":
            said_start += len(first.said) - len(first.said.lstrip("| \t"))
            said_end = max(said_start, said_end - len(last.said) + len(last.said.rstrip("| \t")))
        kind = run.kind or "paragraph"
        return Block(kind, first.start, max(run.end, last.end), run.level, said_start, said_end, run.role)

    def _tell_items(self, runs: list[Run]) -> None:
        """Items with their depth, quotations, and labels with the entries below them."""
        indents: list[int] = []  # of the items around
        label = -1  # indent of the label above; -1: there is none
        for number, run in enumerate(runs):
            line = self._lines[run.first]
            if run.kind:
                indents, label = ([], -1) if run.kind == "heading" else (indents, label)
                continue
            after = runs[number + 1] if number + 1 < len(runs) else None
            skipped = self._mark_of_item(line, is_entry=0 <= label < line.indent)
            if line.prefix.startswith(">"):
                run.kind, run.level = "quotation", line.prefix.count(">")
            elif skipped >= 0 and not self._is_numbered_heading(number, runs):
                while indents and indents[-1] >= line.indent:
                    indents.pop()
                indents.append(line.indent)
                run.kind, run.level, run.skipped = "item", len(indents), skipped
            elif after and not after.gap and _TYPED.match(line.said) and self._lines[after.first].indent > line.indent:
                run.kind, run.level = "item", 1
            else:
                if indents and line.indent <= indents[0]:
                    indents = []
                label = label if line.indent > label else -1
                if after and _LABEL.match(line.said) and self._is_label(run, after):
                    run.kind, run.level, label = "heading", 4, line.indent

    def _mark_of_item(self, line: Line, *, is_entry: bool) -> int:
        """Characters of an item's mark; -1: it is none."""
        item = ITEM.match(line.said)
        if item and not _INITIAL.match(line.said):
            return item.end()
        return 0 if INFO.match(line.said) or (is_entry and ENTRY.match(line.said)) else -1

    def _is_label(self, run: Run, after: Run) -> bool:
        line, below = self._lines[run.first], self._lines[after.first]
        is_listed = after.kind in ("code", "row", "item") or ITEM.match(below.said) is not None
        return run.first == run.last and (is_listed or (below.indent > line.indent and not after.gap))

    def _is_numbered_heading(self, number: int, runs: list[Run]) -> bool:
        """Whether "3. Title" is a heading: alone, short, without a stop, and no item of a numbered list."""
        run, line = runs[number], self._lines[runs[number].first]
        found = _NUMBERED.match(line.said)
        after = runs[number + 1] if number + 1 < len(runs) else None
        if not found or not after or not self._is_short(run) or not (run.gap or number == 0):
            return False
        if not after.gap and not self._stands_over(run, after):
            return False
        own = int(found[1]) if found[1].isdigit() else -1
        beside = [self._lines[one.first].said for one in (runs[number - 1] if number else None, after) if one]
        counts = [int(match[1]) for match in map(_NUMBERED.match, beside) if match and match[1].isdigit()]
        return own - 1 not in counts and own + 1 not in counts

    def _stands_over(self, run: Run, after: Run) -> bool:
        """Whether a short line stands right over a longer one that begins a sentence of prose."""
        line, below = self._lines[run.first], self._lines[after.first]
        if after.gap or after.kind or after.role or ITEM.match(below.said) or line.indent != below.indent:
            return False
        is_prose = after.last > after.first or below.said[-1] in ".!?"
        return is_prose and len(below.said) > len(line.said) and below.said[0].isupper()

    def _is_short(self, run: Run) -> bool:
        """Whether a run may be a heading by its length and its end."""
        line = self._lines[run.first]
        return (
            run.first == run.last
            and not line.prefix
            and len(line.said) <= _SHORT
            and line.said.count(" ") < _MOST_WORDS + line.said.count("  ")
            and _ENDS.search(line.said) is None
        )

    def _tell_headings(self, runs: list[Run]) -> None:
        """Headings without a mark: numbered, in capitals, or short lines between empty ones above prose."""
        is_below = False  # whether prose or a heading comes behind the short lines that follow
        num_short = 0
        for number in range(len(runs) - 1, -1, -1):
            run = runs[number]
            if run.kind or run.role or not self._is_short(run):
                is_below, num_short = run.role not in ("farewell", "signature") and run.kind != "quotation", 0
                continue
            level = self._level(number, runs) if is_below else 0
            num_short += level not in (1, 2) or number == 0
            if level and num_short <= _MOST_SHORT:
                run.kind, run.level = "heading", level

    def _level(self, number: int, runs: list[Run]) -> int:
        """Of a short line as a heading; 0: it is none."""
        run, said = runs[number], self._lines[runs[number].first].said
        after = runs[number + 1] if number + 1 < len(runs) else None
        if found := _NUMBERED.match(said):
            return found[1].count(".") + 1 if said[found.end() : found.end() + 1].isalpha() else 0
        is_first, is_alone = number == 0, run.gap > 0 and after is not None and after.gap > 0
        if (is_first or is_alone) and CHAPTER.match(said):
            return 1
        if said.isupper() and sum(map(str.isalpha, said)) > 3 and (is_first or run.gap):
            next_said = "" if after is None or after.gap else self._lines[after.first].said
            return 0 if next_said.isupper() else 1 if is_first else 2
        if said[0].islower() or not (said[0].isalnum() or said[0] in "\"'\u201c\u00bf\u00a1"):
            return 0
        if _FIELD.match(said):
            return 0
        if is_first:
            return int(self._is_title(runs))
        return 3 if is_alone or (run.gap and after and self._stands_over(run, after)) else 0

    def _is_title(self, runs: list[Run]) -> bool:
        """Whether an empty line comes soon, and but for short lines nothing before."""
        for run in runs[1 : 1 + _MOST_SHORT]:
            if run.gap:
                return True
            if run.kind or run.role or not self._is_short(run):
                return False
        return False


def _tell_roles(runs: list[Run], lines: list[Line]) -> None:
    """Fields, greetings, farewells, signatures, speakers, menus and lines about the copyright."""
    names = Counter(match[1] for run in runs if not run.kind and (match := _SPEAKER.match(lines[run.first].said)))
    names = Counter({name: count for name, count in names.items() if name not in _HEADERS})
    is_dialogue = names.total() > 2 and max(names.values(), default=0) > 1
    signature = 0  # lines that may still belong to it
    for run in runs:
        line = lines[run.first]
        is_single = run.first == run.last and len(line.said) <= _SHORT
        speaker = _SPEAKER.match(line.said)
        if signature and is_single and line.said[-1] not in "!?":
            run.role, signature = "signature", signature - 1
        elif line.said == "--":
            run.role, signature = "signature", _MOST_SIGNATURE_LINES
        elif run.kind:
            signature = 0
            run.role = "navigation" if run.kind == "item" and _NAVIGATION.match(line.said[run.skipped :]) else ""
        else:
            signature = 0
            if is_single and _FAREWELL.match(line.said):
                run.role, signature = "farewell", _MOST_SIGNATURE_LINES
            elif is_single and _GREETING.match(line.said):
                run.role = "greeting"
            elif is_dialogue and speaker and speaker[1] in names:
                run.role = "speaker"
            elif is_single and (_NAVIGATION.match(line.said) or _is_trail(line.said)):
                run.role = "navigation"
            elif _COPYRIGHT.match(line.said):
                run.role = "copyright"
            elif run.first == run.last and _FIELD.match(line.said):
                run.role = "field"


def _is_trail(line: str) -> bool:
    """Whether a line is a menu or a path through a site: "Home | News | Contact"."""
    cells = _TRAIL.split(line)
    return len(cells) > 2 and all(len(cell) <= 25 and cell[-1:] not in ".!?" for cell in cells)


def _tell_licences(runs: list[Run], lines: list[Line]) -> None:
    """The part of a read-me that says under which licence it stands: from its heading to the next one."""
    level = 0
    for number, run in enumerate(runs):
        if run.kind == "heading":
            name = lines[run.first].said.strip("# \t:")
            level = run.level if number and _LICENCE.match(name) else level if level and run.level > level else 0
        if level and not run.role:
            run.role = "licence"
