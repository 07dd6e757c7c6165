"""The co-occurrence matrix of patterns, relations and entity pairs, as arrays.

Rows are patterns, then relations; columns are entity pairs. Files are read line by line, and one pair or one pattern
cannot fill the memory: each keeps a limited number of cells.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.errors import ConfigError, InvalidInputError
from facets.language.files import read_lines
from facets.language.tokenizer import Tokenizer
from facets.relations.patterns import tokenize_patterns
from facets_lab.relations.training.mining_documents import bare_name, name_variants

__all__ = ["KB_PREFIX", "RelationMatrix", "Triple", "load_matrix", "read_cells", "read_triples"]

logger = logging.getLogger(__name__)

KB_PREFIX = "kb:"
_BLOCK_LINES = 200_000

Triple = tuple[str, str, str]  # head, tail, relation


@dataclass(frozen=True, slots=True)
class RelationMatrix:
    """Cells in compressed rows; patterns first, then relations.

    Attributes:
        patterns: Lower-case tokens of each pattern, joined by one blank; ``P`` of them.
        relations: Names, ``R``.
        offsets: ``[P + R + 1]`` int64; the pairs of row ``i`` are ``pairs[offsets[i]:offsets[i + 1]]``. A relation may
            have none.
        pairs: Columns, int32.
        names: Head and tail of each pair, by a tab, ``N``.
        pair_sizes: Rows of each pair, ``[N]`` int64: the frequency behind the weights of eq. 3.9.
    """

    patterns: list[str]
    relations: tuple[str, ...]
    offsets: NDArray[np.int64]
    pairs: NDArray[np.int32]
    names: list[str]
    pair_sizes: NDArray[np.int64]

    @property
    def num_pairs(self) -> int:
        """N."""
        return len(self.names)

    @property
    def row_sizes(self) -> NDArray[np.int64]:
        """Pairs of each row, ``[P + R]``."""
        return np.diff(self.offsets)

    def pairs_of(self, row: int) -> NDArray[np.int32]:
        """Columns of a row."""
        return self.pairs[self.offsets[row] : self.offsets[row + 1]]


def read_cells(path: Path) -> Iterator[tuple[str, str, str, int]]:
    """Cells of a matrix file: entity, entity, pattern or ``kb:relation``, count.

    Raises:
        InvalidInputError: A bad line; the message names file and line.
        ConfigError: The file cannot be read.
    """
    for number, line in enumerate(read_lines(path), start=1):
        if not line:
            continue
        parts = line.split("\t")
        if len(parts) != 4 or not all(parts) or not (parts[3].isascii() and parts[3].isdigit()):
            raise InvalidInputError(
                f"{path}, line {number}: expected entity<TAB>entity<TAB>pattern or kb:relation<TAB>count, "
                f"got {line[:80]!r}"
            )
        yield parts[0], parts[1], parts[2], int(parts[3])


def read_triples(path: Path) -> list[Triple]:
    """The ``kb:`` rows of a matrix file.

    Raises:
        InvalidInputError: A bad line; the message names file and line.
        ConfigError: The file cannot be read, or has no such row.
    """
    facts = [
        (head, tail, name[len(KB_PREFIX) :]) for head, tail, name, _ in read_cells(path) if name.startswith(KB_PREFIX)
    ]
    if not facts:
        raise ConfigError(f"{path} must hold kb:relation rows, got none")
    return facts


def load_matrix(
    cells: Sequence[Path],
    facts: Iterable[Triple],
    relations: Sequence[str],
    *,
    max_patterns_per_pair: int,
    max_pairs_per_pattern: int,
) -> RelationMatrix:
    """Reads matrix files into arrays.

    Args:
        cells: Files of text cells; ``kb:`` rows in them are left out.
        facts: What is known of entity pairs; pairs without a pattern are left out.
        relations: Their names, in the order of the rows.
        max_patterns_per_pair: Cells of one entity pair at most; the first ones of the files stay.
        max_pairs_per_pattern: Cells of one pattern at most.

    Returns:
        The matrix, without patterns of one pair and pairs of one pattern: they say nothing about others.

    Raises:
        InvalidInputError: A bad line; the message names file and line.
        ConfigError: A file cannot be read, or no cell is left.
    """
    tokenizer = Tokenizer()
    patterns: dict[str, int] = {}
    columns: dict[str, int] = {}
    sizes: list[int] = []  # cells of each pair
    found: list[tuple[int, int]] = []
    for path in cells:
        for block in _blocks(read_cells(path)):
            tokens = tokenize_patterns([cell[2] for cell in block], tokenizer, path=(str(path), "patterns"))
            for cell, words in zip(block, tokens, strict=True):
                column = columns.setdefault(f"{bare_name(cell[0])}\t{bare_name(cell[1])}", len(columns))
                if column == len(sizes):
                    sizes.append(0)
                if sizes[column] < max_patterns_per_pair:
                    sizes[column] += 1
                    found.append((patterns.setdefault(" ".join(words), len(patterns)), column))
    if not found:
        raise ConfigError(f"{', '.join(map(str, cells)) or 'cells'} must hold cells of patterns, got none")
    return _compress(
        list(patterns),
        list(columns),
        _limited(_useful(np.unique(np.array(found, dtype=np.int64).T, axis=1)), max_pairs_per_pattern),
        relations,
        _fact_cells(facts, {name: row for row, name in enumerate(relations)}, columns),
    )


def _blocks(cells: Iterator[tuple[str, str, str, int]]) -> Iterator[list[tuple[str, str, str, int]]]:
    block = []
    for cell in cells:
        if not cell[2].startswith(KB_PREFIX):
            block.append(cell)
        if len(block) == _BLOCK_LINES:
            yield block
            block = []
    if block:
        yield block


def _fact_cells(facts: Iterable[Triple], rows: dict[str, int], columns: dict[str, int]) -> NDArray[np.int64]:
    """Relations and columns of the facts whose entities a text has together, ``[2, F]``."""
    found = set()
    for head, tail, relation in facts:
        # The bare names, and what else the texts call them.
        for pair in (f"{a}\t{b}" for a in name_variants(head) for b in name_variants(tail)):
            if relation in rows and pair in columns:
                found.add((rows[relation], columns[pair]))
    return np.array(sorted(found), dtype=np.int64).reshape(-1, 2).T


def _useful(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Without patterns of one pair and pairs of one pattern."""
    while True:
        row_sizes, column_sizes = np.bincount(cells[0]), np.bincount(cells[1])
        useful = (row_sizes[cells[0]] > 1) & (column_sizes[cells[1]] > 1)
        if useful.all() or not useful.any():
            return cells
        cells = cells[:, useful]


def _limited(cells: NDArray[np.int64], max_pairs_per_pattern: int) -> NDArray[np.int64]:
    # Shuffled once, so that the cells a frequent pattern keeps are no alphabetical stretch.
    order = np.random.default_rng(0).permutation(cells.shape[1])
    cells = cells[:, order[np.argsort(cells[0][order], kind="stable")]]
    starts = np.searchsorted(cells[0], cells[0], side="left")
    return cells[:, np.arange(cells.shape[1]) - starts < max_pairs_per_pattern]


def _compress(
    patterns: list[str],
    pairs: list[str],
    cells: NDArray[np.int64],
    relations: Sequence[str],
    facts: NDArray[np.int64],
) -> RelationMatrix:
    """The matrix of text cells and facts; facts of pairs that no cell is left of are dropped."""
    used_rows, rows = np.unique(cells[0], return_inverse=True)
    used_pairs, columns = np.unique(cells[1], return_inverse=True)
    facts = facts[:, np.isin(facts[1], used_pairs)]
    all_rows = np.concatenate([rows, len(used_rows) + facts[0]])
    all_columns = np.concatenate([columns, np.searchsorted(used_pairs, facts[1])])
    order = np.argsort(all_rows, kind="stable")
    counts = np.bincount(all_rows, minlength=len(used_rows) + len(relations))
    return RelationMatrix(
        patterns=[patterns[row] for row in used_rows.tolist()],
        relations=tuple(relations),
        offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        pairs=all_columns[order].astype(np.int32),
        names=[pairs[column] for column in used_pairs.tolist()],
        pair_sizes=np.bincount(all_columns, minlength=len(used_pairs)),
    )
