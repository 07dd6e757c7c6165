r"""Removes newlines, end-of-line hyphens and Markdown, HTML and reStructuredText marks from a text.

Each pattern stops at the next mark of its kind, so that hostile texts take linear time too.
"""

import html
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

from facets.language.interruption import computed_once
from facets.language.stop_words import STOP_WORDS
from facets.language.wordnet import wordnet

Cut: TypeAlias = tuple[int, int, str]  # start and end in the text, and what is read instead
LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"  # line ends of str.splitlines
# Marks before every line of a comment or a quoted mail.
PREFIX = r"(?:>[ >]*|//+|#+|;+|--|%+)[ \t]+"
_TAGS = (
    "a|abbr|article|aside|audio|b|blockquote|body|br|button|caption|center|cite|code|col|colgroup|dd|del|details|dfn|div|"
    "dl|dt|em|figcaption|figure|font|footer|form|h[1-6]|head|header|hr|html|i|iframe|img|input|ins|kbd|label|li|link|"
    "main|mark|meta|nav|ol|option|p|picture|pre|q|s|samp|script|section|select|small|source|span|strike|strong|style|"
    "sub|summary|sup|svg|table|tbody|td|tfoot|th|thead|time|title|tr|tt|u|ul|var|video|wbr"
)
_LINE_END = re.compile(f"[{LINE_ENDS}]")
MAY_BE_MARKED = re.compile(rf"[{LINE_ENDS}\t*`<&\]\\|\u00ad]|::")
# `code`, ``code``, :role:`code`, `text <target>`_
_CODE = re.compile(
    r"(?P<role>(?<![\w:]):[A-Za-z][\w.+-]*+(?::[\w.+-]++)?:)?"
    r"(?<!`)(?P<ticks>`++)(?P<said>[^`]++)(?P=ticks)(?!`)(?P<link>__?(?!\w))?"
)
_TARGET = re.compile(r"\s*<[^<>]*>\s*$")
_OPENS, _CLOSES = r"(?<![^\s(\[\"'>-])", r"(?=[\s,;:!?)\]\"'*<-]|\.(?!\w)|$)"
_STRONG = re.compile(rf"{_OPENS}(\*\*\*|\*\*)(?=[^\s*])(?:[^*]|\*(?!\*))*+(?<!\s)(\1){_CLOSES}")
_EMPHASIS = re.compile(rf"{_OPENS}(\*)(?=[\w\"'(\[`])[^*]*+(?<!\s)(\*){_CLOSES}")
_URL = r"\((?:[^()\s]|\([^()\s]*+\))*+(?:\s++\"[^\"]*+\")?\)"
_LINK = r"\((?=[^()\s]*?[/.#:])" + _URL[2:]
_BORDER = re.compile(
    r"(?P<hyphen>(?<=[^\W\d_])[-\u00ad\u2010])?(?<![ \t])[ \t]*+" rf"[{LINE_ENDS}]\s*+(?:{PREFIX}|\*[ \t]+)?"
)
_MARKS = re.compile(
    "|".join(
        (
            rf"(?P<border>{_BORDER.pattern})",
            rf"(?P<badge>\[!\[[^\[\]]*+\]{_URL}\s*+\]{_URL}|!\[[^\[\]]*+\]\([^()\s]*(?:badge|shields\.io)[^()\s]*+\))",
            rf"(?P<open>!?\[(?=[^\[\]]++\]{_LINK}))",
            rf"(?P<target>(?<=[^\[])\]{_LINK})",
            r"(?P<comment><!--[^<]*?-->)",
            rf"(?P<tag></?(?:{_TAGS})(?=[\s/>])[^<>]*+>)",
            r"(?P<entity>&(?:[A-Za-z]{2,8}|#\d{1,6}|#x[\dA-Fa-f]{1,6});)",
            r"(?P<escape>\\(?=[*_`#\[\]<>|]))",
            r"(?P<soft>\u00ad)",
        )
    ),
    re.IGNORECASE,
)
_BREAKING_TAG = re.compile(r"</?(?:br|p|div|li|tr|td|th|h[1-6]|dt|dd|summary)\b", re.IGNORECASE)
_FIELD = re.compile(r":(?:(?:param|arg|argument|key|keyword|var|ivar|cvar)\s+(?:\w+\s+)?)?(?=[\w* ]+:)")
# Characters that end sentences, of all scripts: Unicode's Sentence_Terminal, as spaCy lists it, and the ellipsis.
STOPS = (
    "!.?\u0589\u061f\u06d4\u0700\u0701\u0702\u07f9\u0964\u0965\u104a\u104b\u1362\u1367\u1368\u166e\u1735\u1736"
    "\u1803\u1809\u1944\u1945\u1aa8\u1aa9\u1aaa\u1aab\u1b5a\u1b5b\u1b5e\u1b5f\u1c3b\u1c3c\u1c7e\u1c7f\u2026\u203c"
    "\u203d\u2047\u2048\u2049\u2e2e\u2e3c\u3002\ua4ff\ua60e\ua60f\ua6f3\ua6f7\ua876\ua877\ua8ce\ua8cf\ua92f\ua9c8"
    "\ua9c9\uaa5d\uaa5e\uaa5f\uaaf0\uaaf1\uabeb\ufe52\ufe56\ufe57\uff01\uff0e\uff1f\uff61\U00010a56\U00010a57"
    "\U00011047\U00011048\U000110be\U000110bf\U000110c0\U000110c1\U00011141\U00011142\U00011143\U000111c5\U000111c6"
    "\U000111cd\U000111de\U000111df\U00011238\U00011239\U0001123b\U0001123c\U000112a9\U0001144b\U0001144c\U000115c2"
    "\U000115c3\U000115c9\U000115ca\U000115cb\U000115cc\U000115cd\U000115ce\U000115cf\U000115d0\U000115d1\U000115d2"
    "\U000115d3\U000115d4\U000115d5\U000115d6\U000115d7\U00011641\U00011642\U0001173c\U0001173d\U0001173e\U00011a42"
    "\U00011a43\U00011a9b\U00011a9c\U00011c41\U00011c42\U00016a6e\U00016a6f\U00016af5\U00016b37\U00016b38\U00016b44"
    "\U0001bc9f\U0001da88"
)
# Characters of scripts without spaces between words.
WIDE = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_HEAD, _TAIL = re.compile(r"[^\W\d_]+$"), re.compile(r"[^\W\d_]+")
_SHORTEST_PART = 3  # letters of the parts of a compound; shorter ones are often syllables


class Hyphens:
    """Decides from the other words of the text whether a hyphen at the end of a line belongs to the word."""

    def __init__(self, text: str) -> None:
        self._text = text

    @computed_once
    def _words(self) -> frozenset[str]:
        return frozenset(match.group().lower() for match in _WORD.finditer(self._text))

    def stays(self, head: str, tail: str) -> bool:
        """Whether ``head-`` and ``tail`` on two lines form a hyphenated word: "well-known", "Jean-Paul"."""
        if not tail[:1].islower():
            return True
        head, tail = head.lower(), tail.lower()
        if f"{head}{tail}" in self._words:
            return False
        is_compound = min(len(head), len(tail)) >= _SHORTEST_PART and _is_word(head) and _is_word(tail)
        return f"{head}-{tail}" in self._words or (is_compound and not _is_word(head + tail))


@lru_cache(10_000)
def _is_word(word: str) -> bool:
    return word in STOP_WORDS or bool(wordnet().lemmas(word))


def said(text: str, start: int, end: int, *, hyphens: Hyphens, cells: Sequence[Cut] = ()) -> str:
    """Part of a text as it is read: on one line, without marks, with split words joined.

    ``cells``: replacements between the cells of a row.
    """
    if not cells and text[start] != ":" and not MAY_BE_MARKED.search(text, start, end):
        return text[start:end]
    pieces: list[str] = []
    place = start
    for first, last, instead in replaced(text, start, end, hyphens=hyphens, cells=cells):
        pieces += (text[place:first], instead)
        place = last
    pieces.append(text[place:end])
    return "".join(pieces).strip()


def replaced(text: str, start: int, end: int, *, hyphens: Hyphens, cells: Sequence[Cut] = ()) -> Iterator[Cut]:
    """Replacements that make a part of a text readable, in order; ``cells``: those between the cells of a row."""
    found = [cut for cut in cells if start <= cut[0] and cut[1] <= end]
    codes: list[tuple[int, int]] = []
    for match in _CODE.finditer(text, start, end):
        first, last = match.span("said")
        codes.append(match.span("said"))
        if match["role"] or match["link"]:
            target = _TARGET.search(text, first, last)
            last = target.start() if target else last
            if match["role"] and text[first] in "~!":
                first = max(first + 1, text.rfind(".", first, last) + 1)
        found += ((match.start(), first, ""), (last, match.end(), ""))
    for pattern in (_STRONG, _EMPHASIS):
        for match in pattern.finditer(text, start, end):
            found += ((*match.span(1), ""), (*match.span(2), ""))
    found += ((*match.span(), _instead(text, match, hyphens)) for match in _MARKS.finditer(text, start, end))
    if field := _FIELD.match(text, start, end):
        found.append((*field.span(), ""))
    if text.endswith("::", start, end):
        found.append((end - 1, end, ""))  # code follows
    found.sort(key=lambda cut: (cut[0], -cut[1]))
    return _disjoint(found, codes, text)


def _disjoint(found: list[Cut], codes: list[tuple[int, int]], text: str) -> Iterator[Cut]:
    """Leaves out overlapping replacements, and those inside code."""
    place = number = 0
    for first, last, instead in found:
        while number < len(codes) and codes[number][1] <= first:
            number += 1
        in_code = number < len(codes) and codes[number][0] <= first and last <= codes[number][1]
        if first < place or first == last or (in_code and not _LINE_END.search(text, first, last)):
            continue
        yield first, last, instead
        place = last


def _instead(text: str, match: re.Match[str], hyphens: Hyphens) -> str:
    if match["border"] is not None:
        return _between_lines(text, match, hyphens)
    if match["entity"]:
        read = html.unescape(match["entity"])
        return " " if read.isspace() else read
    if match["tag"] and _BREAKING_TAG.match(match["tag"]):
        return " "
    return ""


def _between_lines(text: str, match: re.Match[str], hyphens: Hyphens) -> str:
    behind = match.end()
    if match["hyphen"]:
        head = _HEAD.search(text, max(0, match.start() - 40), match.start())
        tail = _TAIL.match(text, behind)
        stays = head is None or tail is None or (match["hyphen"] != "\u00ad" and hyphens.stays(head[0], tail[0]))
        return "-" if stays else ""
    unspaced = match.start() > 0 and WIDE.match(text, match.start() - 1) and WIDE.match(text, behind)
    return "" if unspaced else " "
