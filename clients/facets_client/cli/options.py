"""What people type for several commands: texts and pairs, their files, conditions on payloads."""

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from facets_client.filters import AllOf, Contains, Equals, Exists, Filter, NoneOf, OneOf, Range, Scalar
from facets_client.load.source import InputError

Texts = Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="Texts.", show_default=False)]
FileOption = Annotated[
    str | None, typer.Option("--file", "-f", help="One text a line (UTF-8); - reads standard input.")
]
ModelOption = Annotated[str, typer.Option(help="Model; the server's default when not given.")]
_FIELD_WEIGHT = 2.0
WordsOption = Annotated[int, typer.Option(help="Nearest words for each facet.", min=1)]


SearchFieldOption = Annotated[
    list[str] | None,
    typer.Option(
        "--search-field",
        metavar="FIELD[:WEIGHT]",
        help="Field of payloads that is searched with the text, and how often its words count (2); repeat for several; "
        "'' for none.  [default: title, subject, headline, heading, name]",
        show_default=False,
    ),
]


def parse_search_fields(given: Sequence[str] | None) -> dict[str, float] | None:
    """Fields and weights; None without any, so that the default holds."""
    if given is None:
        return None
    fields: dict[str, float] = {}
    for one in filter(None, given):
        name, colon, weight = one.rpartition(":")
        try:
            fields[name if colon else one] = float(weight) if colon else _FIELD_WEIGHT
        except ValueError as error:
            raise typer.BadParameter(f"--search-field expects FIELD or FIELD:WEIGHT, got {one!r}") from error
    return fields


def texts_from(texts: list[str] | None, file: str | None) -> Iterator[str]:
    """The texts of the command line or of a file."""
    if bool(texts) == (file is not None):
        raise typer.BadParameter("expected texts, or --file FILE")
    told = f"{AS_FILE}, a text a line; {AS_TEXT}"
    return (no_file(text, told) for text in texts) if texts else (line.strip() for _, line in _lines(file or "-"))


def no_file(text: str, told: str) -> str:
    """The text; a name of a file is none, and what to do about it is told."""
    if os.path.isfile(text):  # no name of a file is too long for it, as for Path.is_file
        raise typer.BadParameter(f"{text!r} is a file: {told.format(shlex.quote(text))}")
    return text


def document_from(text: str | None, file: str | None) -> str:
    """The text of the command line or of a file."""
    if (text is None) == (file is None):
        raise typer.BadParameter("expected one text, or --file FILE")
    return text_of_file(file or "-") if text is None else no_file(text, AS_FILE)


def text_of_file(name: str) -> str:
    """A whole file as one text; ``-`` is standard input."""
    if name == "-":
        return _decode(sys.stdin.buffer.read(), name)
    with _open(name) as stream:
        return _decode(stream.read(), name)


def names_of_file(file: str) -> list[str]:
    """Names or ids, one a line, without doubles; ``-`` is standard input.

    Raises:
        InputError: There is none.
    """
    found = list(dict.fromkeys(line.strip() for line in text_of_file(file).splitlines() if line.strip()))
    if not found:
        raise InputError(f"{file}: expected at least one name, got none")
    return found


def pairs_from(first: str | None, second: str | None, file: str | None) -> list[tuple[str, str]]:
    """The pair of the command line or the pairs of a file."""
    if file is None:
        if first is None or second is None:
            raise typer.BadParameter("expected two texts, or --file FILE")
        return [(no_file(first, AS_TEXT), no_file(second, AS_TEXT))]
    if first is not None:
        raise typer.BadParameter("expected two texts or --file FILE, got both")
    return [_pair(where, line) for where, line in _lines(file, blanks=" ")]


def pairs_with_places(file: str, problems: list[str]) -> Iterator[tuple[str, tuple[str, str]]]:
    """The pairs of a file with where they stand; a line that is none is added to the problems and left out."""
    for where, line in _lines(file, blanks=" ", problems=problems):
        try:
            yield where, _pair(where, line)
        except InputError as error:
            problems.append(str(error))


def _pair(where: str, line: str) -> tuple[str, str]:
    fields = line.split("\t")
    if len(fields) != 2:
        raise InputError(f"{where}: expected two texts with a tab between, got {len(fields)} fields")
    for side, text in zip(("first", "second"), fields, strict=True):
        if not text.strip():
            raise InputError(f"{where}: expected a {side} text, got an empty one")
    return fields[0], fields[1]


def _lines(name: str, *, blanks: str | None = None, problems: list[str] | None = None) -> Iterator[tuple[str, str]]:
    """Lines that are not blank with where they stand, one at a time.

    Args:
        name: The file; ``-`` is standard input.
        blanks: Characters of which blank lines consist; None: any white space.
        problems: Where a line that is not UTF-8 is noted and left out; None: it is an error.

    Raises:
        InputError: The file cannot be read, a line is not UTF-8, or no line has a text.
    """
    stream = sys.stdin.buffer if name == "-" else _open(name)
    is_empty = True
    with stream:
        for number, line in enumerate(stream, start=1):
            try:
                text = _decode(line, f"{name}, line {number}").rstrip("\r\n")
            except InputError as error:
                if problems is None:
                    raise
                problems.append(str(error))
                is_empty = False
                continue
            if text.strip(blanks):
                is_empty = False
                yield f"{name}, line {number}", text
    if is_empty:
        raise InputError(f"{name}: expected at least one line with text, got none")


def _open(name: str) -> BinaryIO:
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise InputError(f"{name}: cannot be opened: {error.strerror}") from error


def _decode(raw: bytes, where: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: invalid UTF-8: byte 0x{raw[error.start]:02x}") from error


_CONDITION = re.compile(r"(?P<field>[^=!<>~]+?)\s*(?P<operator>!=|<=|>=|=|<|>|~)\s*(?P<value>.*)", re.S)
AS_TEXT = '"$(cat {0})" gives its text'
AS_FILE = "give it as --file {0}"
_BOUNDS = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}

WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        "-w",
        metavar="CONDITION",
        help="FIELD=VALUE, !=, <, <=, >, >=; FIELD=A|B: one of these; FIELD~VALUE: list has it; FIELD: is there; "
        "!FIELD: is missing. Repeat for all of several.",
        show_default=False,
    ),
]


def parse_where(conditions: Sequence[str] | None) -> Filter | None:
    """All conditions together; None without any.

    A value that reads as a JSON number, true, false or null is one; anything else is a string, and so is
    whatever stands in double quotes.
    """
    if not conditions:
        return None
    parsed = tuple(_parse(condition.strip()) for condition in conditions)
    return parsed[0] if len(parsed) == 1 else AllOf(parsed)


def _parse(condition: str) -> Filter:
    found = _CONDITION.fullmatch(condition)
    if not found:
        field = condition.removeprefix("!").strip()
        if ":" in field and not field.startswith('"'):
            named = (
                f'{condition.replace(":", "=", 1)} compares a value, "{field}" in its quotes is a field of that name'
            )
            raise typer.BadParameter(f"--where expects FIELD=VALUE or the like, got {condition!r}: {named}")
        field = field.strip('"')
        if not field or not re.fullmatch(r"[^=!<>~\s]+", field):
            raise typer.BadParameter(f"--where expects FIELD=VALUE or the like, got {condition!r}")
        return Exists(field, not condition.startswith("!"))
    field, operator, value = found["field"], found["operator"], found["value"]
    if operator in _BOUNDS:
        return _range(field, operator, value)
    if operator == "~":
        return Contains(field, _scalar(value))
    values = _alternatives(value)
    equal: Filter = Equals(field, values[0]) if len(values) == 1 else OneOf(field, values)
    return equal if operator == "=" else NoneOf((equal,))


def _range(field: str, operator: str, value: str) -> Filter:
    bound = _scalar(value)
    if bound is None or isinstance(bound, bool):
        raise typer.BadParameter(f"--where {field}{operator} expects a number or a string, got {value!r}")
    return Range(field, **{_BOUNDS[operator]: bound})


def _alternatives(value: str) -> list[Scalar]:
    return [_scalar(value)] if value.startswith('"') else [_scalar(part) for part in value.split("|")]


def _scalar(text: str) -> Scalar:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, str | int | float | bool | None) else text
