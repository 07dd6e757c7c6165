"""Text, Markdown, HTML and PDF: a document a file, of a PDF one a page."""

import codecs
import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any

from facets_client.core.extras import require_extra
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
_REGIONS = ("main", "article")
_DECLARED = re.compile(rb"<meta[^>]+?charset\s*=\s*[\"']?\s*([\w:-]+)", re.IGNORECASE)


def read_text(source: RecordSource, options: ReadOptions) -> Rows:
    """A whole file as one text."""
    text = _decoded(source, options, "text")
    if isinstance(text, Rejection):
        yield text
    else:
        yield _document(text, "")


def read_markdown(source: RecordSource, options: ReadOptions) -> Rows:
    """A Markdown file as its text without marks; the title is the first heading, or the one of the front matter."""
    require_extra("files", "markdown_it")
    text = _decoded(source, options, "Markdown")
    if isinstance(text, Rejection):
        yield text
        return
    front = _FRONT_MATTER.match(text)
    titles = _FRONT_TITLE.search(front[1]) if front else None
    plain, heading = _plain_markdown(text[front.end() :] if front else text)
    yield _document(plain, titles[1].strip("\"'") if titles else heading)


def _plain_markdown(text: str) -> tuple[str, str]:
    """Paragraphs, headings and code, and the first heading."""
    from markdown_it import MarkdownIt

    parts: list[str] = []
    heading = ""
    before = ""
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "inline":
            part = "".join(_inline(child) for child in token.children or ()).strip()
            if before == "heading_open" and not heading:
                heading = part
            parts.append(part)
        elif token.type in ("fence", "code_block"):
            parts.append(token.content.rstrip())
        before = token.type
    return "\n\n".join(filter(None, parts)), heading


def _inline(token: Any) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return "\n"
    return token.content if token.type in ("text", "code_inline", "image") else ""


def read_html(source: RecordSource, options: ReadOptions) -> Rows:
    """The text of a page without scripts, menus and footers, and its title.

    Raises:
        InputError: It is no text.
        ImportError: The reader is not installed.
    """
    require_extra("files", "lxml")
    from lxml.etree import HTMLParser

    head = check_text_head(source, "HTML")
    declared = _DECLARED.search(head[:4096])
    encoding = options.encoding
    if declared and not encoding and _is_known(declared[1].decode()):
        encoding = declared[1].decode()
    data = _whole(as_utf8(source, head, encoding=encoding, tell=options.tell))
    if isinstance(data, Rejection):
        yield data
        return
    # Events, no tree: however deep the elements are, only the text is held.
    page = _Page()
    parser = HTMLParser(target=page, encoding="utf-8", huge_tree=True)
    parser.feed(data.decode("utf-8", "replace").removeprefix("\ufeff").encode())
    parser.close()
    yield _document(page.text(), page.title)


def _is_known(encoding: str) -> bool:
    """Whether a page can say in ASCII that it has this encoding."""
    try:
        return not codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))
    except LookupError:
        return False


class _Page:
    """What a parser tells of a page: its title, and its text with blank lines between blocks."""

    def __init__(self) -> None:
        self.title = ""
        self._titles: list[str] | None = None  # while the title is open
        self._parts: list[str] = []
        self._depth = 0
        self._skipped_depth = 0  # of the element that is no text; 0: none is open
        self._regions: dict[str, tuple[int, int, int]] = {}  # first main, first article: depth, first part, last part

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
        if tag in _REGIONS and tag not in self._regions:
            self._regions[tag] = (self._depth, len(self._parts), -1)
        self._mark(tag)

    def end(self, tag: str) -> None:
        """An element ends."""
        if tag == "title" and self._titles is not None:
            self.title, self._titles = " ".join("".join(self._titles).split()), None
        if self._skipped_depth == self._depth:
            self._skipped_depth = 0
        elif not self._skipped_depth:
            self._mark("" if tag == "br" else tag)
            depth, first, last = self._regions.get(tag, (0, 0, 0))
            if depth == self._depth and last < 0:
                self._regions[tag] = (depth, first, len(self._parts))
        self._depth -= 1

    def data(self, text: str) -> None:
        """Text of the element that is open."""
        if self._titles is not None:
            self._titles.append(text)
        if not self._skipped_depth:
            self._parts.append(text)

    def close(self) -> None:
        """The page is over."""

    def text(self) -> str:
        """Paragraphs of the main part, else of the article, else of all."""
        region = next((self._regions[name] for name in _REGIONS if name in self._regions), None)
        parts = self._parts if region is None else self._parts[region[1] : region[2] if region[2] >= 0 else None]
        paragraphs = re.split(r"\n\s*\n", "".join(parts))
        return "\n\n".join(filter(None, (" ".join(paragraph.split()) for paragraph in paragraphs)))

    def _mark(self, tag: str) -> None:
        if tag == "br":
            self._parts.append("\n")
        elif tag in _BLOCKS:
            self._parts.append("\n\n")


def read_pdf(source: RecordSource, options: ReadOptions) -> Rows:
    """Pages of a PDF, each a document; pages without text are passed over, and a PDF without any is rejected.

    Raises:
        InputError: It is no PDF.
        ImportError: The reader is not installed.
    """
    require_extra("files", "pypdf")
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
    for number in range(1, num_pages + 1):
        try:
            text = opened.pages[number - 1].extract_text()
        except Exception as error:  # a damaged page raises whatever it meets
            message = f"page {number} cannot be read: {type(error).__name__}: {error}"
            yield Rejection(number, 0, "unreadable_page", message)
            continue
        finally:
            source.mark_read(number / num_pages)
        if text.strip():
            found = _document(text, title)
            yield Row({**found.fields, "page": number}, number, 0, found.excerpt)
        else:
            num_blank += 1
    if num_blank == num_pages:
        message = f"the PDF has no text on its {num_pages} pages: it may hold pictures of pages, which need OCR first"
        yield Rejection(1, 0, "no_text", message)
    elif num_blank:
        options.tell(f"{source.name}: {num_blank} of {num_pages} pages have no text and are passed over")


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
