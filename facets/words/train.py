"""Word vectors trained on a packed corpus: continuous bag of words with negative sampling, by gensim."""

import logging
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gensim.models import Word2Vec
from gensim.models.callbacks import CallbackAny2Vec

from facets.errors import ConfigError
from facets.training.corpus import PackedCorpus
from facets.words.vectors import WordVectors, unit_rows

__all__ = ["CbowConfig", "train_cbow"]

logger = logging.getLogger(__name__)

_PARAGRAPHS_AT_A_TIME = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class CbowConfig:
    """Settings of the training; the defaults are those of ``docs/word-vectors.md``."""

    dim: int = 256
    window: int = 10  # words to each side; wide, so that words of one topic come close
    num_epochs: int = 5
    num_negatives: int = 10
    subsample: float = 1e-4  # words more frequent than this share of the corpus are thinned out
    learning_rate: float = 0.05
    num_threads: int = 2  # the result varies from run to run with more than one
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("dim", "window", "num_epochs", "num_negatives", "num_threads"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be >= 1, got {getattr(self, name)}")


class _EpochLog(CallbackAny2Vec):  # type: ignore[misc]  # gensim has no types
    def __init__(self) -> None:
        self._epoch = 0

    def on_epoch_end(self, model: Word2Vec) -> None:
        self._epoch += 1
        logger.info("epoch %d of %d", self._epoch, model.epochs)


def train_cbow(corpus: PackedCorpus, config: CbowConfig) -> WordVectors:
    """Trains vectors of all words of a packed corpus, in the order of its rows, at unit length.

    A paragraph is a context of its own; unknown words are left out.

    Args:
        corpus: The corpus.
        config: The settings.

    Returns:
        Unit vectors ``[V, dim]``, less their mean.
    """
    vocabulary = corpus.vocabulary
    with tempfile.TemporaryDirectory(dir=corpus.path, prefix=".cbow-") as scratch:
        text_path = Path(scratch) / "paragraphs.txt"
        num_words = _write_paragraphs(corpus, text_path)
        model = Word2Vec(
            vector_size=config.dim,
            window=config.window,
            negative=config.num_negatives,
            sample=config.subsample,
            alpha=config.learning_rate,
            min_count=1,
            sg=0,
            workers=config.num_threads,
            seed=config.seed,
        )
        model.build_vocab_from_freq(dict(zip(vocabulary.words, vocabulary.counts.tolist(), strict=True)))
        model.train(
            corpus_file=str(text_path),
            total_examples=corpus.meta.num_paragraphs,
            total_words=num_words,
            epochs=config.num_epochs,
            callbacks=[_EpochLog()],
        )
    vectors = model.wv.vectors[[model.wv.key_to_index[word] for word in vocabulary.words]]
    return WordVectors(vocabulary, unit_rows(vectors - vectors.mean(axis=0)))


def _write_paragraphs(corpus: PackedCorpus, path: Path) -> int:
    """Writes a paragraph a line for gensim; returns how many words were written."""
    words = np.array([*corpus.vocabulary.words, ""], dtype=object)
    unknown = corpus.vocabulary.unknown_row
    starts = corpus.sentence_offsets[corpus.paragraph_offsets]  # in tokens
    num_words = 0
    with path.open("w", encoding="utf-8") as file:
        for first in range(0, len(starts) - 1, _PARAGRAPHS_AT_A_TIME):
            bounds = starts[first : first + _PARAGRAPHS_AT_A_TIME + 1]
            rows = np.asarray(corpus.tokens[bounds[0] : bounds[-1]])
            for start, end in zip(bounds[:-1] - bounds[0], bounds[1:] - bounds[0], strict=True):
                known = rows[start:end]
                known = known[known < unknown]
                num_words += len(known)
                file.write(" ".join(words[known]) + "\n")
    return num_words
