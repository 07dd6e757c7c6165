"""PDF files: one document per page, without running headers and footers."""

import itertools
import math
import re
from collections import Counter
from ctypes import c_double
from typing import Any

from facets_client.load.pages import document, given_title
from facets_client.load.pdf_tables import LINE_END, tables_of, visible_places
from facets_client.load.rows import ReadOptions, Rejection, Rows
from facets_client.load.source import InputError, Source

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


_APART = 1.2  # least distance of two paragraphs, in distances of their lines


def _page_text(pdf: Any, index: int) -> str | Rejection:
    """The lines of a page, with an empty line where they stand farther apart than those above or below."""
    from pypdfium2 import PdfiumError

    try:
        page = pdf[index]
        textpage = page.get_textpage()
        parts = LINE_END.split(textpage.get_text_bounded())
        gaps = _gaps(parts, textpage)
        tables = list(tables_of(textpage, len(visible_places("".join(parts)))))
        page.close()  # with its text
    except (PdfiumError, UnicodeError) as error:
        return Rejection(index + 1, "damaged_input", f"page {index + 1} cannot be read: {error}")
    for number, (before, gap, after) in enumerate(zip([math.inf, *gaps], gaps, [*gaps[1:], math.inf], strict=False)):
        is_apart = gap > _APART * min((near for near in (before, after) if near > 0), default=gap)
        is_below_footer = gap < 0 and before == math.inf  # some programs write the footer first
        end = "\n\n" if is_apart or is_below_footer else "\n"
        parts[2 * number + 1] = end if parts[2 * number + 1] == "\r\n" else ""
    text = "".join(parts)
    visible = visible_places(text) if tables else []
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
