"""An opened input: plain, gzip, xz, zstd, or standard input, as bytes or UTF-8, in one pass and in bounded memory."""

import codecs
import gzip
import hashlib
import io
import lzma
import sys
import tempfile
import zlib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from facets_client.core.extras import require_extra

# Waited for before anything else happens: short for a pipe that may be slow.
_FILE_HEAD_BYTES = 65_536
_STREAM_HEAD_BYTES = 4_096
_MAGIC = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_SPOOL_BYTES = 16 * 2**20  # more of an input that must be read from several places goes to a temporary file
_MAX_SPOOLED_BYTES = 4 * 2**30  # of which it takes no more
# A few bytes may unpack to gigabytes, and ask for as much memory to do so.
_MAX_HEAD_BYTES = 16 * 2**20
_MAX_XZ_MEMORY_BYTES = 128 * 2**20  # xz -9 needs 65 MiB
# What zlib and lzma raise for damaged or cut-off data, beside their own classes.
DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError)


class InputError(ValueError):
    """The input cannot be read at all: no such file, a folder, no permission.

    Attributes:
        hint: What to do about it; empty when the sentence says so.
    """

    def __init__(self, sentence: str, *, hint: str = "") -> None:
        super().__init__(sentence)
        self.hint = hint


class BulkSource(Protocol):
    """What a long run knows of its input."""

    @property
    def name(self) -> str:
        """Path, or ``-`` for standard input."""

    @property
    def size(self) -> int | None:
        """Bytes; None when nobody knows."""

    @property
    def head_digest(self) -> str:
        """Differs where inputs differ."""

    @property
    def raw_position(self) -> int:
        """Bytes of it that are done, as far as anybody knows."""


class RecordSource:
    """An opened input: raw bytes behind it, uncompressed lines in front.

    The compression is known by the first bytes, not by the name, so that ``zcat`` and ``cat`` both work.

    Attributes:
        name: Path, or ``-`` for standard input.
        size: Size of the file in bytes; None for a stream whose end nobody knows.
        head_digest: SHA-256 of the first bytes (as stored, compressed or not; 64 KiB of a file, 4 KiB of
            a stream): differs where inputs differ.
    """

    def __init__(self, name: str, stdin: BinaryIO | None = None) -> None:
        self.name = name
        self._raw, self.size = _open_raw(name, stdin)
        self._spooled: BinaryIO | None = None
        self._head = _read_up_to(self._raw, _STREAM_HEAD_BYTES if self.size is None else _FILE_HEAD_BYTES)
        head = self._head
        self.head_digest = hashlib.sha256(head).hexdigest()
        self._rest = _Rejoined(head, self._raw)
        self._stored = buffered = io.BufferedReader(self._rest, 1 << 18)
        self._marked: int | None = None
        self.compression = _compression_of(head)
        self._lines: BinaryIO
        if self.compression == "gzip":
            self._lines = cast(BinaryIO, gzip.GzipFile(fileobj=buffered))
        elif self.compression == "xz":
            self._lines = cast(BinaryIO, io.BufferedReader(_Xz(buffered), 1 << 18))
        elif self.compression == "zstd":
            self._lines = cast(BinaryIO, io.BufferedReader(_Zstd(buffered), 1 << 18))
        else:
            self._lines = buffered

    @property
    def raw_position(self) -> int:
        """Bytes of the stored input that are done, without what waits in a buffer: against ``size``, the progress."""
        return self._stored.tell() if self._marked is None else self._marked

    def mark_read(self, share: float) -> None:
        """Says how much of a seekable input is done, from 0 to 1: it is not read from its beginning to its end."""
        self._marked = int(share * (self.size or 0))

    def head(self, num_bytes: int) -> bytes:
        """The beginning, uncompressed, without moving forward; before the first line is read.

        Args:
            num_bytes: Of the stored input; fewer where it ends, or where it unpacks to more than 16 MiB.

        Raises:
            InputError: Nothing of it can be unpacked.
        """
        if len(self._head) < num_bytes:
            more = _read_up_to(self._raw, num_bytes - len(self._head))
            self._head += more
            self._rest.append(more)
        opened = RecordSource("-", io.BytesIO(self._head[:num_bytes]))
        pieces: list[bytes] = []
        try:
            left = max(num_bytes, _MAX_HEAD_BYTES)
            while left > 0 and (piece := opened.readline(1 << 16)):  # small pieces: what stands before the cut counts
                pieces.append(piece)
                left -= len(piece)
        except DAMAGED as error:
            if not pieces and not isinstance(error, EOFError):
                raise InputError(f"{self.name}: the {self.compression} data is damaged: {error}") from error
        return b"".join(pieces)

    def seekable(self) -> BinaryIO:
        """The whole uncompressed input, at its beginning, for readers that jump: the file itself, or a copy of it.

        Raises:
            InputError: The data is damaged, or unpacks to more than 4 GiB.
        """
        if self.name != "-" and self.compression == "plain":
            self._raw.seek(0)
            return self._raw
        if self._spooled is None:
            self._spooled = cast(BinaryIO, tempfile.SpooledTemporaryFile(_SPOOL_BYTES))
            try:
                left = _MAX_SPOOLED_BYTES
                while left > 0 and (block := self._lines.read(1 << 18)):
                    left -= self._spooled.write(block)
            except DAMAGED as error:
                raise InputError(f"{self.name}: the {self.compression} data is cut off or damaged: {error}") from error
            if left <= 0:
                raise InputError(f"{self.name}: unpacks to more than {_MAX_SPOOLED_BYTES} bytes: unpack it first")
        self._spooled.seek(0)
        return self._spooled

    def skip(self, num_bytes: int) -> None:
        """Moves ``num_bytes`` of uncompressed data forward; done once, before the first line is read.

        Raises:
            InputError: When the input ends or is damaged before that point.
        """
        if self.size is not None and self.compression == "plain":
            cast(io.BufferedReader, self._lines).detach()  # else its end would close what is behind it
            self._rest.seek_raw(num_bytes)
            self._lines = self._stored = io.BufferedReader(self._rest, 1 << 18)
            return
        left = num_bytes
        while left:
            try:
                block = self._lines.read(min(left, 1 << 20))
            except DAMAGED as error:
                raise InputError(f"{self.name}: damaged before byte {num_bytes}: {error}") from error
            if not block:
                raise InputError(f"{self.name}: ends {left} bytes before byte {num_bytes}, where to resume")
            left -= len(block)

    def readline(self, limit: int) -> bytes:
        """Next piece of a line, at most ``limit`` bytes; empty at the end."""
        return self._lines.readline(limit)

    def read(self, size: int) -> bytes:
        """Next bytes, at most ``size``; empty at the end."""
        return self._lines.read(size)

    def close(self) -> None:
        """Closes the file; standard input stays open."""
        if self._spooled is not None:
            self._spooled.close()
        if self.name != "-":
            self._raw.close()

    def __enter__(self) -> "RecordSource":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class _Blocks(io.RawIOBase):
    """A stream of the blocks that ``_next`` gives."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        target = memoryview(cast(bytearray, buffer)).cast("B")
        block = self._next(len(target))
        target[: len(block)] = block
        return len(block)

    @abstractmethod
    def _next(self, size: int) -> bytes | memoryview:
        """The next bytes, at most ``size``; empty at the end."""


class _Rejoined(_Blocks):
    """The head that was read to know the input, then the rest of it: one stream again."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = memoryview(head)
        self._rest = rest
        self.position = 0

    def _next(self, size: int) -> bytes | memoryview:
        block = self._head[:size] or _read_some(self._rest, size)
        self._head = self._head[size:]
        self.position += len(block)
        return block

    def tell(self) -> int:
        return self.position

    def append(self, more: bytes) -> None:
        """Makes the head longer, before anything of it was read."""
        self._head = memoryview(bytes(self._head) + more)

    def seek_raw(self, position: int) -> None:
        """Goes to a byte of a plain file."""
        self._head = memoryview(b"")
        self._rest.seek(position)
        self.position = position


class _Xz(_Blocks):
    """Uncompressed xz data, one stream or several, as far as they ask for a bounded memory."""

    def __init__(self, stored: BinaryIO) -> None:
        self._stored = stored
        self._stream: lzma.LZMADecompressor | None = None

    def _next(self, size: int) -> bytes:
        block = b""
        while not block:
            stored = b""
            if self._stream is None or self._stream.eof:
                stored = self._between_streams()
                if not stored:
                    break
                self._stream = lzma.LZMADecompressor(memlimit=_MAX_XZ_MEMORY_BYTES)
            elif self._stream.needs_input and not (stored := self._stored.read(1 << 16)):
                raise EOFError("the end is missing")
            try:
                block = self._stream.decompress(stored, size)
            except lzma.LZMAError as error:
                if "limit" in str(error):
                    raise lzma.LZMAError("it asks for more than 128 MiB of memory") from error
                raise
        return block

    def _between_streams(self) -> bytes:
        """The beginning of the next stream, behind padding; empty at the end."""
        stored = self._stream.unused_data if self._stream else b""
        while not stored.lstrip(b"\0"):
            stored = self._stored.read(1 << 16)
            if not stored:
                return b""
        return stored.lstrip(b"\0")


class _Zstd(_Blocks):
    """Uncompressed zstd data."""

    def __init__(self, stored: BinaryIO) -> None:
        require_extra("parquet", "pyarrow")
        import pyarrow

        self._stream = pyarrow.CompressedInputStream(pyarrow.PythonFile(stored, mode="r"), "zstd")

    def _next(self, size: int) -> bytes:
        try:
            return cast(bytes, self._stream.read(size))
        except OSError as error:
            raise EOFError(str(error)) from error


def _open_raw(name: str, stdin: BinaryIO | None) -> tuple[BinaryIO, int | None]:
    if stdin is not None:
        return stdin, None
    if name == "-":
        return sys.stdin.buffer, None
    path = Path(name)
    try:
        if path.is_dir():
            raise InputError(f"{name}: expected a file, got a folder")
        stream = path.open("rb")
    except OSError as error:
        raise InputError(f"{name}: cannot be opened: {error.strerror or error}") from error
    return stream, (path.stat().st_size if path.is_file() else None)


def _read_up_to(stream: BinaryIO, size: int) -> bytes:
    """Reads until ``size`` bytes or the end: a pipe gives less at a time."""
    pieces: list[bytes] = []
    while size > 0 and (block := stream.read(size)):
        pieces.append(block)
        size -= len(block)
    return b"".join(pieces)


def _read_some(stream: BinaryIO, size: int) -> bytes:
    """Reads what is there, so that a slow pipe is not waited for longer than needed."""
    return stream.read1(size) if isinstance(stream, io.BufferedReader) else stream.read(size)


def _compression_of(head: bytes) -> str:
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "plain")


_TEXT_BYTES = 2**20  # of a file, looked at for its encoding
_STREAM_TEXT_BYTES = 2**16  # of standard input: waited for before anything else happens
_SAMPLE_BYTES = 2**16
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_BINARY = {
    b"PK\x03\x04": "a ZIP archive or an office document",
    b"\xd0\xcf\x11\xe0": "an old office document",
    b"%PDF": "a PDF",
    b"PAR1": "Parquet",
    b"ARROW1": "Arrow",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"SQLite format 3": "a database",
}


def check_text_head(source: RecordSource, kind: str) -> bytes:
    """The beginning of what should be text.

    Raises:
        InputError: It is not.
    """
    head = source.head(_STREAM_TEXT_BYTES if source.size is None else _TEXT_BYTES)
    known = next((name for magic, name in _BINARY.items() if head.startswith(magic)), "")
    marked = any(head.startswith(mark) for mark in _MARKS)
    if known or (b"\0" in head[:4096] and not marked):
        raise InputError(f"{source.name}: expected {kind}, got {known or 'binary data'}")
    return head


def as_utf8(
    source: RecordSource, head: bytes, *, encoding: str, tell: Callable[[str], None]
) -> BinaryIO | RecordSource:
    """The input as UTF-8 without a byte order mark; bytes that its encoding lacks stay, and make their row invalid.

    Args:
        source: The input.
        head: Its beginning.
        encoding: What the caller says it is; empty: found out.
        tell: Called with what was found out.

    Raises:
        InputError: There is no such encoding, or it cannot be found out.
    """
    encoding = _checked(encoding) if encoding else _encoding_of(source, head, tell)
    if encoding == "utf-8":
        return source
    return cast(BinaryIO, io.BufferedReader(_Transcoded(source, encoding), 1 << 18))


def _checked(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        raise InputError(f"--encoding: there is no {encoding!r}, expected utf-8, cp1252, latin-1, ...") from None


def _encoding_of(source: RecordSource, head: bytes, tell: Callable[[str], None]) -> str:
    for mark, encoding in _MARKS.items():
        if head.startswith(mark):
            return encoding
    lines = head.split(b"\n")
    invalid = [line for line in lines[:-1] or lines if not _is_utf8(line)]
    num_longer = sum(not line.isascii() and _is_utf8(line) for line in lines)
    if not invalid or num_longer >= len(invalid):
        return "utf-8"  # broken rows of a file that is UTF-8 are told one by one
    found = _guess(source.name, invalid)
    tell(f"{source.name}: is not UTF-8, read as {found} (--encoding says otherwise)")
    return found


def _guess(name: str, lines: Sequence[bytes]) -> str:
    """The likeliest encoding of lines that are not UTF-8."""
    try:
        require_extra("files", "charset_normalizer")
    except ImportError as error:
        raise InputError(f"{name}: is not UTF-8: say --encoding, or install what finds it out: {error}") from error
    from charset_normalizer import from_bytes

    matches = list(from_bytes(b"\n".join(lines)[:_SAMPLE_BYTES]))
    if not matches:
        return "cp1252"
    best = matches[0]
    # Of encodings that read the lines as well as each other, the most common one.
    equal = {match.encoding: None for match in matches if match.chaos <= best.chaos}
    same = {*equal, *(other for match in matches if match.chaos <= best.chaos for other in match.could_be_from_charset)}
    return next((common for common in ("cp1252", "latin_1") if common in same), best.encoding)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class _Transcoded(_Blocks):
    """Another encoding as UTF-8; what cannot be decoded comes out as the bytes it was."""

    def __init__(self, source: RecordSource, encoding: str) -> None:
        self._source = source
        # Escaped bytes need an encoding in which a byte below 128 is a character.
        errors = "replace" if encoding.startswith(("utf-16", "utf-32")) else "surrogateescape"
        self._decoder = codecs.getincrementaldecoder(encoding)(errors)
        self._ready = b""
        self._is_done = False

    def _next(self, size: int) -> bytes:
        while not self._ready and not self._is_done:
            block = self._source.read(1 << 16)
            self._is_done = not block
            try:
                text = self._decoder.decode(block, final=self._is_done)
            except UnicodeDecodeError as error:  # a decoder that knows no escaping
                raise EOFError(str(error)) from error
            self._ready = text.encode("utf-8", "surrogateescape")
        block, self._ready = self._ready[:size], self._ready[size:]
        return block
