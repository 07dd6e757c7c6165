"""Training batches of a phrase model: short runs of content words in, the words around them as targets.

Shape suffixes: B phrases, L words of a phrase, N targets.

Every batch is drawn from ``(seed, step)``, so that any step can be made again: resuming is exact.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from facets.errors import ConfigError
from facets_lab.texts.training.config import SentenceTrainingConfig
from facets_lab.texts.training.sentences import SentenceBatch, gather, held_out_documents
from facets_lab.training.corpus import PackedCorpus

__all__ = ["PhraseStream"]

# How often phrases of one, two, three words are drawn. Questions about phrases compare them with single words.
_LENGTH_SHARES = (0.35, 0.45, 0.2)
# Words on either side that count as neighbours (Chang 2022, section 3.2.2.1).
_WINDOW = 5
# Stop words and validation documents are drawn in vain; this many tries a phrase leave a batch full.
_TRIES = 16


class PhraseStream:
    """Cuts a packed corpus into training and validation batches of phrases.

    A phrase is a run of one to three known words of one sentence, none of them a stop word, a number or
    punctuation. Its targets are the words within five positions that are no stop words.

    Raises:
        ConfigError: The corpus has no phrases, or hardly any, on either side.
    """

    def __init__(self, corpus: PackedCorpus, config: SentenceTrainingConfig) -> None:
        self._corpus = corpus
        self._config = config
        vocabulary = corpus.vocabulary
        has_letter = np.array([any(map(str.isalpha, word)) for word in vocabulary.words] + [False])
        self._is_content_V = ~vocabulary.is_stop & has_letter
        offsets = corpus.sentence_offsets[corpus.document_offsets]
        self._document_offsets = offsets  # in tokens
        self._is_validation = held_out_documents(corpus, config)
        for name, validation in (("training", False), ("validation", True)):
            if len(self._draw(np.random.default_rng([config.seed, 6]), validation)[0]) < config.batch_size:
                raise ConfigError(f"{corpus.path} has too few phrases for a {name} batch of {config.batch_size}")

    def training_batches(self, start_step: int) -> Iterator[SentenceBatch]:
        """Endless batches from step ``start_step`` on, the same ones in every run with this seed."""
        for step in range(start_step, np.iinfo(np.int64).max):
            yield self._batch(np.random.default_rng([self._config.seed, 1, step]), validation=False)

    def validation_batches(self) -> list[SentenceBatch]:
        """The same held-out batches every time; targets and negatives included."""
        count = max(1, self._config.validation_sentences // self._config.batch_size)
        return [
            self._batch(np.random.default_rng([self._config.seed, 4, number]), validation=True)
            for number in range(count)
        ]

    def _draw(self, rng: np.random.Generator, validation: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First token and length of up to ``batch_size`` phrases, ``[B]`` each."""
        tokens = self._corpus.tokens
        tries = _TRIES * self._config.batch_size
        if validation:  # held-out documents are few: draw from them alone
            documents = rng.choice(np.flatnonzero(self._is_validation), tries)
            first, last = self._document_offsets[documents], self._document_offsets[documents + 1]
            starts = first + (rng.random(tries) * (last - first)).astype(np.int64)
        else:
            starts = rng.integers(0, len(tokens), tries)
            documents = np.searchsorted(self._document_offsets, starts, side="right") - 1
        lengths = rng.choice(np.arange(1, len(_LENGTH_SHARES) + 1), tries, p=_LENGTH_SHARES)
        sentences = np.searchsorted(self._corpus.sentence_offsets, starts, side="right") - 1
        fits = starts + lengths <= self._corpus.sentence_offsets[sentences + 1]
        fits &= self._is_validation[documents] == validation
        starts, lengths = starts[fits], lengths[fits]
        rows, mask = gather(tokens, starts, lengths)
        good = np.flatnonzero((self._is_content_V[rows] | ~mask).all(axis=1))[: self._config.batch_size]
        return starts[good], lengths[good]

    def _batch(self, rng: np.random.Generator, *, validation: bool) -> SentenceBatch:
        starts, lengths = self._draw(rng, validation)
        rows, _ = gather(self._corpus.tokens, starts, lengths)
        documents = np.searchsorted(self._document_offsets, starts, side="right") - 1
        before = np.maximum(starts - _WINDOW, self._document_offsets[documents])
        ends = starts + lengths
        after = np.minimum(ends + _WINDOW, self._document_offsets[documents + 1])
        left, left_mask = gather(self._corpus.tokens, before, starts - before)
        right, right_mask = gather(self._corpus.tokens, ends, after - ends)
        targets = np.concatenate([left, right], axis=1)
        mask = np.concatenate([left_mask, right_mask], axis=1) & ~self._corpus.vocabulary.is_stop[targets]
        negatives = np.roll(np.arange(len(starts)), rng.integers(1, len(starts)))
        return SentenceBatch(rows, lengths, np.where(mask, targets, 0), mask, negatives)
