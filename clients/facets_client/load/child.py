"""Reads files in a child process with limits on its time and memory: a hostile file ends the child, not the program.

The child is a fresh interpreter that reads one file after another. A request is a line of JSON, the first one in its
arguments, the others on lines of its standard input; replies are lines of JSON on its standard output, as fast as the
parent takes them.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path, PurePath
from typing import BinaryIO

from facets_client.load.formats import InputFile, format_of, format_of_name, kinds_of, safe_label
from facets_client.load.rows import Member, Part, ReadOptions, Rejection, Row
from facets_client.load.source import InputError, Source, copy

# An empty package saves the imports of the client.
_START = """
import runpy, sys, types
package = sys.modules["facets_client"] = types.ModuleType("facets_client")
package.__path__ = [sys.argv.pop(1)]
runpy.run_module("facets_client.load.child", run_name="__main__")
"""
_PACKAGE = str(Path(__file__).parents[1])
_BUFFER_BYTES = 2**16  # rows of a file are sent together, up to this size
_MAX_REPLY_BYTES = 2**29
_MAX_DEPTH = 4  # maximum, for archives in archives
_MAX_RESTARTS = 10  # of one archive


@dataclass(frozen=True, slots=True)
class Section:
    """A file, a file within it, or one of its tables."""

    name: str
    format: str
    member: int = 0  # number of the file within the file; 0: the file itself


_ITEMS = {kind.__name__: kind for kind in (Section, Row, Rejection)}


class ReaderProcess:
    """The child, which is started when it is needed and again after its end; ``position`` is in bytes of the file."""

    def __init__(self, options: ReadOptions) -> None:
        self.position = 0
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, file: InputFile) -> Iterator[tuple[Section, Row | Rejection]]:
        """The rows of a file, each with its section; InputError or ImportError for a file that cannot be read."""
        num_before, skipped = 0, list[int]()
        while True:
            section, num_rows, num_of_section = Section(file.label, ""), 0, 0
            try:
                for item in self._replies(file, skipped):
                    if isinstance(item, Section):
                        section, num_of_section = item, 0
                        continue
                    num_rows += 1
                    num_of_section += 1
                    if num_rows > num_before:
                        yield section, item
                return
            except (InputError, ImportError) as error:
                is_restarted = isinstance(error, _ChildEndedError) and section.member and len(skipped) < _MAX_RESTARTS
                if not num_rows and not is_restarted:
                    raise
                yield section, Rejection(num_of_section + 1, "damaged_input", str(error))
                if not is_restarted:
                    return
            skipped.append(section.member)
            num_before = num_rows - num_of_section

    def close(self) -> None:
        """Ends the child."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _replies(self, file: InputFile, skipped: Sequence[int]) -> Iterator[Section | Row | Rejection]:
        """Sections and their rows; raises the error that ends them."""
        names = [field.name for field in fields(self._options) if field.name != "note"]
        options = {name: getattr(self._options, name) for name in names}
        process = self._send(json.dumps([options, file.path, file.label, skipped]), file.path == "-")
        name, is_whole = file.label, False
        try:
            assert process.stdout
            while (line := process.stdout.readline(_MAX_REPLY_BYTES)).endswith(b"\n"):
                kind, self.position, *values = json.loads(line)
                if kind in _ITEMS:
                    item = _ITEMS[kind](*values)
                    name = item.name if isinstance(item, Section) else name
                    yield item
                elif kind == "note":
                    self._options.note(*values)
                elif kind == "end":
                    is_whole = True
                    return
                else:
                    is_missing, message, hint = values
                    is_whole = True
                    raise ImportError(message) if is_missing else InputError(message, hint=hint)
            raise _ChildEndedError(f"{name}: {self._why_ended(process)}")
        finally:
            if not is_whole:
                self.close()

    def _send(self, request: str, is_stdin: bool) -> "subprocess.Popen[bytes]":
        """Sends a request to the child, or starts one with it, which reads the standard input of this process."""
        if self._process is not None and not is_stdin and self._process.poll() is None:
            assert self._process.stdin
            self._process.stdin.write(request.encode("ascii") + b"\n")
            self._process.stdin.flush()
            return self._process
        self.close()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, _PACKAGE, request],
            stdin=None if is_stdin else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # Ctrl-C is for the parent
        )
        return self._process

    def _why_ended(self, process: "subprocess.Popen[bytes]") -> str:
        if process.poll() is None:
            process.kill()
        code = process.wait()
        if code == -signal.SIGXCPU:
            return f"takes longer to read than the limit, {self._options.time_s} s"
        cause = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        limit = self._options.memory_bytes >> 20
        return f"its reader ended with {cause}: it is damaged, or needs more than {limit:,} MiB"


class _ChildEndedError(InputError):
    pass


class _Reader:
    """The child's side: reads one file."""

    def __init__(self, replies: BinaryIO, options: ReadOptions, skipped: Sequence[int]) -> None:
        self._replies = replies
        self._options = replace(options, note=lambda sentence: self._send("note", sentence))
        self._skipped = skipped
        self._num_members = 0
        self._passed_over: Counter[str] = Counter()  # suffixes of members that are no text
        self._bytes_left = options.unpacked_bytes
        self._position = 0

    def read(self, path: str, name: str) -> None:
        try:
            before = _size_and_time(path, name)
            self._read_file(path, name, self._options, 0)
            if before != _size_and_time(path, name):
                self._send_item(Rejection(1, "changed", f"{name}: changed while it was read: read it again"))
            if self._passed_over:
                self._send("note", f"{name}: skipped files of other formats: {kinds_of(self._passed_over)}")
            self._send("end")
        except Exception as error:
            self._send("fault", *self._fault(name, error))
        self._replies.flush()

    def _fault(self, name: str, error: Exception) -> tuple[bool, str, str]:
        if isinstance(error, ImportError | InputError):
            return isinstance(error, ImportError), str(error), getattr(error, "hint", "")
        if isinstance(error, MemoryError):
            limit = self._options.memory_bytes >> 20
            return False, f"{name}: takes more memory to read than the limit, {limit:,} MiB", ""
        if isinstance(error, RuntimeError) and "password" in str(error):  # of zipfile
            return False, f"{name}: requires a password", ""
        what = "it is nested too deeply" if isinstance(error, RecursionError) else str(error).strip().split("\n")[0]
        return False, f"{name}: is damaged or of another format than its name says: {what or type(error).__name__}", ""

    def _read_file(self, path: str, name: str, options: ReadOptions, depth: int) -> None:
        with Source(path, name=name) as source:
            form = format_of(source, options)
            if depth and form.name == "text" and format_of_name(name) is None and source.other_kind():
                self._passed_over[PurePath(name).suffix.lower() or "no suffix"] += 1
                return
            form.require_reader()
            section = Section(name, form.name, self._num_members if depth else 0)
            self._allow_time()
            self._send_item(section)
            if not source.peek(1):
                raise InputError(f"{name}: the file is empty")
            num_items = 0
            for item in form.read(source, options):
                num_items += 1
                if depth == 0:
                    self._position = source.position
                if isinstance(item, Member):
                    self._read_member(item, name, depth + 1)
                    self._send_item(section)
                elif isinstance(item, Part):
                    section = replace(section, name=f"{name}/{safe_label(item.name)}")
                    self._send_item(section)
                else:
                    self._send_item(item)
                    if source.size is None:
                        self._replies.flush()
                    if form.holds == "table":
                        self._allow_time()
            if not num_items:
                lacks = "rows" if form.holds == "table" else "text; pictures of text need OCR first"
                raise InputError(f"{name}: the file has no {lacks}")

    def _read_member(self, member: Member, container: str, depth: int) -> None:
        self._num_members += 1
        name = f"{container}/{safe_label(member.name)}"
        if self._num_members in self._skipped:
            return
        most = self._options.num_members
        if self._num_members > most or depth > _MAX_DEPTH:
            limit = f"{_MAX_DEPTH} levels" if depth > _MAX_DEPTH else f"{most:,} files"
            raise InputError(f"{container}: has more than {limit}")
        try:
            with tempfile.NamedTemporaryFile() as file:
                with member.open() as stream:
                    self._bytes_left -= copy(stream, file, self._bytes_left, name)  # type: ignore[arg-type]
                self._read_file(file.name, name, replace(self._options, format=None), depth)
        except Exception as error:
            self._send_item(Rejection(1, "unreadable_file", self._fault(name, error)[1]))

    def _allow_time(self) -> None:
        limit = int(time.process_time()) + 1 + self._options.time_s
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))

    def _send_item(self, item: Section | Row | Rejection) -> None:
        try:
            self._send(type(item).__name__, *(getattr(item, name) for name in item.__slots__))
        except RecursionError:
            assert isinstance(item, Row)
            self._send("Rejection", item.line, "invalid_json", "JSON is nested too deeply")
        if isinstance(item, Section):
            self._replies.flush()  # the parent knows which file ends the child

    def _send(self, kind: str, *values: object) -> None:
        reply = _encode((kind, self._position, *values))
        self._replies.write(reply.encode("utf-8", "surrogatepass") + b"\n")


def _size_and_time(path: str, name: str) -> tuple[int, int] | None:
    if path == "-":
        return None
    try:
        state = os.stat(path)
    except FileNotFoundError as error:
        raise InputError(f"{name}: is no longer there") from error
    return state.st_size, state.st_mtime_ns


_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


def main(request: str) -> None:
    """Answers a request, and those on standard input until it is closed."""
    replies = os.fdopen(os.dup(1), "wb", _BUFFER_BYTES)
    os.dup2(2, 1)  # libraries may print
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while request:
        given, path, name, skipped = json.loads(request)
        options = ReadOptions(**given)
        resource.setrlimit(resource.RLIMIT_DATA, (options.memory_bytes, options.memory_bytes))
        _Reader(replies, options, skipped).read(path, name)
        request = "" if path == "-" else sys.stdin.readline()


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except BrokenPipeError:
        os._exit(0)
