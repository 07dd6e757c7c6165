"""Builds the matrix of patterns and entity pairs from a raw corpus: all cores, bounded memory, progress.

Worker processes read blocks of documents and append their cells to files by hash of the entity pair, so that all
cells of a pair meet in one file. Each file is then summed alone, and cells that no other cell can support are dropped.
"""

import json
import logging
import os
import tempfile
import time
import zlib
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from facets.errors import ConfigError
from facets.relations.patterns import PatternLimits
from facets.relations.training.mining_documents import (
    DocumentMiner,
    bare_name,
    distinctive_names,
    name_variants,
    read_titled_documents,
)
from facets.storage import write_atomically
from facets.training.packing import clean_paragraph

__all__ = ["CELLS_FILE", "MiningReport", "mine_cells"]

logger = logging.getLogger(__name__)

CELLS_FILE = "cells.tsv"
_BLOCK_CHARS = 4_000_000
_NUM_PARTS = 32
# One pair in millions of rows must not fill the memory: its most frequent patterns are enough.
_MAX_PATTERNS_A_PAIR = 1000

_Document = tuple[str, list[str]]


@dataclass(frozen=True, slots=True)
class MiningReport:
    """What was mined.

    Attributes:
        num_documents: Documents read.
        num_sentences: Sentences read.
        num_names: Names sought.
        num_found: Distinct cells found.
        num_cells: Cells kept and written.
        num_pairs: Entity pairs among them.
        seconds: All of it, from the first byte to the file.
        sentences_per_second: ``num_sentences / seconds``.
    """

    num_documents: int
    num_sentences: int
    num_names: int
    num_found: int
    num_cells: int
    num_pairs: int
    seconds: float
    sentences_per_second: float


@dataclass(slots=True)
class _Tally:
    num_documents: int = 0
    num_sentences: int = 0
    num_chars: int = 0
    num_found: int = 0
    pattern_hashes: list[NDArray[np.uint64]] = field(default_factory=list)


def mine_cells(
    files: Sequence[Path],
    out_dir: Path,
    *,
    names: Iterable[str] | None = None,
    extra_names: Iterable[str] = (),
    keep_pairs: Iterable[tuple[str, str]] = (),
    limits: PatternLimits | None = None,
    num_workers: int | None = None,
    show_progress: bool = True,
) -> MiningReport:
    """Writes ``cells.tsv`` (entity, entity, pattern, count) and ``mining.json``.

    Args:
        files: Documents as ``# Title``, one paragraph a line, an empty line; plain, ``.xz`` or ``.gz``.
        out_dir: Folder to write; made when absent.
        names: The gazetteer; None: the titles of the corpus itself. Names that are mostly common words are left out.
        extra_names: More names, of a knowledge base.
        keep_pairs: Entity pairs of the knowledge base, kept with one pattern too.
        limits: What is a pattern.
        num_workers: Processes; all cores when not given.
        show_progress: Show a progress bar on standard error.

    Returns:
        Counts and speed.

    Raises:
        ConfigError: A file cannot be read, or there is no name.
        InvalidInputError: A file is not UTF-8 or damaged.
    """
    started = time.monotonic()
    out_dir.mkdir(parents=True, exist_ok=True)
    gazetteer = _gazetteer(files, names, extra_names)
    kept = {f"{a}\t{b}" for head, tail in keep_pairs for a in name_variants(head) for b in name_variants(tail)}
    workers = num_workers or os.cpu_count() or 1
    tally = _Tally()
    with tempfile.TemporaryDirectory(dir=out_dir, prefix=".mining-") as scratch:
        folder = Path(scratch)
        with ProcessPoolExecutor(
            workers, initializer=_start_worker, initargs=(gazetteer, limits or PatternLimits(), folder)
        ) as pool:
            _mine_blocks(pool, files, tally, workers, show_progress)
            _sum_blocks(pool, folder, tally, kept)
            with write_atomically(out_dir / CELLS_FILE, durable=False) as part:
                num_cells, num_pairs = _write_cells(pool, folder, tally, kept=kept, out=part)
    seconds = time.monotonic() - started
    report = MiningReport(
        num_documents=tally.num_documents,
        num_sentences=tally.num_sentences,
        num_names=len(gazetteer),
        num_found=tally.num_found,
        num_cells=num_cells,
        num_pairs=num_pairs,
        seconds=round(seconds, 1),
        sentences_per_second=round(tally.num_sentences / seconds, 1),
    )
    (out_dir / "mining.json").write_text(json.dumps(asdict(report), indent=2) + "\n", encoding="utf-8")
    return report


def _gazetteer(files: Sequence[Path], names: Iterable[str] | None, extra_names: Iterable[str]) -> list[str]:
    given = [*map(bare_name, _titles(files) if names is None else names)]
    given += [variant for name in extra_names for variant in name_variants(name)]
    sample = (paragraph for file in files for _, paragraphs in read_titled_documents(file) for paragraph in paragraphs)
    gazetteer = distinctive_names(given, sample)
    if not gazetteer:
        raise ConfigError(f"the gazetteer must hold a name of three characters, got {len(given)} unusable ones")
    return gazetteer


def _sum_blocks(pool: ProcessPoolExecutor, folder: Path, tally: _Tally, kept: set[str]) -> None:
    """Sums what the blocks have left in ``folder``, part by part."""
    parts = [sorted(folder.glob(f"{part:03d}-*")) for part in range(_NUM_PARTS)]
    for found, hashes in pool.map(_sum_part, [(folder / f"sum-{p}", parts[p], kept) for p in range(_NUM_PARTS)]):
        tally.num_found += found
        tally.pattern_hashes.append(hashes)


def _write_cells(
    pool: ProcessPoolExecutor, folder: Path, tally: _Tally, *, kept: set[str], out: Path
) -> tuple[int, int]:
    """Writes the cells that others support; returns how many, and of how many pairs."""
    shared = _seen_twice(tally.pattern_hashes)
    tasks = [(folder / f"sum-{p}", shared, kept) for p in range(_NUM_PARTS)]
    num_cells, num_pairs = 0, 0
    with out.open("wb") as file:
        for path, (cells, pairs) in zip(tasks, pool.map(_prune_part, tasks), strict=True):
            file.write(path[0].read_bytes())
            num_cells += cells
            num_pairs += pairs
    return num_cells, num_pairs


def _titles(files: Sequence[Path]) -> Iterator[str]:
    return (title for file in files for title, _ in read_titled_documents(file))


def _mine_blocks(
    pool: ProcessPoolExecutor, files: Sequence[Path], tally: _Tally, workers: int, show_progress: bool
) -> None:
    waiting: deque[Future[tuple[int, int, int]]] = deque()
    with tqdm(unit="sentence", unit_scale=True, disable=not show_progress, desc="mining") as bar:

        def collect() -> None:
            documents, sentences, chars = waiting.popleft().result()
            tally.num_documents += documents
            tally.num_sentences += sentences
            tally.num_chars += chars
            bar.update(sentences)

        for number, block in enumerate(_blocks(files)):
            waiting.append(pool.submit(_mine_block, number, block))
            # A few blocks ahead keep the workers busy; more would only fill the memory.
            if len(waiting) > 2 * workers:
                collect()
        while waiting:
            collect()


def _blocks(files: Sequence[Path]) -> Iterator[list[_Document]]:
    block: list[_Document] = []
    num_chars = 0
    for file in files:
        for title, paragraphs in read_titled_documents(file):
            block.append((title, paragraphs))
            num_chars += sum(map(len, paragraphs))
            if num_chars >= _BLOCK_CHARS:
                yield block
                block, num_chars = [], 0
    if block:
        yield block


_worker: tuple[DocumentMiner, Path]


def _start_worker(names: list[str], limits: PatternLimits, folder: Path) -> None:
    global _worker
    _worker = (DocumentMiner(names, limits), folder)


def _mine_block(number: int, block: list[_Document]) -> tuple[int, int, int]:
    """Appends the cells of some documents to the files of this process; returns documents, sentences, characters."""
    miner, folder = _worker
    cells: Counter[str] = Counter()
    sentences = chars = 0
    for title, paragraphs in block:
        sentences += miner.mine(title, (clean_paragraph(p) for p in paragraphs), cells)
        chars += sum(map(len, paragraphs))
    parts: list[list[str]] = [[] for _ in range(_NUM_PARTS)]
    for cell, count in cells.items():
        pair = cell[: cell.index("\t", cell.index("\t") + 1)]
        parts[zlib.crc32(pair.encode()) % _NUM_PARTS].append(f"{cell}\t{count}\n")
    for part, lines in enumerate(parts):
        with (folder / f"{part:03d}-{os.getpid()}").open("a", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)
    return len(block), sentences, chars


def _sum_part(task: tuple[Path, list[Path], set[str]]) -> tuple[int, NDArray[np.uint64]]:
    """Sums equal cells of one part, drops pairs of one pattern; returns cells found, hashes of patterns left."""
    target, sources, kept = task
    pairs: dict[str, dict[str, int]] = {}
    for source in sources:
        with source.open(encoding="utf-8", newline="\n") as file:
            for line in file:
                head, tail, pattern, count = line.rstrip("\n").split("\t")
                patterns = pairs.setdefault(f"{head}\t{tail}", {})
                if pattern in patterns or len(patterns) < _MAX_PATTERNS_A_PAIR:
                    patterns[pattern] = patterns.get(pattern, 0) + int(count)
        source.unlink()
    num_found = sum(map(len, pairs.values()))
    hashes = []
    with target.open("w", encoding="utf-8", newline="\n") as file:
        for pair, patterns in sorted(pairs.items()):
            if len(patterns) < 2 and pair not in kept:
                continue
            for pattern, total in patterns.items():
                file.write(f"{pair}\t{pattern}\t{total}\n")
                hashes.append(_hash(pattern))
    return num_found, np.array(hashes, dtype=np.uint64)


def _seen_twice(hashes: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Hashes of patterns that occur with two pairs or more, sorted."""
    values, counts = np.unique(np.concatenate(hashes), return_counts=True)
    return values[counts > 1]


def _prune_part(task: tuple[Path, NDArray[np.uint64], set[str]]) -> tuple[int, int]:
    """Drops patterns of one pair, then pairs of one pattern; rewrites the file; returns its cells and pairs."""
    path, shared, kept = task
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    mine = np.array([_hash(line.split("\t")[2]) for line in lines], dtype=np.uint64)
    stays = np.isin(mine, shared)
    left = [line for line, stay in zip(lines, stays, strict=True) if stay]
    sizes = Counter(line[: line.index("\t", line.index("\t") + 1)] for line in left)
    left = [line for line in left if sizes[pair := line[: line.index("\t", line.index("\t") + 1)]] > 1 or pair in kept]
    path.write_text("".join(line + "\n" for line in left), encoding="utf-8")
    return len(left), sum(1 for pair, size in sizes.items() if size > 1 or pair in kept)


def _hash(pattern: str) -> int:
    """64 bits of a pattern, the same in every process."""
    data = pattern.encode()
    return zlib.crc32(data) << 32 | zlib.crc32(data[::-1], 0x5BD1E995)
