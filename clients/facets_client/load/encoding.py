"""Which encoding a file has, and its bytes as UTF-8."""

import codecs
import io
from collections.abc import Sequence
from typing import BinaryIO, cast

from facets_client.core.extras import require_extra
from facets_client.load.records import ReadOptions
from facets_client.load.source import InputError, RecordSource

HEAD_BYTES = 2**20  # of a file, looked at for its encoding
_STREAM_HEAD_BYTES = 2**16  # of standard input: waited for before anything else happens
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
    head = source.head(_STREAM_HEAD_BYTES if source.size is None else HEAD_BYTES)
    known = next((name for magic, name in _BINARY.items() if head.startswith(magic)), "")
    marked = any(head.startswith(mark) for mark in _MARKS)
    if known or (b"\0" in head[:4096] and not marked):
        raise InputError(f"{source.name}: expected {kind}, got {known or 'binary data'}")
    return head


def as_utf8(source: RecordSource, head: bytes, options: ReadOptions) -> BinaryIO | RecordSource:
    """The input as UTF-8 without a byte order mark; bytes that its encoding lacks stay, and make their row invalid.

    Raises:
        InputError: There is no such encoding, or it cannot be found out.
    """
    encoding = _checked(options.encoding) if options.encoding else _encoding_of(source, head, options)
    if encoding == "utf-8":
        return source
    return cast(BinaryIO, io.BufferedReader(_Transcoded(source, encoding), 1 << 18))


def _checked(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        raise InputError(f"--encoding: there is no {encoding!r}, expected utf-8, cp1252, latin-1, ...") from None


def _encoding_of(source: RecordSource, head: bytes, options: ReadOptions) -> str:
    for mark, encoding in _MARKS.items():
        if head.startswith(mark):
            return encoding
    lines = head.split(b"\n")
    invalid = [line for line in lines[:-1] or lines if not _is_utf8(line)]
    num_longer = sum(not line.isascii() and _is_utf8(line) for line in lines)
    if not invalid or num_longer >= len(invalid):
        return "utf-8"  # broken rows of a file that is UTF-8 are told one by one
    found = _guess(source.name, invalid)
    options.tell(f"{source.name}: is not UTF-8, read as {found} (--encoding says otherwise)")
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


class _Transcoded(io.RawIOBase):
    """Another encoding as UTF-8; what cannot be decoded comes out as the bytes it was."""

    def __init__(self, source: RecordSource, encoding: str) -> None:
        self._source = source
        # Escaped bytes need an encoding in which a byte below 128 is a character.
        errors = "replace" if encoding.startswith(("utf-16", "utf-32")) else "surrogateescape"
        self._decoder = codecs.getincrementaldecoder(encoding)(errors)
        self._ready = b""
        self._is_done = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        target = memoryview(cast(bytearray, buffer)).cast("B")
        while not self._ready and not self._is_done:
            block = self._source.read(1 << 16)
            self._is_done = not block
            try:
                text = self._decoder.decode(block, final=self._is_done)
            except UnicodeDecodeError as error:  # a decoder that knows no escaping
                raise EOFError(str(error)) from error
            self._ready = text.encode("utf-8", "surrogateescape")
        count = min(len(target), len(self._ready))
        target[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count
