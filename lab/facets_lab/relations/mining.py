"""Mines the matrix of patterns and entity pairs from a raw corpus: all cores, bounded memory, resumable.

Worker processes mine blocks of documents. The cells of a block go to a scratch database in one transaction, together
with the number of the block, so that an interrupted run continues with the missing blocks.
"""

import hashlib
import json
import os
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from itertools import chain
from pathlib import Path

from tqdm import tqdm

from facets.errors import ConfigError
from facets.language.tokenizer import grouped
from facets.relations.entities import EntityFinder, EntityType
from facets.relations.recognizer import SpacyEntities
from facets.storage.files import write_atomically
from facets_lab.evaluation.comparison import Report
from facets_lab.relations.catalogue import read_phrases, relations_by_pattern
from facets_lab.relations.data import read_triples
from facets_lab.relations.entity_pairs import DocumentMiner, bare_name, distinctive_names, name_variants
from facets_lab.relations.facts import TYPES_FILE, type_of_document, write_types
from facets_lab.training.corpus import clean_paragraph, expand_files, map_in_order, read_titled_documents

CELLS_FILE = "cells.tsv"
_BLOCK_CHARS = 4_000_000
_RECOGNIZED_BLOCK_CHARS = 400_000  # a recognizer takes a hundred times as long
_RECOGNIZED_CHARS = 20_000  # read at a time
_SURE_VOTES = 10  # votes of a recognizer that overrule the opening of a document
_SURE_SHARE = 0.8
_SCHEMA = """
CREATE TABLE IF NOT EXISTS blocks (number INTEGER PRIMARY KEY, documents INTEGER, sentences INTEGER);
CREATE TABLE IF NOT EXISTS cells (pair TEXT, pattern TEXT, count INTEGER, PRIMARY KEY (pair, pattern)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS types (name TEXT, type TEXT, count INTEGER, PRIMARY KEY (name, type)) WITHOUT ROWID;
"""
_DROP_PAIRS = """
DELETE FROM cells WHERE pair IN (SELECT pair FROM cells GROUP BY pair HAVING COUNT(*) = 1)
AND pair NOT IN kept_pairs AND pattern NOT IN kept_patterns
"""
_DROP_PATTERNS = """
DELETE FROM cells WHERE pattern IN (SELECT pattern FROM cells GROUP BY pattern HAVING COUNT(*) = 1)
AND pattern NOT IN kept_patterns
"""

Document = tuple[str, list[str]]  # title, paragraphs
Votes = dict[str, Counter[EntityType]]  # by name


def mine_cells(
    patterns: Sequence[str | Path],
    out_dir: Path,
    *,
    triples: Path | None = None,
    phrases: Path | None = None,
    recognizer: str = "",
) -> Report:
    """Writes ``cells.tsv`` (entity, entity, pattern, count) and ``types.tsv`` (name, type).

    Cells of a pair with one pattern, and of a pattern with one pair, are dropped, because no other cell supports them;
    those of pairs in ``triples`` and of patterns in ``phrases`` stay. Names are the titles of the corpus and those of
    ``triples``.
    """
    _make_finder(recognizer)  # errors are raised here and not in a worker
    files = expand_files(patterns)
    facts = [] if triples is None else read_triples(triples)
    keep_pairs = {f"{a}\t{b}" for head, tail, _ in facts for a in name_variants(head) for b in name_variants(tail)}
    keep_patterns = [] if phrases is None else relations_by_pattern(read_phrases(phrases))
    out_dir.mkdir(parents=True, exist_ok=True)
    openings: Votes = defaultdict(Counter)
    more = [variant for fact in facts for name in fact[:2] for variant in name_variants(name)]
    names = _names_to_find(files, more, openings)
    digest = hashlib.sha256(json.dumps([list(map(str, files)), names, recognizer]).encode()).hexdigest()
    scratch = out_dir / f".mining-{digest[:32]}.sqlite3"
    with closing(_open_scratch(scratch)) as database:
        _mine_blocks(database, files, names, recognizer)
        num_documents, num_sentences = database.execute("SELECT SUM(documents), SUM(sentences) FROM blocks").fetchone()
        for table, kept in (("kept_pairs", keep_pairs), ("kept_patterns", keep_patterns)):
            database.execute(f"CREATE TEMP TABLE {table} (text TEXT PRIMARY KEY) WITHOUT ROWID")
            database.executemany(f"INSERT INTO {table} VALUES (?)", ((text,) for text in kept))
        for statement in (_DROP_PAIRS, _DROP_PATTERNS, _DROP_PAIRS):
            database.execute(statement)
        num_cells, num_pairs = database.execute("SELECT COUNT(*), COUNT(DISTINCT pair) FROM cells").fetchone()
        with write_atomically(out_dir / CELLS_FILE, durable=False) as part, part.open("w", encoding="utf-8") as file:
            for cell in database.execute("SELECT pair, pattern, count FROM cells ORDER BY pair, count DESC, pattern"):
                file.write("{}\t{}\t{}\n".format(*cell))
        types = _decide_types(openings, database.execute("SELECT name, type, count FROM types"))
    write_types(out_dir / TYPES_FILE, types)
    scratch.unlink()
    return {
        "num_documents": num_documents,
        "num_sentences": num_sentences,
        "num_names": len(names),
        "num_cells": num_cells,
        "num_pairs": num_pairs,
        "num_types": len(types),
    }


def _open_scratch(path: Path) -> sqlite3.Connection:
    """Opens the database of an interrupted run with the same settings, or a new one instead of those of other runs."""
    for other in path.parent.glob(".mining-*.sqlite3"):
        if other != path:
            other.unlink()
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA synchronous = OFF")
    database.execute("PRAGMA cache_size = -500000")  # kibibytes
    database.executescript(_SCHEMA)
    return database


def _names_to_find(files: Sequence[Path], more: list[str], openings: Votes) -> list[str]:
    """Titles and more names to search for; the types of the documents' titles are added to ``openings``."""
    titles = []
    for title, paragraphs in chain.from_iterable(map(read_titled_documents, files)):
        kind = type_of_document(title, paragraphs)
        if kind is not EntityType.UNKNOWN:
            openings[bare_name(title)][kind] += 1
        titles.append(title)
    names = [*map(bare_name, titles), *more]
    sample = (paragraph for file in files for _, paragraphs in read_titled_documents(file) for paragraph in paragraphs)
    distinctive = distinctive_names(names, sample)
    if not distinctive:
        raise ConfigError(f"expected a name of three characters or more that is no usual word, got {len(names)} others")
    return distinctive


def _mine_blocks(database: sqlite3.Connection, files: Sequence[Path], names: list[str], recognizer: str) -> None:
    num_workers = os.cpu_count() or 1
    done = {number for (number,) in database.execute("SELECT number FROM blocks")}
    documents = chain.from_iterable(map(read_titled_documents, files))
    size = _RECOGNIZED_BLOCK_CHARS if recognizer else _BLOCK_CHARS
    blocks = enumerate(grouped(documents, size, size=lambda document: sum(map(len, document[1]))))
    tasks = ((number, block) for number, block in blocks if number not in done)
    bar = tqdm(unit="sentence", unit_scale=True, disable=None, desc="mining")
    with bar, ProcessPoolExecutor(num_workers, initializer=_start_worker, initargs=(names, recognizer)) as pool:
        for result in map_in_order(pool, mine_block, tasks, max_waiting=2 * num_workers):
            number, num_documents, num_sentences, cells, types = result
            database.execute("BEGIN")
            for table, counts in (("cells", cells), ("types", types)):
                database.executemany(
                    f"INSERT INTO {table} VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count",
                    ((*key, count) for key, count in sorted(counts.items())),
                )
            database.execute("INSERT INTO blocks VALUES (?, ?, ?)", (number, num_documents, num_sentences))
            database.execute("COMMIT")
            bar.update(num_sentences)


def _decide_types(openings: Votes, recognized: Iterable[tuple[str, str, int]]) -> dict[str, EntityType]:
    """Types from the openings of documents; those of a recognizer where there is none or the recognizer is sure."""
    by_name: Votes = defaultdict(Counter)
    for name, kind, count in recognized:
        by_name[name][EntityType(kind)] += count
    types = {name: votes.most_common(1)[0][0] for name, votes in openings.items()}
    for name, kinds in by_name.items():
        [(best, count)] = kinds.most_common(1)
        is_sure = count >= max(_SURE_VOTES, _SURE_SHARE * kinds.total())
        if best is not EntityType.UNKNOWN and (name not in types or is_sure):
            types[name] = best
    return types


_worker: DocumentMiner


def _start_worker(names: list[str], recognizer: str) -> None:
    global _worker
    _worker = DocumentMiner(names, _make_finder(recognizer))


def _make_finder(recognizer: str) -> EntityFinder | None:
    return SpacyEntities(recognizer, chars_at_a_time=_RECOGNIZED_CHARS) if recognizer else None


MinedBlock = tuple[int, int, int, Counter[tuple[str, str]], Counter[tuple[str, str]]]


def mine_block(task: tuple[int, list[Document]]) -> MinedBlock:
    """Number of the block, documents, sentences, counts of cells and of recognized types."""
    number, documents = task
    cells: Counter[tuple[str, str]] = Counter()
    types: Counter[tuple[str, str]] = Counter()
    num_sentences = 0
    for title, paragraphs in documents:
        num_sentences += _worker.mine(title, map(clean_paragraph, paragraphs), cells, types)
    return number, len(documents), num_sentences, cells, types
