"""The files that arguments name: files, patterns, folders, standard input."""

import glob
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from facets_client.core.source import InputError
from facets_client.documents.readers.formats import FormatName, format_of_name, suffixes

__all__ = ["InputFile", "find_files"]

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
        tell(f"{name}: passed over {sum(passed_over.values())} files of other formats: {kinds}")


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
