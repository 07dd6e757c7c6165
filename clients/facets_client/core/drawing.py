"""Results as people see them, drawn once, by rich: on a terminal, as text, and as HTML in notebooks."""

import functools
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.progress import Progress

_MAX_ROWS = 20  # of a list in a notebook or a repr; a terminal gets all
_CELL_CHARS = 300
_WIDTH = 120
# Text and background are the notebook's own, so that every theme works.
_PRE = '<pre style="white-space:pre;overflow-x:auto;font-family:monospace;line-height:1.4">{code}</pre>'


@functools.singledispatch
def parts_of(shown: Any, max_rows: int) -> Iterable[RenderableType]:
    """The lines and tables that show a result; each class of results has its own."""
    raise NotImplementedError


class Drawn:
    """Base of a result that a terminal and a notebook show as its parts."""

    __slots__ = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[RenderableType]:
        return parts_of(self, _MAX_ROWS if console.record else sys.maxsize)

    def __repr__(self) -> str:
        return "\n".join(map(str.rstrip, _rendered(self).export_text().splitlines())).strip("\n")

    def _repr_html_(self) -> str:
        return _rendered(self).export_html(code_format=_PRE, inline_styles=True)


def _rendered(drawn: Drawn) -> Console:
    console = Console(
        file=io.StringIO(), record=True, width=_WIDTH, force_terminal=True, force_jupyter=False, color_system="standard"
    )
    console.print(drawn, highlight=False)
    return console


def clean(text: str) -> str:
    """The text on one line, without control characters, which could manipulate the terminal."""
    return "".join(character if character.isprintable() else " " for character in text)


def shortened(text: str, max_chars: int) -> str:
    """The beginning of a text, on one line."""
    text = " ".join(clean(text[: 4 * max_chars]).split())
    return text if len(text) <= max_chars else text[: max_chars - 3] + "..."


def count_of(number: int, singular: str, plural: str = "") -> str:
    """Such as ``1 document`` or ``1,200 documents``; the default plural adds an s."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def line(text: str, style: str = "dim") -> Text:
    """A line without control characters and markup."""
    return Text(clean(text), style=style)


def indented(part: RenderableType) -> Padding:
    """A part that belongs to the line above it."""
    return Padding(part, (0, 0, 0, 4))


def cell_of(value: object) -> Text:
    """A value of a table: numbers rounded, long texts cut."""
    match value:
        case Text():
            return value
        case None | False:
            return Text()
        case True:
            return Text("yes")
        case float():
            return Text(f"{value:z.3f}")
        case datetime():
            return Text(f"{value:%Y-%m-%d %H:%M}")
        case tuple() | list():
            return Text(shortened(", ".join(map(str, value)), _CELL_CHARS))
    return Text(shortened(str(value), _CELL_CHARS))


def table_of(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table of plain values, without markup; columns of numbers are aligned to the right."""
    rows = [[cell if isinstance(cell, int | float) else cell_of(cell) for cell in row] for row in rows]
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, column in enumerate(columns):
        is_number = bool(rows) and all(type(row[place]) in (int, float) for row in rows)
        justify: Literal["left", "right"] = "right" if is_number else "left"
        shown.add_column(Text(clean(column)), justify=justify, overflow="fold")
    for row in rows:
        shown.add_row(*map(cell_of, row))
    return shown


class RowOfTable:
    """A row below the names of its columns; each value after its name if the table is wider than the screen."""

    def __init__(self, columns: Sequence[str], cells: Sequence[str]) -> None:
        self._columns, self._cells = columns, cells

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[RenderableType]:
        table = table_of(self._columns, [self._cells])
        if console.measure(table, options=options.update_width(sys.maxsize)).maximum <= options.max_width:
            yield table
        else:
            pairs = zip(self._columns, self._cells, strict=True)
            yield Text("; ").join(
                Text.assemble((f"{clean(name)}: " if name else "", "dim"), cell_of(cell))
                for name, cell in pairs
                if cell
            )


def more(number: int) -> Iterator[Text]:
    """A line about what is not shown, if that is anything."""
    if number > 0:
        yield line(f"and {number:,} more")


def progress_bar(counted: str, *, quiet: bool) -> "Progress":
    """A progress bar of ``counted``, or of ``percent`` with a description, in a terminal or a notebook."""
    from rich import progress

    console = Console(stderr=True, highlight=False)
    columns: list[progress.ProgressColumn] = [progress.SpinnerColumn("line"), progress.BarColumn()]
    if counted == "percent":
        columns += [progress.TaskProgressColumn(), progress.TextColumn("{task.description}", markup=False)]
    else:
        columns += [progress.MofNCompleteColumn(), progress.TextColumn(counted)]
    columns += [progress.TimeElapsedColumn(), progress.TimeRemainingColumn()]
    is_shown = console.is_terminal or console.is_jupyter
    return progress.Progress(*columns, console=console, disable=quiet or not is_shown, transient=True)
