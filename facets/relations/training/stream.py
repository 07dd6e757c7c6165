"""Training batches of a relation model: patterns and relations with the entity pairs they co-occur with.

Shape suffixes: B patterns or relations, L tokens, N entity pairs.

Everything is drawn from ``(seed, chunk)``, so that any step can be made again: resuming is exact.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.relations.training.config import RelationTrainingConfig
from facets.relations.training.data import RelationMatrix

__all__ = ["RelationBatch", "RelationStream"]

_BATCHES_PER_CHUNK = 32
_MIRROR_SHARE = 0.5


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
        rows: Token rows of the patterns, ``[B, L]`` int64.
        lengths: ``[B]`` int64.
        pattern_pairs: Entity pairs of the patterns.
        relations: Numbers of the relations, ``[R]`` int64.
        relation_pairs: Entity pairs of the relations.
        shift: The negatives' words of eq. B.1 are those of the row so many further.
    """

    rows: NDArray[np.int64]
    lengths: NDArray[np.int64]
    pattern_pairs: PairSample
    relations: NDArray[np.int64]
    relation_pairs: PairSample
    shift: int


class RelationStream:
    """Cuts a matrix into training batches."""

    def __init__(
        self, matrix: RelationMatrix, token_rows: Sequence[NDArray[np.int64]], config: RelationTrainingConfig
    ) -> None:
        self._matrix = matrix
        self._config = config
        self._lengths = np.array([len(rows) for rows in token_rows], dtype=np.int64)
        self._tokens = np.zeros((len(token_rows), int(self._lengths.max())), dtype=np.int32)
        self._tokens[np.arange(self._tokens.shape[1]) < self._lengths[:, None]] = np.concatenate(token_rows)
        sizes = matrix.row_sizes
        weights = sizes[: len(token_rows)].astype(np.float64) ** config.sampling_power
        known, others = weights * matrix.is_known, weights * ~matrix.is_known
        share = config.known_share if known.any() and others.any() else float(known.any())
        shares = share * known / max(known.sum(), 1.0) + (1 - share) * others / max(others.sum(), 1.0)
        self._cumulative = np.cumsum(shares)
        relation_weights = sizes[len(token_rows) :].astype(np.float64) ** 0.5
        self._relation_share = relation_weights / relation_weights.sum()
        self._pair_weights = (1.0 / matrix.pair_sizes).astype(np.float32)

    def training_batches(self, start_step: int) -> Iterator[RelationBatch]:
        """Endless batches from step ``start_step`` on, the same ones in every run with this seed."""
        size = self._config.batch_size
        for chunk in range(start_step // _BATCHES_PER_CHUNK, np.iinfo(np.int64).max):
            rng = np.random.default_rng([self._config.seed, 10, chunk])
            draws = np.sort(rng.random(size * _BATCHES_PER_CHUNK))
            drawn = np.minimum(np.searchsorted(self._cumulative, draws), len(self._lengths) - 1)
            drawn = rng.permutation(drawn)
            batches = drawn[np.argsort(self._lengths[drawn], kind="stable")].reshape(-1, size)
            for position, batch in enumerate(rng.permutation(batches)):
                batch_rng = np.random.default_rng([self._config.seed, 11, chunk, position])
                if chunk * _BATCHES_PER_CHUNK + position >= start_step:
                    yield self._batch(batch, batch_rng)

    def _batch(self, patterns: NDArray[np.int64], rng: np.random.Generator) -> RelationBatch:
        config = self._config
        lengths = self._lengths[patterns]
        num_patterns = len(self._lengths)
        count = min(config.relations_per_step, len(self._relation_share))
        relations = rng.choice(len(self._relation_share), count, replace=False, p=self._relation_share)
        # Neighbours in a batch are of one length; the negatives of patterns and relations come from anywhere in it.
        return RelationBatch(
            rows=self._tokens[patterns, : int(lengths.max())].astype(np.int64),
            lengths=lengths,
            pattern_pairs=self._sample(patterns, config.pairs_per_pattern, rng),
            relations=relations,
            relation_pairs=self._sample(num_patterns + relations, config.pairs_per_relation, rng),
            shift=int(rng.integers(1, len(patterns))),
        )

    def _sample(self, rows: NDArray[np.int64], count: int, rng: np.random.Generator) -> PairSample:
        starts = self._matrix.offsets[rows]
        sizes = self._matrix.offsets[rows + 1] - starts
        # All pairs of a row in turn from a random one on; those beyond the row's size are masked.
        first = (rng.random(len(rows)) * sizes).astype(np.int64)
        steps = np.arange(count)
        places = starts[:, None] + (first[:, None] + steps) % sizes[:, None]
        pairs = self._matrix.pairs[places].astype(np.int64)
        weights = np.where(steps < sizes[:, None], self._pair_weights[pairs], np.float32(0.0))
        shift = int(rng.integers(1, len(rows))) if len(rows) > 1 else 0
        negatives, negative_weights = np.roll(pairs, shift, axis=0), np.roll(weights, shift, axis=0)
        # Some negatives are the row's own pairs the other way round, where they are known to be something else.
        mirrors = self._matrix.mirrors[pairs]
        swapped = (mirrors >= 0) & (weights > 0) & (rng.random(pairs.shape) < _MIRROR_SHARE)
        negatives = np.where(swapped, mirrors, negatives)
        negative_weights = np.where(swapped, self._pair_weights[mirrors], negative_weights)
        return PairSample(pairs, weights, negatives, negative_weights)
