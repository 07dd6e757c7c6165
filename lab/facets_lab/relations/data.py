"""The co-occurrence matrix of patterns, relations and entity pairs, and training batches from it.

Rows are patterns, then relations; columns are entity pairs. Batches are drawn from ``(seed, step)``, so resuming is
exact. Shape suffixes: B patterns or relations, N entity pairs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from facets.arrays import Floats, Ints, Ints32
from facets.config import AtLeastOne, NonNegative, PatternNetworkConfig, Positive, Settings, Share
from facets.errors import ConfigError
from facets.language.tokenizer import Tokenizer, grouped
from facets.relations.patterns import tokenize_patterns
from facets_lab.evaluation.files import Columns, parse_count, read_table
from facets_lab.relations.catalogue import LabelledPatterns, Pattern, compose
from facets_lab.relations.entity_pairs import bare_name, name_variants
from facets_lab.training.loop import BatchSize, TrainingConfig

KB_PREFIX = "kb:"
_BLOCK_LINES = 200_000

Triple = tuple[str, str, str]  # head, tail, relation
Cell = tuple[str, str, str, int]  # entity, entity, pattern or kb:relation, count


class FactorizationConfig(Settings):
    """Universal schema by matrix factorization (BPR) with Adagrad."""

    dim: AtLeastOne = 64
    num_epochs: AtLeastOne = 20
    batch_size: AtLeastOne = 8192  # cells per step
    learning_rate: Positive = 0.1
    l2_weight: NonNegative = 1e-3  # for the embeddings of a cell
    num_negatives: AtLeastOne = 2  # entity pairs per cell


class RelationTrainingConfig(TrainingConfig):
    """Training of multi-facet universal schema (Chang 2022, algorithm 2) on a sentence encoder."""

    name: str = "facets-relations-en"
    encoder_of: str  # folder of the model of passages whose encoder is tuned
    catalogue: str  # file of the relations
    phrases: str  # file of patterns that express a relation
    none_patterns: str  # file of patterns that express no relation
    cells: Annotated[list[str], Field(min_length=1)]  # matrix files: entity, entity, pattern, count
    facts: list[str] = Field(default=[])  # matrix files whose kb:... rows are facts
    types: list[str] = Field(default=[])  # files of the types of names
    num_relation_facets: AtLeastOne = 11  # K of relations
    max_patterns_per_pair: AtLeastOne = 100  # for the matrix
    max_pairs_per_pattern: AtLeastOne = 2000
    num_steps: AtLeastOne = 400
    batch_size: BatchSize = 64  # mined patterns per step
    pairs_per_pattern: AtLeastOne = 4  # entity pairs drawn for each
    relations_per_step: AtLeastOne = 24
    pairs_per_relation: AtLeastOne = 16
    phrases_per_step: AtLeastOne = 64
    others_per_step: AtLeastOne = 24  # patterns that express no relation
    composed_share: Share = 0.3  # share of the phrases put into a sentence with another fact
    sampling_power: Share = 0.5  # a pattern is drawn in proportion to (number of its pairs) ** power
    similar_relations: Share = 0.8  # relations with a higher initial cosine are not negatives of each other
    slope: Positive = 30.0  # of the scores in the ranking loss
    direction_slope: Positive = 20.0
    schema_weight: NonNegative = 1.0  # of eq. 3.9
    encoder_weight: NonNegative = 2.0  # of the loss that keeps sentence vectors near the encoder's
    encoder_learning_rate: Positive = 4e-5
    relation_learning_rate: Positive = 3e-4  # of the relations' facets
    pair_learning_rate: NonNegative = 0.1  # of the entity pair embeddings, by plain gradient descent
    model: PatternNetworkConfig = PatternNetworkConfig()
    factorization: FactorizationConfig = FactorizationConfig()


@dataclass(frozen=True, slots=True)
class RelationMatrix:
    """Cells in compressed rows; patterns first, then relations."""

    patterns: list[str]  # lower-case tokens of each pattern, separated by spaces; P of them
    relations: tuple[str, ...]  # names, R; a relation may have no cells
    offsets: Ints  # [P + R + 1] int64; the pairs of row i are pairs[offsets[i]:offsets[i + 1]]
    pairs: Ints32  # columns, int32
    names: list[str]  # head and tail of each pair, separated by a tab, N
    pair_sizes: Ints  # rows of each pair, [N] int64; the frequency behind the weights of eq. 3.9

    @property
    def row_sizes(self) -> Ints:
        """Pairs of each row, ``[P + R]``."""
        return np.diff(self.offsets)

    def pairs_of(self, row: int) -> Ints32:
        """Columns of a row."""
        return self.pairs[self.offsets[row] : self.offsets[row + 1]]


def read_cells(path: Path) -> Iterator[Cell]:
    """Cells of a matrix file."""
    columns: Columns = {"entity": str, "other entity": str, "pattern or kb:relation": str, "count": parse_count}
    yield from read_table(path, columns)


def read_triples(path: Path) -> list[Triple]:
    """The ``kb:`` rows of a matrix file."""
    rows = read_cells(path)
    triples = [(head, tail, name.removeprefix(KB_PREFIX)) for head, tail, name, _ in rows if name.startswith(KB_PREFIX)]
    if not triples:
        raise ConfigError(f"{path} must hold kb:relation rows, got none")
    return triples


def load_matrix(
    cells: Sequence[Path],
    facts: Iterable[Triple],
    relations: Sequence[str],
    *,
    max_patterns_per_pair: int,
    max_pairs_per_pattern: int,
) -> RelationMatrix:
    """Reads matrix files into arrays, without patterns that have one pair and pairs that have one pattern.

    ``kb:`` rows and facts about pairs without a pattern are left out. The first cells of a pair and a random choice of
    the cells of a pattern are kept.
    """
    tokenizer = Tokenizer()
    patterns: dict[str, int] = {}
    columns: dict[str, int] = {}
    sizes: list[int] = []  # cells of each pair
    text_cells: list[tuple[int, int]] = []
    for path in cells:
        rows = (cell for cell in read_cells(path) if not cell[2].startswith(KB_PREFIX))
        for block in grouped(rows, _BLOCK_LINES, size=lambda _: 1):
            tokens = tokenize_patterns([cell[2] for cell in block], tokenizer, path=(str(path), "patterns"))
            for cell, words in zip(block, tokens, strict=True):
                column = columns.setdefault(f"{bare_name(cell[0])}\t{bare_name(cell[1])}", len(columns))
                if column == len(sizes):
                    sizes.append(0)
                if sizes[column] < max_patterns_per_pair:
                    sizes[column] += 1
                    text_cells.append((patterns.setdefault(" ".join(words), len(patterns)), column))
    if not text_cells:
        raise ConfigError(f"{', '.join(map(str, cells)) or 'cells'} must hold cells of patterns, got none")
    kept = _limit_rows(_drop_unsupported(np.unique(np.array(text_cells).T, axis=1)), max_pairs_per_pattern)
    used_rows, rows_C = np.unique(kept[0], return_inverse=True)
    used_pairs, columns_C = np.unique(kept[1], return_inverse=True)
    facts_2F = _fact_cells(facts, {name: row for row, name in enumerate(relations)}, columns)
    facts_2F = facts_2F[:, np.isin(facts_2F[1], used_pairs)]
    all_rows = np.concatenate([rows_C, len(used_rows) + facts_2F[0]])
    all_columns = np.concatenate([columns_C, np.searchsorted(used_pairs, facts_2F[1])])
    counts = np.bincount(all_rows, minlength=len(used_rows) + len(relations))
    pattern_of, pair_of = list(patterns), list(columns)
    return RelationMatrix(
        patterns=[pattern_of[row] for row in used_rows],
        relations=tuple(relations),
        offsets=np.cumsum([0, *counts]),
        pairs=all_columns[np.argsort(all_rows, kind="stable")].astype(np.int32),
        names=[pair_of[column] for column in used_pairs],
        pair_sizes=np.bincount(all_columns, minlength=len(used_pairs)),
    )


def _fact_cells(facts: Iterable[Triple], rows: dict[str, int], columns: dict[str, int]) -> Ints:
    """Relations and columns of the facts whose entities occur together in a text, ``[2, F]``."""
    cells = set()
    for head, tail, relation in facts:
        for pair in (f"{a}\t{b}" for a in name_variants(head) for b in name_variants(tail)):
            if relation in rows and pair in columns:
                cells.add((rows[relation], columns[pair]))
    return np.array(sorted(cells), dtype=np.int64).reshape(-1, 2).T


def _drop_unsupported(cells: Ints) -> Ints:
    """Drops patterns with one pair and pairs with one pattern, which say nothing about others."""
    while True:
        row_sizes, column_sizes = np.bincount(cells[0]), np.bincount(cells[1])
        useful = (row_sizes[cells[0]] > 1) & (column_sizes[cells[1]] > 1)
        if useful.all() or not useful.any():
            return cells
        cells = cells[:, useful]


def _limit_rows(cells: Ints, max_pairs_per_pattern: int) -> Ints:
    # Shuffled, so that the cells kept for a frequent pattern are not an alphabetical range.
    order = np.random.default_rng(0).permutation(cells.shape[1])
    cells = cells[:, order[np.argsort(cells[0][order], kind="stable")]]
    starts = np.searchsorted(cells[0], cells[0], side="left")
    return cells[:, np.arange(cells.shape[1]) - starts < max_pairs_per_pattern]


@dataclass(frozen=True, slots=True)
class PairSample:
    """Entity pairs of some rows, and those of other rows as negatives, ``[B, N]`` each.

    Weights are 1 / (number of rows of the pair), and 0 where there is no pair.
    """

    pairs: Ints
    weights: Floats
    negatives: Ints
    negative_weights: Floats


@dataclass(frozen=True, slots=True)
class RelationBatch:
    """Batch of one training step."""

    mined: Ints  # rows of mined patterns, [B]
    mined_pairs: PairSample  # their entity pairs
    relations: Ints  # rows of some relations with facts
    relation_pairs: PairSample  # their entity pairs
    phrases: list[Pattern]  # patterns that express relations
    phrase_rows: Ints  # row of the labelled pattern of each phrase
    others: list[Pattern]  # patterns that express no relation


class RelationStream:
    """Draws training batches."""

    def __init__(self, matrix: RelationMatrix, labelled: LabelledPatterns, config: RelationTrainingConfig) -> None:
        self._matrix, self._labelled, self._config = matrix, labelled, config
        num_patterns = len(matrix.patterns)
        weights = matrix.row_sizes[:num_patterns].astype(np.float64) ** config.sampling_power
        self._cumulative = np.cumsum(weights / weights.sum())
        sizes = matrix.row_sizes[num_patterns:]
        self._with_facts = np.flatnonzero(sizes)
        self._fact_share = sizes[self._with_facts] ** 0.5 / (sizes[self._with_facts] ** 0.5).sum()
        self._pair_weights = (1.0 / matrix.pair_sizes).astype(np.float32)
        self._rows_of = [np.flatnonzero(labels) for labels in labelled.labels.T]
        self._with_phrases = np.array([relation for relation, phrases in enumerate(self._rows_of) if len(phrases)])

    def training_batches(self, start_step: int) -> Iterator[RelationBatch]:
        """Endless batches starting at a step, identical in every run with this seed."""
        for step in count(start_step):
            yield self._batch(np.random.default_rng([self._config.seed, 10, step]))

    def _batch(self, rng: np.random.Generator) -> RelationBatch:
        config, labelled = self._config, self._labelled
        num_patterns = len(self._matrix.patterns)
        draws = np.searchsorted(self._cumulative, rng.random(config.batch_size))
        mined = np.minimum(draws, num_patterns - 1)
        num_relations = min(config.relations_per_step, len(self._with_facts))
        relations = rng.choice(self._with_facts, num_relations, replace=False, p=self._fact_share)
        phrase_relations = rng.choice(self._with_phrases, config.phrases_per_step)
        phrase_rows = np.array([rng.choice(self._rows_of[relation]) for relation in phrase_relations])
        phrases = [self._phrase(row, rng) for row in phrase_rows.tolist()]
        others = labelled.others
        chosen = rng.choice(len(others), min(config.others_per_step, len(others)), replace=False).tolist()
        return RelationBatch(
            mined=mined,
            mined_pairs=self._sample(mined, config.pairs_per_pattern, rng),
            relations=relations,
            relation_pairs=self._sample(num_patterns + relations, config.pairs_per_relation, rng),
            phrases=phrases,
            phrase_rows=phrase_rows,
            others=[others[row] for row in chosen],
        )

    def _phrase(self, row: int, rng: np.random.Generator) -> Pattern:
        pattern = self._labelled.patterns[row]
        if rng.random() >= self._config.composed_share:
            return pattern
        other = self._labelled.patterns[int(rng.choice(len(self._labelled.patterns)))]
        return compose(pattern, other, int(rng.integers(4)))

    def _sample(self, rows: Ints, size: int, rng: np.random.Generator) -> PairSample:
        starts = self._matrix.offsets[rows]
        sizes = self._matrix.offsets[rows + 1] - starts
        # The pairs of a row, starting at a random one; positions beyond the size of the row have weight 0.
        first = (rng.random(len(rows)) * sizes).astype(np.int64)
        steps = np.arange(size)
        pairs = self._matrix.pairs[starts[:, None] + (first[:, None] + steps) % sizes[:, None]].astype(np.int64)
        weights = np.where(steps < sizes[:, None], self._pair_weights[pairs], np.float32(0.0))
        shift = int(rng.integers(1, len(rows))) if len(rows) > 1 else 0
        return PairSample(pairs, weights, np.roll(pairs, shift, axis=0), np.roll(weights, shift, axis=0))
