"""Markdown, reStructuredText and HTML files: one document per file."""

import codecs
import itertools
import re
from collections import Counter
from collections.abc import Mapping
from html import escape
from typing import IO, Any

from facets_client.load.rows import ReadOptions, Row, Rows
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


_NO_TITLE = re.compile(
    r"(untitled|document|powerpoint presentation)( document|[ \d]*)|\(anonymous\)|microsoft \w+ - .*"
    r"|.+\.(docx?|pptx?|dvi|indd|tex)",
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
