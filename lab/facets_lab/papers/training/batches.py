"""Batches of papers for training: parts of like length, and the pairs of the whole batch.

Shape letters: B papers, L words, P pairs, U distinct authors or citing papers.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.papers.inputs import CandidateKind
from facets_lab.papers.training.config import PaperTrainingConfig
from facets_lab.papers.training.data import PaperCorpus

__all__ = ["BatchPairs", "PaperBatch", "PaperStream"]

_ENCODED_TOKENS = 16_384  # of one forward pass over all papers, about
_PARTS = 4  # of a batch, by length: little padding, and still every batch holds short and long papers


@dataclass(frozen=True, slots=True)
class BatchPairs:
    """The positive pairs of a batch with authors, or with citing papers.

    Attributes:
        columns: ``[U]`` int64, distinct rows of the table, ascending.
        numbers: ``[P]`` int64, which pairs of the corpus these are.
        pairs: ``[P, 2]`` int64: paper of the batch, place in ``columns``.
        weights: ``[P]`` float32, r of eq. 3.12.
    """

    columns: NDArray[np.int64]
    numbers: NDArray[np.int64]
    pairs: NDArray[np.int64]
    weights: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class PaperBatch:
    """A batch, its papers sorted by length.

    Attributes:
        parts: Padded typed rows ``[b, L]`` int64 and lengths ``[b]`` int64, one after the other.
        pairs: By kind.
        negatives: ``[B]`` int64, another paper for each, for the autoencoder.
    """

    parts: list[tuple[NDArray[np.int64], NDArray[np.int64]]]
    pairs: dict[CandidateKind, BatchPairs]
    negatives: NDArray[np.int64]


class PaperStream:
    """Endless training batches and fixed validation batches; the same ones for the same seed."""

    def __init__(self, corpus: PaperCorpus, config: PaperTrainingConfig) -> None:
        self._corpus = corpus
        self._config = config
        order = np.random.default_rng([config.seed, 0]).permutation(len(corpus))
        num_validation = min(config.validation_papers, len(corpus) // 5)
        self.validation_papers = np.sort(order[:num_validation])
        self.training_papers = np.sort(order[num_validation:])
        self._batch_size = max(2, min(config.batch_size, len(self.training_papers)))
        self._offsets = {kind: pairs.offsets(len(corpus)) for kind, pairs in corpus.interactions.items()}

    def training_batches(self, start_step: int = 0) -> Iterator[PaperBatch]:
        """Batches from a step on; every epoch in another order."""
        per_epoch = max(1, len(self.training_papers) // self._batch_size)
        step = start_step
        while True:
            order = np.random.default_rng([self._config.seed, 1, step // per_epoch]).permutation(self.training_papers)
            for place in range(step % per_epoch, per_epoch):
                rng = np.random.default_rng([self._config.seed, 2, step])
                papers = order[place * self._batch_size : (place + 1) * self._batch_size]
                yield self.batch(papers, rng, word_dropout=self._config.word_dropout)
                step += 1

    def validation_batches(self) -> list[PaperBatch]:
        """The held-out papers, without word dropout."""
        rng = np.random.default_rng([self._config.seed, 3])
        papers = rng.permutation(self.validation_papers)
        size = min(self._batch_size, len(papers))
        return [self.batch(papers[i : i + size], rng) for i in range(0, len(papers) - size + 1, size)] if size else []

    def all_papers(self, max_tokens: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """Every paper once, by length: places ``[b]``, padded typed rows ``[b, L]``, lengths ``[b]``."""
        rng = np.random.default_rng(0)
        lengths = np.minimum(np.diff(self._corpus.offsets), max_tokens)
        order = np.argsort(lengths, kind="stable")
        start = 0
        while start < len(order):
            # The first text is the shortest of its batch; twice its length bounds the padding well enough.
            size = max(1, _ENCODED_TOKENS // (2 * int(lengths[order[start]]) + 8))
            papers = order[start : start + size]
            yield papers, *self._part(papers, rng, 0.0, max_tokens)
            start += len(papers)

    def batch(self, papers: NDArray[np.int64], rng: np.random.Generator, *, word_dropout: float = 0.0) -> PaperBatch:
        """One batch of the given papers."""
        offsets = self._corpus.offsets
        lengths = np.minimum(offsets[papers + 1] - offsets[papers], self._config.input_tokens)
        papers = papers[np.argsort(lengths, kind="stable")]
        parts = [
            self._part(part, rng, word_dropout, self._config.input_tokens)
            for part in np.array_split(papers, _PARTS)
            if len(part)
        ]
        pairs = {kind: self._pairs(kind, papers) for kind in CandidateKind}
        # A random cyclic shift: every paper is somebody's negative, nobody its own.
        negatives = np.roll(np.arange(len(papers)), int(rng.integers(1, len(papers))) if len(papers) > 1 else 0)
        return PaperBatch(parts, pairs, negatives)

    def _part(
        self, papers: NDArray[np.int64], rng: np.random.Generator, word_dropout: float, max_tokens: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        starts = self._corpus.offsets[papers]
        lengths = np.minimum(self._corpus.offsets[papers + 1] - starts, max_tokens)
        steps = np.arange(max(1, int(lengths.max())))
        real = steps < lengths[:, None]
        if word_dropout:
            kept = real & (rng.random(real.shape, dtype=np.float32) >= word_dropout)
            kept[:, 0] |= ~kept.any(axis=1) & real[:, 0]  # one word stays
        else:
            kept = real
        rows = self._corpus.rows[np.where(real, starts[:, None] + steps, 0)].astype(np.int64)
        # Kept words first, in order: a stable sort of the mask.
        order = np.argsort(~kept, axis=1, kind="stable")
        lengths = kept.sum(axis=1)
        width = max(1, int(lengths.max()))
        rows = np.take_along_axis(rows, order[:, :width], axis=1)
        return np.where(np.arange(width) < lengths[:, None], rows, 0), lengths

    def _pairs(self, kind: CandidateKind, papers: NDArray[np.int64]) -> BatchPairs:
        pairs, offsets = self._corpus.interactions[kind], self._offsets[kind]
        starts, counts = offsets[papers], offsets[papers + 1] - offsets[papers]
        places = np.repeat(np.arange(len(papers)), counts)
        steps = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        chosen = starts[places] + steps
        columns, inverse = np.unique(pairs.columns[chosen], return_inverse=True)
        return BatchPairs(columns, chosen, np.stack([places, inverse], axis=1).astype(np.int64), pairs.weights[chosen])
