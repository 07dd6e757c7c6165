"""Builds the matrix of patterns and entity pairs from a raw corpus: all cores, bounded memory, progress.

Worker processes read blocks of documents and write the cells of each. A block counts once its ``.json`` is there, so
that a mining that was stopped goes on with the blocks that are missing. Cells of one entity pair lie in the same range
of every block; each range is summed alone, and cells that no other can support are dropped.
"""

import hashlib
import json
import logging
import os
import shutil
import time
import zlib
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from facets.errors import ConfigError
from facets.relations.entities import EntityFinder, EntityType
from facets.relations.patterns import PairLimits
from facets.relations.recognizer import SpacyEntities
from facets.storage import write_atomically
from facets_lab.relations.entity_pairs import (
    CapitalizedNames,
    DocumentMiner,
    bare_name,
    distinctive_names,
    name_variants,
)
from facets_lab.relations.title_types import TitleTypes, write_types
from facets_lab.training.corpus import clean_paragraph, in_blocks, read_titled_documents

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


logger = logging.getLogger(__name__)

CELLS_FILE = "cells.tsv"
TYPES_FILE = "types.tsv"
_BLOCK_CHARS = 4_000_000
_RECOGNIZED_BLOCK_CHARS = 400_000  # a recogniser takes a hundred times as long
_RECOGNIZED_CHARS = 20_000  # read at a time: nobody waits
_SURE_VOTES = 10  # of a recogniser, to go before the opening of a document; names may mean several things
_SURE_SHARE = 0.8


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
        num_types: Names whose kind is known.
        seconds: All of it, from the first byte to the file; blocks of an earlier try do not count.
        sentences_per_second: ``num_sentences / seconds``, of this try.
    """

    num_documents: int
    num_sentences: int
    num_names: int
    num_found: int
    num_cells: int
    num_pairs: int
    num_types: int
    seconds: float
    sentences_per_second: float


@dataclass(slots=True)
class _Tally:
    num_documents: int = 0
    num_sentences: int = 0
    num_sentences_before: int = 0  # of an earlier try
    stems: list[Path] = field(default_factory=list)
    offsets: list[list[int]] = field(default_factory=list)
    types: "Counter[str]" = field(default_factory=Counter)

    def add(self, stem: Path, block: MinedBlock, *, is_new: bool) -> None:
        self.num_documents += block.num_documents
        self.num_sentences += block.num_sentences
        self.num_sentences_before += 0 if is_new else block.num_sentences
        self.stems.append(stem)
        self.offsets.append(block.offsets)
        self.types.update(block.types)


def mine_cells(
    files: Sequence[Path],
    out_dir: Path,
    *,
    names: Iterable[str] | None = None,
    extra_names: Iterable[str] = (),
    keep_pairs: Iterable[tuple[str, str]] = (),
    keep_patterns: Iterable[str] = (),
    recognizer: str = "",
    num_workers: int | None = None,
    show_progress: bool = True,
) -> MiningReport:
    """Writes ``cells.tsv`` (entity, entity, pattern, count), ``types.tsv`` (name, kind) and ``mining.json``.

    Stopped and called again with the same arguments, it goes on where it was.

    Args:
        files: Documents as ``# Title``, one paragraph a line, an empty line; plain, ``.xz`` or ``.gz``.
        out_dir: Folder to write; made when absent.
        names: The gazetteer; None: the titles of the corpus itself. Names that are mostly common words are left out.
        extra_names: More names, of a knowledge base.
        keep_pairs: Entity pairs of the knowledge base, kept with one pattern too.
        keep_patterns: Patterns, lower-case tokens joined by blanks, that are kept with one pair too.
        recognizer: What finds more entities, and their kinds: ``capitals`` (``CapitalizedNames``), or an installed
            spaCy pipeline; empty: the gazetteer alone.
        num_workers: Processes; all cores when not given.
        show_progress: Show a progress bar on standard error.

    Returns:
        Counts and speed.

    Raises:
        ConfigError: A file cannot be read, or there is no name.
        InvalidInputError: A file is not UTF-8 or damaged.
        NotFoundError: The recogniser is not installed.
    """
    started = time.monotonic()
    _finder(recognizer)  # a name that is wrong is told at once, not by a worker
    out_dir.mkdir(parents=True, exist_ok=True)
    titles = TitleTypes()
    gazetteer = _gazetteer(files, names, extra_names, titles)
    kept_pairs = {f"{a}\t{b}" for head, tail in keep_pairs for a in name_variants(head) for b in name_variants(tail)}
    kept = (frozenset(kept_pairs), frozenset(keep_patterns))
    folder = blocks_folder(out_dir, [list(map(str, files)), gazetteer, recognizer])
    workers = num_workers or os.cpu_count() or 1
    tally = _Tally()
    with ProcessPoolExecutor(workers, initializer=_start_worker, initargs=(gazetteer, recognizer)) as pool:
        size = _RECOGNIZED_BLOCK_CHARS if recognizer else _BLOCK_CHARS
        documents = chain.from_iterable(map(read_titled_documents, files))
        blocks = in_blocks(documents, lambda document: sum(map(len, document[1])), size)
        _mine_blocks(pool, blocks, folder, tally, 2 * workers, show_progress=show_progress)
        num_found, num_cells, num_pairs = _write_cells(pool, folder, tally, kept, out_dir / CELLS_FILE)
    types = _types(titles, tally.types)
    write_types(out_dir / TYPES_FILE, types)
    shutil.rmtree(folder)
    seconds = time.monotonic() - started
    report = MiningReport(
        num_documents=tally.num_documents,
        num_sentences=tally.num_sentences,
        num_names=len(gazetteer),
        num_found=num_found,
        num_cells=num_cells,
        num_pairs=num_pairs,
        num_types=len(types),
        seconds=round(seconds, 1),
        sentences_per_second=round((tally.num_sentences - tally.num_sentences_before) / seconds, 1),
    )
    (out_dir / "mining.json").write_text(json.dumps(asdict(report), indent=2) + "\n", encoding="utf-8")
    return report


def _gazetteer(
    files: Sequence[Path], names: Iterable[str] | None, extra_names: Iterable[str], titles: TitleTypes
) -> list[str]:
    """Names to seek; the openings of the documents go to ``titles``."""
    of_documents = list(_titles(files, titles))
    given = [*map(bare_name, of_documents if names is None else names)]
    given += [variant for name in extra_names for variant in name_variants(name)]
    sample = (paragraph for file in files for _, paragraphs in read_titled_documents(file) for paragraph in paragraphs)
    gazetteer = distinctive_names(given, sample)
    if not gazetteer:
        raise ConfigError(f"the gazetteer must hold a name of three characters, got {len(given)} unusable ones")
    return gazetteer


def _titles(files: Sequence[Path], types: TitleTypes) -> Iterator[str]:
    for file in files:
        for title, paragraphs in read_titled_documents(file):
            types.add(title, paragraphs)
            yield title


def _types(titles: TitleTypes, votes: "Counter[str]") -> dict[str, EntityType]:
    """What the openings of documents say; what a recogniser says where they say nothing, or it is sure."""
    by_name: dict[str, Counter[EntityType]] = {}
    for vote, count in votes.items():
        name, _, kind = vote.rpartition("\t")
        by_name.setdefault(name, Counter())[EntityType(kind)] += count
    types = titles.types()
    for name, kinds in by_name.items():
        [(kind, count)] = kinds.most_common(1)
        is_sure = count >= max(_SURE_VOTES, _SURE_SHARE * kinds.total())
        if kind is not EntityType.UNKNOWN and (name not in types or is_sure):
            types[name] = kind
    return types


def _mine_blocks(
    pool: ProcessPoolExecutor,
    blocks: Iterator[list[tuple[str, list[str]]]],
    folder: Path,
    tally: _Tally,
    max_waiting: int,
    *,
    show_progress: bool,
) -> None:
    waiting: deque[tuple[Path, Future[MinedBlock]]] = deque()
    with tqdm(unit="sentence", unit_scale=True, disable=not show_progress, desc="mining") as bar:

        def add(stem: Path, block: MinedBlock, *, is_new: bool) -> None:
            tally.add(stem, block, is_new=is_new)
            bar.update(block.num_sentences)

        for number, documents in enumerate(blocks):
            stem = folder / f"{number:05d}"
            if (block := MinedBlock.read(stem)) is not None:
                add(stem, block, is_new=False)
                continue
            waiting.append((stem, pool.submit(_mine_block, stem, documents)))
            # A few blocks ahead keep the workers busy; more would only fill the memory.
            if len(waiting) > max_waiting:
                done, future = waiting.popleft()
                add(done, future.result(), is_new=True)
        for done, future in waiting:
            add(done, future.result(), is_new=True)


def _write_cells(
    pool: ProcessPoolExecutor,
    folder: Path,
    tally: _Tally,
    kept: tuple[frozenset[str], frozenset[str]],
    target: Path,
) -> tuple[int, int, int]:
    """Sums the blocks and writes the cells that others support: how many found, written, and of how many pairs."""
    files = [stem.with_suffix(".cells") for stem in tally.stems]
    sums = [
        pool.submit(
            sum_range,
            folder / f"sum-{place}",
            [(file, own[place], own[place + 1]) for file, own in zip(files, tally.offsets, strict=True)],
            kept,
        )
        for place in range(NUM_RANGES)
    ]
    found = [future.result() for future in sums]
    shared = seen_twice([hashes for _, hashes in found])
    pruned = [pool.submit(prune_range, folder / f"sum-{place}", shared, kept) for place in range(NUM_RANGES)]
    num_cells = num_pairs = 0
    with write_atomically(target, durable=False) as part, part.open("wb") as file:
        for place, future in enumerate(pruned):
            cells, pairs = future.result()
            file.write((folder / f"sum-{place}").read_bytes())
            num_cells += cells
            num_pairs += pairs
    return sum(count for count, _ in found), num_cells, num_pairs


_worker: DocumentMiner


def _start_worker(names: list[str], recognizer: str) -> None:
    global _worker
    _worker = DocumentMiner(names, PairLimits(), _finder(recognizer))


def _finder(recognizer: str) -> EntityFinder | None:
    match recognizer:
        case "":
            return None
        case "capitals":
            return CapitalizedNames()
        case _:
            return SpacyEntities(recognizer, chars_at_a_time=_RECOGNIZED_CHARS)


def _mine_block(stem: Path, block: list[tuple[str, list[str]]]) -> MinedBlock:
    """Writes the cells of some documents."""
    cells: Counter[str] = Counter()
    types: Counter[str] = Counter()
    sentences = sum(_worker.mine(title, map(clean_paragraph, paragraphs), cells, types) for title, paragraphs in block)
    return MinedBlock.write(stem, cells, types, (len(block), sentences))
