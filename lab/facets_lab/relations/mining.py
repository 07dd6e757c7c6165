"""Mines the matrix of patterns and entity pairs from a raw corpus: all cores, bounded memory, resumable.

Worker processes mine blocks of documents. The cells of a block go to a scratch database in one transaction, together
with the number of the block, so that an interrupted run continues with the missing blocks.
"""

import hashlib
import json
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from itertools import chain
from pathlib import Path

from tqdm import tqdm

from facets.errors import ConfigError
from facets.relations.entities import EntityFinder, EntityType
from facets.relations.patterns import PairLimits
from facets.relations.recognizer import SpacyEntities
from facets.storage.files import write_atomically
from facets_lab.evaluation.comparison import Report
from facets_lab.evaluation.files import read_texts
from facets_lab.relations.catalogue import read_phrases, relations_by_pattern
from facets_lab.relations.data import KB_PREFIX, read_cells
from facets_lab.relations.entity_pairs import DocumentMiner, bare_name, distinctive_names, name_variants
from facets_lab.relations.title_types import TYPES_FILE, TitleTypes, write_types
from facets_lab.training.corpus import clean_paragraph, expand_files, in_blocks, map_in_order, read_titled_documents

CELLS_FILE = "cells.tsv"
_SCRATCH = ".mining.sqlite3"
_BLOCK_CHARS = 4_000_000
_RECOGNIZED_BLOCK_CHARS = 400_000  # a recognizer takes a hundred times as long
_RECOGNIZED_CHARS = 20_000  # read at a time
_SURE_VOTES = 10  # votes of a recognizer that overrule the opening of a document
_SURE_SHARE = 0.8
_SCHEMA = """
CREATE TABLE blocks (number INTEGER PRIMARY KEY, documents INTEGER, sentences INTEGER);
CREATE TABLE cells (pair TEXT, pattern TEXT, count INTEGER, PRIMARY KEY (pair, pattern)) WITHOUT ROWID;
CREATE TABLE types (name TEXT, type TEXT, count INTEGER, PRIMARY KEY (name, type)) WITHOUT ROWID;
CREATE TABLE settings (digest TEXT);
"""

Document = tuple[str, list[str]]  # title, paragraphs


def mine_files(
    patterns: Sequence[str],
    out_dir: Path,
    *,
    gazetteer: Path | None,
    triples: Path | None,
    phrases: Path | None,
    recognizer: str,
    num_workers: int | None,
) -> Report:
    """``mine_cells`` with the arguments of the command ``facets-train relations --mine``."""
    rows = [] if triples is None else list(read_cells(triples))
    facts = [(head, tail) for head, tail, name, _ in rows if name.startswith(KB_PREFIX)]
    return mine_cells(
        expand_files(patterns),
        out_dir,
        names=None if gazetteer is None else list(filter(None, read_texts(gazetteer))),
        extra_names={name for pair in facts for name in pair},
        keep_pairs=facts,
        keep_patterns=() if phrases is None else relations_by_pattern(read_phrases(phrases)),
        recognizer=recognizer,
        num_workers=num_workers,
    )


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
) -> Report:
    """Writes ``cells.tsv`` (entity, entity, pattern, count), ``types.tsv`` (name, type) and ``mining.json``.

    Cells of a pair with one pattern, and of a pattern with one pair, are dropped: no other cell supports them.

    Returns:
        Counts and speed; also written to ``mining.json``.
    """
    started = time.monotonic()
    _make_finder(recognizer)  # errors are raised here and not in a worker
    out_dir.mkdir(parents=True, exist_ok=True)
    titles = TitleTypes()
    gazetteer = _make_gazetteer(files, names, extra_names, titles)
    digest = hashlib.sha256(json.dumps([list(map(str, files)), gazetteer, recognizer]).encode()).hexdigest()
    scratch = out_dir / _SCRATCH
    with closing(_open_scratch(scratch, digest)) as database:
        (num_sentences_before,) = database.execute("SELECT COALESCE(SUM(sentences), 0) FROM blocks").fetchone()
        _mine_blocks(database, files, gazetteer, recognizer, num_workers or os.cpu_count() or 1, show_progress)
        num_documents, num_sentences = database.execute("SELECT SUM(documents), SUM(sentences) FROM blocks").fetchone()
        (num_found,) = database.execute("SELECT COUNT(*) FROM cells").fetchone()
        pairs = {f"{a}\t{b}" for head, tail in keep_pairs for a in name_variants(head) for b in name_variants(tail)}
        _drop_unsupported(database, pairs, set(keep_patterns))
        num_cells, num_pairs = database.execute("SELECT COUNT(*), COUNT(DISTINCT pair) FROM cells").fetchone()
        with write_atomically(out_dir / CELLS_FILE, durable=False) as part, part.open("w", encoding="utf-8") as file:
            for cell in database.execute("SELECT pair, pattern, count FROM cells ORDER BY pair, count DESC, pattern"):
                file.write("{}\t{}\t{}\n".format(*cell))
        types = _decide_types(titles, database.execute("SELECT name, type, count FROM types"))
    write_types(out_dir / TYPES_FILE, types)
    scratch.unlink()
    seconds = time.monotonic() - started
    report: Report = {
        "num_documents": num_documents,
        "num_sentences": num_sentences,
        "num_names": len(gazetteer),
        "num_found": num_found,
        "num_cells": num_cells,
        "num_pairs": num_pairs,
        "num_types": len(types),
        "seconds": round(seconds, 1),
        "sentences_per_second": round((num_sentences - num_sentences_before) / seconds, 1),
    }
    (out_dir / "mining.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return report


def _open_scratch(path: Path, digest: str) -> sqlite3.Connection:
    """Opens the database of an earlier run with the same settings, or a new one."""
    for _ in range(2):
        database = sqlite3.connect(path, isolation_level=None)
        database.execute("PRAGMA synchronous = OFF")
        database.execute("PRAGMA cache_size = -500000")  # kibibytes
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'settings'").fetchone():
            database.executescript(_SCHEMA)
            database.execute("INSERT INTO settings VALUES (?)", (digest,))
        if database.execute("SELECT digest FROM settings").fetchone() == (digest,):
            break
        database.close()
        path.unlink()
    return database


def _make_gazetteer(
    files: Sequence[Path], names: Iterable[str] | None, extra_names: Iterable[str], titles: TitleTypes
) -> list[str]:
    """Names to search for; the openings of the documents are added to ``titles``."""
    of_documents = []
    for title, paragraphs in chain.from_iterable(map(read_titled_documents, files)):
        titles.add(title, paragraphs)
        of_documents.append(title)
    given = [*map(bare_name, of_documents if names is None else names)]
    given += [variant for name in extra_names for variant in name_variants(name)]
    sample = (paragraph for file in files for _, paragraphs in read_titled_documents(file) for paragraph in paragraphs)
    gazetteer = distinctive_names(given, sample)
    if not gazetteer:
        raise ConfigError(f"the gazetteer must hold a name of three characters, got {len(given)} unusable ones")
    return gazetteer


def _mine_blocks(
    database: sqlite3.Connection,
    files: Sequence[Path],
    gazetteer: list[str],
    recognizer: str,
    num_workers: int,
    show_progress: bool,
) -> None:
    done = {number for (number,) in database.execute("SELECT number FROM blocks")}
    documents = chain.from_iterable(map(read_titled_documents, files))
    size = _RECOGNIZED_BLOCK_CHARS if recognizer else _BLOCK_CHARS
    blocks = enumerate(in_blocks(documents, lambda document: sum(map(len, document[1])), size))
    tasks = ((number, block) for number, block in blocks if number not in done)
    bar = tqdm(unit="sentence", unit_scale=True, disable=not show_progress, desc="mining")
    with bar, ProcessPoolExecutor(num_workers, initializer=_start_worker, initargs=(gazetteer, recognizer)) as pool:
        for result in map_in_order(pool, _mine_block, tasks, max_waiting=2 * num_workers):
            number, num_documents, num_sentences, cells, types = result
            database.execute("BEGIN")
            database.executemany(
                "INSERT INTO cells VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count",
                ((*cell, count) for cell, count in sorted(cells.items())),
            )
            database.executemany(
                "INSERT INTO types VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count",
                ((*vote, count) for vote, count in types.items()),
            )
            database.execute("INSERT INTO blocks VALUES (?, ?, ?)", (number, num_documents, num_sentences))
            database.execute("COMMIT")
            bar.update(num_sentences)


def _drop_unsupported(database: sqlite3.Connection, keep_pairs: set[str], keep_patterns: set[str]) -> None:
    """Drops pairs with one pattern, then patterns with one pair, then pairs with one pattern again."""
    database.execute("CREATE TEMP TABLE kept_pairs (pair TEXT PRIMARY KEY) WITHOUT ROWID")
    database.execute("CREATE TEMP TABLE kept_patterns (pattern TEXT PRIMARY KEY) WITHOUT ROWID")
    database.executemany("INSERT INTO kept_pairs VALUES (?)", ((pair,) for pair in keep_pairs))
    database.executemany("INSERT INTO kept_patterns VALUES (?)", ((pattern,) for pattern in keep_patterns))
    single_pairs = """
        DELETE FROM cells WHERE pair IN (SELECT pair FROM cells GROUP BY pair HAVING COUNT(*) = 1)
        AND pair NOT IN kept_pairs AND pattern NOT IN kept_patterns
    """
    single_patterns = """
        DELETE FROM cells WHERE pattern IN (SELECT pattern FROM cells GROUP BY pattern HAVING COUNT(*) = 1)
        AND pattern NOT IN kept_patterns
    """
    for statement in (single_pairs, single_patterns, single_pairs):
        database.execute(statement)


def _decide_types(titles: TitleTypes, votes: Iterable[tuple[str, str, int]]) -> dict[str, EntityType]:
    """Types from the openings of documents; those of a recognizer where there is none or the recognizer is sure."""
    by_name: dict[str, Counter[EntityType]] = {}
    for name, kind, count in votes:
        by_name.setdefault(name, Counter())[EntityType(kind)] += count
    types = titles.types()
    for name, kinds in by_name.items():
        [(best, count)] = kinds.most_common(1)
        is_sure = count >= max(_SURE_VOTES, _SURE_SHARE * kinds.total())
        if best is not EntityType.UNKNOWN and (name not in types or is_sure):
            types[name] = best
    return types


_worker: DocumentMiner


def _start_worker(names: list[str], recognizer: str) -> None:
    global _worker
    _worker = DocumentMiner(names, PairLimits(), _make_finder(recognizer))


def _make_finder(recognizer: str) -> EntityFinder | None:
    return SpacyEntities(recognizer, chars_at_a_time=_RECOGNIZED_CHARS) if recognizer else None


MinedBlock = tuple[int, int, int, Counter[tuple[str, str]], Counter[tuple[str, str]]]


def _mine_block(task: tuple[int, list[Document]]) -> MinedBlock:
    """Number of the block, documents, sentences, counts of cells and of recognized types."""
    number, documents = task
    cells: Counter[tuple[str, str]] = Counter()
    types: Counter[tuple[str, str]] = Counter()
    num_sentences = 0
    for title, paragraphs in documents:
        num_sentences += _worker.mine(title, map(clean_paragraph, paragraphs), cells, types)
    return number, len(documents), num_sentences, cells, types
