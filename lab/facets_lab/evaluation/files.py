"""Evaluation data: text files, plain or compressed, whose errors name file and line."""

import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from facets.errors import ConfigError, InvalidInputError
from facets.language.files import DAMAGED_FILE_ERRORS, open_binary

# Plain decimal numbers: float() would also take 1_0, infinity and digits of other scripts.
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Lines of a UTF-8 file with where they stand.

    Args:
        path: Plain, ``.gz`` or ``.xz``; a byte order mark is dropped.

    Yields:
        ``"FILE, line 3"`` and the line without its end.

    Raises:
        ConfigError: The file cannot be read.
        InvalidInputError: It is damaged or not UTF-8; the message names the line.
    """
    number = 0
    try:
        with open_binary(path) as file:
            for number, line in enumerate(file, start=1):
                text = (line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line).decode("utf-8")
                yield f"{path}, line {number}", text.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"{path}, line {number}: expected UTF-8, got a bad byte at offset {error.start} of the line"
        ) from error
    except DAMAGED_FILE_ERRORS as error:
        raise InvalidInputError(
            f"{path}, line {number + 1}: expected compressed text, got a damaged file: {error}"
        ) from error
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error


class Record(BaseModel):
    """A line of JSON with the fields of a subclass, of these very types; others are ignored."""

    model_config = ConfigDict(strict=True, frozen=True)


RecordT = TypeVar("RecordT", bound=Record)


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("must have words")
    return text


Said = Annotated[str, AfterValidator(_said)]
"""A text that is not blank."""


def read_as(kind: type[RecordT], path: Path, *, skip_blank: bool = False) -> Iterator[tuple[str, RecordT]]:
    """As :func:`read_records`, each checked against a schema.

    Raises:
        ConfigError: The file cannot be read.
        InvalidInputError: As there, or a field is missing or breaks its rule; the message names file, line and field.
    """
    for place, record in read_records(path, skip_blank=skip_blank):
        try:
            yield place, kind.model_validate(record)
        except ValidationError as error:
            raise InvalidInputError(f"{place}: {_first_of(error)}") from error


def _first_of(error: ValidationError) -> str:
    """The first broken rule: what, expected, got."""
    first = error.errors()[0]
    field, cause = ".".join(map(str, first["loc"])), first.get("ctx", {}).get("error")
    if first["type"] == "missing":
        return f"expected a field {field}, got none"
    if cause is not None:  # a rule of ours
        return f"{field} {getattr(cause, 'rule', cause)}, got {first['input']!r:.60}".lstrip()
    return f"expected {first['msg'].removeprefix('Input should be ')} as {field}, got {first['input']!r:.60}"


Columns = dict[str, Callable[[str], Any]]


def read_table(path: Path, columns: Columns) -> Iterator[tuple[Any, ...]]:
    """Lines of fields by tabs, none of them blank; blank lines are passed over.

    Args:
        path: As for ``read_lines``.
        columns: Name of each -> what reads a field; a ValueError says that it cannot.

    Raises:
        ConfigError: The file cannot be read.
        InvalidInputError: A line has other fields; the message names file and line.
    """
    names, readers = tuple(columns), tuple(columns.values())
    for place, line in read_lines(path):
        if not line.strip():
            continue
        fields = fields_of(line, names, place)
        try:
            yield tuple([read(field) for read, field in zip(readers, fields, strict=True)])
        except ValueError as error:
            raise InvalidInputError(f"{place}: expected {'<TAB>'.join(names)}, got {line[:80]!r}: {error}") from error


def count_of(text: str) -> int:
    """A number of things, for ``read_table``.

    Raises:
        ValueError: It is none.
    """
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"expected a count, got {text!r}")
    return int(text)


def read_records(path: Path, *, skip_blank: bool = False) -> Iterator[tuple[str, dict[str, object]]]:
    """JSON objects of a file, one a line, with where they stand.

    Args:
        path: As for ``read_lines``.
        skip_blank: Whether blank lines are passed over; else they are an error.

    Yields:
        ``"FILE, line 3"`` and the object.

    Raises:
        ConfigError: The file cannot be read.
        InvalidInputError: It is damaged, or a line is no JSON object; the message names the line.
    """
    for place, line in read_lines(path):
        if skip_blank and not line.strip():
            continue
        try:
            record = json.loads(line)
            json.dumps(record, ensure_ascii=False).encode("utf-8")
        except json.JSONDecodeError as error:
            what = f"{error.msg} at character {error.pos}" if line.strip() else "an empty line"
            raise InvalidInputError(f"{place}: expected a JSON object, got {what}") from error
        except UnicodeEncodeError as error:
            raise InvalidInputError(f"{place}: expected Unicode text, got half of a surrogate pair") from error
        except (ValueError, RecursionError) as error:  # numbers of thousands of digits, lists in lists in lists
            what = "lists or objects nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise InvalidInputError(f"{place}: expected a JSON object, got {what}") from error
        if not isinstance(record, dict):
            raise InvalidInputError(f"{place}: expected a JSON object, got {type(record).__name__}")
        yield place, record


def fields_of(line: str, names: tuple[str, ...], place: str) -> list[str]:
    """The fields of a line, by tabs, as many as there are names.

    Args:
        line: Without its end.
        names: What the fields are, for the message.
        place: Where the line stands, for the message.

    Raises:
        InvalidInputError: There are more or fewer, or one is blank.
    """
    fields = line.split("\t")
    if len(fields) != len(names):
        got = f"{len(fields)} fields" if line.strip() else "an empty line"
        raise InvalidInputError(f"{place}: expected {'<TAB>'.join(names)}, got {got}")
    for name, field in zip(names, fields, strict=True):
        if not field.strip():
            raise InvalidInputError(f"{place}: expected a {name}, got an empty field")
    return fields


def number_of(text: str, place: str, *, what: str) -> float:
    """A finite decimal number.

    Args:
        text: As it stands in the file.
        place: Where, for the message.
        what: What the number is, for the message.

    Raises:
        InvalidInputError: It is none, not finite, or written in another way.
    """
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(value):
        raise InvalidInputError(f"{place}: expected a number as {what}, got {text[:40]!r}")
    return value
