"""File formats, detected from a file's name or its first bytes, and the files that the arguments name."""

import glob
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import Literal
from zipfile import ZipFile

from facets_client.core.extras import require_extra
from facets_client.load.calendars import read_calendar, read_contacts
from facets_client.load.chats import is_slack_export, read_subtitles, read_text, slack_conversations
from facets_client.load.json_rows import read_json, read_jsonl
from facets_client.load.mail import read_eml, read_mbox, read_msg
from facets_client.load.office import read_docx, read_epub, read_opendocument, read_pptx, read_sheets
from facets_client.load.pages import read_html, read_markdown, read_rst
from facets_client.load.pdf import read_pdf
from facets_client.load.rows import FormatName, Items, Member, ReadOptions
from facets_client.load.source import InputError, Source
from facets_client.load.tables import read_csv, read_parquet

# Names of text files without a suffix, in lower case.
_TEXT_FILE_NAMES = frozenset(
    "authors changelog changes citation code_of_conduct contributing contributors copying copyright credits history"
    " install licence license maintainers news notice patents readme security thanks todo version".split()
)
_COMPRESSED_SUFFIXES = (".gz", ".xz", ".zst")
_HIDDEN = (".", "~$")  # the second: locks that Office keeps beside open files
_REJECTED_SUFFIX = ".rejected.jsonl"  # written by an earlier run


@dataclass(frozen=True, slots=True)
class Format:
    """A file format."""

    name: FormatName
    suffixes: tuple[str, ...]
    read: Callable[[Source, ReadOptions], Items]
    holds: Literal["table", "pages", "text", "files"] = "table"
    has_types: bool = True  # otherwise all values are strings
    needs: tuple[str, ...] = ()  # extra of the reader, and its modules

    def require_reader(self) -> None:
        """Raises ImportError if the reader is not installed."""
        if self.needs:
            require_extra(*self.needs)


def read_zip(source: Source, options: ReadOptions) -> Items:
    """The files of an archive in the order of their names, without hidden ones; an export of Slack by conversation."""
    with ZipFile(source.seekable(options.unpacked_bytes)) as archive:
        names = sorted(info.filename for info in archive.infolist() if not info.is_dir())
        if len(names) > options.num_members:
            raise InputError(f"{source.name}: has {len(names):,} files, the limit is {options.num_members:,}")
        if is_slack_export(names):
            yield from slack_conversations(names, archive.read)
            return
        skipped: Counter[str] = Counter()
        for number, name in enumerate(names, start=1):
            path = PurePosixPath(name)
            if any(part.startswith((*_HIDDEN, "__MACOSX")) for part in path.parts if part != ".."):
                continue
            if format_of_name(name) is None:
                skipped[path.suffix.lower() or "no suffix"] += 1
            else:
                yield Member(name, partial(archive.open, name))  # type: ignore[arg-type]
            source.share_read = number / len(names)
        if skipped:
            options.note(f"{source.name}: skipped files of other formats: {kinds_of(skipped)}")


def kinds_of(skipped: Counter[str]) -> str:
    """The suffixes of skipped files, for a note."""
    return ", ".join(f"{kind} ({number})" for kind, number in skipped.most_common(8))


def read_slack_folder(source: Source, options: ReadOptions) -> Items:
    """The conversations of an export of Slack, whose file of users is the source."""
    path = Path(source.path).parent
    names = sorted(file.relative_to(path).as_posix() for file in path.rglob("*.json"))
    return slack_conversations(names, lambda name: (path / name).read_bytes())


_HTML, _MAIL = ("files", "lxml"), ("files", "lxml", "mailparser_reply")
FORMATS: dict[str, Format] = {
    form.name: form
    for form in (
        Format("jsonl", (".jsonl", ".ndjson", ".jl"), read_jsonl),
        Format("json", (".json",), read_json),
        Format("csv", (".csv",), read_csv, has_types=False),
        Format("tsv", (".tsv", ".tab"), partial(read_csv, kind="TSV", delimiter="\t"), has_types=False),
        Format("parquet", (".parquet", ".pq"), read_parquet, needs=("parquet", "pyarrow")),
        Format("sheets", (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), read_sheets, needs=("files", "python_calamine")),
        Format("text", (".txt", ".text"), read_text, "text"),
        Format("rst", (".rst", ".rest"), read_rst, "text"),
        Format("markdown", (".md", ".markdown"), read_markdown, "text", needs=("files", "markdown_it", "lxml")),
        Format("html", (".html", ".htm", ".xhtml"), read_html, "text", needs=_HTML),
        Format("subtitles", (".srt", ".vtt"), read_subtitles, "text"),
        Format("docx", (".docx", ".docm"), read_docx, "text", needs=("files", "mammoth", "lxml")),
        Format("opendocument", (".odt", ".odp"), read_opendocument, "text", needs=_HTML),
        Format("pptx", (".pptx", ".pptm"), read_pptx, "pages", needs=("files", "pptx")),
        Format("pdf", (".pdf",), read_pdf, "pages", needs=("files", "pypdfium2")),
        Format("epub", (".epub",), read_epub, "pages", needs=_HTML),
        Format("eml", (".eml",), read_eml, "files", needs=_MAIL),
        Format("mbox", (".mbox",), read_mbox, "files", needs=_MAIL),
        Format("msg", (".msg",), read_msg, "files", needs=(*_MAIL, "oxmsg")),
        Format("calendar", (".ics",), read_calendar, "pages"),
        Format("contacts", (".vcf",), read_contacts, "pages"),
        Format("zip", (".zip",), read_zip, "files"),
        Format("slack", (".slack",), read_slack_folder, "files"),
    )
}
_BY_SUFFIX = {suffix: form for form in FORMATS.values() for suffix in form.suffixes}
# First bytes, ignoring white space.
_BY_HEAD = {b"{\\rtf": "text", b"{": "jsonl", b"[": "json", b"%PDF": "pdf", b"PAR1": "parquet", b"<": "html"}


def format_of_name(name: str) -> Format | None:
    """The format by a file's name, ignoring a compression suffix; None if the name does not tell."""
    path = PurePath(name.lower())
    if path.suffix in _COMPRESSED_SUFFIXES:
        path = path.with_suffix("")
    if not path.suffix and path.name.partition("-")[0].partition(".")[0] in _TEXT_FILE_NAMES:  # LICENSE, LICENSE-MIT
        return FORMATS["text"]
    return _BY_SUFFIX.get(path.suffix)


def format_of(source: Source, options: ReadOptions) -> Format:
    """The format of an open input; detected unless given."""
    form = FORMATS[options.format] if options.format else format_of_name(source.name)
    if form is not None:
        return form
    head = source.peek(4_096).removeprefix(b"\xef\xbb\xbf").lstrip()
    for magic, name in _BY_HEAD.items():
        if head.startswith(magic):
            return FORMATS[name]
    if not head:
        raise InputError(f"{source.name}: the file is empty")
    if source.name in ("-", "stdin"):
        raise InputError(f"standard input: unknown format: use --format with one of {', '.join(FORMATS)}")
    return FORMATS["text"]  # its reader rejects binary data


_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def safe_label(name: str) -> str:
    """A name with line breaks, other control characters and marks of direction escaped."""
    return _UNSAFE.sub(lambda match: ascii(match[0])[1:-1], name)


@dataclass(frozen=True)
class InputFile:
    """A file to read; the list of users stands for an export of Slack."""

    path: str  # ``-`` is standard input
    label: str  # name, or path within the given folder; ids of its documents begin with it. Its suffix is the format's

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", safe_label(self.label))


def find_files(names: Sequence[str], options: ReadOptions) -> list[InputFile]:
    """The files that the arguments name, each once; in folders, those with a known suffix unless a format is set."""
    if "-" in names:
        if len(names) > 1:
            raise InputError("- (standard input) must be the only input")
        return [InputFile("-", "stdin")]
    files: dict[str, InputFile] = {}
    for name in names:
        is_pattern = glob.has_magic(name) and not os.path.lexists(name)
        matches = sorted(glob.glob(name, recursive=True)) if is_pattern else [name]
        if not matches:
            raise InputError(f"{name}: no file matches this pattern")
        for match in matches:
            if not os.path.exists(match):
                raise InputError(f"{match}: cannot be opened: No such file or directory")
            single = [InputFile(match, os.path.basename(match))]
            for file in _files_of_folder(match, options) if os.path.isdir(match) else single:
                files.setdefault(os.path.realpath(file.path), file)
    if not files:
        raise InputError("no file is given, expected at least one")
    return _with_unique_labels(list(files.values()))


def _files_of_folder(name: str, options: ReadOptions) -> list[InputFile]:
    root = os.path.realpath(name)
    skipped: Counter[str] = Counter()
    found: list[InputFile] = []

    def keep_unreadable(error: OSError) -> None:
        """Keeps the folder as a file, which is then rejected: skipping it would look as if all was read."""
        found.append(InputFile(error.filename, Path(error.filename).relative_to(name).as_posix()))

    for folder, subfolders, files in os.walk(name, onerror=keep_unreadable):
        if is_slack_export(files):
            label = Path(os.path.abspath(folder)).relative_to(os.path.abspath(os.path.join(name, os.pardir)))
            found.append(InputFile(os.path.join(folder, "users.json"), f"{label.as_posix()}.slack"))
            subfolders.clear()
            continue
        subfolders[:] = sorted(subfolder for subfolder in subfolders if not subfolder.startswith("."))
        skipped["links"] += sum(os.path.islink(os.path.join(folder, subfolder)) for subfolder in subfolders)
        for file in sorted(one for one in files if not one.startswith(_HIDDEN) and not one.endswith(_REJECTED_SUFFIX)):
            path = os.path.join(folder, file)
            if not (os.path.exists(path) and Path(os.path.realpath(path)).is_relative_to(root)):
                skipped["links"] += 1  # they lead out of the folder, or nowhere
            elif not os.path.isfile(path):
                skipped["pipes and sockets"] += 1  # opening a pipe would wait for a writer
            elif options.format is None and format_of_name(file) is None:
                skipped[os.path.splitext(file)[1].lower() or "no suffix"] += 1
            else:
                found.append(InputFile(path, Path(path).relative_to(name).as_posix()))
    kinds = kinds_of(+skipped)
    text = "to read text among them, name the files or a pattern, such as '*.log'"
    if not found:
        message = f"{name}: no readable file in this folder: {f'it has {kinds}' if kinds else 'it is empty'}"
        raise InputError(message, hint=f"readable suffixes: {' '.join(_BY_SUFFIX)}; {text}")
    if kinds:
        options.note(f"{name}: skipped: {kinds}; {text}")
    return found


def _with_unique_labels(files: list[InputFile]) -> list[InputFile]:
    counts = Counter(file.label for file in files)
    same = [os.path.dirname(os.path.abspath(file.path)) for file in files if counts[file.label] > 1]
    common = os.path.commonpath(same) if same else ""
    return [
        file if counts[file.label] == 1 else InputFile(file.path, Path(os.path.relpath(file.path, common)).as_posix())
        for file in files
    ]
