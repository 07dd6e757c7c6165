"""Damage to files, as disks and people do it."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["DAMAGES", "flip_bit", "flipped_copies"]


def flip_bit(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def flipped_copies(path: Path, number: int, seed: int) -> Iterator[int]:
    """Puts the file before the caller ``number`` times, each time with another bit changed; at last as it was."""
    content = path.read_bytes()
    for bit in random.Random(seed).sample(range(8 * len(content)), number):
        path.write_bytes(content)
        flip_bit(path, bit)
        yield bit
    path.write_bytes(content)


def _overwrite_middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 512] = bytes(len(data[middle : middle + 512]))
    path.write_bytes(data)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "cut a little": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "zeros in the middle": _overwrite_middle,
    "nested": lambda path: path.write_bytes(b"[" * 100_000),
    "not ours": lambda path: path.write_bytes(b"hello, this is something else" * 300),
}
