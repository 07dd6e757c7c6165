"""Tables of PDF pages, found by the places of their characters.

A program that makes a PDF draws a table row by row, but columns of prose one after the other. So characters are read in
the order in which they are drawn: a gap starts another cell of a row, and rows are a table if their cells form the same
columns below a header.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from ctypes import c_double, c_void_p, cast
from dataclasses import dataclass
from typing import Any

from facets_client.load.pages import Blocks

LINE_END = re.compile("(\r\n|[\x02\ufffe]\\s*)")  # also PDFium's marks of a hyphen at the end of a line
_GAP, _LINE, _ROW = 0.55, 1.5, 3.0  # least gap of cells, largest distances within a cell and of rows, in font sizes
_FEWEST_ROWS, _MAX_ROWS, _MAX_NAME_CHARS = 3, 120, 60  # of a table, its header among them
_DIGIT, _WORD = re.compile(r"\d"), re.compile(r"[^\s\x02\ufffe]+")


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


def visible_places(text: str) -> list[int]:
    """Indices of the characters that can be seen."""
    return [index for word in _WORD.finditer(text) for index in range(*word.span())]


def _rows(textpage: Any, text: str) -> list[list[_Cell]]:
    """The cells of a page by row. Programs draw tables row by row, but columns of prose one after the other."""
    from pypdfium2 import raw

    box, end_box, matrix, x, y = raw.FS_RECTF(), raw.FS_RECTF(), raw.FS_MATRIX(), c_double(), c_double()
    rows, left_before, right_before = [[_Cell(0, 0, math.inf, math.inf, 0, 0, 0)]], 0.0, math.inf
    for word in _WORD.finditer(text):  # PDFium writes a space at each gap; asking where each character is takes longer
        first, last = word.start(), word.end() - 1
        raw.FPDFText_GetLooseCharBox(textpage, first, box)
        raw.FPDFText_GetLooseCharBox(textpage, last, end_box)
        raw.FPDFText_GetCharOrigin(textpage, first, x, y)
        left, right, (*others, cell) = box.left, end_box.right, rows[-1]
        is_near = left_before - cell.size / 3 < left < max(cell.right, right_before + _GAP * cell.size)
        if is_near and abs(cell.bottom - y.value) < cell.size / 2:
            cell.right, cell.last = max(cell.right, right), last
        else:
            raw.FPDFText_GetMatrix(textpage, first, matrix)
            size = raw.FPDFText_GetFontSize(textpage, first) * math.hypot(matrix.c, matrix.d)
            piece = _Cell(left, right, y.value, y.value, size, first, last)
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
        left_before, right_before = end_box.left, right
    return rows


def tables_of(textpage: Any, num_visible: int) -> Iterator[tuple[int, int, str]]:
    """Tables with a header: numbers of their first and last visible characters, and their rows in Markdown.

    ``num_visible``: visible characters of the text that the page is read as; no table is found in another text.
    """
    text = textpage.get_text_range()
    is_located = len(text) == textpage.count_chars() and len(visible_places(text)) == num_visible
    rows, done = _rows(textpage, text) if is_located else [], 0
    for start, header in enumerate(rows):
        table, columns = _aligned(rows, start) if start >= done and len(header) > 1 else ([], [])
        if len(table) < _FEWEST_ROWS or _is_wide(header, columns):
            continue
        grid = _grid(text, table, columns)
        fonts = [{_font(textpage, cell.first) for cell in row} for row in table[:2]]
        if _has_names(grid, is_styled=fonts[0].isdisjoint(fonts[1])):
            blocks, done = Blocks(), start + len(table)
            for cells in grid:
                blocks.add_row(cells, is_header=cells is grid[0])
            first, last = (len(visible_places(text[:place])) for place in (header[0].first, table[-1][-1].last))
            yield first, last, blocks.text()


def _aligned(rows: list[list[_Cell]], start: int) -> tuple[list[list[_Cell]], list[tuple[float, float]]]:
    """A row and those below it that form the same columns, and the places of these columns."""
    table, columns = [rows[start]], list[tuple[float, float]]()
    for row in rows[start + 1 : start + _MAX_ROWS]:
        wider = _merged(columns + [(cell.left, cell.right) for cell in row])
        distance = min(cell.bottom for cell in table[-1]) - max(cell.top for cell in row)
        is_split = len(set(_places(row, wider))) > 1 and not _is_wide(row, columns)
        if not is_split or not 0 < distance < _ROW * row[0].size:
            break
        table, columns = [*table, row], wider
    return table, columns


def _grid(text: str, table: list[list[_Cell]], columns: list[tuple[float, float]]) -> list[list[str]]:
    """The texts of the cells by row and column."""
    grid = [[""] * len(columns) for _ in table]
    for cells, row in zip(grid, table, strict=True):
        places = range(len(row)) if len(row) == len(columns) else _places(row, columns)
        for place, cell in zip(places, row, strict=True):
            said = LINE_END.sub(lambda end: " " * (end[0] == "\r\n"), text[cell.first : cell.last + 1])
            cells[place] = f"{cells[place]} {said}".strip()
    return grid


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
