"""The formats that can be read, known by a file's name or its first bytes, and the files that arguments name."""

import codecs
import glob
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Literal, get_args

from facets_client.core.extras import require_extra
from facets_client.load.pages import read_docx, read_html, read_markdown, read_pdf, read_text
from facets_client.load.records import ReadOptions, Rows, read_objects
from facets_client.load.source import InputError, RecordSource
from facets_client.load.tables import read_arrow, read_csv, read_json, read_parquet, read_tsv

FormatName = Literal["jsonl", "json", "csv", "tsv", "parquet", "arrow", "text", "markdown", "html", "docx", "pdf"]
# Names of texts that have no suffix, in lower case.
_NAMES = frozenset(
    "authors changelog changes citation code_of_conduct contributing contributors copying copyright credits history"
    " install licence license maintainers news notice patents readme security thanks todo version".split()
)
_COMPRESSED = (".gz", ".xz", ".zst")


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """One format.

    Attributes:
        name: As people say it.
        suffixes: Of file names, in lower case.
        read: Rows of an opened input.
        holds: A table, whose columns the owner named; pages of one document; or one text.
        jumps: Is read from several places, so that reading it again from its beginning costs nothing.
        typed: Values are strings, whose types are to be found out.
        needs: The extra of the client that brings its reader, and the reader's modules; empty: it is always there.
    """

    name: FormatName
    suffixes: tuple[str, ...]
    read: Callable[[RecordSource, ReadOptions], Rows]
    holds: Literal["table", "pages", "text"] = "table"
    jumps: bool = False
    typed: bool = True
    needs: tuple[str, ...] = ()

    def require_reader(self) -> None:
        """Raises ImportError: What reads it is not installed."""
        if self.needs:
            require_extra(*self.needs)


def _read_jsonl(source: RecordSource, options: ReadOptions) -> Rows:
    return read_objects(source, max_line_bytes=options.max_row_bytes)


_ARROW, _XML, _MARKS, _PDF = (
    ("parquet", "pyarrow"),
    ("files", "lxml"),
    ("files", "markdown_it", "lxml"),
    ("files", "pypdf"),
)
FORMATS: dict[str, Format] = {
    found.name: found
    for found in (
        Format(name="jsonl", suffixes=(".jsonl", ".ndjson", ".jl"), read=_read_jsonl),
        Format(name="json", suffixes=(".json",), read=read_json),
        Format(name="csv", suffixes=(".csv",), read=read_csv, typed=False),
        Format(name="tsv", suffixes=(".tsv", ".tab"), read=read_tsv, typed=False),
        Format(name="parquet", suffixes=(".parquet", ".pq"), read=read_parquet, jumps=True, needs=_ARROW),
        Format(name="arrow", suffixes=(".arrow", ".feather", ".ipc"), read=read_arrow, jumps=True, needs=_ARROW),
        Format(name="text", suffixes=(".txt", ".text", ".rst", ".rest"), read=read_text, holds="text"),
        Format(name="markdown", suffixes=(".md", ".markdown"), read=read_markdown, holds="text", needs=_MARKS),
        Format(name="html", suffixes=(".html", ".htm", ".xhtml"), read=read_html, holds="text", needs=_XML),
        Format(name="docx", suffixes=(".docx", ".docm"), read=read_docx, holds="text", jumps=True, needs=_XML),
        Format(name="pdf", suffixes=(".pdf",), read=read_pdf, holds="pages", jumps=True, needs=_PDF),
    )
}
assert set(FORMATS) == set(get_args(FormatName))
_BY_SUFFIX = {suffix: found for found in FORMATS.values() for suffix in found.suffixes}
# First bytes, white space aside.
_BY_HEAD = {b"{": "jsonl", b"[": "json", b"%PDF": "pdf", b"PAR1": "parquet", b"ARROW1": "arrow", b"<": "html"}


def suffixes() -> str:
    """All suffixes in one line."""
    return " ".join(_BY_SUFFIX)


def format_of_name(name: str) -> Format | None:
    """What a file's name says, a suffix of compression aside; None when it says nothing."""
    path = PurePath(name.lower())
    if path.suffix in _COMPRESSED:
        path = path.with_suffix("")
    if not path.suffix and path.name.partition("-")[0].partition(".")[0] in _NAMES:  # LICENSE, LICENSE-MIT
        return FORMATS["text"]
    return _BY_SUFFIX.get(path.suffix)


def format_of(source: RecordSource, asked: FormatName | None) -> Format:
    """The format of an opened input at its beginning, found out where nobody says it.

    Raises:
        InputError: Neither name nor content say what it is.
    """
    if asked is not None:
        return FORMATS[asked]
    named = format_of_name(source.name)
    if named is not None:
        return named
    head = source.head(4_096).removeprefix(b"\xef\xbb\xbf").lstrip()
    for magic, name in _BY_HEAD.items():
        if head.startswith(magic):
            return FORMATS[name]
    if not head:
        raise InputError(f"{'standard input' if source.name == '-' else source.name}: is empty")
    if source.name != "-" and _is_text(head):
        return FORMATS["text"]
    what = "standard input" if source.name == "-" else source.name
    raise InputError(
        f"{what}: cannot tell its format: say --format, one of {', '.join(FORMATS)}",
        hint="save sheets and slides as CSV, text, HTML or PDF",
    )


def _is_text(head: bytes) -> bool:
    """Whether the beginning of a file is text in UTF-8; a character may be cut at its end."""
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(head)
    return "\ufffd" not in text and not any(character < " " and character not in "\t\n\r\f" for character in text)


_REJECTED = ".rejected.jsonl"  # written by an earlier run


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file to read.

    Attributes:
        path: Where it is; ``-`` is standard input.
        label: What its documents are called by: the name, below a folder the path in it.
    """

    path: str
    label: str


def find_files(
    names: Sequence[str], asked: FormatName | None, tell: Callable[[str], None] = lambda sentence: None
) -> list[InputFile]:
    """The files that arguments name, each once: of folders those with a known suffix, in the order of their names.

    Args:
        names: Files, folders, patterns (``data/**/*.csv``), or ``-``.
        asked: Format of all files; then every file of a folder is one.
        tell: Called with what is passed over.

    Raises:
        InputError: There is no such file, a pattern or a folder has none, or standard input is not alone.
    """
    if "-" in names and len(names) > 1:
        raise InputError("- (standard input) must be the only input")
    found: dict[str, InputFile] = {}
    for name in names:
        for file in _of_argument(name, asked, tell):
            found.setdefault(file.path if file.path == "-" else os.path.realpath(file.path), file)
    return _told_apart(list(found.values()))


def _of_argument(name: str, asked: FormatName | None, tell: Callable[[str], None]) -> Iterator[InputFile]:
    if name != "-" and os.path.isdir(name):
        yield from _of_folder(name, asked, tell)
    elif name != "-" and not os.path.lexists(name) and glob.has_magic(name):
        matches = sorted(glob.glob(name, recursive=True))
        if not matches:
            raise InputError(f"{name}: no file matches this pattern")
        for match in matches:
            yield from _of_argument(match, asked, tell)
    elif name != "-" and not os.path.exists(name):
        raise InputError(f"{name}: cannot be opened: No such file or directory")
    else:
        yield InputFile(name, "stdin" if name == "-" else os.path.basename(name))


def _of_folder(name: str, asked: FormatName | None, tell: Callable[[str], None]) -> Iterator[InputFile]:
    """Files below a folder, hidden ones aside."""
    passed_over: Counter[str] = Counter()
    num_found = 0
    for folder, folders, files in os.walk(name):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for file in sorted(each for each in files if not each.startswith(".") and not each.endswith(_REJECTED)):
            path = os.path.join(folder, file)
            if asked is None and format_of_name(file) is None:
                passed_over[os.path.splitext(file)[1].lower() or "no suffix"] += 1
                continue
            num_found += 1
            yield InputFile(path, Path(path).relative_to(name).as_posix())
    kinds = ", ".join(f"{kind} ({number})" for kind, number in passed_over.most_common(8))
    if not num_found:
        there = f"it has {kinds}" if kinds else "it is empty"
        raise InputError(f"{name}: nothing to read in this folder: {there}", hint=f"read are {suffixes()}")
    if kinds:
        number = sum(passed_over.values())
        tell(f"{name}: passed over {number} {'file' if number == 1 else 'files'} of other formats: {kinds}")


def _told_apart(files: list[InputFile]) -> list[InputFile]:
    """Files with one label get the path from the folder that they have in common."""
    labels = Counter(file.label for file in files)
    same = [os.path.abspath(file.path) for file in files if labels[file.label] > 1]
    if not same:
        return files
    common = os.path.commonpath([os.path.dirname(path) for path in same])
    return [
        InputFile(file.path, Path(os.path.abspath(file.path)).relative_to(common).as_posix())
        if labels[file.label] > 1
        else file
        for file in files
    ]
