"""Evaluation data: text files, plain or compressed, whose errors name file and line."""

import gzip
import lzma
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from facets.errors import ConfigError, InvalidInputError

__all__ = ["read_lines"]


def read_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Lines of a UTF-8 file with where they stand.

    Args:
        path: Plain, ``.gz`` or ``.xz``.

    Yields:
        ``"FILE, line 3"`` and the line without its end.

    Raises:
        ConfigError: The file cannot be read.
        InvalidInputError: It is damaged or not UTF-8; the message names the line.
    """
    number = 0
    try:
        with _open(path) as file:
            for number, line in enumerate(file, start=1):
                yield f"{path}, line {number}", line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"{path}, line {number}: expected UTF-8, got a bad byte at offset {error.start} of the line"
        ) from error
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise InvalidInputError(
            f"{path}, line {number + 1}: expected compressed text, got a damaged file: {error}"
        ) from error
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error


def _open(path: Path) -> gzip.GzipFile | lzma.LZMAFile | BufferedReader:
    if path.suffix == ".xz":
        return lzma.open(path)
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")
