"""Builds the static word vectors of a packed corpus: distilled, trained, and both blended.

``facets-train words --corpus PACKED --encoder MODEL --out FOLDER [--texts FILE]...``
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from facets.config import AtLeastOne, NonNegative, NonNegativeInt, Settings
from facets.language.files import read_lines
from facets.language.pieces import add_pieces
from facets.language.postprocess import blend, remove_common
from facets.language.tokenizer import Tokenizer
from facets.language.vectors import WordVectors
from facets_lab.language.training.distill import DistillConfig, distill, read_word_pieces
from facets_lab.language.training.train import CbowConfig, train_cbow
from facets_lab.training.corpus import PackedCorpus

__all__ = ["WordVectorsConfig", "build_word_vectors", "read_texts", "sample_sentences"]


class WordVectorsConfig(Settings):
    """Settings of the whole recipe; the defaults are those of ``docs/change/word-vectors.md``."""

    dim: AtLeastOne = 256
    num_sentences: NonNegativeInt = 12_000  # of the corpus, encoded for the distillation
    min_sentence_tokens: AtLeastOne = 6
    max_sentence_tokens: AtLeastOne = 25
    cbow_weight: NonNegative = 0.6  # length of the trained vectors beside the distilled ones; 0 trains none
    num_removed: NonNegativeInt = 3  # leading principal components removed from the trained vectors
    seed: int = 1
    cbow: CbowConfig = CbowConfig()
    distill: DistillConfig = DistillConfig()

    @model_validator(mode="after")
    def _check(self) -> Self:
        most = self.max_sentence_tokens
        self.require("min_sentence_tokens", self.min_sentence_tokens <= most, f"<= max_sentence_tokens ({most})")
        return self


def build_word_vectors(
    corpus: PackedCorpus, encoder_path: Path, config: WordVectorsConfig, *, texts: Sequence[str] = ()
) -> WordVectors:
    """Distilled vectors, blended with vectors trained on the corpus.

    Args:
        corpus: The corpus; the result has its vocabulary in its order.
        encoder_path: Folder of a sentence-transformers model.
        config: The settings.
        texts: Further sentences for the distillation, of the kind the vectors will be used on.

    Returns:
        Unit vectors ``[V, dim]``, and those of pieces of words.
    """
    vocabulary = corpus.vocabulary
    own = [vocabulary.rows(words) for words in Tokenizer().words(texts)]
    distilled = distill(
        vocabulary, encoder_path, sentences=[*own, *sample_sentences(corpus, config)], config=config.distill
    )
    word_pieces = read_word_pieces(encoder_path)
    if config.cbow_weight == 0:
        return add_pieces(distilled, word_pieces)
    paragraphs = corpus.sentence_offsets[corpus.paragraph_offsets]
    trained = train_cbow(vocabulary, corpus.tokens, paragraphs, config=config.cbow, scratch_dir=corpus.path)
    trained = WordVectors(vocabulary, remove_common(trained.vectors, config.num_removed))
    blended = blend(distilled, trained, second_weight=config.cbow_weight, dim=config.dim)
    return add_pieces(blended, word_pieces)


def sample_sentences(corpus: PackedCorpus, config: WordVectorsConfig) -> list[NDArray[np.unsignedinteger]]:
    """Word rows of ``num_sentences`` random sentences of the corpus with the wanted length, unknown words included."""
    lengths = np.diff(corpus.sentence_offsets)
    fit = np.flatnonzero((lengths >= config.min_sentence_tokens) & (lengths <= config.max_sentence_tokens))
    random = np.random.default_rng(config.seed)
    chosen = random.choice(fit, min(config.num_sentences, len(fit)), replace=False)
    return [np.asarray(corpus.sentence(row)) for row in chosen]


def read_texts(paths: Sequence[Path]) -> list[str]:
    """All fields with more than one word: of files of sentences, or of scored pairs of them.

    Raises:
        ConfigError: A file cannot be opened.
        InvalidInputError: A line is not UTF-8.
    """
    return [text for path in paths for line in read_lines(path) for text in line.split("\t") if " " in text]
