"""Reads files in a child process with limits on its time and memory: a hostile file ends the child, not the program.

The child is a fresh interpreter that reads one file after another. Requests are lines of JSON on its standard input,
replies are lines of JSON on its standard output, as fast as the parent takes them.
"""

import io
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from facets_client.load.formats import InputFile, format_of, safe_label
from facets_client.load.rows import Limits, Member, Part, ReadOptions, Rejection, Row
from facets_client.load.source import InputError, Source, copy

# An empty package saves the imports of the client.
_START = """
import runpy, sys, types
package = sys.modules["facets_client"] = types.ModuleType("facets_client")
package.__path__ = [sys.argv.pop(1)]
runpy.run_module("facets_client.load.child", run_name="__main__")
"""
_PACKAGE = str(Path(__file__).parents[1])
_REPLY_BYTES = 2**16  # rows are sent together up to this size
_MAX_REPLY_BYTES = 2**29
_MAX_DEPTH = 4  # maximum, for archives in archives
_MAX_RESTARTS = 10  # of one archive


@dataclass(frozen=True, slots=True)
class Section:
    """A file, a file within it, or one of its tables."""

    name: str
    format: str
    member: int = 0  # number of the file within the file; 0: the file itself


class ReaderProcess(AbstractContextManager["ReaderProcess"]):
    """The child, which is started when it is needed and again after its end; ``position`` is in bytes of the file."""

    def __init__(self) -> None:
        self.position = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._limits = Limits()

    def read(self, file: InputFile, options: ReadOptions) -> Iterator[tuple[Section, Row | Rejection]]:
        """The rows of a file, each with its section.

        Raises InputError or ImportError for a file that cannot be read at all; a rejection tells that the rest cannot.
        If a file in an archive ends the child, the others are read by the next one.
        """
        num_before, skipped = 0, list[int]()
        while True:
            section, num_rows, num_of_section = Section(file.label, ""), 0, 0
            fault: Exception | None = None
            for item in self._replies(file, options, skipped):
                if isinstance(item, Exception):
                    fault = item
                elif isinstance(item, Section):
                    section, num_of_section = item, 0
                else:
                    num_rows += 1
                    num_of_section += 1
                    if num_rows > num_before:
                        yield section, item
            if fault is None:
                return
            is_restarted = isinstance(fault, _ChildEndedError) and section.member > 0 and len(skipped) < _MAX_RESTARTS
            if not num_rows and not is_restarted:
                raise fault
            yield section, Rejection(num_of_section + 1, "damaged_input", str(fault))
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

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _replies(
        self, file: InputFile, options: ReadOptions, skipped: Sequence[int]
    ) -> Iterator[Section | Row | Rejection | Exception]:
        """Sections, their rows, and at the end an error, if there was one."""
        process: subprocess.Popen[bytes] | None = self._start(file, options.limits)
        request: dict[str, Any] = {name: getattr(options, name) for name in ("format", "encoding", "delimiter", "text")}
        request |= {"limits": asdict(options.limits), "path": file.path, "name": file.label, "skipped": skipped}
        name = file.label
        try:
            assert process and process.stdin and process.stdout
            process.stdin.write(json.dumps(request).encode("ascii") + b"\n")
            process.stdin.flush()
            while True:
                line = process.stdout.readline(_MAX_REPLY_BYTES)
                if not line.endswith(b"\n"):
                    yield _ChildEndedError(f"{name}: {self._why_ended(options.limits)}")
                    return
                kind, *values = json.loads(line)
                if kind == "rows":
                    self.position, rows = values
                    for row in rows:
                        yield Row(*row) if len(row) == 4 else Rejection(*row)
                elif kind == "section":
                    section = Section(*values)
                    name = section.name
                    yield section
                elif kind == "note":
                    options.note(values[0])
                elif kind == "fault":
                    is_missing, message, hint = values
                    yield ImportError(message) if is_missing else InputError(message, hint=hint)
                else:
                    process = None
                    return
        finally:
            if process is not None:
                self.close()

    def _start(self, file: InputFile, limits: Limits) -> "subprocess.Popen[bytes]":
        if file.path == "-" or limits != self._limits or (self._process and self._process.poll() is not None):
            self.close()
        if self._process is None:
            descriptor = _descriptor_of_stdin() if file.path == "-" else -1
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, _PACKAGE, str(limits.memory_bytes), str(descriptor)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=(descriptor,) if descriptor >= 0 else (),
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                start_new_session=True,  # Ctrl-C is for the parent
            )
            if descriptor >= 0:
                os.close(descriptor)
            self._limits = limits
        return self._process

    def _why_ended(self, limits: Limits) -> str:
        assert self._process is not None
        self._process.kill() if self._process.poll() is None else None
        code = self._process.wait()
        if code == -signal.SIGXCPU:
            return f"takes longer to read than the limit, {limits.time_s} s"
        cause = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return f"its reader ended with {cause}: it is damaged, or needs more than {limits.memory_bytes >> 20:,} MiB"


class _ChildEndedError(InputError):
    pass


def _descriptor_of_stdin() -> int:
    """The descriptor of standard input, or of a copy if it has none."""
    try:
        return os.dup(sys.stdin.fileno())
    except io.UnsupportedOperation:
        with tempfile.TemporaryFile() as target:
            copy(sys.stdin.buffer, target, sys.maxsize, "-")
            target.seek(0)
            return os.dup(target.fileno())


class _Reader:
    """The child's side: reads one file."""

    def __init__(self, replies: BinaryIO, options: ReadOptions, skipped: Sequence[int], stdin: BinaryIO | None) -> None:
        self._replies = replies
        self._options = replace(options, note=lambda sentence: self._send("note", sentence))
        self._skipped = skipped
        self._stdin = stdin
        self._rows: list[str] = []
        self._num_bytes = 0
        self._num_members = 0
        self._bytes_left = options.limits.unpacked_bytes
        self._position = 0

    def read(self, path: str, name: str) -> None:
        try:
            before = None if path == "-" else os.stat(path)
            self._read_file(path, name, self._options, 0)
            after = None if path == "-" else os.stat(path)
            if before and after and (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                self._add(Rejection(1, "changed", f"{name}: changed while it was read: read it again"))
            self._flush()
        except Exception as error:
            self._flush()
            self._send("fault", *self._fault(name, error))
        self._send("end")

    def _fault(self, name: str, error: Exception) -> tuple[bool, str, str]:
        if isinstance(error, ImportError | InputError):
            return isinstance(error, ImportError), str(error), getattr(error, "hint", "")
        if isinstance(error, MemoryError):
            limit = self._options.limits.memory_bytes >> 20
            return False, f"{name}: takes more memory to read than the limit, {limit:,} MiB", ""
        what = "it is nested too deeply" if isinstance(error, RecursionError) else str(error).strip().split("\n")[0]
        return False, f"{name}: is damaged or of another format than its name says: {what or type(error).__name__}", ""

    def _read_file(self, path: str, name: str, options: ReadOptions, depth: int) -> None:
        with Source(path, self._stdin, name=name) as source:
            form = format_of(source, options)
            form.require_reader()
            section = Section(name, form.name, self._num_members if depth else 0)
            self._allow_time()
            self._send("section", *astuple(section))
            if not source.peek(1):
                raise InputError(f"{name}: the file is empty")
            num_items = 0
            for item in form.read(source, options):
                num_items += 1
                if isinstance(item, Row | Rejection):
                    self._add(item)
                    if self._num_bytes < _REPLY_BYTES and source.size is not None:
                        continue
                    if form.holds == "table":
                        self._allow_time()
                self._position = source.position if depth == 0 else self._position
                self._flush()
                if isinstance(item, Member):
                    self._read_member(item, name, depth + 1)
                    self._send("section", *astuple(section))
                elif isinstance(item, Part):
                    section = replace(section, name=f"{name}/{safe_label(item.name)}")
                    self._send("section", *astuple(section))
            self._position = source.position if depth == 0 else self._position
            self._flush()
            if not num_items:
                raise InputError(f"{name}: the file is empty: it has no {'rows' if form.holds == 'table' else 'text'}")

    def _read_member(self, member: Member, container: str, depth: int) -> None:
        self._num_members += 1
        name = f"{container}/{safe_label(member.name)}"
        if self._num_members in self._skipped:
            return
        limits = self._options.limits
        if self._num_members > limits.num_members or depth > _MAX_DEPTH:
            limit = f"{_MAX_DEPTH} levels" if depth > _MAX_DEPTH else f"{limits.num_members:,} files"
            raise InputError(f"{container}: has more than {limit}")
        try:
            with tempfile.NamedTemporaryFile() as file:
                with member.open() as stream:
                    self._bytes_left -= copy(stream, file, self._bytes_left, name)  # type: ignore[arg-type]
                self._read_file(file.name, name, replace(self._options, format=None), depth)
        except Exception as error:
            self._flush()
            reason = "locked" if isinstance(error, RuntimeError) and "password" in str(error) else "unreadable_file"
            self._add(Rejection(1, reason, self._fault(name, error)[1]))

    def _allow_time(self) -> None:
        limit = int(time.process_time()) + 1 + self._options.limits.time_s
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))

    def _add(self, item: Row | Rejection) -> None:
        fields = (item.fields, item.line, item.excerpt, item.key) if isinstance(item, Row) else _fields(item)
        try:
            text = _encode(fields)
        except RecursionError:
            text = _encode(_fields(Rejection(item.line, "invalid_json", "JSON is nested too deeply")))
        self._rows.append(text)
        self._num_bytes += len(text)

    def _flush(self) -> None:
        if self._rows:
            rows = ",".join(self._rows)
            self._write(f'["rows",{self._position},[{rows}]]')
            self._rows.clear()
            self._num_bytes = 0

    def _send(self, *values: object) -> None:
        self._write(_encode(values))

    def _write(self, text: str) -> None:
        self._replies.write(text.encode("utf-8", "surrogatepass") + b"\n")
        self._replies.flush()


_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


def _fields(item: Rejection) -> tuple[object, ...]:
    return item.line, item.reason, item.message, item.id, item.excerpt


def main(memory_bytes: int, stdin_descriptor: int) -> None:
    """Answers requests until standard input is closed."""
    replies = os.fdopen(os.dup(1), "wb", 2**18)
    os.dup2(2, 1)  # libraries may print
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    stdin = os.fdopen(stdin_descriptor, "rb") if stdin_descriptor >= 0 else None
    for line in sys.stdin.buffer:
        request: dict[str, Any] = json.loads(line)
        path, name, skipped = (request.pop(key) for key in ("path", "name", "skipped"))
        request |= {"limits": Limits(**request["limits"]), "text": tuple(request["text"])}
        _Reader(replies, ReadOptions(**request), skipped, stdin).read(path, name)


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]), int(sys.argv[2]))
    except BrokenPipeError:
        os._exit(0)
