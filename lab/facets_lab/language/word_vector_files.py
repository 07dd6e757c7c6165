"""Reads a user's own word vectors: GloVe, word2vec (text and binary) and fastText ``.vec`` files."""

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from facets.errors import ConfigError, InvalidInputError
from facets.language.files import DAMAGED_FILE_ERRORS, open_binary
from facets.language.vectors import WordVectors
from facets.language.vocabulary import Vocabulary

logger = logging.getLogger(__name__)

_MAX_WORD_BYTES = 1000
_MAX_HEADER_BYTES = 64
# Without counts the n-th word is taken to occur as often as Zipf's law says (Mandelbrot's shift of 2.7).
_ZIPF_COUNT = 1_000_000_000
_ZIPF_SHIFT = 2.7

_Entry = tuple[int, str, NDArray[np.float32]]  # line or entry number, word, vector [D]


def read_word_vectors(
    path: Path, *, max_words: int | None = None, counts: Mapping[str, int] | None = None
) -> WordVectors:
    """Reads a file of word vectors; the format is recognised from its beginning.

    GloVe files are text, a word and its numbers a line. word2vec and fastText ``.vec`` files start with a line
    ``words dimensions``; what follows is text or, in word2vec's binary format, the word, a space, and float32
    numbers. Files ending in ``.gz`` or ``.xz`` are unpacked. Words are lower-cased; of words that occur twice the
    first stays.

    Args:
        path: The file.
        max_words: Read only this many words from the beginning (the files have the frequent words first).
        counts: How often each word occurs in a corpus; words that are missing count 0. Without it frequencies
            follow Zipf's law in the order of the file.

    Returns:
        The vectors in the order of the file, as they are (not at unit length).

    Raises:
        ConfigError: The file cannot be opened, or ``max_words`` is below 1.
        InvalidInputError: The file is empty or damaged, or a line has the wrong number of numbers, something that is
            no number, NaN or infinity; the message names file and line.
    """
    if max_words is not None and max_words < 1:
        raise ConfigError(f"max_words must be >= 1, got {max_words}")
    vectors: dict[str, NDArray[np.float32]] = {}
    num_twice = 0
    try:
        with open_binary(path) as file:
            for number, word, vector in _read_entries(path, file):
                if not np.isfinite(vector).all():
                    raise InvalidInputError(
                        f"{path}, line {number}: expected finite numbers for {word!r}, got NaN or infinity"
                    )
                if vectors.setdefault(word.lower(), vector) is not vector:
                    num_twice += 1
                if len(vectors) == max_words:
                    break
    except DAMAGED_FILE_ERRORS as error:
        raise InvalidInputError(f"{path}: expected more compressed data, got {error}") from error
    if not vectors:
        raise InvalidInputError(f"{path}: expected word vectors, got an empty file")
    if num_twice:
        logger.warning("%s: %d words occur twice (in lower case); the first vector of each is kept", path, num_twice)
    return WordVectors(_vocabulary(list(vectors), counts), np.stack(list(vectors.values())))


def _vocabulary(words: list[str], counts: Mapping[str, int] | None) -> Vocabulary:
    if counts is None:
        ranks = np.arange(1, len(words) + 1)
        return Vocabulary(words, (_ZIPF_COUNT / (ranks + _ZIPF_SHIFT)).astype(np.int64))
    own = np.array([counts.get(word, 0) for word in words], dtype=np.int64)
    return Vocabulary(words, own, total_count=max(sum(counts.values()), int(own.sum())))


def _read_entries(path: Path, file: IO[bytes]) -> Iterator[_Entry]:
    first = file.readline()
    header = _parse_header(first)
    if header is None:
        # GloVe: no header; the first line gives the dimension.
        dim = len(_fields(path, 1, first)) - 1 if first else 0
        yield from _read_text(path, file, dim, first)
        return
    num_words, dim = header
    start = file.read(_MAX_WORD_BYTES + 4 * dim)
    file.seek(len(first))
    entries = _read_text if _is_text(start, dim) else _read_binary
    num_read = 0
    for entry in entries(path, file, dim, b""):
        num_read += 1
        yield entry
    if num_read != num_words:
        raise InvalidInputError(f"{path}: expected {num_words} words as its first line says, got {num_read}")


def _parse_header(line: bytes) -> tuple[int, int] | None:
    fields = line.split()
    if len(line) <= _MAX_HEADER_BYTES and len(fields) == 2 and all(field.isdigit() for field in fields):
        num_words, dim = map(int, fields)
        if num_words > 0 and dim > 0:
            return num_words, dim
    return None


def _is_text(start: bytes, dim: int) -> bool:
    """Whether the first entry reads as a word and numbers in text."""
    fields = start.split(b"\n", 1)[0].split()[1:]
    try:
        return bool([float(field) for field in fields[: min(dim, 4)]])
    except ValueError:
        return False


def _read_text(path: Path, file: IO[bytes], dim: int, first: bytes) -> Iterator[_Entry]:
    number = 1
    if first:
        yield _parse_line(path, number, first, dim)
    for number, line in enumerate(file, start=2):
        if line.strip():
            yield _parse_line(path, number, line, dim)


def _parse_line(path: Path, number: int, line: bytes, dim: int) -> _Entry:
    fields = _fields(path, number, line)
    if len(fields) <= dim or dim < 1:
        raise InvalidInputError(
            f"{path}, line {number}: expected a word and {max(dim, 1)} numbers, got {len(fields)} fields"
        )
    word = " ".join(fields[: len(fields) - dim])  # some GloVe files have words with spaces
    try:
        vector = np.array(fields[len(fields) - dim :], dtype=np.float32)
        extra = _is_number(fields[len(fields) - dim - 1]) and len(fields) > dim + 1
    except ValueError as error:
        raise InvalidInputError(f"{path}, line {number}: expected {dim} numbers, got {error}") from error
    if extra and not _is_number(fields[0]):
        raise InvalidInputError(f"{path}, line {number}: expected {dim} numbers, got {len(fields) - 1}")
    return number, word, vector


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _fields(path: Path, number: int, line: bytes) -> list[str]:
    try:
        return line.decode("utf-8").rstrip().split(" " if b"\t" not in line else None)
    except UnicodeDecodeError as error:
        bad = line[error.start]
        raise InvalidInputError(f"{path}, line {number}: expected UTF-8, got byte 0x{bad:02x}") from error


def _read_binary(path: Path, file: IO[bytes], dim: int, first: bytes) -> Iterator[_Entry]:
    """Entries of word2vec's binary format: word, space, ``dim`` little-endian float32, perhaps a newline."""
    number = 1
    buffer = bytearray(first)
    while True:
        buffer += file.read(max(1 << 20, 8 * dim) - len(buffer))
        position = 0
        if not buffer.strip():
            return
        while (space := buffer.find(b" ", position, position + _MAX_WORD_BYTES)) >= 0:
            end = space + 1 + 4 * dim
            if end > len(buffer):
                break
            number += 1
            try:
                word = buffer[position:space].decode("utf-8").strip()
            except UnicodeDecodeError as error:
                raise InvalidInputError(f"{path}, word {number - 1}: expected UTF-8, got {error.reason}") from error
            yield number, word, np.frombuffer(bytes(buffer[space + 1 : end]), dtype="<f4")
            position = end + 1 if buffer[end : end + 1] == b"\n" else end
        if position == 0:
            raise InvalidInputError(
                f"{path}, word {number}: expected a word, a space and {4 * dim} bytes, got {len(buffer)} bytes"
            )
        del buffer[:position]
