"""An opened input: plain, gzip, xz, zstd, or standard input, read in one pass and in bounded memory."""

import gzip
import hashlib
import io
import lzma
import sys
import tempfile
import zlib
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
        """Bytes read so far."""


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
        buffered = io.BufferedReader(self._rest, 1 << 18)
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
        """Bytes of the stored input read so far: against ``size``, the progress."""
        return self._rest.position

    def mark_read(self, share: float) -> None:
        """Says how much of a seekable input is done, from 0 to 1: it is not read from its beginning to its end."""
        self._rest.position = int(share * (self.size or 0))

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
            self._lines = io.BufferedReader(self._rest, 1 << 18)
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


class _Rejoined(io.RawIOBase):
    """The head that was read to know the input, then the rest of it: one stream again."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = memoryview(head)
        self._rest = rest
        self.position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        target = memoryview(cast(bytearray, buffer)).cast("B")
        if self._head:
            count = min(len(target), len(self._head))
            target[:count] = self._head[:count]
            self._head = self._head[count:]
        else:
            block = _read_some(self._rest, len(target))
            count = len(block)
            target[:count] = block
        self.position += count
        return count

    def append(self, more: bytes) -> None:
        """Makes the head longer, before anything of it was read."""
        self._head = memoryview(bytes(self._head) + more)

    def seek_raw(self, position: int) -> None:
        """Goes to a byte of a plain file."""
        self._head = memoryview(b"")
        self._rest.seek(position)
        self.position = position


class _Xz(io.RawIOBase):
    """Uncompressed xz data, one stream or several, as far as they ask for a bounded memory."""

    def __init__(self, stored: BinaryIO) -> None:
        self._stored = stored
        self._stream: lzma.LZMADecompressor | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        target = memoryview(cast(bytearray, buffer)).cast("B")
        block = b""
        while not block:
            stored = b""
            if self._stream is None or self._stream.eof:
                stored = self._between_streams()
                if not stored:
                    return 0
                self._stream = lzma.LZMADecompressor(memlimit=_MAX_XZ_MEMORY_BYTES)
            elif self._stream.needs_input and not (stored := self._stored.read(1 << 16)):
                raise EOFError("the end is missing")
            try:
                block = self._stream.decompress(stored, len(target))
            except lzma.LZMAError as error:
                if "limit" in str(error):
                    raise lzma.LZMAError("it asks for more than 128 MiB of memory") from error
                raise
        target[: len(block)] = block
        return len(block)

    def _between_streams(self) -> bytes:
        """The beginning of the next stream, behind padding; empty at the end."""
        stored = self._stream.unused_data if self._stream else b""
        while not stored.lstrip(b"\0"):
            stored = self._stored.read(1 << 16)
            if not stored:
                return b""
        return stored.lstrip(b"\0")


class _Zstd(io.RawIOBase):
    """Uncompressed zstd data."""

    def __init__(self, stored: BinaryIO) -> None:
        require_extra("parquet", "pyarrow")
        import pyarrow

        self._stream = pyarrow.CompressedInputStream(pyarrow.PythonFile(stored, mode="r"), "zstd")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        target = memoryview(cast(bytearray, buffer)).cast("B")
        try:
            block = self._stream.read(len(target))
        except OSError as error:
            raise EOFError(str(error)) from error
        target[: len(block)] = block
        return len(block)


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
