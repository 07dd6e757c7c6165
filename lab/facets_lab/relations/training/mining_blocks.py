"""Mined blocks on disk: one file of cells a block, ranges by hash of the entity pair, and their sums.

A block counts once its ``.json`` is there, so that a mining that was stopped goes on where it was. Cells of one entity
pair lie in the same range of every block; each range is summed alone, and cells that no other can support are dropped.
"""

import hashlib
import json
import shutil
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from facets.storage import write_atomically

__all__ = ["NUM_RANGES", "MinedBlock", "blocks_folder", "prune_range", "seen_twice", "sum_range"]

_BLOCKS = ".mining"
NUM_RANGES = 32
# One pair in millions of rows must not fill the memory: its most frequent patterns are enough.
_MAX_PATTERNS_A_PAIR = 1000


def blocks_folder(out_dir: Path, settings: object) -> Path:
    """The folder for blocks: that of an earlier try with the same settings (any JSON); else an empty one."""
    folder = out_dir / _BLOCKS
    sign = hashlib.sha256(json.dumps(settings).encode()).hexdigest()
    marker = folder / "settings"
    if not marker.exists() or marker.read_text(encoding="utf-8") != sign:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        with write_atomically(marker, durable=False) as part:
            part.write_text(sign, encoding="utf-8")
    return folder


@dataclass(frozen=True, slots=True)
class MinedBlock:
    """What a block of documents held.

    Attributes:
        num_documents: Documents read.
        num_sentences: Sentences read.
        offsets: Where each range of its cells begins, in bytes, and where the last one ends.
        types: How often a recogniser gave a name a kind, under ``name TAB kind``.
    """

    num_documents: int
    num_sentences: int
    offsets: list[int]
    types: dict[str, int]

    @classmethod
    def write(cls, stem: Path, cells: Mapping[str, int], types: Mapping[str, int], sizes: tuple[int, int]) -> Self:
        """Writes the cells of a block, then what says that it is whole; ``sizes``: documents, sentences."""
        ranges: list[list[str]] = [[] for _ in range(NUM_RANGES)]
        for cell, count in cells.items():
            ranges[zlib.crc32(_pair(cell).encode()) % NUM_RANGES].append(f"{cell}\t{count}\n")
        offsets = [0]
        with stem.with_suffix(".cells").open("wb") as file:
            for lines in ranges:
                file.write("".join(lines).encode())
                offsets.append(file.tell())
        block = cls(*sizes, offsets, dict(types))
        with write_atomically(stem.with_suffix(".json"), durable=False) as part:
            part.write_text(json.dumps(asdict(block)), encoding="utf-8")
        return block

    @classmethod
    def read(cls, stem: Path) -> Self | None:
        """A block that was written; None while it is not whole."""
        path = stem.with_suffix(".json")
        return cls(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def sum_range(
    target: Path, sources: Sequence[tuple[Path, int, int]], kept: tuple[frozenset[str], frozenset[str]]
) -> tuple[int, NDArray[np.uint64]]:
    """Sums equal cells of one range over all blocks; drops pairs with one pattern.

    Args:
        target: File to write.
        sources: File of each block, where the range begins and where it ends.
        kept: Entity pairs and patterns that stay in any case.

    Returns:
        Cells found, hashes of the patterns of the cells left.
    """
    pairs: dict[str, dict[str, int]] = {}
    for source, start, end in sources:
        with source.open("rb") as file:
            file.seek(start)
            lines = file.read(end - start).decode().splitlines()
        for line in lines:
            head, tail, pattern, count = line.split("\t")
            patterns = pairs.setdefault(f"{head}\t{tail}", {})
            if pattern in patterns or len(patterns) < _MAX_PATTERNS_A_PAIR:
                patterns[pattern] = patterns.get(pattern, 0) + int(count)
    hashes = []
    kept_pairs, kept_patterns = kept
    with target.open("w", encoding="utf-8", newline="\n") as file:
        for pair, patterns in sorted(pairs.items()):
            stays = len(patterns) > 1 or pair in kept_pairs
            for pattern, total in patterns.items():
                if stays or pattern in kept_patterns:
                    file.write(f"{pair}\t{pattern}\t{total}\n")
                    hashes.append(_hash(pattern))
    return sum(map(len, pairs.values())), np.array(hashes, dtype=np.uint64)


def seen_twice(hashes: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Hashes of patterns that occur with two pairs or more, sorted."""
    values, counts = np.unique(np.concatenate(hashes), return_counts=True)
    return values[counts > 1]


def prune_range(path: Path, shared: NDArray[np.uint64], kept: tuple[frozenset[str], frozenset[str]]) -> tuple[int, int]:
    """Drops patterns of one pair, then pairs of one pattern; rewrites the file; returns its cells and pairs."""
    kept_pairs, kept_patterns = kept
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    patterns = [line.split("\t")[2] for line in lines]
    stays = np.isin(np.array([_hash(pattern) for pattern in patterns], dtype=np.uint64), shared)
    is_kept = [pattern in kept_patterns for pattern in patterns]
    left = [(line, keep) for line, stay, keep in zip(lines, stays, is_kept, strict=True) if stay or keep]
    sizes = Counter(_pair(line) for line, _ in left)
    result = [line for line, keep in left if keep or sizes[_pair(line)] > 1 or _pair(line) in kept_pairs]
    path.write_text("".join(line + "\n" for line in result), encoding="utf-8", newline="\n")
    return len(result), len({_pair(line) for line in result})


def _pair(cell: str) -> str:
    return cell[: cell.index("\t", cell.index("\t") + 1)]


def _hash(pattern: str) -> int:
    """64 bits of a pattern, the same in every process."""
    data = pattern.encode()
    return zlib.crc32(data) << 32 | zlib.crc32(data[::-1], 0x5BD1E995)
