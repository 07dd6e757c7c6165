"""Opening files that may be packed."""

import gzip
import lzma
import zlib
from pathlib import Path
from typing import IO, cast

from facets.errors import ConfigError

__all__ = ["DAMAGED_FILE_ERRORS", "open_binary"]

DAMAGED_FILE_ERRORS = (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error)
"""What reading a cut or damaged ``.xz`` or ``.gz`` file raises."""


def open_binary(path: Path) -> IO[bytes]:
    """Opens a file for reading bytes; files ending in ``.xz`` or ``.gz`` are unpacked on the way.

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
