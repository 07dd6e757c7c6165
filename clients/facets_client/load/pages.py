"""Text, Markdown, HTML, Word and PDF: a document a file, of a PDF one a page."""

import codecs
import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any
from zipfile import BadZipFile, ZipFile
from zlib import error as ZlibError

from facets_client.load.records import EXCERPT_CHARS, ReadOptions, Rejection, Row, Rows
from facets_client.load.source import DAMAGED, InputError, RecordSource, as_utf8, check_text_head

_MAX_FILE_BYTES = 64 * 2**20  # read as one text
_FRONT_MATTER = re.compile(r"\A---\r?\n(.*?)\r?\n(?:---|\.\.\.)\r?\n", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
# Of a page what is about the site, and what is no text.
_NOT_TEXT = ("script", "style", "noscript", "template", "svg", "nav", "footer", "aside", "form", "head")
_BLOCKS = {
    *("p", "div", "section", "article", "main", "h1", "h2", "h3", "h4", "h5", "h6", "li", "ul", "ol", "dl", "dt", "dd"),
    *("table", "tr", "blockquote", "pre", "figure", "figcaption", "header", "hr", "caption", "details", "summary"),
}
_PAGES_AT_A_TIME = 48  # of a PDF: looked at together for what comes again on every page
_NUMBERS = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(r"(?:page )?\d{1,4}(?: (?:of|/) \d{1,4})?|- ?\d{1,4} ?-", re.IGNORECASE)
_CELLS = ("td", "th")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_REGIONS = ("main", "article")
_LONGEST_CELL = 300  # characters; longer ones are columns of a page
_DEEPEST = 20  # lists and quotations within each other
_BADGE = re.compile(r"shields\.io|badge", re.IGNORECASE)
_DECLARED = re.compile(rb"<meta[^>]+?charset\s*=\s*[\"']?\s*([\w:-]+)", re.IGNORECASE)


def read_text(source: RecordSource, options: ReadOptions) -> Rows:
    """A whole file as one text."""
    text = _decoded(source, options, "text")
    if isinstance(text, Rejection):
        yield text
    else:
        if _looks_like_table(text):
            options.tell(f"{source.name}: is read as one text; if it is a table, say --format csv")
        yield _document(text, "")


def _looks_like_table(text: str) -> bool:
    """Whether the first lines have as many semicolons, tabs or bars as each other."""
    lines = text.splitlines()[:4]
    return len(lines) > 2 and any(len({line.count(mark) for line in lines}) == 1 for mark in ";\t|" if mark in text)


def read_markdown(source: RecordSource, options: ReadOptions) -> Rows:
    """A Markdown file as its text without marks; the title is the first heading, or the one of the front matter."""
    from markdown_it import MarkdownIt

    text = _decoded(source, options, "Markdown")
    if isinstance(text, Rejection):
        yield text
        return
    front = _FRONT_MATTER.match(text)
    titles = _FRONT_TITLE.search(front[1]) if front else None
    parser = MarkdownIt("commonmark").enable("table")
    parser.add_render_rule("image", _alternative)
    page = _Page()
    _parse(page, parser.render(text[front.end() :] if front else text))
    yield _document(page.written.text(), titles[1].strip("\"'") if titles else page.written.heading())


class _Written:
    """What a reader has understood, as plain text with the marks that Facets reads again.

    Headings have ``#``, items ``-`` and their depth, rows of tables bars, code fences, quotations ``>``.
    """

    def __init__(self) -> None:
        self.blocks: list[tuple[str, str]] = []  # kind and text

    def add(self, text: str, *, kind: str = "", depth: int = 1, quoted: int = 0) -> None:
        """One block; what is blank is none."""
        if kind == "code":
            text = text.strip("\n")
            marked = f"```\n{text}\n```"
        else:
            text = " ".join(text.split())
            marks = {"heading": "#" * depth + " ", "item": "  " * (min(depth, _DEEPEST) - 1) + "- "}
            marked = "> " * min(quoted, _DEEPEST) + marks.get(kind, "") + text
        if text:
            self.blocks.append((kind, marked))

    def add_row(self, cells: list[str], *, quoted: int = 0) -> None:
        """A row of a table; one cell alone, or one that holds a paragraph, is no cell."""
        said = [text for text in (" ".join(cell.split()) for cell in cells) if text]
        if len(said) < 2 or max(map(len, said)) > _LONGEST_CELL:
            for text in said:
                self.add(text, quoted=quoted)
        else:
            self.blocks.append(("row", "| " + " | ".join(text.replace("|", "/") for text in said) + " |"))

    def heading(self) -> str:
        """The first one; empty without any."""
        return next((text.lstrip("# ") for kind, text in self.blocks if kind == "heading"), "")

    def text(self, first: int = 0, last: int | None = None) -> str:
        """Blocks with an empty line between them; items and rows follow each other."""
        pieces: list[str] = []
        before = ""
        for kind, text in self.blocks[first:last]:
            if pieces:
                pieces.append("\n" if kind == before and kind in ("item", "row") else "\n\n")
            pieces.append(text)
            before = kind
        return "".join(pieces)


def _alternative(renderer: Any, tokens: Any, place: int, options: Any, environment: Any) -> str:
    """What stands for a picture: its words, but for badges."""
    token = tokens[place]
    return "" if _BADGE.search(token.attrs.get("src", "")) else escape(token.content)


def read_html(source: RecordSource, options: ReadOptions) -> Rows:
    """The text of a page without scripts, menus and footers, and its title.

    Raises:
        InputError: It is no text.
    """
    head = check_text_head(source, "HTML")
    declared = _DECLARED.search(head[:4096])
    encoding = options.encoding
    if declared and not encoding and _is_known(declared[1].decode()):
        encoding = declared[1].decode()
    data = _whole(as_utf8(source, head, encoding=encoding, tell=options.tell))
    if isinstance(data, Rejection):
        yield data
        return
    page = _Page()
    _parse(page, data.decode("utf-8", "replace").removeprefix("\ufeff"))
    yield _document(page.text(), page.title)


def _parse(page: "_Page", text: str) -> None:
    """Events, no tree: however deep the elements are, only the text is held."""
    from lxml.etree import HTMLParser

    parser = HTMLParser(target=page, encoding="utf-8", huge_tree=True)
    parser.feed(text.encode())
    parser.close()


def _is_known(encoding: str) -> bool:
    """Whether a page can say in ASCII that it has this encoding."""
    try:
        return not codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))
    except LookupError:
        return False


class _Page:
    """What a parser tells of a page: its title, and its blocks.

    Attributes:
        title: Of the page.
        written: The blocks so far.
    """

    def __init__(self) -> None:
        self.title = ""
        self.written = _Written()
        self._titles: list[str] | None = None  # while the title is open
        self._said: list[str] = []  # of the block that is open
        self._kind, self._level = "", 1
        self._row: list[str] | None = None  # cells before the open one, of the row that is open
        self._around: Counter[str] = Counter()  # elements that are open
        self._depth = 0
        self._skipped_depth = 0  # of the element that is no text; 0: none is open
        self._regions: dict[str, tuple[int, int, int]] = {}  # first main, first article: depth, first block, last block

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        self._depth += 1
        if tag == "title" and not self.title and self._titles is None:
            self._titles = []
        if self._skipped_depth:
            return
        if tag in _NOT_TEXT:
            self._skipped_depth = self._depth
            return
        self._border(tag)
        self._around[tag] += 1
        if tag in _REGIONS and tag not in self._regions:
            self._regions[tag] = (self._depth, len(self.written.blocks), -1)
        if tag in _HEADINGS:
            self._kind, self._level = "heading", int(tag[1])
        elif tag == "li":
            self._kind, self._level = "item", max(1, self._around["ul"] + self._around["ol"])
        elif tag == "tr":
            self._row = []

    def end(self, tag: str) -> None:
        """An element ends."""
        if tag == "title" and self._titles is not None:
            self.title, self._titles = " ".join("".join(self._titles).split()), None
        if self._skipped_depth == self._depth:
            self._skipped_depth = 0
        elif not self._skipped_depth:
            self._border("" if tag == "br" else tag)
            self._around[tag] -= 1
            depth, first, last = self._regions.get(tag, (0, 0, 0))
            if depth == self._depth and last < 0:
                self._regions[tag] = (depth, first, len(self.written.blocks))
        self._depth -= 1

    def data(self, text: str) -> None:
        """Text of the element that is open."""
        if self._titles is not None:
            self._titles.append(text)
        if not self._skipped_depth:
            self._said.append(text)

    def close(self) -> None:
        """The page is over."""
        self._flush()

    def text(self) -> str:
        """Blocks of the main part, else of the article, else of all."""
        region = next((self._regions[name] for name in _REGIONS if name in self._regions), None)
        return (
            self.written.text()
            if region is None
            else self.written.text(region[1], region[2] if region[2] >= 0 else None)
        )

    def _border(self, tag: str) -> None:
        """Where an element begins or ends: a space, the border of a cell, of a row, or of a block."""
        if self._row is not None and tag in _CELLS:
            self._row.append("".join(self._said))
            self._said = []
        elif self._row is not None and tag in ("tr", "table"):
            self.written.add_row([*self._row, "".join(self._said)], quoted=self._around["blockquote"])
            self._row, self._said = None, []
        elif tag == "br" or (self._row is not None and tag in _BLOCKS):
            self._said.append("\n")
        elif tag in _BLOCKS:
            self._flush()

    def _flush(self) -> None:
        """Ends a block; the mark of an item or a heading is that of the first block within it."""
        text, self._said = "".join(self._said), []
        kind = "code" if self._around["pre"] > 0 else self._kind
        self.written.add(text, kind=kind, depth=self._level, quoted=self._around["blockquote"])
        if not text.isspace() and text:
            self._kind = ""


_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_STYLE = re.compile(r"(heading|title|list ?(?:bullet|number)|toc)(?![a-z]) ?(\d?)")
_FLOW = ("body", "sdt", "sdtContent", "customXml", "ins", "tc")  # paragraphs and tables stand in these


def read_docx(source: RecordSource, options: ReadOptions) -> Rows:
    """The text of a Word document with headings, items and tables; the title is that of its properties or the first.

    Headers, footers, comments, tables of contents and what was deleted are no text.

    Raises:
        InputError: It is no Word document.
    """
    from lxml.etree import LxmlError

    try:
        with ZipFile(source.seekable()) as archive:
            if (num_bytes := archive.getinfo("word/document.xml").file_size) > _MAX_FILE_BYTES:
                message = f"document has {num_bytes} bytes, the limit is {_MAX_FILE_BYTES}: split it"
                yield Rejection(1, 0, "file_too_long", message)
                return
            document = _xml(archive, "word/document.xml")
            styles = _xml(archive, "word/styles.xml")
            about = _xml(archive, "docProps/core.xml")
    except (BadZipFile, KeyError, LxmlError, ZlibError, OSError, EOFError, RuntimeError) as error:
        raise InputError(f"{source.name}: expected a Word document: {error}") from error
    names = {
        style.get(f"{_WORD}styleId"): str(name.get(f"{_WORD}val", "")).lower()
        for style in styles.iter(f"{_WORD}style")
        for name in style.iter(f"{_WORD}name")
    }
    written = _Written()
    for element in _flow(document):
        if element.tag == f"{_WORD}tbl":
            for row in element.iterchildren(f"{_WORD}tr"):
                written.add_row([" ".join(map(_said_by, _flow(cell))) for cell in row.iter(f"{_WORD}tc")])
        else:
            _add_paragraph(written, element, names)
    title = " ".join((about.findtext("{http://purl.org/dc/elements/1.1/}title") or "").split())
    if written.blocks:
        yield _document(written.text(), title or written.heading())
    else:
        yield Rejection(1, 0, "no_text", "the document has no text: it may hold pictures, which need OCR first")


def _xml(archive: ZipFile, name: str) -> Any:
    """A part of a document, nothing where it has no such part; entities and addresses in it are not followed."""
    from lxml.etree import XML, XMLParser

    if name not in archive.namelist() and name != "word/document.xml":
        return XML("<nothing/>")
    with archive.open(name) as part:
        data = part.read(_MAX_FILE_BYTES)
    return XML(data, XMLParser(resolve_entities=False, no_network=True))


def _flow(parent: Any) -> Iterator[Any]:
    """Paragraphs and tables, in order."""
    for element in parent.iterchildren(f"{_WORD}*"):
        name = element.tag.removeprefix(_WORD)
        if name in ("p", "tbl"):
            yield element
        elif name in _FLOW:
            yield from _flow(element)


def _add_paragraph(written: _Written, paragraph: Any, names: Mapping[str, str]) -> None:
    found = {name: paragraph.find(f"{_WORD}pPr//{_WORD}{name}") for name in ("pStyle", "outlineLvl", "ilvl", "numPr")}
    said = {name: "" if one is None else str(one.get(f"{_WORD}val", "")) for name, one in found.items()}
    match = _STYLE.match(names.get(said["pStyle"], said["pStyle"].lower()))
    style, level = match.groups() if match else ("", "")
    outline, deep = (int(said[name]) + 1 if said[name].isdigit() else 0 for name in ("outlineLvl", "ilvl"))
    if outline or style in ("heading", "title"):
        written.add(_said_by(paragraph), kind="heading", depth=min(6, outline or int(level or 1)))
    elif found["numPr"] is not None or style.startswith("list"):
        written.add(_said_by(paragraph), kind="item", depth=deep or int(level or 1))
    elif style != "toc":
        written.add(_said_by(paragraph))


def _said_by(element: Any) -> str:
    """What a paragraph or a table says; a picture with text says it twice, once for older readers."""
    wanted = {f"{_WORD}{name}" for name in ("t", "tab", "br", "cr", "p")}
    skipped = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
    pieces, stack = [], [element]
    while stack:
        one = stack.pop()
        if one.tag in wanted:
            pieces.append(one.text or "" if one.tag == f"{_WORD}t" else " ")
        if one.tag != skipped:
            stack += reversed(one)
    return "".join(pieces)


def read_pdf(source: RecordSource, options: ReadOptions) -> Rows:
    """Pages of a PDF, each a document; pages without text are passed over, and a PDF without any is rejected.

    Raises:
        InputError: It is no PDF.
    """
    logging.getLogger("pypdf").addHandler(logging.NullHandler())  # what it mends is nobody's business
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        opened = PdfReader(source.seekable())
        is_locked = opened.is_encrypted and not opened.decrypt("")
        num_pages = 0 if is_locked else len(opened.pages)
        title = "" if is_locked or opened.metadata is None else str(opened.metadata.title or "").strip()
    except (PyPdfError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{source.name}: expected a PDF: {error}") from error
    if is_locked:
        yield Rejection(1, 0, "locked", "the PDF asks for a password")
        return
    yield from _pages(source, opened, options, num_pages=num_pages, title=title)


def _pages(
    source: RecordSource, opened: Any, options: ReadOptions, *, num_pages: int, title: str
) -> Iterator[Row | Rejection]:
    num_blank = 0
    for first in range(0, num_pages, _PAGES_AT_A_TIME):
        pages = [_page(opened, number) for number in range(first, min(num_pages, first + _PAGES_AT_A_TIME))]
        running = _running([page for page in pages if isinstance(page, str)])
        for number, page in enumerate(pages, start=first + 1):
            source.mark_read(number / num_pages)
            if isinstance(page, Rejection):
                yield page
            elif text := _without_edges(page, running):
                found = _document(text, title)
                yield Row({**found.fields, "page": number}, number, 0, found.excerpt)
            else:
                num_blank += 1
    if num_blank == num_pages:
        message = f"the PDF has no text on its {num_pages} pages: it may hold pictures of pages, which need OCR first"
        yield Rejection(1, 0, "no_text", message)
    elif num_blank:
        options.tell(f"{source.name}: {num_blank} of {num_pages} pages have no text and are passed over")


def _page(opened: Any, place: int) -> str | Rejection:
    try:
        return str(opened.pages[place].extract_text())
    except Exception as error:  # a damaged page raises whatever it meets
        message = f"page {place + 1} cannot be read: {type(error).__name__}: {error}"
        return Rejection(place + 1, 0, "unreadable_page", message)


def _running(pages: list[str]) -> frozenset[str]:
    """Heads and feet that come again: first and last lines of a third of the pages or more, numbers aside."""
    edges = [page.strip().splitlines() for page in pages]
    counts = Counter(key for lines in edges if len(lines) > 2 for key in {_key(lines[0]), _key(lines[-1])})
    return frozenset(key for key, count in counts.items() if count >= max(3, len(pages) / 3))


def _key(line: str) -> str:
    return " ".join(_NUMBERS.sub("0", line).split())


def _without_edges(page: str, running: frozenset[str]) -> str:
    """A page without running heads and without its number."""
    lines = page.strip().splitlines()
    while len(lines) > 1 and (_key(lines[0]) in running or _PAGE_NUMBER.fullmatch(lines[0].strip())):
        lines = lines[1:]
    while len(lines) > 1 and (_key(lines[-1]) in running or _PAGE_NUMBER.fullmatch(lines[-1].strip())):
        lines = lines[:-1]
    return "\n".join(lines).strip()


def _document(text: str, title: str) -> Row:
    fields: dict[str, object] = {"text": text}
    if title:
        fields["title"] = title
    return Row(fields, 1, 0, text[:EXCERPT_CHARS])


def _decoded(source: RecordSource, options: ReadOptions, kind: str) -> str | Rejection:
    """The whole file as text, or why not."""
    head = check_text_head(source, kind)
    data = _whole(as_utf8(source, head, encoding=options.encoding, tell=options.tell))
    if isinstance(data, Rejection):
        return data
    try:
        return data.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        message = f"byte 0x{data[error.start]:02x} at {error.start} is no text in this encoding (see --encoding)"
        return Rejection(1, 0, "invalid_encoding", message, excerpt=data[:EXCERPT_CHARS].decode("utf-8", "replace"))


def _whole(stream: Any) -> bytes | Rejection:
    pieces: list[bytes] = []
    num_bytes = 0
    try:
        while piece := stream.read(1 << 20):
            pieces.append(piece)
            num_bytes += len(piece)
            if num_bytes > _MAX_FILE_BYTES:
                message = f"file has more than {_MAX_FILE_BYTES} bytes, too many for one text: split it"
                return Rejection(1, 0, "file_too_long", message)
    except DAMAGED as error:
        return Rejection(1, 0, "damaged_input", f"the file is cut off or damaged: {error}")
    return b"".join(pieces)
