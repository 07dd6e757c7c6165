"""Rows of an input, and the records and rejections made from them.

One bad row must not stop a million good ones: a row that cannot be read becomes a ``Rejection`` with its line and its
reason, never an exception.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any, AnyStr, BinaryIO, Generic, Literal, TypeAlias, TypeVar

ItemT = TypeVar("ItemT")
# fmt: off
FormatName = Literal[
    "jsonl", "json", "csv", "tsv", "parquet", "text", "markdown", "rst", "html", "pdf", "docx", "pptx", "sheets",
    "opendocument", "epub", "eml", "mbox", "msg", "subtitles", "calendar", "contacts", "zip", "slack",
]
# fmt: on

# Names of columns that hold a text, in lower case, best first. The playground uses the same ones.
TEXT_NAMES = (
    *("text", "body", "content", "contents", "abstract", "passage", "article", "description", "message", "summary"),
    *("note", "notes", "comment", "comments", "details"),
)
MAX_EXACT_INTEGER = 2**53  # above it, a double cannot represent every integer
MAX_ROW_BYTES = 8 * 2**20  # longer rows are rejected without being held in memory
_MAX_ID_CHARS = 512
_TYPE_NAMES = {dict: "an object", list: "an array", str: "a string", int: "a number", float: "a number"}


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadOptions:
    """How files are read, and what reading one may take. A format or encoding that is not set is detected."""

    format: FormatName | None = None
    encoding: str = ""
    text: tuple[str, ...] = ()  # columns that hold a text: a sheet with one of them is a table of rows
    time_s: int = 120  # processor time of a file, or of the next row of a table
    memory_bytes: int = 2**30  # of the process that reads
    unpacked_bytes: int = 4 * 2**30  # of an archive, and of a compressed file that must be unpacked before reading
    num_members: int = 100_000  # files in an archive
    note: Callable[[str], None] = field(default=lambda sentence: None)  # called with notes for the user


@dataclass(frozen=True, slots=True)
class Row:
    """The fields of one row."""

    fields: dict[str, Any]
    line: int  # 1-based: line of the file, number of the record, or page
    key: str = ""  # ends the document's id instead of the line
    may_have_commas: bool = False  # whether its numbers may have decimal commas


@dataclass(frozen=True, slots=True)
class Part:
    """Announces that the next rows are a table of their own."""

    name: str


@dataclass(frozen=True, slots=True)
class Member:
    """A file within the file, such as one of an archive or an attachment."""

    name: str
    open: Callable[[], BinaryIO]


@dataclass(frozen=True, slots=True)
class Rejection:
    """A record of a file that cannot be used, or a file that cannot be read, and why."""

    line: int  # line of the file, number of the record, or page, from 1; 0: the whole file
    reason: str  # a stable word, e.g. invalid_json
    message: str  # what, expected, got
    id: str = ""
    file: str = ""  # name of the file, or its path within the folder


@dataclass(frozen=True, slots=True)
class Record(Generic[ItemT]):
    """A valid row: its item, and its position in the input."""

    item: ItemT
    id: str
    line: int
    num_bytes: int = 0  # on the wire
    file: str = ""  # as in ``Rejection``

    def rejected(self, reason: str, message: str) -> Rejection:
        """The rejection of this record."""
        return Rejection(self.line, reason, message, self.id[:_MAX_ID_CHARS], self.file)


@dataclass(frozen=True, slots=True)
class FileEnd:
    """Follows the last record of each file."""

    file: str  # as in its records
    is_complete: bool  # no part of the file was damaged or unreadable: what it did not yield, it does not contain


Rows: TypeAlias = Iterator[Row | Rejection]
Items: TypeAlias = Iterator[Row | Rejection | Part | Member]
# Reasons of rejections that stand for an unknown number of records.
LOSSES = frozenset(("changed", "damaged_input", "unreadable_file"))


def type_name(value: object) -> str:
    """The type of a JSON value, for messages."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return _TYPE_NAMES.get(type(value), type(value).__name__)


def read_line(stream: IO[AnyStr]) -> AnyStr:
    """The next line; of one that is too long only the beginning, without a line end."""
    line = rest = stream.readline(MAX_ROW_BYTES + 1)
    while len(line) > MAX_ROW_BYTES and rest and rest[-1:] not in ("\n", b"\n"):
        rest = stream.readline(2**18)
    return line


_UNDECODABLE = re.compile("[\udc80-\udcff]")


def has_undecodable(text: str) -> bool:
    """Whether a text has bytes that are invalid in its encoding."""
    return not text.isascii() and _UNDECODABLE.search(text) is not None
