"""Power losses: what a disk may hold when the power goes between any two system calls of a process that writes.

A process does random writes under ``strace``, which records each call that changes files, with its bytes, and what the
process told meanwhile. The record is played on a model of a file system: a file holds what was synced, and of each
write since then all, nothing or its first sectors; a name is there once its directory was synced, and of the changes of
names since then, in their order, some first ones are. Then the directory is made as the disk may have it, opened, and
compared with the shadow, as after a kill.

POSIX promises no more than that, and file systems keep more (ext4 and XFS keep the order of much), so what is found
here may need bad luck. Sectors of 512 bytes are written whole or not, as SQLite and ours suppose of any disk.
"""

import os
import pickle
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_CALLS = (
    "openat,open,creat,write,pwrite64,ftruncate,fallocate,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,"
    "rmdir,mkdir,mkdirat,lseek,sendfile,copy_file_range,writev,pwritev,link,linkat,symlink,symlinkat,truncate"
)
_LINE = re.compile(r"^\d+ +(\w+)\((.*)\) += (-?\d+)(?:<.*>)?(?: \(.*\))?$", re.DOTALL)
_ARGUMENT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(?:\.\.\.)?|(-?\d+)<((?:\\x[0-9a-f]{2})*)>|([^,"<\s][^,"<]*)')
_SECTOR = 512
WAYS = ("nothing", "everything", "something")  # of what was not synced is on the disk


@dataclass(eq=False)
class _File:
    synced: bytes = b""
    writes: list[tuple[int, bytes | None]] = field(default_factory=list)  # since then; None: cut at the offset

    def sync(self) -> None:
        self.synced, self.writes = self.content(len), []

    def content(self, kept: Callable[[bytes], int]) -> bytes:
        """What the disk holds."""
        data = bytearray(self.synced)
        for offset, written in self.writes:
            if written is None:
                if kept(b"x"):
                    del data[offset:]
                    data.extend(bytes(offset - len(data)))
                continue
            part = written[: kept(written)]
            if part:
                data.extend(bytes(max(0, offset - len(data))))
                data[offset : offset + len(part)] = part
        return bytes(data)


class _Folder:
    def __init__(self) -> None:
        self.now: dict[str, _Node] = {}
        self._synced: dict[str, _Node] = {}
        self._changes: list[list[tuple[str, _Node | None]]] = []  # since then; what belongs together is one

    def change(self, *names: tuple[str, "_Node | None"]) -> None:
        self._changes.append(list(names))
        _apply(self.now, names)

    def sync(self) -> None:
        self._synced, self._changes = dict(self.now), []

    def names(self, number: int) -> dict[str, "_Node"]:
        """What the disk holds when so many of the changes have reached it."""
        found = dict(self._synced)
        for names in self._changes[:number]:
            _apply(found, names)
        return found

    def __len__(self) -> int:
        return len(self._changes)


_Node = _File | _Folder
_Change = tuple[str, _Node | None]  # a name, and what has it from now on


def _apply(names: dict[str, _Node], changes: Sequence[_Change]) -> None:
    for name, node in changes:
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class Disk:
    """The model of a file system below one folder.

    Args:
        root: The folder; what is elsewhere is not looked at.
    """

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._tree = _Folder()

    def open(self, path: str, flags: str) -> bool:
        """Makes or empties a file; whether that changed anything."""
        folder, name = self._place(path)
        node = folder.now.get(name)
        if node is None and "O_CREAT" in flags:
            folder.change((name, _File()))
            return True
        if isinstance(node, _File) and "O_TRUNC" in flags:
            node.writes.append((0, None))
            return True
        return False

    def write(self, path: str, offset: int, data: bytes | None) -> None:
        """Writes, or cuts, a file."""
        folder, name = self._place(path)
        node = folder.now[name]
        assert isinstance(node, _File)
        node.writes.append((offset, data))

    def size(self, path: str) -> int:
        """Of a file now."""
        return len(self.read(path))

    def read(self, path: str) -> bytes:
        """A file now."""
        folder, name = self._place(path)
        node = folder.now[name]
        assert isinstance(node, _File)
        return node.content(len)

    def sync(self, path: str) -> None:
        """Of a file or a folder."""
        folder, name = self._place(path)
        node = folder.now.get(name) if name else folder
        if node is not None:
            node.sync()

    def make(self, path: str) -> None:
        """A folder."""
        folder, name = self._place(path)
        if name:  # the root is there
            folder.change((name, _Folder()))

    def remove(self, path: str) -> None:
        """A file or a folder."""
        folder, name = self._place(path)
        folder.change((name, None))

    def rename(self, source: str, target: str) -> None:
        """Within a folder at once."""
        (folder, name), (other, new) = self._place(source), self._place(target)
        node = folder.now[name]
        if folder is other:
            folder.change((name, None), (new, node))
        else:
            other.change((new, node))
            folder.change((name, None))

    def holds(self, path: str) -> bool:
        """Whether a path lies below the root."""
        return (path == self._root or path.startswith(f"{self._root}/")) and not path.endswith(" (deleted)")

    def lose_power(self, target: Path, way: str, rng: random.Random) -> None:
        """Writes into a new folder what the disk may hold."""

        def kept(data: bytes) -> int:
            if way != "something":
                return len(data) if way == "everything" else 0
            num_sectors = rng.choice([0, len(data) // _SECTOR + 1, rng.randint(0, len(data) // _SECTOR + 1)])
            return min(len(data), num_sectors * _SECTOR)

        def write(folder: _Folder, path: Path) -> None:
            path.mkdir()
            number = {"nothing": 0, "everything": len(folder)}.get(way, rng.randint(0, len(folder)))
            for name, node in folder.names(number).items():
                if isinstance(node, _Folder):
                    write(node, path / name)
                else:
                    (path / name).write_bytes(node.content(kept))

        write(self._tree, target)

    def _place(self, path: str) -> tuple[_Folder, str]:
        """The folder of a path, and its name there; of the root the root itself and none."""
        parts = path.removeprefix(self._root).strip("/").split("/")
        folder = self._tree
        for part in parts[:-1]:
            node = folder.now[part]
            assert isinstance(node, _Folder)
            folder = node
        return folder, parts[-1]


def record(root: Path, seed: int, operations: int) -> Path:
    """Lets a process write below a folder, under strace; returns the record."""
    trace = root.with_name(f"{root.name}.strace")
    command = ["strace", "-f", "-y", "-xx", "-s", "100000000", "-e", f"trace={_CALLS}", "-o", str(trace)]
    command += [sys.executable, "-m", "benchmarks.faults.writer", str(root), str(seed), str(operations)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    return trace


def told_by(root: Path) -> Path:
    """The file to which the process that is recorded tells what it does."""
    return root.with_name(f"{root.name}.told")


def played(trace: Path, root: Path) -> Iterator[tuple[Disk, Any]]:
    """The disk after each call that changed it with None, and as it is when the process tells something, with that."""
    told = str(told_by(root))
    disk, offsets = Disk(root), dict[tuple[str, str], int]()
    for line in _whole_lines(trace):
        found = _LINE.match(line)
        if found is None or found[3] == "-1":
            continue
        call, result = found[1], int(found[3])
        arguments = [_argument(match) for match in _ARGUMENT.finditer(found[2])]
        if call == "write" and arguments[0].path == told:
            yield disk, pickle.loads(arguments[1].data)
        elif _play(disk, offsets, call, (arguments, result, found[2])):
            yield disk, None


@dataclass(frozen=True)
class _Argument:
    text: str = ""  # numbers, flags
    data: bytes = b""  # a string
    path: str = ""  # of a descriptor
    number: str = ""  # of it

    @property
    def name(self) -> str:
        return os.fsdecode(self.data)


def _argument(match: re.Match[str]) -> _Argument:
    data, number, path, text = match.groups()
    if number is not None:
        return _Argument(number=number, path=_bytes(path).decode())
    return _Argument(data=_bytes(data)) if data is not None else _Argument(text=text.strip())


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _whole_lines(trace: Path) -> Iterator[str]:
    """Calls that another thread interrupted are put together where they end."""
    begun: dict[str, str] = {}
    with trace.open(encoding="ascii") as file:
        for line in file:
            line = line.rstrip("\n")
            thread = line.split(" ", 1)[0]
            if line.endswith("<unfinished ...>"):
                begun[thread] = line.removesuffix("<unfinished ...>").rstrip()
            elif " resumed>" in line and thread in begun:
                yield begun.pop(thread) + line.split(" resumed>", 1)[1]
            else:
                yield line


def _play(disk: Disk, offsets: dict[tuple[str, str], int], call: str, rest: tuple[list[_Argument], int, str]) -> bool:
    """Plays one call on a disk; whether it changed it."""
    arguments, result, text = rest
    strings = [one.name for one in arguments if one.data]
    first = arguments[0]
    if call in ("openat", "open", "creat"):
        path = strings[0]
        offsets[str(result), path] = 0
        return disk.holds(path) and disk.open(path, text)
    if call in ("rename", "renameat", "renameat2") and disk.holds(strings[0]):
        disk.rename(*strings[:2])
    elif call in ("unlink", "unlinkat", "rmdir") and strings:
        path = strings[0] if strings[0].startswith("/") else f"{first.path}/{strings[0]}"
        if not disk.holds(path):
            return False
        disk.remove(path)
    elif call in ("mkdir", "mkdirat") and disk.holds(strings[0]):
        disk.make(strings[0])
    elif call == "lseek":
        offsets[first.number, first.path] = result
        return False
    elif not disk.holds(first.path):
        return False
    elif call in ("fsync", "fdatasync"):
        disk.sync(first.path)
    elif call == "write":
        place = (first.number, first.path)
        offset = disk.size(first.path) if "O_APPEND" in text else offsets.get(place, 0)
        disk.write(first.path, offset, arguments[1].data[:result])
        offsets[place] = offset + result
    elif call == "pwrite64":
        disk.write(first.path, int(arguments[-1].text), arguments[1].data[:result])
    elif call == "ftruncate":
        disk.write(first.path, int(arguments[1].text), None)
    elif call == "sendfile":  # to, from, place, count: of a file that was read from its beginning
        offset = offsets.get((first.number, first.path), 0)
        disk.write(first.path, offset, disk.read(arguments[1].path)[offset : offset + result])
        offsets[first.number, first.path] = offset + result
    else:
        raise NotImplementedError(f"{call}({text[:200]})")
    return True
