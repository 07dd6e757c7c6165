"""Markdown, reStructuredText, HTML and PDF files: one document per file, or per page of a PDF."""

import codecs
import itertools
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from ctypes import c_double, c_void_p, cast
from dataclasses import dataclass
from html import escape
from typing import IO, Any

from facets_client.load.rows import ReadOptions, Rejection, Row, Rows
from facets_client.load.source import InputError, Source, detect_encoding

MAX_FILE_BYTES = 64 * 2**20  # limit of a file that is read as one text
_MAX_TABLE_CELL_CHARS = 300  # longer cells are treated as columns of a page layout
_MAX_DEPTH = 20  # maximum, for nested lists and quotations


_ADORNMENT = re.compile(r"([!-/:-@[-`{-~])\1{2,}[ ]*")
_RULE = re.compile(r"[-=+| ]*[-=]{2}[-=+| ]*")  # of a table
_DIRECTIVE = re.compile(r"( *)\.\.(?:$| (?:([\w:-]+)::)?\s*(.*))")
_KEPT_DIRECTIVES = frozenset(
    "note warning tip hint important caution danger attention error admonition seealso topic sidebar versionadded"
    " versionchanged deprecated list-table csv-table table epigraph parsed-literal rubric glossary math".split()
)
_INLINE = re.compile(r"(?::[\w:+.-]+:)?(``?)([^`]+?)(?: *<[^>`]+>)?\1_{0,2}|\*\*?(?=\S)([^*\n]+?)\*\*?")


def read_rst(source: Source, options: ReadOptions) -> Rows:
    """The text of a reStructuredText file: headings, lists and the contents of notes and code, without markup."""
    text = read_decoded(source, options, "reStructuredText")
    lines = [line.rstrip() for line in text.expandtabs(4).split("\n")] + [""]
    kept: list[str] = []
    levels: list[tuple[str, bool]] = []  # marks of headings, in the order of their first use
    title, dropped_indent, has_line_above = "", -1, False
    for line, after in itertools.pairwise(lines):
        indent = len(line) - len(line.lstrip())
        if dropped_indent >= 0 and (not line or indent > dropped_indent):
            continue
        dropped_indent = -1
        if _ADORNMENT.fullmatch(line) or _RULE.fullmatch(line):
            has_line_above = not (kept and kept[-1])
        elif line and _ADORNMENT.fullmatch(after) and len(after) >= min(len(line), 4):
            style = (after[0], has_line_above)
            levels += [style] * (style not in levels)
            heading = _INLINE.sub(r"\2\3", line).strip()
            title = title or heading
            kept += ["", "#" * min(6, levels.index(style) + 1) + " " + heading, ""]
            has_line_above = False
        elif match := _DIRECTIVE.fullmatch(line):
            if match[2] in _KEPT_DIRECTIVES:
                kept.append(match[3])
            elif match[2] not in ("code", "code-block", "sourcecode"):
                dropped_indent = indent
        elif not (line.startswith("   ") and re.match(r" +:[\w-]+:( |$)", line)):  # an option of a directive
            kept.append(_INLINE.sub(r"\2\3", line.removesuffix("::") if line.endswith(" ::") else line))
    yield document(re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip(), title)


_FRONT_MATTER = re.compile(r"\A---\r?\n(.*?)\r?\n(?:---|\.\.\.)\r?\n", re.DOTALL)
_FRONT_MATTER_TITLE = re.compile(r"^title:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_BADGE_URL = re.compile(r"shields\.io|badge", re.IGNORECASE)


def read_markdown(source: Source, options: ReadOptions) -> Rows:
    """The text of a Markdown file without inline markup. The title is from the front matter or the first heading."""
    from markdown_it import MarkdownIt

    text = read_decoded(source, options, "Markdown")
    front_matter = _FRONT_MATTER.match(text)
    title = _FRONT_MATTER_TITLE.search(front_matter[1]) if front_matter else None
    parser = MarkdownIt("commonmark").enable("table")
    parser.add_render_rule("image", _image_text)
    page = HtmlPage(parser.render(text[front_matter.end() :] if front_matter else text))
    yield from page.blocks.document(title[1].strip("\"'") if title else "")


def _image_text(renderer: Any, tokens: Any, index: int, options: Any, environment: Any) -> str:
    """The alternative text of a picture, unless it is a badge."""
    token = tokens[index]
    return "" if _BADGE_URL.search(token.attrs.get("src", "")) else escape(token.content)


class Blocks:
    """Plain text with the block markup that the server parses: ``#``, ``-`` with indentation, bars, fences, ``>``."""

    def __init__(self) -> None:
        self._blocks: list[tuple[str, str]] = []  # kind and text

    def __len__(self) -> int:
        return len(self._blocks)

    def add(self, text: str, *, kind: str = "", depth: int = 1, quote_depth: int = 0) -> None:
        """Adds a block unless it is blank."""
        if kind == "code":
            text = text.strip("\n")
            marked = f"```\n{text}\n```"
        else:
            text = " ".join(text.split())
            marks = {"heading": "#" * depth + " ", "item": "  " * (min(depth, _MAX_DEPTH) - 1) + "- "}
            marked = "> " * min(quote_depth, _MAX_DEPTH) + marks.get(kind, "") + text
        if text:
            self._blocks.append((kind, marked))

    def document(self, title: str = "", line: int = 1, **payload: Any) -> Rows:
        """The document of these blocks; none if there are none. The default title is the first heading."""
        if self._blocks:
            yield document(self.text(), title or self.first_heading(), line, **payload)

    def add_row(self, cells: list[str], *, is_header: bool = False, quote_depth: int = 0) -> None:
        """Adds a row, with a rule below a header. A single cell, or one with a paragraph, becomes plain blocks."""
        texts = [" ".join(cell.split()) for cell in cells]
        if sum(map(bool, texts)) < 2 or max(map(len, texts)) > _MAX_TABLE_CELL_CHARS:
            for text in texts:
                self.add(text, quote_depth=quote_depth)
        else:
            rule = "\n|" + " --- |" * len(texts) if is_header else ""
            self._blocks.append(("row", "| " + " | ".join(text.replace("|", "/") for text in texts) + f" |{rule}"))

    def first_heading(self) -> str:
        """The first heading; empty if there is none."""
        return next((text.lstrip("# ") for kind, text in self._blocks if kind == "heading"), "")

    def text(self, first: int = 0, last: int | None = None) -> str:
        """A range of blocks, separated by blank lines, except between list items and between table rows."""
        pieces: list[str] = []
        kind_before = ""
        for kind, text in self._blocks[first:last]:
            if pieces:
                pieces.append("\n" if kind == kind_before and kind in ("item", "row") else "\n\n")
            pieces.append(text)
            kind_before = kind
        return "".join(pieces)


_DECLARED_CHARSET = re.compile(rb"<meta[^>]+?charset\s*=\s*[\"']?\s*([\w:-]+)", re.IGNORECASE)
_NOT_TEXT = ("script", "style", "noscript", "template", "svg", "nav", "footer", "aside", "form", "head")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_MAIN_PARTS = ("main", "article")
_BLOCK_TAGS = {
    *_HEADINGS,
    *("p", "div", "section", "article", "main", "li", "ul", "ol", "dl", "dt", "dd", "table", "tr", "blockquote", "pre"),
    *("figure", "figcaption", "header", "hr", "caption", "details", "summary"),
}


def read_html(source: Source, options: ReadOptions) -> Rows:
    """The text of a web page without scripts, menus and footers, and its title."""
    head = source.text_head("HTML")
    data = read_whole(source.stream, source.name)
    declared = _DECLARED_CHARSET.search(head[:4096])
    asked = options.encoding or (_ascii_superset(declared[1].decode()) if declared else "")
    encoding = detect_encoding(source.name, head, asked, options.note)
    page = HtmlPage(data.decode(encoding, "replace").removeprefix("\ufeff"))
    yield document(page.main_text(), given_title(page.title))


def _ascii_superset(encoding: str) -> str:
    """The encoding if a page can declare it in ASCII, else an empty string."""
    try:
        return "" if codecs.lookup(encoding).name.startswith(("utf-16", "utf-32")) else encoding
    except LookupError:
        return ""


class HtmlPage:
    """Target of an lxml parser that collects blocks and title of a page without a tree, which may be nested deeply."""

    def __init__(self, html: str, *, first_row_is_header: bool = False) -> None:
        from lxml.etree import HTMLParser

        self._first_row_is_header = first_row_is_header
        self._is_first_row = False
        self.title = ""
        self.blocks = Blocks()
        self._in_title = False
        self._pieces: list[str] = []  # text of the open block
        self._kind, self._level = "", 1
        self._cells: list[str] | None = None  # closed cells of the open row
        self._num_names = 0  # how many of them are headers
        self._open: Counter[str] = Counter()  # open elements by tag
        self._depth = 0
        self._skipped_depth = 0  # depth of the open element that is skipped; 0: none
        self._main_parts: dict[str, list[int]] = {}  # depth, first block, and once closed the end
        parser = HTMLParser(target=self, encoding="utf-8", huge_tree=True)
        parser.feed(html.encode("utf-8", "replace"))
        parser.close()

    def main_text(self) -> str:
        """The blocks of the first ``main``, else of the first ``article``, else all."""
        part = next((self._main_parts[tag] for tag in _MAIN_PARTS if tag in self._main_parts), [0])
        return self.blocks.text(*part[1:])

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Called by the parser where an element begins."""
        self._depth += 1
        self._in_title |= tag == "title" and not self.title
        if self._skipped_depth:
            return
        if tag in _NOT_TEXT:
            self._skipped_depth = self._depth
            return
        self._boundary(tag, is_start=True)
        self._open[tag] += 1
        if tag in _MAIN_PARTS and tag not in self._main_parts:
            self._main_parts[tag] = [self._depth, len(self.blocks)]
        if tag in _HEADINGS:
            self._kind, self._level = "heading", int(tag[1])
        elif tag == "li":
            self._kind, self._level = "item", max(1, self._open["ul"] + self._open["ol"])
        elif tag == "table":
            self._is_first_row = self._first_row_is_header
        elif tag == "tr":
            self._cells, self._num_names = [], 0

    def end(self, tag: str) -> None:
        """Called by the parser where an element ends."""
        if tag == "title" and self._in_title:
            self._in_title = False
        if self._skipped_depth == self._depth:
            self._skipped_depth = 0
        elif not self._skipped_depth:
            self._boundary("" if tag == "br" else tag)
            self._open[tag] -= 1
            part = self._main_parts.get(tag, [])
            if len(part) == 2 and part[0] == self._depth:
                part.append(len(self.blocks))
        self._depth -= 1

    def data(self, text: str) -> None:
        """Called by the parser with text."""
        if self._in_title:
            self.title += text
        if not self._skipped_depth:
            self._pieces.append(text)

    def close(self) -> None:
        """Called by the parser at the end."""
        self._flush()

    def _boundary(self, tag: str, *, is_start: bool = False) -> None:
        if self._cells is not None and tag in ("td", "th"):
            text, self._pieces = "".join(self._pieces), []
            if not is_start or text.strip():
                self._cells.append(text)
                self._num_names += tag == "th"
        elif self._cells is not None and tag in ("tr", "table"):
            rest = "".join(self._pieces)
            is_header, self._is_first_row = self._is_first_row or 0 < self._num_names == len(self._cells), False
            self.blocks.add_row(
                self._cells + [rest] * bool(rest.strip()), is_header=is_header, quote_depth=self._open["blockquote"]
            )
            self._cells, self._pieces = None, []
        elif tag == "br" or (self._cells is not None and tag in _BLOCK_TAGS):
            self._pieces.append("\n")
        elif tag in _BLOCK_TAGS:
            self._flush()

    def _flush(self) -> None:
        """Ends a block. Only the first block of a list item or heading gets its markup."""
        text, self._pieces = "".join(self._pieces), []
        kind = "code" if self._open["pre"] > 0 else self._kind
        self.blocks.add(text, kind=kind, depth=self._level, quote_depth=self._open["blockquote"])
        if text.strip():
            self._kind = ""


_PAGES_AT_A_TIME = 48  # searched together for running headers and footers
_NAMED_PAGE = re.compile(r"\b(?:page|seite|p[a\u00e1]gina) \d+(?: (?:of|von|de|sur|/) \d+)?\b", re.IGNORECASE)
_PAGE_NUMBER = re.compile(r"(?:page )?\d{1,4}(?: (?:of|/) \d{1,4})?|- ?\d{1,4} ?-", re.IGNORECASE)


def read_pdf(source: Source, options: ReadOptions) -> Rows:
    """The pages of a PDF, each a document. Pages without text are skipped; a PDF without any text is rejected."""
    from pypdfium2 import PdfDocument, PdfiumError

    try:
        pdf = PdfDocument(source.seekable(options.unpacked_bytes))
    except PdfiumError as error:
        is_locked = "password" in str(error).lower()
        problem = "requires a password" if is_locked else "expected a PDF; the file is damaged or of another kind"
        raise InputError(f"{source.name}: {problem}") from error
    num_pages, title = len(pdf), given_title(str(pdf.get_metadata_value("Title")))
    num_blank, running_lines = 0, frozenset[str]()
    for first in range(0, num_pages, _PAGES_AT_A_TIME):
        pages = [_page_text(pdf, index) for index in range(first, min(num_pages, first + _PAGES_AT_A_TIME))]
        running_lines |= _running_lines([page for page in pages if isinstance(page, str)])
        for number, page in enumerate(pages, start=first + 1):
            source.share_read = number / num_pages
            if isinstance(page, Rejection):
                yield page
            elif text := _without_running_lines(page, running_lines):
                yield document(text, title, number, page=number)
            else:
                num_blank += 1
    if 0 < num_blank < num_pages:
        options.note(f"{source.name}: {num_blank} of {num_pages} pages have no text and are skipped")


_LINE_END = re.compile("(\r\n|[\x02\ufffe]\\s*)")  # also PDFium's marks of a hyphen at the end of a line
_APART = 1.2  # least distance of two paragraphs, in distances of their lines


def _page_text(pdf: Any, index: int) -> str | Rejection:
    """The lines of a page, with an empty line where they stand farther apart than those above or below."""
    from pypdfium2 import PdfiumError

    try:
        page = pdf[index]
        textpage = page.get_textpage()
        parts = _LINE_END.split(textpage.get_text_bounded())
        gaps = _gaps(parts, textpage)
        tables = list(_tables(textpage, len(_visible("".join(parts)))))
        page.close()  # with its text
    except (PdfiumError, UnicodeError) as error:
        return Rejection(index + 1, "damaged_input", f"page {index + 1} cannot be read: {error}")
    for number, (before, gap, after) in enumerate(zip([math.inf, *gaps], gaps, [*gaps[1:], math.inf], strict=False)):
        is_apart = gap > _APART * min((near for near in (before, after) if near > 0), default=gap)
        is_below_footer = gap < 0 and before == math.inf  # some programs write the footer first
        end = "\n\n" if is_apart or is_below_footer else "\n"
        parts[2 * number + 1] = end if parts[2 * number + 1] == "\r\n" else ""
    text = "".join(parts)
    visible = _visible(text)
    for first, last, table in reversed(tables):
        text = f"{text[: visible[first]].rstrip()}\n\n{table}\n\n{text[visible[last] + 1 :].lstrip()}"
    return text


def _gaps(parts: list[str], textpage: Any) -> list[float]:
    """Distances of the lines, which are every second part of a text; 0 where the characters cannot be located."""
    from pypdfium2.raw import FPDFText_GetCharOrigin

    if sum(map(len, parts)) != textpage.count_chars():
        return [0.0] * (len(parts) // 2)
    x, y, baselines, place = c_double(), c_double(), [], 0
    for line, end in zip(parts[::2], [*parts[1::2], ""], strict=True):
        FPDFText_GetCharOrigin(textpage, place, x, y)
        baselines.append(y.value)
        place += len(line) + len(end)
    return [above - below for above, below in itertools.pairwise(baselines)]


_GAP, _LINE, _ROW = 0.55, 1.5, 3.0  # least gap of cells, largest distances within a cell and of rows, in font sizes
_MAX_ROWS, _MAX_NAME_CHARS = 120, 60  # of a table
_DIGIT = re.compile(r"\d")


@dataclass(slots=True)
class _Cell:
    left: float
    right: float
    top: float  # first baseline
    bottom: float  # last baseline
    size: float  # of the font
    first: int  # character
    last: int

    def is_above(self, other: "_Cell") -> bool:
        return 0 < self.bottom - other.top < _LINE * other.size

    def add(self, other: "_Cell") -> None:
        self.left, self.right = min(self.left, other.left), max(self.right, other.right)
        self.bottom, self.last = other.bottom, other.last


def _visible(text: str) -> list[int]:
    return [index for index, char in enumerate(text) if not char.isspace() and char not in "\x02\ufffe"]


def _rows(textpage: Any, visible: list[int]) -> list[list[_Cell]]:
    """The cells of a page by row. Programs draw tables row by row, but columns of prose one after the other."""
    from pypdfium2 import raw

    box, matrix, x, y = raw.FS_RECTF(), raw.FS_MATRIX(), c_double(), c_double()
    rows, left_before, right_before = [[_Cell(0, 0, math.inf, math.inf, 0, 0, 0)]], 0.0, math.inf
    for index in visible:
        raw.FPDFText_GetLooseCharBox(textpage, index, box)
        raw.FPDFText_GetCharOrigin(textpage, index, x, y)
        left, right, (*others, cell) = box.left, box.right, rows[-1]
        is_near = left_before - cell.size / 3 < left < max(cell.right, right_before + _GAP * cell.size)
        if is_near and abs(cell.bottom - y.value) < cell.size / 2:
            cell.right, cell.last = max(cell.right, right), index
        else:
            raw.FPDFText_GetMatrix(textpage, index, matrix)
            size = raw.FPDFText_GetFontSize(textpage, index) * math.hypot(matrix.c, matrix.d)
            piece = _Cell(left, right, y.value, y.value, size, index, index)
            if others and others[-1].right < left < cell.right and cell.is_above(piece):
                cell.add(piece)
            elif left > right_before and y.value > cell.bottom - size / 2:
                while (
                    len(rows[-1]) == len(rows[-2]) == 1
                    and rows[-2][0].right < left
                    and rows[-2][0].is_above(rows[-1][0])
                ):
                    rows[-2][0].add(rows.pop()[0])  # a line of the first cell
                rows[-1].append(piece)
            else:
                rows.append([piece])
        left_before, right_before = left, right
    return rows


def _tables(textpage: Any, num_visible: int) -> Iterator[tuple[int, int, str]]:
    """Tables with a header: numbers of their first and last visible characters, and their rows in Markdown."""
    text = textpage.get_text_range()
    visible = _visible(text)
    is_located = len(text) == textpage.count_chars() and len(visible) == num_visible
    rows, done = _rows(textpage, visible) if is_located else [], 0
    for start, header in enumerate(rows):
        table, columns = [header], list[tuple[float, float]]()
        for row in rows[start + 1 : start + _MAX_ROWS] if start >= done and len(header) > 1 else ():
            wider = _merged(columns + [(cell.left, cell.right) for cell in row])
            distance = min(cell.bottom for cell in table[-1]) - max(cell.top for cell in row)
            is_split = len(set(_places(row, wider))) > 1 and not _is_wide(row, columns)
            if not is_split or not 0 < distance < _ROW * row[0].size:
                break
            table, columns = [*table, row], wider
        grid = [[""] * len(columns) for _ in table] if len(table) > 2 and not _is_wide(header, columns) else []
        for cells, row in zip(grid, table, strict=False):
            places = range(len(row)) if len(row) == len(columns) else _places(row, columns)
            for place, cell in zip(places, row, strict=True):
                said = _LINE_END.sub(lambda end: " " * (end[0] == "\r\n"), text[cell.first : cell.last + 1])
                cells[place] = f"{cells[place]} {said}".strip()
        fonts = [{_font(textpage, cell.first) for cell in row} for row in table[:2]]
        if grid and _has_names(grid, is_styled=fonts[0].isdisjoint(fonts[1])):
            blocks, done = Blocks(), start + len(table)
            for texts in grid:
                blocks.add_row(texts, is_header=texts is grid[0])
            yield (
                bisect_right(visible, header[0].first) - 1,
                bisect_right(visible, table[-1][-1].last) - 1,
                blocks.text(),
            )


def _merged(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    merged = list[tuple[float, float]]()
    for left, right in sorted(spans):
        is_new = not merged or left >= merged[-1][1]
        merged.append((left, right) if is_new else (merged[-1][0], max(right, merged.pop()[1])))
    return merged


def _is_wide(row: list[_Cell], columns: list[tuple[float, float]]) -> bool:
    """Whether a cell spans two columns."""
    places = zip(row, _places(row, columns), strict=True)
    return any(left < cell.right for cell, place in places for left, _ in columns[place + 1 : place + 2])


def _places(row: list[_Cell], columns: list[tuple[float, float]]) -> list[int]:
    ends = [right for _, right in columns]
    return [min(bisect_right(ends, cell.left), len(ends) - 1) for cell in row]


def _font(textpage: Any, index: int) -> int | None:
    from pypdfium2 import raw

    return cast(raw.FPDFTextObj_GetFont(raw.FPDFText_GetTextObject(textpage, index)), c_void_p).value


def _has_names(table: list[list[str]], *, is_styled: bool) -> bool:
    """Whether the first row is a header: it has a font of its own, or no digits, as only it has."""
    (corner, *names), *others = table
    if sum(map(bool, names)) < max(1, len(names) - bool(corner)) or max(map(len, table[0])) > _MAX_NAME_CHARS:
        return False
    if corner and not any(map(str.isalpha, corner)):
        return False
    has_numbers = not corner or any(all(map(_DIGIT.search, column)) for column in list(zip(*others, strict=True))[1:])
    return is_styled or (len(names) > 1 and has_numbers and not any(map(_DIGIT.search, table[0])))


def _running_lines(pages: list[str]) -> frozenset[str]:
    """First and last lines, with numbers removed, that repeat on at least a third of the pages.

    Of two pages, lines that differ in nothing but "Page 1": "Exercise 1" and "Exercise 2" are content.
    """
    found = [[line for line in page.splitlines() if line.strip()] for page in pages]
    edges = [(lines[0], lines[-1]) for lines in found if len(lines) > 2]
    if len(pages) == 2:
        named = [line for line in itertools.chain(*edges) if _NAMED_PAGE.search(line)]
        counts = Counter(_NAMED_PAGE.sub("", line) for line in named)
        return frozenset(_without_numbers(line) for line in named if counts[_NAMED_PAGE.sub("", line)] > 1)
    counts = Counter(key for pair in edges for key in set(map(_without_numbers, pair)))
    return frozenset(key for key, count in counts.items() if count >= max(3, len(pages) / 3))


def _without_numbers(line: str) -> str:
    return " ".join(re.sub(r"\d+", "0", line).split())


def _without_running_lines(page: str, running_lines: frozenset[str]) -> str:
    def is_running(line: str) -> bool:
        return (
            not line.strip()
            or _without_numbers(line) in running_lines
            or _PAGE_NUMBER.fullmatch(line.strip()) is not None
        )

    lines = page.strip().splitlines()
    while len(lines) > 1 and is_running(lines[0]):
        lines = lines[1:]
    while len(lines) > 1 and is_running(lines[-1]):
        lines = lines[:-1]
    return "\n".join(lines).strip()


_NO_TITLE = re.compile(
    r"(untitled|document|powerpoint presentation)( document|[ \d]*)|microsoft \w+ - .*|.+\.(docx?|pptx?|dvi|indd|tex)",
    re.IGNORECASE,
)


def given_title(title: str) -> str:
    """The title of a document on one line; empty for what programs write if nobody gave one."""
    title = " ".join(title.split())
    return "" if _NO_TITLE.fullmatch(title) else title


def document(text: str, title: str = "", line: int = 1, *, key: str = "", **payload: object) -> Row:
    """The row of a document; empty values of the payload are left out."""
    fields = {"text": text, "title": title, **payload}
    return Row({name: value for name, value in fields.items() if value or name == "text"}, line, key)


def read_decoded(source: Source, options: ReadOptions, kind: str) -> str:
    """A whole file as text, with plain line ends."""
    head = source.text_head(kind)
    data = read_whole(source.stream, source.name)
    encoding = detect_encoding(source.name, head, options.encoding, options.note)
    try:
        return data.decode(encoding).replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        byte = f"byte 0x{data[error.start]:02x} at {error.start}"
        raise InputError(f"{source.name}: {byte} is not of the encoding {encoding} (see --encoding)") from error


def read_whole(stream: IO[bytes], name: str) -> bytes:
    """The bytes of a file, or of a part of it."""
    data = stream.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise InputError(f"{name}: has more than {MAX_FILE_BYTES:,} bytes, too many for one text: split it")
    return data
