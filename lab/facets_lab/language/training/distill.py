"""Word vectors distilled from a sentence-transformers model."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from facets.config import AtLeastOne, Positive, Settings
from facets.errors import CheckpointError, ConfigError
from facets.extras import require_extra
from facets.language.postprocess import principal_axes
from facets.language.vectors import WordVectors, unit_rows
from facets.language.vocabulary import Vocabulary
from facets_lab.language.training.adapt import fit_to_sentences

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

__all__ = ["DistillConfig", "distill", "encode_texts", "read_word_pieces"]

logger = logging.getLogger(__name__)


class DistillConfig(Settings):
    """Settings of the distillation; the defaults are those of ``docs/change/word-vectors.md``."""

    dim: AtLeastOne = 256  # at most the encoder's
    sif_alpha: Positive = 1e-4  # a word counts alpha / (alpha + p(w)) in its sentence's average
    ridge: Positive = 0.3  # see fit_to_sentences
    min_sentence_words: AtLeastOne = 3  # shorter sentences are not fitted
    batch_size: AtLeastOne = 256


def distill(
    vocabulary: Vocabulary,
    encoder_path: str | Path,
    *,
    sentences: Sequence[NDArray[np.integer]] = (),
    config: DistillConfig | None = None,
) -> WordVectors:
    """Encodes every word on its own, reduces the dimension, and fits the vectors to encoded sentences.

    Args:
        vocabulary: The words.
        encoder_path: Folder of a sentence-transformers model.
        sentences: Word rows of sentences; they are encoded as their known words, joined by spaces. Without any
            the words' own embeddings remain.
        config: The settings.

    Returns:
        Unit vectors ``[V, dim]``.

    Raises:
        CheckpointError: The folder holds no sentence-transformers model.
        ConfigError: ``dim`` is larger than the encoder's.
    """
    config = config or DistillConfig()
    model = open_encoder(encoder_path)
    embeddings = unit_rows(encode_texts(model, vocabulary.words, config.batch_size))
    if config.dim > embeddings.shape[1]:
        raise ConfigError(f"dim must be <= {embeddings.shape[1]} for this encoder, got {config.dim}")
    centred = embeddings - embeddings.mean(axis=0)
    axes = principal_axes(centred)[: config.dim]
    vectors = unit_rows(centred @ axes.T)
    is_word = np.array([any(map(str.isalnum, word)) for word in vocabulary.words] + [False])
    fitted = [rows[is_word[rows]] for rows in sentences]
    fitted = [rows for rows in fitted if len(rows) >= config.min_sentence_words]
    if fitted:
        logger.info("encoding %d sentences", len(fitted))
        texts = [" ".join(vocabulary.words[row] for row in rows) for rows in fitted]
        vectors = fit_to_sentences(
            vectors,
            fitted,
            encode_texts(model, texts, config.batch_size) @ axes.T,
            weights=config.sif_alpha / (config.sif_alpha + vocabulary.probabilities),
            ridge=config.ridge,
        )
    return WordVectors(vocabulary, unit_rows(vectors))


def encode_texts(model: "SentenceTransformer", texts: Sequence[str], batch_size: int) -> NDArray[np.float32]:
    """The encoder's embeddings of texts, ``[N, D]``, float32."""
    embeddings = model.encode(list(texts), batch_size=batch_size, convert_to_numpy=True, show_progress_bar=False)
    return np.asarray(embeddings, dtype=np.float32)


def read_word_pieces(encoder_path: str | Path) -> list[str]:
    """Pieces of an encoder's WordPiece tokenizer in its order, for ``facets.language.pieces.add_pieces``.

    Raises:
        CheckpointError: The folder has no tokenizer.
    """
    try:
        tokenizer = Tokenizer.from_file(str(Path(encoder_path) / "tokenizer.json"))
    except Exception as error:  # the package raises nothing narrower
        raise CheckpointError(f"expected tokenizer.json in {encoder_path}, got: {error}") from error
    pieces = tokenizer.get_vocab(with_added_tokens=False)
    return sorted(pieces, key=pieces.__getitem__)


def open_encoder(path: str | Path) -> "SentenceTransformer":
    """The sentence encoder in a folder."""
    require_extra("backbone", "sentence_transformers")
    from sentence_transformers import SentenceTransformer

    try:
        return SentenceTransformer(str(path), device="cpu", local_files_only=True)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"expected a sentence-transformers model in {path}, got: {error}") from error
