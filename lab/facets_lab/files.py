"""Opens text files that may be compressed."""

import gzip
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from facets.errors import ConfigError, InvalidInputError

# Raised when a cut or damaged ``.xz`` or ``.gz`` file is read.
DAMAGED_FILE_ERRORS = (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error)


def open_binary(path: Path) -> IO[bytes]:
    """Opens a file for reading bytes; ``.xz`` and ``.gz`` files are decompressed.

    Raises:
        ConfigError: The file cannot be opened.
    """
    try:
        if path.suffix == ".xz":
            return lzma.open(path)
        if path.suffix == ".gz":
            return cast(IO[bytes], gzip.open(path))
        return path.open("rb")
    except OSError as error:
        raise ConfigError(f"cannot read the file {path}: {error.strerror}") from error


def read_lines(path: Path) -> Iterator[str]:
    """Streams the lines of a text file without surrounding white space; ``.xz`` and ``.gz`` files are decompressed.

    Raises:
        ConfigError: The file cannot be opened.
        InvalidInputError: A line is not UTF-8, or the file is cut or damaged; the message names file and line.
    """
    number = 0
    with open_binary(path) as file:
        try:
            for number, line in enumerate(file, start=1):  # noqa: B007  (the error names the line)
                yield line.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            bad = error.object[error.start]
            raise InvalidInputError(f"{path}, line {number}: expected UTF-8, got byte 0x{bad:02x}") from error
        except DAMAGED_FILE_ERRORS as error:
            raise InvalidInputError(
                f"{path}, after line {number}: expected more compressed data, got {error}"
            ) from error
