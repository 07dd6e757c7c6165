"""Training batches of sentence models: texts as inputs, words of the neighbouring sentences as targets.

Every batch is drawn from the seed and its position, so resuming is exact. Shape suffixes: B texts, L tokens of a text,
N targets, V words.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from facets.arrays import Bools, Ints
from facets.config import AtLeastOne, FacetModelConfig, NonNegative, Share
from facets.errors import ConfigError
from facets_lab.training.corpus import PackedCorpus, gather
from facets_lab.training.loop import BatchSize, TrainingConfig

_BATCHES_PER_CHUNK = 64  # sorted by length together, for little padding while batches stay random
_MAX_NEIGHBOUR_TOKENS = 64  # tokens of a neighbouring sentence from which targets are drawn


class SentenceTrainingConfig(TrainingConfig):
    """Training of a sentence model (Chang 2022, algorithm 1)."""

    corpus: str  # folder of a packed corpus
    words: str  # folder of word vectors, same vocabulary as the corpus
    name: str = "facets-en"
    loss: Literal["sparse_coding", "kmeans"] = "sparse_coding"  # kmeans is the ablation
    l1_weight: NonNegative = 0.4  # lambda of eq. 3.1
    num_steps: AtLeastOne = 12_000
    batch_size: BatchSize = 256  # sentences per step
    max_targets: AtLeastOne = 30  # target words of a text
    input_tokens: AtLeastOne = 32  # a training input is cut after so many tokens
    long_input_rate: Share = 0.02  # share of inputs that continue over the next sentences
    long_input_tokens: AtLeastOne = 96  # and are cut only here, so that long texts are seen too
    validation_share: Annotated[float, Field(gt=0, lt=1)] = 0.01  # of the documents, never trained on
    validation_sentences: AtLeastOne = 4096
    model: FacetModelConfig = FacetModelConfig()

    @model_validator(mode="after")
    def _check(self) -> Self:
        limit = self.model.max_tokens
        for field in ("input_tokens", "long_input_tokens"):
            self.require(field, getattr(self, field) <= limit, f"<= model.max_tokens ({limit})")
        return self


@dataclass(frozen=True, slots=True)
class SentenceBatch:
    """Inputs and targets of one step."""

    rows: Ints  # word rows, [B, L] int64, padded with 0
    lengths: Ints  # tokens of each text, [B] int64
    targets: Ints  # word rows of the targets, [B, N] int64, padded with 0
    target_mask: Bools  # true at real targets, [B, N]
    # row of the batch whose targets are the negatives of each text, [B] int64, never its own
    negatives: Ints


class SentenceStream:
    """Training and validation batches of sentences."""

    def __init__(self, corpus: PackedCorpus, config: SentenceTrainingConfig) -> None:
        self._corpus = corpus
        self._config = config
        sizes = np.diff(corpus.document_offsets)
        self._document_of = np.repeat(np.arange(len(sizes)), sizes)  # [S]
        order = np.random.default_rng([config.seed, 0]).permutation(len(sizes))
        held_out = order[: max(1, round(len(sizes) * config.validation_share))]
        is_validation = np.isin(self._document_of, held_out)
        is_alone = sizes[self._document_of] < 2  # neighbours are in the same document
        self._training = np.flatnonzero(~is_validation & ~is_alone)
        self._validation = np.flatnonzero(is_validation & ~is_alone)
        for name, sentences in (("training", self._training), ("validation", self._validation)):
            if len(sentences) < config.batch_size:
                raise ConfigError(
                    f"{corpus.path} leaves {len(sentences)} {name} sentences, one batch needs {config.batch_size}"
                )

    def training_batches(self, start_step: int) -> Iterator[SentenceBatch]:
        """Endless batches starting at a step, identical in every run with this seed."""
        batch_size, num_sentences = self._config.batch_size, len(self._training)
        # A corpus smaller than a chunk is one chunk per epoch; the last incomplete batch is dropped.
        chunk_batches = min(_BATCHES_PER_CHUNK, num_sentences // batch_size)
        chunks_per_epoch = num_sentences // (batch_size * chunk_batches)
        epoch = -1
        for chunk in count(start_step // chunk_batches):
            if chunk // chunks_per_epoch != epoch:
                epoch = chunk // chunks_per_epoch
                order = np.random.default_rng([self._config.seed, 1, epoch]).permutation(self._training)
            first = (chunk % chunks_per_epoch) * batch_size * chunk_batches
            rng = np.random.default_rng([self._config.seed, 2, chunk])
            batches = self._length_sorted(order[first : first + batch_size * chunk_batches], rng)
            for position in range(max(0, start_step - chunk * chunk_batches), len(batches)):
                # Each batch has its own generator, so a resumed run draws the same batches.
                batch_rng = np.random.default_rng([self._config.seed, 3, chunk, position])
                yield self._batch(*batches[position], batch_rng)

    def validation_batches(self) -> list[SentenceBatch]:
        """The same held-out batches every time, with the same targets and negatives."""
        rng = np.random.default_rng([self._config.seed, 4])
        size = min(self._config.validation_sentences, len(self._validation))
        sentences = rng.choice(self._validation, size - size % self._config.batch_size, replace=False)
        return [self._batch(*parts, rng) for parts in self._length_sorted(sentences, rng)]

    def _length_sorted(self, sentences: Ints, rng: np.random.Generator) -> list[tuple[Ints, Ints, Ints]]:
        """Batches of (first sentence, sentence after the last, tokens) of similar length, in random order."""
        config, offsets = self._config, self._corpus.sentence_offsets
        is_long = rng.random(len(sentences)) < config.long_input_rate
        limits = np.where(is_long, config.long_input_tokens, config.input_tokens)
        # A long input takes in the following sentences up to its token limit or its document's last but one.
        reach = np.searchsorted(offsets, offsets[sentences] + config.long_input_tokens, side="right") - 1
        last = self._corpus.document_offsets[self._document_of[sentences] + 1] - 1
        ends = np.where(is_long, np.maximum(sentences + 1, np.minimum(reach, last)), sentences + 1)
        lengths = np.minimum(offsets[ends] - offsets[sentences], limits)
        batches = np.argsort(lengths, kind="stable").reshape(-1, config.batch_size)
        return [(sentences[b], ends[b], lengths[b]) for b in rng.permutation(batches)]

    def _batch(self, sentences: Ints, ends: Ints, lengths: Ints, rng: np.random.Generator) -> SentenceBatch:
        """Targets are up to ``max_targets`` random non-stop words of the sentences around."""
        corpus, offsets = self._corpus, self._corpus.sentence_offsets
        documents = self._document_of[sentences]
        first = np.maximum(sentences - 1, corpus.document_offsets[documents])
        last = np.minimum(ends + 1, corpus.document_offsets[documents + 1])
        num_before = np.minimum(offsets[sentences] - offsets[first], _MAX_NEIGHBOUR_TOKENS)
        num_after = np.minimum(offsets[last] - offsets[ends], _MAX_NEIGHBOUR_TOKENS)
        before, before_mask = gather(corpus.tokens, offsets[sentences] - num_before, num_before)
        after, after_mask = gather(corpus.tokens, offsets[ends], num_after)
        around = np.concatenate([before, after], axis=1)
        mask = np.concatenate([before_mask, after_mask], axis=1) & ~corpus.vocabulary.is_stop[around]
        keys = np.where(mask, rng.random(around.shape, dtype=np.float32), np.float32(2.0))
        num_targets = min(self._config.max_targets, around.shape[1])
        chosen = np.argpartition(keys, num_targets - 1, axis=1)[:, :num_targets]
        mask = np.take_along_axis(mask, chosen, axis=1)
        targets = np.where(mask, np.take_along_axis(around, chosen, axis=1), 0)
        rows, _ = gather(corpus.tokens, offsets[sentences], lengths)
        # A random cyclic shift gives every text another one as its negative.
        negatives = np.roll(np.arange(len(sentences)), rng.integers(1, len(sentences)))
        return SentenceBatch(rows, lengths, targets, mask, negatives)
