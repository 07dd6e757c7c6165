"""Static word vectors of a packed corpus: distilled, trained, both blended.

``facets-train words --corpus PACKED --encoder MODEL --out FOLDER [--texts FILE]...``
"""

import logging
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from gensim.models import KeyedVectors, Word2Vec
from gensim.models.callbacks import CallbackAny2Vec
from numpy.typing import NDArray
from pydantic import model_validator
from scipy.sparse import csr_matrix
from tokenizers import Tokenizer as PieceTokenizer

from facets.config import AtLeastOne, NonNegative, NonNegativeInt, Positive, Settings
from facets.errors import CheckpointError, ConfigError, InvalidInputError
from facets.extras import require_extra
from facets.language.files import read_lines
from facets.language.tokenizer import Tokenizer
from facets.language.vectors import WordVectors, unit_rows
from facets.language.vocabulary import Vocabulary
from facets_lab.language.pieces import add_pieces
from facets_lab.training.corpus import PackedCorpus

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# Without counts the n-th word is taken to occur as often as Zipf's law says (Mandelbrot's shift of 2.7).
_ZIPF_COUNT = 1_000_000_000
_ZIPF_SHIFT = 2.7


def remove_common(vectors: NDArray[np.floating], num_removed: int) -> NDArray[np.float32]:
    """Unit vectors less their mean and their ``num_removed`` leading principal components.

    What all words share makes them look alike; without it cosines spread over the whole range
    (Mu and Viswanath 2018, "All-but-the-top").

    Args:
        vectors: ``[V, D]``.
        num_removed: From 0 (the mean only) to ``D``.

    Returns:
        ``[V, D]``, float32, not at unit length.
    """
    units = unit_rows(vectors)
    centred = units - units.mean(axis=0)
    axes = principal_axes(centred)[:num_removed]  # [R, D]
    return np.ascontiguousarray(centred - centred @ axes.T @ axes, dtype=np.float32)


def reduce_dim(vectors: NDArray[np.floating], dim: int) -> NDArray[np.float32]:
    """Projection of the centred vectors on their ``dim`` leading principal axes, ``[V, dim]``, at unit length.

    Raises:
        InvalidInputError: ``dim`` is larger than the vectors' dimension.
    """
    if not 1 <= dim <= vectors.shape[1]:
        raise InvalidInputError(f"dim must be in [1, {vectors.shape[1]}], got {dim}")
    centred = vectors - vectors.mean(axis=0)
    return unit_rows(centred @ principal_axes(centred)[:dim].T)


def blend(first: WordVectors, second: WordVectors, *, second_weight: float, dim: int = 256) -> WordVectors:
    """Concatenates two sets of unit vectors of the same words and reduces them to ``dim`` dimensions.

    Args:
        first: Vectors of ``V`` words.
        second: Vectors of the same words in the same order.
        second_weight: Length of the second vectors beside unit length of the first, at least 0; a cosine is
            then the average of both spaces' cosines with weights 1 and ``second_weight ** 2``.
        dim: Dimensions wanted.

    Returns:
        Unit vectors ``[V, dim]``.

    Raises:
        InvalidInputError: The vocabularies differ, ``second_weight`` is negative, or ``dim`` is too large.
    """
    if first.vocabulary.words != second.vocabulary.words:
        raise InvalidInputError("the vectors to blend must have the same words in the same order, got others")
    if second_weight < 0:
        raise InvalidInputError(f"second_weight must be >= 0, got {second_weight}")
    both = np.hstack([first.unit_vectors, np.float32(second_weight) * second.unit_vectors])
    return WordVectors(first.vocabulary, reduce_dim(both, dim))


def principal_axes(centred: NDArray[np.floating]) -> NDArray[np.float32]:
    """Principal axes of centred vectors as rows, ``[D, D]``, the one of the largest variance first."""
    covariance = centred.astype(np.float64).T @ centred / len(centred)
    axes = np.linalg.eigh(covariance)[1].T[::-1]
    # The sign of an axis is arbitrary; a fixed one makes results repeatable.
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    return np.ascontiguousarray(axes * signs[:, None], dtype=np.float32)


logger = logging.getLogger(__name__)

_CONTEXTS_AT_A_TIME = 20_000


def from_keyed_vectors(vectors: KeyedVectors, *, counts: Mapping[str, int] | None = None) -> WordVectors:
    """Vectors that gensim has read: GloVe, word2vec, fastText (``KeyedVectors.load_word2vec_format``).

    Args:
        vectors: Any; words become lower case, the first of equal ones stays.
        counts: How often each word occurs in a corpus; None: as Zipf's law has it in the order of the file.

    Raises:
        InvalidInputError: There are none, or one is NaN or infinite.
    """
    rows: dict[str, int] = {}
    for row, word in enumerate(vectors.index_to_key):
        rows.setdefault(word.lower(), row)
    chosen = np.asarray(vectors.vectors, np.float32)[list(rows.values())]
    if not rows or not np.isfinite(chosen).all():
        raise InvalidInputError(f"expected vectors of finite numbers, got {len(rows)} words, some not finite or none")
    if counts is None:
        ranks = np.arange(1, len(rows) + 1)
        return WordVectors(Vocabulary(list(rows), (_ZIPF_COUNT / (ranks + _ZIPF_SHIFT)).astype(np.int64)), chosen)
    own = np.array([counts.get(word, 0) for word in rows], dtype=np.int64)
    return WordVectors(Vocabulary(list(rows), own, total_count=max(sum(counts.values()), int(own.sum()))), chosen)


class CbowConfig(Settings):
    """Settings of the training; the defaults are those of ``docs/change/data.md``."""

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


def fit_to_sentences(
    vectors: NDArray[np.floating],
    sentences: Sequence[NDArray[np.integer]],
    targets: NDArray[np.floating],
    *,
    weights: NDArray[np.floating],
    ridge: float = 0.3,
    num_steps: int = 30,
) -> NDArray[np.float32]:
    """Ridge regression of sentence embeddings on averages of word vectors, starting from given vectors.

    Solves ``min_D ||A (X + D) - T||^2 + ridge ||D||^2`` by conjugate gradients, where row ``s`` of ``A`` holds the
    weights of the words of sentence ``s``, divided by their sum; ``A X`` and ``T`` are centred, and every target gets
    the length of its sentence's average. Words that occur in no sentence stay as they are.

    Args:
        vectors: ``[V, D]``, the vectors ``X`` to start from.
        sentences: ``S`` arrays of rows of ``vectors``, none empty.
        targets: ``[S, D]``, the embeddings of the sentences in the same space.
        weights: ``[V]``, positive: how much each word counts in an average.
        ridge: What holds the vectors in place, more than 0.
        num_steps: Conjugate gradient steps.

    Returns:
        ``[V, D]``, float32, the vectors ``X + D``, not at unit length.

    Raises:
        InvalidInputError: ``ridge`` is not positive, or the shapes do not fit.
    """
    if ridge <= 0:
        raise InvalidInputError(f"ridge must be > 0, got {ridge}")
    if targets.shape != (len(sentences), vectors.shape[1]):
        raise InvalidInputError(f"targets must have shape ({len(sentences)}, {vectors.shape[1]}), got {targets.shape}")
    averaging_SV = _averaging(sentences, weights)
    averages = averaging_SV @ vectors
    averages = averages - averages.mean(axis=0)
    lengths = np.linalg.norm(averages, axis=1, keepdims=True)
    residual = unit_rows(targets - targets.mean(axis=0)) * lengths - averages
    change = _ridge(averaging_SV, residual.astype(np.float32), ridge, num_steps)
    return np.ascontiguousarray(vectors + change, dtype=np.float32)


def _averaging(sentences: Sequence[NDArray[np.integer]], weights: NDArray[np.floating]) -> csr_matrix:
    lengths = [len(rows) for rows in sentences]
    if not lengths or min(lengths) == 0:
        raise InvalidInputError("sentences must have at least one word each, got an empty one")
    values = np.concatenate([weights[rows] / weights[rows].sum() for rows in sentences]).astype(np.float32)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return csr_matrix((values, np.concatenate(sentences), starts), shape=(len(sentences), len(weights)))


def _ridge(
    averaging_SV: csr_matrix, residual_SD: NDArray[np.float32], ridge: float, num_steps: int
) -> NDArray[np.float32]:
    """Conjugate gradients on ``(A^T A + ridge) D = A^T R``, all columns of ``D`` side by side."""
    transposed_VS = averaging_SV.T.tocsr()
    left = transposed_VS @ residual_SD  # what is left of the right-hand side, [V, D]
    solution, direction = np.zeros_like(left), left.copy()
    size = (left**2).sum(axis=0)
    tiny = np.finfo(np.float32).tiny
    for _ in range(num_steps):
        image = transposed_VS @ (averaging_SV @ direction) + np.float32(ridge) * direction
        step = size / np.maximum((direction * image).sum(axis=0), tiny)
        solution += step * direction
        left -= step * image
        size, old_size = (left**2).sum(axis=0), size
        direction = left + size / np.maximum(old_size, tiny) * direction
    return np.asarray(solution, dtype=np.float32)


class DistillConfig(Settings):
    """Settings of the distillation; the defaults are those of ``docs/change/data.md``."""

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
    """Pieces of an encoder's WordPiece tokenizer in its order, for ``facets_lab.language.pieces.add_pieces``.

    Raises:
        CheckpointError: The folder has no tokenizer.
    """
    try:
        tokenizer = PieceTokenizer.from_file(str(Path(encoder_path) / "tokenizer.json"))
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


class WordVectorsConfig(Settings):
    """Settings of the whole recipe; the defaults are those of ``docs/change/data.md``."""

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
