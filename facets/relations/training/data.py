"""The co-occurrence matrix of patterns, relations and entity pairs, as arrays.

Rows are patterns, then relations; columns are entity pairs. Files are read line by line, and one pair or one pattern
cannot fill the memory: each keeps a limited number of cells.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.errors import ConfigError, InvalidInputError
from facets.relations.patterns import mirrored, tokenize_patterns
from facets.relations.training.mining_documents import bare_name, name_variants
from facets.relations.training.verbalization import Triple, verbalize
from facets.text.files import read_lines
from facets.text.tokenizer import Tokenizer

__all__ = ["KB_PREFIX", "RelationMatrix", "load_matrix", "read_cells"]

logger = logging.getLogger(__name__)

KB_PREFIX = "kb:"
_BLOCK_LINES = 200_000


@dataclass(frozen=True, slots=True)
class RelationMatrix:
    """Cells in compressed rows; patterns first, then relations.

    Attributes:
        patterns: Lower-case tokens of each pattern, joined by one blank; ``P`` of them.
        relations: Names, ``R``.
        offsets: ``[P + R + 1]`` int64; the pairs of row ``i`` are ``pairs[offsets[i]:offsets[i + 1]]``.
        pairs: Columns, int32.
        num_pairs: ``N``.
        pair_sizes: Rows of each pair, ``[N]`` int64: the frequency behind the weights of eq. 3.9. All verbalized
            patterns of a pair count as one.
        is_verbalized: Patterns made from a triple instead of found in a text, ``[P]``.
        is_known: Patterns that co-occur with a pair of the knowledge base, ``[P]``.
        mirrors: The same two entities the other way round, for pairs of the knowledge base; -1 for others, ``[N]``.
    """

    patterns: list[str]
    relations: list[str]
    offsets: NDArray[np.int64]
    pairs: NDArray[np.int32]
    num_pairs: int
    pair_sizes: NDArray[np.int64]
    is_verbalized: NDArray[np.bool_]
    is_known: NDArray[np.bool_]
    mirrors: NDArray[np.int64]

    @property
    def row_sizes(self) -> NDArray[np.int64]:
        """Pairs of each row, ``[P + R]``."""
        return np.diff(self.offsets)


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


def load_matrix(
    cells: Sequence[Path],
    triples: Path,
    *,
    tokenizer: Tokenizer,
    max_patterns_per_pair: int,
    max_pairs_per_pattern: int,
    phrases: Mapping[str, Sequence[str]],
    with_mirrors: bool = False,
    seed: int = 1,
) -> RelationMatrix:
    """Reads matrix files into arrays.

    Args:
        cells: Files of text cells; ``kb:`` rows in them are left out, triples come from ``triples`` alone.
        triples: File whose ``kb:`` rows are the knowledge base; its patterns are left out.
        tokenizer: Normalises the patterns.
        max_patterns_per_pair: Cells of one entity pair at most; the first ones of the files stay.
        max_pairs_per_pattern: Cells of one pattern at most.
        phrases: Patterns that say a relation, by relation; every pair of a relation co-occurs with its own.
        with_mirrors: Let every triple's entities, the other way round, co-occur with the mirrored patterns.
        seed: Of the patterns made of two triples (``verbalize``).

    Returns:
        The matrix; patterns of one pair are left out unless the pair is in the knowledge base.

    Raises:
        InvalidInputError: A bad line; the message names file and line.
        ConfigError: A file cannot be read, or no cell is left.
    """
    facts = [
        Triple(head, tail, name[len(KB_PREFIX) :])
        for head, tail, name, _ in read_cells(triples)
        if name.startswith(KB_PREFIX)
    ]
    if not facts:
        raise ConfigError(f"{triples} must hold kb:relation rows, got none")
    matrix = _Cells(max_patterns_per_pair)
    for path in cells:
        for block in _blocks(read_cells(path)):
            tokens = tokenize_patterns([cell[2] for cell in block], tokenizer, path=(str(path), "patterns"))
            for cell, words in zip(block, tokens, strict=True):
                matrix.add(f"{bare_name(cell[0])}\t{bare_name(cell[1])}", " ".join(words))
    num_found = len(matrix.rows)
    reversals = matrix.add_facts(verbalize(facts, phrases, seed=seed), with_mirrors=with_mirrors)
    mirror_of = np.full(len(matrix.columns), -1, dtype=np.int64)
    mirror_of[list(reversals)] = list(reversals.values())
    mirror_of[list(reversals.values())] = list(reversals)
    return _compress(
        matrix.rows,
        np.array(matrix.row_of),
        np.array(matrix.column_of),
        sorted({fact.relation for fact in facts}),
        np.arange(len(matrix.rows)) < num_found,
        mirror_of,
        max_pairs_per_pattern,
    )


class _Cells:
    """Cells as they come: numbers of rows and columns in the order they are first seen.

    Attributes:
        rows: Pattern, or ``kb:relation`` -> its number.
        columns: Pair -> its number.
        row_of: Row of each cell.
        column_of: Column of each cell.
    """

    def __init__(self, max_patterns_per_pair: int) -> None:
        self.rows: dict[str, int] = {}
        self.columns: dict[str, int] = {}
        self.row_of: list[int] = []
        self.column_of: list[int] = []
        self._sizes: list[int] = []  # cells of each pair
        self._max_size = max_patterns_per_pair

    def add(self, pair: str, row: str, *, is_fact: bool = False) -> None:
        """Adds a cell; one of a text only while its pair has few."""
        column = self.columns.setdefault(pair, len(self.columns))
        if column == len(self._sizes):
            self._sizes.append(0)
        if self._sizes[column] < self._max_size or is_fact:
            self._sizes[column] += 1
            self.row_of.append(self.rows.setdefault(row, len(self.rows)))
            self.column_of.append(column)

    def add_facts(self, facts: Iterable[tuple[Triple, Sequence[str]]], *, with_mirrors: bool) -> dict[int, int]:
        """Adds triples with the patterns that say them; returns column -> that of the same pair the other way round."""
        mined = set(self.columns)
        reversals: dict[int, int] = {}
        for fact, patterns in facts:
            variants = [f"{a}\t{b}" for a in name_variants(fact.head) for b in name_variants(fact.tail)]
            # The bare names, and what else the texts call them.
            for pair in (variants[0], *(variant for variant in variants[1:] if variant in mined)):
                for row in (KB_PREFIX + fact.relation, *patterns):
                    self.add(pair, row, is_fact=True)
                if not with_mirrors:
                    continue
                # The other way round the same words say nothing of the relation: what is head and what is tail counts.
                for mirrored_pattern in (" ".join(mirrored(pattern.split())) for pattern in patterns):
                    self.add(_reversed(variants[0]), mirrored_pattern, is_fact=True)
                reversals[self.columns[variants[0]]] = self.columns[_reversed(variants[0])]
        return reversals


def _reversed(pair: str) -> str:
    head, _, tail = pair.partition("\t")
    return f"{tail}\t{head}"


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


def _useful_cells(cells: NDArray[np.int64], in_kb: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Without patterns of one pair and pairs of one pattern, which say nothing about others."""
    while True:
        row_sizes, column_sizes = np.bincount(cells[0]), np.bincount(cells[1])
        useful = (row_sizes[cells[0]] > 1) & (column_sizes[cells[1]] > 1) | in_kb[cells[1]]
        if useful.all():
            return cells
        cells = cells[:, useful]


def _compress(
    rows: dict[str, int],
    row_of: NDArray[np.int64],
    column_of: NDArray[np.int64],
    relations: list[str],
    is_found: NDArray[np.bool_],
    mirror_of: NDArray[np.int64],
    max_pairs_per_pattern: int,
) -> RelationMatrix:
    names = list(rows)
    in_kb = np.zeros(int(column_of.max()) + 1, dtype=np.bool_)
    is_relation = np.array([name.startswith(KB_PREFIX) for name in names])
    in_kb[column_of[is_relation[row_of]]] = True
    in_kb |= mirror_of >= 0
    cells = _useful_cells(np.unique(np.stack([row_of, column_of]), axis=1), in_kb)
    # Shuffled once, so that the cells a frequent pattern keeps are no alphabetical stretch.
    order = np.random.default_rng(0).permutation(cells.shape[1])
    cells = cells[:, order[np.argsort(cells[0][order], kind="stable")]]
    starts = np.searchsorted(cells[0], cells[0], side="left")
    kept = (np.arange(cells.shape[1]) - starts < max_pairs_per_pattern) | is_relation[cells[0]]
    cells = cells[:, kept]
    patterns = [row for row in np.unique(cells[0]) if not is_relation[row]]
    new_row = np.full(len(names), -1, dtype=np.int64)
    new_row[patterns] = np.arange(len(patterns))
    for number, name in enumerate(relations):
        new_row[rows[KB_PREFIX + name]] = len(patterns) + number
    used, columns = np.unique(cells[1], return_inverse=True)
    mapped = new_row[cells[0]]
    order = np.argsort(mapped, kind="stable")
    num_rows = len(patterns) + len(relations)
    place_of = np.full(len(in_kb), -1, dtype=np.int64)
    place_of[used] = np.arange(len(used))
    counted = is_found[cells[0]] | is_relation[cells[0]]
    found_sizes = np.bincount(columns[counted], minlength=len(used))
    known = np.zeros(len(names), dtype=np.bool_)
    known[cells[0][in_kb[cells[1]]]] = True
    return RelationMatrix(
        patterns=[names[row] for row in patterns],
        relations=relations,
        offsets=np.concatenate([[0], np.cumsum(np.bincount(mapped, minlength=num_rows))]).astype(np.int64),
        pairs=columns[order].astype(np.int32),
        num_pairs=len(used),
        pair_sizes=found_sizes + (np.bincount(columns, minlength=len(used)) > found_sizes),
        is_verbalized=~is_found[patterns],
        is_known=known[patterns],
        mirrors=np.where(mirror_of[used] >= 0, place_of[mirror_of[used]], -1),
    )
