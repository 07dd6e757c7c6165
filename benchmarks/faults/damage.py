"""Damage to files, as disks and people do it."""

import random
from collections.abc import Callable
from pathlib import Path


def damages(seed: int) -> dict[str, Callable[[Path], object]]:
    """Ways to damage a file, by name; a flipped bit is the most frequent one."""
    rng = random.Random(seed)

    def flip(path: Path) -> None:
        data = bytearray(path.read_bytes())
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)

    def cut(path: Path) -> None:
        path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size + 1)])

    def overwrite(path: Path) -> None:
        data = bytearray(path.read_bytes())
        start = rng.randrange(len(data) + 1)
        length = len(data[start : start + 512])
        data[start : start + length] = rng.choice([bytes(length), rng.randbytes(length)])
        path.write_bytes(data)

    return {
        **{f"flipped bit {number}": flip for number in range(4)},
        **{"cut": cut, "512 bytes": overwrite, "empty": lambda path: path.write_bytes(b"")},
        **{"missing": lambda path: path.unlink(), "longer": lambda path: path.write_bytes(path.read_bytes() + b"x")},
    }
