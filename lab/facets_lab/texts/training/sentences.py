"""Training batches of a sentence model: sentences in, words of the neighbouring sentences as targets.

Shape suffixes: B texts, L tokens, N targets.

Everything is drawn from ``(seed, epoch, chunk)``, so that any step can be made again without
replaying the ones before it: resuming is exact.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.errors import ConfigError
from facets_lab.texts.training.config import SentenceTrainingConfig
from facets_lab.training.corpus import PackedCorpus

__all__ = ["SentenceBatch", "SentenceStream", "gather", "held_out_documents"]

# Batches that are sorted by length together: enough for hardly any padding, few enough to stay random.
_BATCHES_PER_CHUNK = 64
# Words of a neighbouring sentence beyond this many are never drawn as targets.
_MAX_NEIGHBOUR_TOKENS = 64


@dataclass(frozen=True, slots=True)
class SentenceBatch:
    """One step's inputs and targets.

    Attributes:
        rows: Word rows, ``[B, L]`` int64, padded with 0.
        lengths: Real tokens of each text, ``[B]`` int64.
        targets: Word rows of the targets, ``[B, N]`` int64, padded with 0.
        target_mask: True at real targets, ``[B, N]``.
        negatives: Row of the batch whose targets are a text's negatives, ``[B]`` int64, never its own.
    """

    rows: NDArray[np.int64]
    lengths: NDArray[np.int64]
    targets: NDArray[np.int64]
    target_mask: NDArray[np.bool_]
    negatives: NDArray[np.int64]


class SentenceStream:
    """Cuts a packed corpus into training and validation batches.

    Attributes:
        corpus: What is cut.
        config: How.
        training_sentences: Those that can be trained on, ascending.
        validation_sentences: Those of documents that never are.

    Raises:
        ConfigError: The corpus is too small for one batch on either side.
    """

    def __init__(self, corpus: PackedCorpus, config: SentenceTrainingConfig) -> None:
        self.corpus = corpus
        self.config = config
        offsets = corpus.document_offsets
        num_documents = len(offsets) - 1
        # [S] document of every sentence; neighbours never cross a document's border.
        self._document_of = np.repeat(np.arange(num_documents), np.diff(offsets))
        is_validation = held_out_documents(corpus, config)[self._document_of]
        alone = np.diff(offsets)[self._document_of] < 2
        self.training_sentences = np.flatnonzero(~is_validation & ~alone)
        self.validation_sentences = np.flatnonzero(is_validation & ~alone)
        for name, sentences in (
            ("training", self.training_sentences),
            ("validation", self.validation_sentences),
        ):
            if len(sentences) < config.batch_size:
                raise ConfigError(
                    f"{corpus.path} leaves {len(sentences)} {name} sentences, one batch needs {config.batch_size}"
                )

    @property
    def num_train_sentences(self) -> int:
        """Sentences that can be trained on; one epoch presents each about once."""
        return len(self.training_sentences)

    def training_batches(self, start_step: int) -> Iterator[SentenceBatch]:
        """Endless batches from step ``start_step`` on, the same ones in every run with this seed."""
        batch_size = self.config.batch_size
        # A corpus smaller than a chunk is one chunk an epoch; the last incomplete batch is dropped.
        chunk_batches = min(_BATCHES_PER_CHUNK, self.num_train_sentences // batch_size)
        chunks_per_epoch = self.num_train_sentences // (batch_size * chunk_batches)
        epoch = -1
        for chunk in range(start_step // chunk_batches, np.iinfo(np.int64).max):
            if chunk // chunks_per_epoch != epoch:
                epoch = chunk // chunks_per_epoch
                order = np.random.default_rng([self.config.seed, 1, epoch]).permutation(self.training_sentences)
            first = (chunk % chunks_per_epoch) * batch_size * chunk_batches
            rng = np.random.default_rng([self.config.seed, 2, chunk])
            batches = self.length_sorted(order[first : first + batch_size * chunk_batches], rng)
            skip = start_step - chunk * chunk_batches if chunk == start_step // chunk_batches else 0
            for position, (sentences, ends, lengths) in enumerate(batches):
                # Drawn from its own generator, so that skipped batches change nothing.
                batch_rng = np.random.default_rng([self.config.seed, 3, chunk, position])
                if position >= skip:
                    yield self._batch(sentences, ends, lengths, batch_rng)

    def validation_batches(self) -> list[SentenceBatch]:
        """The same held-out batches every time; targets and negatives included."""
        rng = np.random.default_rng([self.config.seed, 4])
        count = min(self.config.validation_sentences, len(self.validation_sentences))
        sentences = rng.choice(self.validation_sentences, count - count % self.config.batch_size, replace=False)
        return [self._batch(*parts, rng) for parts in self.length_sorted(sentences, rng)]

    def length_sorted(
        self, sentences: NDArray[np.int64], rng: np.random.Generator
    ) -> list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """Batches of (first sentence, sentence after the last, tokens) of like length, in random order."""
        offsets = self.corpus.sentence_offsets
        is_long = rng.random(len(sentences)) < self.config.long_input_rate
        limits = np.where(is_long, self.config.long_input_tokens, self.config.input_tokens)
        # A long input takes in the following sentences up to its token limit or its document's last but one.
        reach = np.searchsorted(offsets, offsets[sentences] + self.config.long_input_tokens, side="right") - 1
        last = self.corpus.document_offsets[self._document_of[sentences] + 1] - 1
        ends = np.where(is_long, np.maximum(sentences + 1, np.minimum(reach, last)), sentences + 1)
        lengths = np.minimum(offsets[ends] - offsets[sentences], limits)
        order = np.argsort(lengths, kind="stable")
        batches = order.reshape(-1, self.config.batch_size)
        return [(sentences[b], ends[b], lengths[b]) for b in rng.permutation(batches)]

    def _batch(
        self,
        sentences: NDArray[np.int64],
        ends: NDArray[np.int64],
        lengths: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> SentenceBatch:
        offsets = self.corpus.sentence_offsets
        rows, _ = gather(self.corpus.tokens, offsets[sentences], lengths)
        targets, target_mask = self._draw_targets(sentences, ends, rng)
        # A random cyclic shift: every text is somebody's negative, nobody its own.
        negatives = np.roll(np.arange(len(sentences)), rng.integers(1, len(sentences)))
        return SentenceBatch(rows, lengths, targets, target_mask, negatives)

    def _draw_targets(
        self, sentences: NDArray[np.int64], ends: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Up to ``max_targets`` non-stop words of the sentences before and after, at random, ``[B, N]``."""
        offsets = self.corpus.sentence_offsets
        documents = self._document_of[sentences]
        first = np.maximum(sentences - 1, self.corpus.document_offsets[documents])
        last = np.minimum(ends + 1, self.corpus.document_offsets[documents + 1])
        num_before = np.minimum(offsets[sentences] - offsets[first], _MAX_NEIGHBOUR_TOKENS)
        num_after = np.minimum(offsets[last] - offsets[ends], _MAX_NEIGHBOUR_TOKENS)
        before, before_mask = gather(self.corpus.tokens, offsets[sentences] - num_before, num_before)
        after, after_mask = gather(self.corpus.tokens, offsets[ends], num_after)
        rows = np.concatenate([before, after], axis=1)
        mask = np.concatenate([before_mask, after_mask], axis=1) & ~self.corpus.vocabulary.is_stop[rows]
        keys = np.where(mask, rng.random(rows.shape, dtype=np.float32), np.float32(2.0))
        num_targets = min(self.config.max_targets, rows.shape[1])
        chosen = np.argpartition(keys, num_targets - 1, axis=1)[:, :num_targets]
        target_mask = np.take_along_axis(mask, chosen, axis=1)
        return np.where(target_mask, np.take_along_axis(rows, chosen, axis=1), 0), target_mask


def held_out_documents(corpus: PackedCorpus, config: SentenceTrainingConfig) -> NDArray[np.bool_]:
    """True at the documents that are never trained on, the same ones for every kind of input."""
    num_documents = len(corpus.document_offsets) - 1
    order = np.random.default_rng([config.seed, 0]).permutation(num_documents)
    is_held_out = np.zeros(num_documents, dtype=np.bool_)
    is_held_out[order[: max(1, round(num_documents * config.validation_share))]] = True
    return is_held_out


def gather(
    tokens: NDArray[np.integer], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Token rows ``[B, L]`` of runs of a corpus, padded with 0, and the mask of real ones."""
    steps = np.arange(max(1, int(lengths.max(initial=0))))
    mask = steps < lengths[:, None]
    positions = np.where(mask, starts[:, None] + steps, 0)
    return np.where(mask, tokens[positions].astype(np.int64), 0), mask
