"""Reads evaluation data: text files, plain or compressed. Errors name the file and the line."""

import gzip
import lzma
import math
import zlib
from collections.abc import Callable, Iterator, Sized
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from facets.errors import ConfigError, InvalidInputError

_OPENERS: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
Columns = dict[str, Callable[[str], Any]]


class Record(BaseModel):
    """A JSON line with the fields that a subclass declares, of exactly these types; other fields are ignored."""

    model_config = ConfigDict(strict=True, frozen=True)


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


NonBlank = Annotated[str, AfterValidator(_not_blank)]
RecordT = TypeVar("RecordT", bound=Record)


def read_texts(path: Path) -> Iterator[str]:
    """The lines of ``read_lines`` without surrounding white space."""
    return (line.strip() for _, line in read_lines(path))


def read_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yields ``"FILE, line 3"`` and the line without its line break; ``.gz`` and ``.xz`` files are decompressed."""
    number = 0
    try:
        with _OPENERS.get(path.suffix, open)(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                text = (line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line).decode("utf-8")
                yield f"{path}, line {number}", text.rstrip("\r\n")
    except UnicodeDecodeError as error:
        message = f"{path}, line {number}: expected UTF-8, got a bad byte at offset {error.start} of the line"
        raise InvalidInputError(message) from error
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error) as error:
        message = f"{path}, line {number + 1}: expected compressed text, got a damaged file: {error}"
        raise InvalidInputError(message) from error
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error


def read_table(path: Path, columns: Columns) -> Iterator[tuple[Any, ...]]:
    """Yields the fields of each line that is not blank, parsed, without column names; ValueError for a bad field."""
    names = list(columns)
    for place, line in read_lines(path):
        fields = line.split("\t")
        if not line.strip() or fields == names:
            continue
        try:
            if len(fields) != len(names) or not all(map(str.strip, fields)):
                raise ValueError(f"{len(fields)} fields, {sum(not field.strip() for field in fields)} of them blank")
            yield tuple(parse(field) for parse, field in zip(columns.values(), fields, strict=True))
        except ValueError as error:
            raise InvalidInputError(f"{place}: expected {'<TAB>'.join(names)}, got {line[:80]!r}: {error}") from error


def parse_count(text: str) -> int:
    """A whole number >= 0, for ``read_table``."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"expected a count, got {text!r}")
    return int(text)


def parse_number(text: str) -> float:
    """A finite number, for ``read_table``."""
    if not math.isfinite(value := float(text)):
        raise ValueError(f"expected a finite number, got {text!r}")
    return value


def read_records(kind: type[RecordT], path: Path) -> Iterator[tuple[str, RecordT]]:
    """Yields ``"FILE, line 3"`` and the JSON object of each line, checked against a schema; blank lines are skipped."""
    for place, line in read_lines(path):
        if line.strip():
            try:
                yield place, kind.model_validate_json(line)
            except ValidationError as error:
                raise InvalidInputError(f"{place}: {_first_error(error)}") from error


def require_rows(path: Path, rows: Sized) -> None:
    """Rejects an empty file."""
    if not len(rows):
        raise InvalidInputError(f"{path}: expected at least one line, got an empty file")


def _first_error(error: ValidationError) -> str:
    first = error.errors()[0]
    field, cause = ".".join(map(str, first["loc"])), first.get("ctx", {}).get("error")
    if first["type"] in ("json_invalid", "model_type"):
        return f"expected a JSON object, got {str(first['input'])[:60]!r}: {first['msg']}"
    if first["type"] == "missing":
        return f"expected a field {field}, got none"
    if cause is not None:  # raised by one of our own validators
        return f"{field} {cause}, got {first['input']!r:.60}".lstrip()
    return f"expected {first['msg'].removeprefix('Input should be ')} as {field}, got {first['input']!r:.60}"
