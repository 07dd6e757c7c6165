"""Word vectors trained on a corpus: continuous bag of words with negative sampling, by gensim."""

import logging
import tempfile
from pathlib import Path

import numpy as np
from gensim.models import Word2Vec
from gensim.models.callbacks import CallbackAny2Vec
from numpy.typing import NDArray

from facets.config import AtLeastOne, Positive, Settings
from facets.errors import InvalidInputError
from facets.language.vectors import WordVectors, unit_rows
from facets.language.vocabulary import Vocabulary

__all__ = ["CbowConfig", "train_cbow"]

logger = logging.getLogger(__name__)

_CONTEXTS_AT_A_TIME = 20_000


class CbowConfig(Settings):
    """Settings of the training; the defaults are those of ``docs/change/word-vectors.md``."""

    dim: AtLeastOne = 256
    window: AtLeastOne = 10  # words to each side; wide, so that words of one topic come close
    num_epochs: AtLeastOne = 5
    num_negatives: AtLeastOne = 10
    subsample: Positive = 1e-4  # words more frequent than this share of the corpus are thinned out
    learning_rate: Positive = 0.05
    num_threads: AtLeastOne = 2  # with more than one the result varies a little from run to run
    seed: int = 1


class _EpochLog(CallbackAny2Vec):  # type: ignore[misc]  # gensim has no types
    def __init__(self) -> None:
        self._epoch = 0

    def on_epoch_end(self, model: Word2Vec) -> None:
        self._epoch += 1
        logger.info("epoch %d of %d", self._epoch, model.epochs)


def train_cbow(
    vocabulary: Vocabulary,
    tokens: NDArray[np.unsignedinteger],
    context_offsets: NDArray[np.int64],
    *,
    config: CbowConfig | None = None,
    scratch_dir: Path | None = None,
) -> WordVectors:
    """Trains vectors of all words of a vocabulary on a corpus of word rows.

    Args:
        vocabulary: The words.
        tokens: ``[T]``, vocabulary rows, ``V`` for unknown words, which are left out.
        context_offsets: ``[P + 1]``, in tokens: windows do not reach over the borders of paragraph ``i``,
            ``tokens[context_offsets[i]:context_offsets[i + 1]]``.
        config: The settings.
        scratch_dir: Where the text for gensim is written for the time of the training (about as many bytes as
            the corpus has characters); the system's place for temporary files when not given.

    Returns:
        Unit vectors ``[V, dim]``, their mean removed.

    Raises:
        InvalidInputError: The corpus has no known word.
    """
    config = config or CbowConfig()
    with tempfile.TemporaryDirectory(dir=scratch_dir, prefix=".cbow-") as scratch:
        text_path = Path(scratch) / "paragraphs.txt"
        num_words = _write_text(vocabulary, tokens, context_offsets, text_path)
        if num_words == 0:
            raise InvalidInputError("the corpus must have a word of the vocabulary, got none")
        model = Word2Vec(
            vector_size=config.dim,
            window=config.window,
            negative=config.num_negatives,
            sample=config.subsample,
            alpha=config.learning_rate,
            min_count=0,
            sg=0,
            workers=config.num_threads,
            seed=config.seed,
        )
        model.build_vocab_from_freq(dict(zip(vocabulary.words, vocabulary.counts.tolist(), strict=True)))
        model.train(
            corpus_file=str(text_path),
            total_examples=len(context_offsets) - 1,
            total_words=num_words,
            epochs=config.num_epochs,
            callbacks=[_EpochLog()],
        )
    vectors = model.wv.vectors[[model.wv.key_to_index[word] for word in vocabulary.words]]
    return WordVectors(vocabulary, unit_rows(vectors - vectors.mean(axis=0)))


def _write_text(
    vocabulary: Vocabulary, tokens: NDArray[np.unsignedinteger], offsets: NDArray[np.int64], path: Path
) -> int:
    """Writes the known words of a context a line; returns how many words were written."""
    words = np.array(vocabulary.words, dtype=object)
    num_words = 0
    with path.open("w", encoding="utf-8") as file:
        for first in range(0, len(offsets) - 1, _CONTEXTS_AT_A_TIME):
            bounds = offsets[first : first + _CONTEXTS_AT_A_TIME + 1]
            rows = np.asarray(tokens[bounds[0] : bounds[-1]])
            for start, end in zip(bounds[:-1] - bounds[0], bounds[1:] - bounds[0], strict=True):
                known = rows[start:end]
                known = known[known < vocabulary.unknown_row]
                num_words += len(known)
                file.write(" ".join(words[known]) + "\n")
    return num_words
