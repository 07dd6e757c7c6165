"""Paragraphs of a text: runs of lines that one sentence may cross.

Licences, mails, docstrings and pages of PDFs wrap their lines: a newline there is a space. In lists, tables, headings,
verses and logs it is a border. A line goes on in the next one when that one's first word would not have fitted behind
it any more, the lines of the block being as wide as they are, and nothing says that something new begins.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Everything that str.splitlines takes for the end of a line.
_LINE = re.compile("[^\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]+")
_NARROWEST, _WIDEST = 30, 160  # characters; nobody wraps prose into narrower lines, nor into wider ones
_LONGEST_WORD = 30  # a longer one (an address, a path) hangs out of its line and tells nothing of its width
# Marks before every line of comments and of quoted mails: no part of what is said, and of no weight here.
_PREFIX = re.compile(r"(?:>[ >]*|//+|#+|;+|--|%+)[ \t]+")
_PREFIX_IN_COMMENT = re.compile(r"\*[ \t]+")  # between /* and */
# What begins something new: items of lists, headings, rows of tables, fences and rules, fields ("Subject: ...").
_BEGINS = re.compile(
    r"[-*+\u2022\u2023\u25aa\u25e6\u2013\u2014]\s|[#|`~=<>{]|[-_*=~]{3,}|\(?(?:\d{1,3}|[A-Za-z]|[ivx]{1,4})[.)]\s"
    r"|@\w|(?:[A-Z][\w.-]*\s){0,1}[A-Z][\w.-]*:(?:\s|$)|:\w+"
)
_ITEM = re.compile(r"(?:[-*+\u2022\u2023\u25aa\u25e6\u2013\u2014]|\(?(?:\d{1,3}|[A-Za-z]|[ivx]{1,4})[.)])\s+")
_ENTRY = re.compile(r"[\w*`][\w.*`-]*(?: \([^()]*\))?: ")  # "name: what it is"; like an item it may hang
# What is over with its line: headings, rows of tables, fences, rules, statements of programs.
_ENDS_WITH_LINE = re.compile(r"#{1,6}\s|\||[`~=]{3}|[-_*=~]{3,}$|.*[;{}|]$")
_NEAR = 9  # lines before and behind a line that say how wide it may be
# Nothing ends with these.
_NEVER_LAST = frozenset(
    "a an the of and or to in on at by for from with as that which who is are was were be been has have had its their"
    " his her our your my this these those between into than but if when while because".split()
)
_GOES_ON = re.compile(r"[^\W\d_]")
_WRAPPED_SHARE = 0.25  # of full lines go on in lower case where lines are wrapped: some 80 of 100; in lists none


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that holds something.

    Attributes:
        start: Offset of its first character that is no white space.
        end: Offset behind its last.
        indent: Characters before the first, tabs as four.
        said: The line without its prefix.
        prefix: Mark of comments or quotations that it has.
        first_word: Of what is said.
        last_word: Of what is said, in lower case.
        longest: Characters of its longest word.
    """

    start: int
    end: int
    indent: int
    said: str
    prefix: str
    first_word: str
    last_word: str
    longest: int

    @property
    def width(self) -> int:
        return self.indent + self.end - self.start


def paragraphs(text: str) -> Iterator[tuple[int, int]]:
    r"""Runs of lines that one sentence may cross, as offsets ``[start, end)``; each line is in one of them.

    Args:
        text: Any text.

    Example:
        >>> wrapped = "The crane fell over on the fourth of\nMarch, when a cable broke.\n\n- milk\n- bread"
        >>> [wrapped[start:end] for start, end in paragraphs(wrapped)]
        ['The crane fell over on the fourth of\nMarch, when a cable broke.', '- milk', '- bread']
    """
    if _LINE.fullmatch(stripped := text.strip()):  # most texts are one line, which may be of megabytes
        start = len(text) - len(text.lstrip())
        yield start, start + len(stripped)
        return
    blocks = list(_blocks(text))
    full = [_full_lines(block) for block in blocks]
    pairs = [(block[place], block[place + 1]) for block, some in zip(blocks, full, strict=True) for place in some]
    num_going_on = sum(after.said[:1].islower() or line.last_word in _NEVER_LAST for line, after in pairs)
    is_wrapped = num_going_on > 0 and num_going_on >= _WRAPPED_SHARE * len(pairs)
    for block, some in zip(blocks, full, strict=True):
        start = 0
        for place in range(len(block)):
            is_last = place == len(block) - 1
            if is_last or not (is_wrapped and place in some and _may_go_on(block, start, place)):
                yield block[start].start, block[place].end
                start = place + 1


def _blocks(text: str) -> Iterator[list[_Line]]:
    """Lines without an empty one between them."""
    block: list[_Line] = []
    behind, in_comment = 0, False
    for match in _LINE.finditer(text):
        line = _line(match.group(), match.start(), in_comment=in_comment)
        in_comment = "*/" not in match.group() and (in_comment or match.group().lstrip().startswith("/*"))
        between = text[behind : match.start()]
        if block and (line is None or between.count("\n") > 1 or "\f" in between):
            yield block
            block = []
        if line is not None:
            block.append(line)
        behind = match.end()
    if block:
        yield block


def _line(text: str, offset: int, *, in_comment: bool) -> _Line | None:
    stripped = text.strip()
    if not stripped:
        return None
    indent = len(text) - len(text.lstrip())
    prefix = _PREFIX.match(stripped) or (_PREFIX_IN_COMMENT.match(stripped) if in_comment else None)
    before = text[:indent].expandtabs(4)
    said = stripped[prefix.end() :] if prefix else stripped
    start, mark, words = offset + indent, prefix[0].strip() if prefix else "", said.split()
    width, longest = len(before), max(map(len, words))
    return _Line(start, start + len(stripped), width, said, mark, words[0], words[-1].lower(), longest)


def _full_lines(block: list[_Line]) -> set[int]:
    """Lines that the first word of the next one would not have fitted into."""
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
        and _may_go_on(block, place, place)
        for place in others
    )
    return found if num_short <= len(found) / 4 else set()


def _may_go_on(block: list[_Line], first: int, place: int) -> bool:
    """Whether nothing says that the next line begins something new."""
    line, after = block[place], block[place + 1]
    if line.prefix != after.prefix or _ENDS_WITH_LINE.match(line.said) or _BEGINS.match(after.said):
        return False
    if not _GOES_ON.match(after.said) and not line.said[-1:].isalpha() and not after.said[:1].isdigit():
        return False
    if line.first_word == after.first_word and not after.said[:1].islower():
        return False  # lines of a log, of verse, of a list
    if line.said[:1].isdigit() and after.said[:1].isdigit() and place == first:
        return False
    if _ENTRY.match(after.said) and _ENTRY.match(block[first].said):
        return False
    if after.indent > line.indent:  # the rest of an item hangs; else a new paragraph is set in
        hangs = _ITEM.match(block[first].said) or _ENTRY.match(block[first].said)
        return hangs is not None and place == first
    return after.indent == line.indent or place == first
