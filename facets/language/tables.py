"""Reads the rows of a table with the names of their columns: "X-20S: Weight 3.1 kg, Price 259 EUR"."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from facets.language.markup import Cut, Hyphens, said

_SEPARATORS = tuple(map(re.compile, (r"(?<!\\)\|", r"\t", r"(?<=\S) {3,}(?=\S)", ";", ",")))
_BAR, _TAB = _SEPARATORS[:2]
_RULE = re.compile(r"[-=]")
_DIGIT = re.compile(r"\d")
_LONGEST_NAME = 40  # characters of a name of a column, with the mark of a cut
_MAX_NAMES_CHARS = 300  # characters of names that a row is read with; further cells have none
_FEWEST_COLUMNS = 3  # of a table whose header no mark shows: two columns may be names and values
_LOOKED_AT = 20  # rows below the first one that show whether it is the header


class Range(NamedTuple):
    """A range of a text; False if it is empty."""

    start: int
    end: int

    def __bool__(self) -> bool:
        return self.end > self.start


class Row(NamedTuple):
    """A row of a table."""

    cells: tuple[Range, ...]  # stripped; a blank cell is an empty range
    names: tuple[str, ...]  # of the columns, as many as cells; empty without a header row
    is_header: bool
    cuts: tuple[Cut, ...]  # what is read between the cells


def read_rows(text: str, lines: Sequence[tuple[int, int]]) -> list[Row]:
    """The rows of one table; ``lines``: their ranges in the text."""
    header, separator = (
        next((own for own in _SEPARATORS if own.search(text, *line)), _BAR)
        for line in (lines[0], lines[len(lines) > 1])
    )
    rows = [_cells(text, *line, separator if number else header) for number, line in enumerate(lines)]
    is_ruled = len(lines) > 1 and _RULE.search(text, lines[0][1], lines[1][0]) is not None
    names: tuple[str, ...] = ()
    if _has_header([[text[slice(*cell)] for cell in row] for row in rows[: 1 + _LOOKED_AT]], is_ruled=is_ruled):
        hyphens = Hyphens(text)
        names = tuple(_cut(said(text, *cell, hyphens=hyphens)) if cell else "" for cell in rows[0])
    mark = " | " if separator in (_BAR, _TAB) else ""
    return [
        _row(cells, names if number and len(cells) == len(names) else (), mark, is_header=bool(names) and not number)
        for number, cells in enumerate(rows)
    ]


def _cells(text: str, start: int, end: int, separator: re.Pattern[str]) -> list[Range]:
    bounds = [(start, start), *(match.span() for match in separator.finditer(text, start, end)), (end, end)]
    cells = [stripped(text, before[1], after[0]) for before, after in pairwise(bounds)]
    if separator is _BAR:  # bars may stand around a row, too
        cells = cells[text[start] == "|" :]
        cells = cells[: len(cells) - (text[end - 1] == "|")]
    return cells or [Range(end, end)]


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1].rstrip()}…"


def stripped(text: str, start: int, end: int) -> Range:
    """A range without white space around it."""
    content = text[start:end]
    start += len(content) - len(content.lstrip())
    return Range(start, start + len(content.strip()))


def _has_header(rows: Sequence[Sequence[str]], *, is_ruled: bool) -> bool:
    """Whether the first row names the columns: a rule is below it, its corner is empty, or only it has no numbers."""
    (corner, *names), others = rows[0], rows[1:]
    if not others or not any(names) or sum(len(row) == len(rows[0]) for row in others) * 2 < len(others):
        return False
    has_digit = [_DIGIT.search(name) is not None for name in names]
    if is_ruled:
        return len(names) > 1 or not has_digit[0]
    if not all(names) or len(rows[0]) < _FEWEST_COLUMNS or max(map(len, names)) > _LONGEST_NAME:
        return False
    if not corner:
        return True
    columns = zip(*(row[1:] for row in others if len(row) == len(rows[0])), strict=True)
    return not any(has_digit) and any(all(map(_DIGIT.search, column)) for column in columns)


def _row(cells: list[Range], names: tuple[str, ...], mark: str, *, is_header: bool) -> Row:
    cuts: list[Cut] = []
    said_cells = [number for number, cell in enumerate(cells) if cell]
    left = _MAX_NAMES_CHARS
    for before, number in pairwise(said_cells):
        name = names[number] if names else ""
        left -= len(name)
        between = f"{', ' if before else ': '}{name} " if name and left >= 0 else mark
        if between:
            cuts.append((cells[before].end, cells[number].start, between))
    return Row(tuple(cells), names, is_header, tuple(cuts))
