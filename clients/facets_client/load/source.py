"""An open input: a file or standard input, plain or compressed, read in one pass and in bounded memory."""

import codecs
import gzip
import io
import lzma
import sys
import tempfile
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TextIO, cast

from facets_client.core.extras import require_extra

# Bytes that tell the encoding of a text. Fewer for a stream, which may be slow.
_FILE_TEXT_BYTES, _STREAM_TEXT_BYTES = 2**20, 2**16
_BUFFER_BYTES = 2**18
_DETECTION_BYTES = 2**16
_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_BINARY_FORMATS = {
    b"PK\x03\x04": "a ZIP archive or an office document",
    b"\xd0\xcf\x11\xe0": "an old office document",
    b"%PDF": "a PDF",
    b"PAR1": "Parquet",
    b"{\\rtf": "RTF",
}
_FORMAT_OF_CONTENT = {"a PDF": "pdf", "Parquet": "parquet"}
# Exceptions raised by reading damaged or truncated data.
DAMAGED = (EOFError, OSError, UnicodeError, zlib.error, lzma.LZMAError)


class InputError(ValueError):
    """The input cannot be read: it does not exist, is a folder, or is not of the expected format."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class BulkSource(Protocol):
    """What a bulk run needs to know about its input."""

    @property
    def name(self) -> str:
        """Path, or ``-`` for standard input."""

    @property
    def size(self) -> int | None:
        """Size in bytes; None if unknown."""

    @property
    def position(self) -> int:
        """Bytes read so far, out of ``size``."""


class _Peekable(io.RawIOBase):
    """A stream whose beginning can be inspected before it is read."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._head = b""

    def peek(self, num_bytes: int) -> bytes:
        """The first bytes, fewer at the end of the stream or before damaged data."""
        try:
            while len(self._head) < num_bytes and (block := self._stream.read1(num_bytes - len(self._head))):
                self._head += block
        except DAMAGED:
            pass  # raised again when it is read
        return self._head[:num_bytes]

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        target = memoryview(buffer).cast("B")
        block = self._head[: len(target)] or self._stream.read1(len(target))
        self._head = self._head[len(block) :]
        target[: len(block)] = block
        return len(block)


class Source(AbstractContextManager["Source"]):
    """An open input of uncompressed bytes; its first bytes tell the compression, and ``name`` its format."""

    def __init__(self, path: str, *, name: str = "") -> None:
        self.path = path
        self.name = name or path
        self._is_stdin = path == "-"
        try:
            stdin = cast(io.BufferedReader, sys.stdin.buffer)
            self._raw = stdin if self._is_stdin else open(path, "rb")
        except IsADirectoryError as error:
            raise InputError(f"{path}: expected a file, got a folder") from error
        except OSError as error:
            raise InputError(f"{path}: cannot be opened: {error.strerror or error}") from error
        self.size = Path(path).stat().st_size if not self._is_stdin and Path(path).is_file() else None
        head = self._raw.peek(_BUFFER_BYTES)
        self.compression = next((name for magic, name in _COMPRESSIONS.items() if head.startswith(magic)), "plain")
        self._uncompressed = _Peekable(_uncompressed(self._raw, self.compression))
        self.stream = io.BufferedReader(self._uncompressed, _BUFFER_BYTES)
        self.share_read: float | None = None  # set by readers that seek, from 0 to 1

    @property
    def position(self) -> int:
        """Stored bytes read so far, out of ``size``; 0 if that is unknown."""
        if self.size is None:
            return 0
        return self._raw.tell() if self.share_read is None else int(self.share_read * self.size)

    def peek(self, num_bytes: int) -> bytes:
        """The first uncompressed bytes, before anything is read."""
        return self._uncompressed.peek(num_bytes)

    def other_kind(self) -> str:
        """What the first bytes are if not text, such as "a PDF"; empty for text."""
        head = self.peek(4096)
        is_binary = b"\0" in head and not head.startswith(tuple(_BYTE_ORDER_MARKS))
        known = next((name for magic, name in _BINARY_FORMATS.items() if head.startswith(magic)), "")
        return known or ("binary data" if is_binary else "")

    def text_head(self, kind: str) -> bytes:
        """The first bytes of what should be text."""
        head = self.peek(_STREAM_TEXT_BYTES if self.size is None else _FILE_TEXT_BYTES)
        if detected := self.other_kind():
            problem = f"{self.name}: expected {kind}, got {detected}"
            form = _FORMAT_OF_CONTENT.get(detected)
            misnamed = f"rename it to end in .{form}, or use --format {form}"
            raise InputError(problem, hint=misnamed if form else "save files of other formats as PDF, text or CSV")
        return head

    def text(self, encoding: str) -> TextIO:
        """The input as text with its original line ends; undecodable bytes become lone surrogates where possible."""
        errors = "replace" if encoding.startswith(("utf-16", "utf-32")) else "surrogateescape"
        return io.TextIOWrapper(self.stream, encoding, errors, newline="")

    def seekable(self, max_bytes: int) -> BinaryIO:
        """The whole uncompressed input at its beginning, for readers that seek: the file itself or a copy."""
        if self.size is not None and self.compression == "plain":
            self._raw.seek(0)
            return self._raw
        unpacked = cast(BinaryIO, tempfile.TemporaryFile())
        copy(self.stream, unpacked, max_bytes, self.name)
        unpacked.seek(0)
        return unpacked

    def __exit__(self, *exc_info: object) -> None:
        if not self._is_stdin:
            self._raw.close()


def copy(stream: BinaryIO, target: BinaryIO, max_bytes: int, name: str) -> int:
    """Copies a stream and returns its length; InputError if it is longer than ``max_bytes``."""
    num_bytes = 0
    while block := stream.read(_BUFFER_BYTES):
        num_bytes += len(block)
        if num_bytes > max_bytes:
            raise InputError(f"{name}: unpacks to more than the limit, {max_bytes:,} bytes left")
        target.write(block)
    target.flush()
    return num_bytes


def _uncompressed(stored: BinaryIO, compression: str) -> Any:
    if compression == "gzip":
        return gzip.GzipFile(fileobj=stored)
    if compression == "xz":
        return lzma.LZMAFile(stored)
    if compression == "zstd":
        require_extra("parquet", "pyarrow")
        import pyarrow

        return pyarrow.CompressedInputStream(pyarrow.PythonFile(stored, mode="r"), "zstd")
    return stored


def detect_encoding(name: str, head: bytes, asked: str, note: Callable[[str], None]) -> str:
    """The encoding of a text with the first bytes ``head``: the one ``asked`` for, else detected and noted."""
    if asked:
        try:
            encoding = codecs.lookup(asked).name
        except LookupError:
            message = f"--encoding: unknown encoding {asked!r}, expected utf-8, cp1252, latin-1, ..."
            raise InputError(message) from None
        return "utf-8-sig" if encoding == "utf-8" else encoding
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if head.startswith(mark):
            return encoding
    lines = head.split(b"\n")
    invalid = [line for line in lines[:-1] or lines if not _is_utf8(line)]
    if len(invalid) <= sum(not line.isascii() and _is_utf8(line) for line in lines):
        return "utf-8"  # a UTF-8 file, perhaps with broken rows, which are rejected one by one
    try:
        require_extra("files", "charset_normalizer")
    except ImportError as error:
        raise InputError(f"{name}: is not UTF-8: use --encoding, or install encoding detection: {error}") from error
    from charset_normalizer import from_bytes

    matches = list(from_bytes(b"\n".join(invalid)[:_DETECTION_BYTES]))
    # Among encodings that decode the lines equally well, the most common one.
    equal = [match for match in matches if match.chaos <= matches[0].chaos]
    names = [name for match in equal for name in (match.encoding, *match.could_be_from_charset)]
    encoding = next((common for common in ("cp1252", "latin_1") if common in names), [*names, "cp1252"][0])
    note(f"{name}: is not UTF-8, read as {encoding} (--encoding overrides this)")
    return encoding


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:  # the end of a long line may be cut within a character
        return error.reason == "unexpected end of data" and len(line) >= _STREAM_TEXT_BYTES
    return True
