"""Training batches of a relation model: mined patterns and relations with their entity pairs, phrases, other patterns.

Shape suffixes: B patterns or relations, N entity pairs.

Everything is drawn from ``(seed, step)``, so that any step can be made again: resuming is exact.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from facets.relations.patterns import mirrored
from facets_lab.relations.training.config import RelationTrainingConfig
from facets_lab.relations.training.data import RelationMatrix
from facets_lab.relations.training.labels import LabelledPatterns, composed

__all__ = ["PairSample", "RelationBatch", "RelationStream"]


Pattern = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PairSample:
    """Entity pairs of some rows.

    Attributes:
        pairs: ``[B, N]`` int64, anything where the weight is 0.
        weights: 1 / number of rows of the pair, 0 where there is no pair, ``[B, N]`` float32.
        negatives: Pairs of other rows, ``[B, N]``.
        negative_weights: Their weights.
    """

    pairs: NDArray[np.int64]
    weights: NDArray[np.float32]
    negatives: NDArray[np.int64]
    negative_weights: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class RelationBatch:
    """One step.

    Attributes:
        mined: Rows of mined patterns, ``[B]``.
        mined_pairs: Their entity pairs.
        relations: Numbers of some relations with facts.
        relation_pairs: Their entity pairs.
        phrases: Patterns that say relations.
        phrase_rows: The labelled pattern that each is, or holds.
        mirrored: The same patterns with their arguments exchanged.
        others: Patterns that say none.
    """

    mined: NDArray[np.int64]
    mined_pairs: PairSample
    relations: NDArray[np.int64]
    relation_pairs: PairSample
    phrases: list[Pattern]
    phrase_rows: NDArray[np.int64]
    mirrored: list[Pattern]
    others: list[Pattern]


class RelationStream:
    """Draws training batches.

    Args:
        matrix: Mined patterns, relations, entity pairs.
        labelled: Phrases and other patterns.
        rows: Labelled patterns to draw from; the others are held out.
        config: How many of what.
    """

    def __init__(
        self,
        matrix: RelationMatrix,
        labelled: LabelledPatterns,
        rows: NDArray[np.int64],
        config: RelationTrainingConfig,
    ) -> None:
        self._matrix, self._labelled, self._config = matrix, labelled, config
        num_patterns = len(matrix.patterns)
        weights = matrix.row_sizes[:num_patterns].astype(np.float64) ** config.sampling_power
        self._cumulative = np.cumsum(weights / weights.sum())
        sizes = matrix.row_sizes[num_patterns:]
        self._with_facts = np.flatnonzero(sizes)
        self._fact_share = sizes[self._with_facts] ** 0.5 / (sizes[self._with_facts] ** 0.5).sum()
        self._pair_weights = (1.0 / matrix.pair_sizes).astype(np.float32)
        self._drawable = rows
        self._rows_of = [rows[labelled.labels[rows, relation]] for relation in range(labelled.labels.shape[1])]
        self._said = np.array([relation for relation, own in enumerate(self._rows_of) if len(own)])

    def training_batches(self, start_step: int) -> Iterator[RelationBatch]:
        """Endless batches from step ``start_step`` on, the same ones in every run with this seed."""
        for step in count(start_step):
            yield self._batch(np.random.default_rng([self._config.seed, 10, step]))

    def _batch(self, rng: np.random.Generator) -> RelationBatch:
        config, labelled = self._config, self._labelled
        num_patterns = len(self._matrix.patterns)
        draws = np.searchsorted(self._cumulative, rng.random(config.batch_size))
        mined = np.minimum(draws, num_patterns - 1)
        num_relations = min(config.relations_per_step, len(self._with_facts))
        relations = rng.choice(self._with_facts, num_relations, replace=False, p=self._fact_share)
        phrase_rows = np.array(
            [rng.choice(self._rows_of[relation]) for relation in rng.choice(self._said, config.phrases_per_step)]
        )
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
            mirrored=[mirrored(pattern) for pattern in phrases],
            others=[others[place] for place in chosen],
        )

    def _phrase(self, row: int, rng: np.random.Generator) -> Pattern:
        pattern = self._labelled.patterns[row]
        if rng.random() >= self._config.composed_share:
            return pattern
        beside = self._labelled.patterns[int(rng.choice(self._drawable))]
        return composed(pattern, beside, int(rng.integers(4)))

    def _sample(self, rows: NDArray[np.int64], size: int, rng: np.random.Generator) -> PairSample:
        starts = self._matrix.offsets[rows]
        sizes = self._matrix.offsets[rows + 1] - starts
        # All pairs of a row in turn from a random one on; those beyond the row's size are masked.
        first = (rng.random(len(rows)) * sizes).astype(np.int64)
        steps = np.arange(size)
        places = starts[:, None] + (first[:, None] + steps) % sizes[:, None]
        pairs = self._matrix.pairs[places].astype(np.int64)
        weights = np.where(steps < sizes[:, None], self._pair_weights[pairs], np.float32(0.0))
        shift = int(rng.integers(1, len(rows))) if len(rows) > 1 else 0
        return PairSample(pairs, weights, np.roll(pairs, shift, axis=0), np.roll(weights, shift, axis=0))
