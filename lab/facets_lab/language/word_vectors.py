"""Static word vectors of a packed corpus: distilled from an encoder, trained, and blended; vectors of word pieces.

``facets-train words --corpus PACKED --encoder MODEL --out FOLDER [--texts FILE]...``

Shape suffixes: V words, D dimensions, S sentences, N words that are split into pieces, P pieces.
"""

import logging
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import scipy.linalg
from gensim.models import KeyedVectors, Word2Vec
from numpy.typing import NDArray
from pydantic import model_validator
from scipy.sparse import csr_matrix
from tokenizers import Tokenizer as PieceTokenizer

from facets.config import AtLeastOne, NonNegative, NonNegativeInt, Positive, Settings
from facets.errors import CheckpointError, ConfigError, InvalidInputError
from facets.extras import require_extra
from facets.language.tokenizer import Tokenizer
from facets.language.vectors import WordVectors, unit_rows
from facets.language.vocabulary import PIECE_MARK, Vocabulary
from facets_lab.evaluation.files import read_lines
from facets_lab.training.corpus import PackedCorpus

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)

_CONTEXTS_AT_A_TIME = 20_000
_CG_STEPS = 30
# Without counts the n-th word is taken to occur as often as Zipf's law says (Mandelbrot's shift of 2.7).
_ZIPF_COUNT = 1_000_000_000
_ZIPF_SHIFT = 2.7


class CbowConfig(Settings):
    """Settings of the trained vectors."""

    dim: AtLeastOne = 256
    window: AtLeastOne = 10  # words to each side; wide, so that words of one topic are close
    num_epochs: AtLeastOne = 5
    num_negatives: AtLeastOne = 10
    subsample: Positive = 1e-4  # words more frequent than this share of the corpus are thinned out
    learning_rate: Positive = 0.05
    num_threads: AtLeastOne = 2  # with more than one the result varies a little from run to run
    seed: int = 1


class DistillConfig(Settings):
    """Settings of the distilled vectors."""

    dim: AtLeastOne = 256  # at most the encoder's dimension
    sif_alpha: Positive = 1e-4  # a word weighs alpha / (alpha + p(w)) in its sentence's average
    ridge: Positive = 0.3  # see fit_to_sentences
    min_sentence_words: AtLeastOne = 3  # shorter sentences are not fitted
    batch_size: AtLeastOne = 256


class WordVectorsConfig(Settings):
    """Settings of the whole recipe; docs/change/data.md explains the defaults."""

    dim: AtLeastOne = 256
    num_sentences: NonNegativeInt = 12_000  # sentences of the corpus to encode for the distillation
    min_sentence_tokens: AtLeastOne = 6
    max_sentence_tokens: AtLeastOne = 25
    cbow_weight: NonNegative = 0.6  # length of the trained vectors relative to the distilled ones; 0: none are trained
    num_removed: NonNegativeInt = 3  # leading principal components removed from the trained vectors
    seed: int = 1
    cbow: CbowConfig = CbowConfig()
    distill: DistillConfig = DistillConfig()

    @model_validator(mode="after")
    def _check(self) -> Self:
        longest = self.max_sentence_tokens
        self.require("min_sentence_tokens", self.min_sentence_tokens <= longest, f"<= max_sentence_tokens ({longest})")
        return self


def build_word_vectors(
    corpus: PackedCorpus, encoder_path: Path, config: WordVectorsConfig, *, texts: Sequence[str] = ()
) -> WordVectors:
    """Distilled vectors blended with vectors trained on the corpus, ``[V, dim]``, and vectors of word pieces.

    Args:
        corpus: The corpus; the result has its vocabulary in its order.
        encoder_path: Folder of a sentence-transformers model.
        config: The settings.
        texts: More sentences for the distillation, like the texts that the vectors will be used on.
    """
    vocabulary = corpus.vocabulary
    more = [vocabulary.rows(words) for words in Tokenizer().words(texts)]
    sentences = [*more, *sample_sentences(corpus, config)]
    distilled = distill(vocabulary, encoder_path, sentences=sentences, config=config.distill)
    pieces = read_word_pieces(encoder_path)
    if config.cbow_weight == 0:
        return add_pieces(distilled, pieces)
    paragraphs = corpus.sentence_offsets[corpus.paragraph_offsets]
    trained = train_cbow(vocabulary, corpus.tokens, paragraphs, config=config.cbow, scratch_dir=corpus.path)
    trained = WordVectors(vocabulary, remove_common(trained.vectors, config.num_removed))
    return add_pieces(blend(distilled, trained, second_weight=config.cbow_weight, dim=config.dim), pieces)


def sample_sentences(corpus: PackedCorpus, config: WordVectorsConfig) -> list[NDArray[np.unsignedinteger]]:
    """Word rows of random sentences within the configured length limits, including unknown words."""
    lengths = np.diff(corpus.sentence_offsets)
    fitting = np.flatnonzero((lengths >= config.min_sentence_tokens) & (lengths <= config.max_sentence_tokens))
    random = np.random.default_rng(config.seed)
    chosen = random.choice(fitting, min(config.num_sentences, len(fitting)), replace=False)
    return [np.asarray(corpus.sentence(row)) for row in chosen]


def read_texts(paths: Sequence[Path]) -> list[str]:
    """All tab-separated fields with more than one word."""
    return [text for path in paths for _, line in read_lines(path) for text in line.strip().split("\t") if " " in text]


def from_keyed_vectors(vectors: KeyedVectors, *, counts: Mapping[str, int] | None = None) -> WordVectors:
    """Vectors that gensim has read: GloVe, word2vec, fastText (``KeyedVectors.load_word2vec_format``).

    Words become lower case; of duplicates the first stays. ``counts`` are those of a corpus; None: Zipf's law in the
    order of the file.
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
    known = np.array([counts.get(word, 0) for word in rows], dtype=np.int64)
    return WordVectors(Vocabulary(list(rows), known, total_count=max(sum(counts.values()), int(known.sum()))), chosen)


def principal_axes(centred: NDArray[np.floating]) -> NDArray[np.float32]:
    """Principal axes of centred vectors as rows, ``[D, D]``, largest variance first."""
    covariance = centred.astype(np.float64).T @ centred / len(centred)
    axes = np.linalg.eigh(covariance)[1].T[::-1]
    # The sign of an axis is arbitrary; a fixed one makes results repeatable.
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    return np.ascontiguousarray(axes * signs[:, None], dtype=np.float32)


def remove_common(vectors_VD: NDArray[np.floating], num_removed: int) -> NDArray[np.float32]:
    """Unit vectors minus their mean and their leading principal components; the result is not at unit length.

    References:
        Mu and Viswanath 2018, "All-but-the-top".
    """
    units = unit_rows(vectors_VD)
    centred = units - units.mean(axis=0)
    axes = principal_axes(centred)[:num_removed]
    return np.ascontiguousarray(centred - centred @ axes.T @ axes, dtype=np.float32)


def reduce_dim(vectors_VD: NDArray[np.floating], dim: int) -> NDArray[np.float32]:
    """Unit vectors ``[V, dim]``: the centred vectors on their leading principal axes."""
    if not 1 <= dim <= vectors_VD.shape[1]:
        raise InvalidInputError(f"dim must be in [1, {vectors_VD.shape[1]}], got {dim}")
    centred = vectors_VD - vectors_VD.mean(axis=0)
    return unit_rows(centred @ principal_axes(centred)[:dim].T)


def blend(first: WordVectors, second: WordVectors, *, second_weight: float, dim: int = 256) -> WordVectors:
    """Concatenates unit vectors of the same words and reduces them to ``dim`` dimensions.

    ``second_weight`` is the length of the second vectors relative to the first; cosines are averaged with
    weights 1 and ``second_weight ** 2``.
    """
    if first.vocabulary.words != second.vocabulary.words:
        raise InvalidInputError("the vectors to blend must have the same words in the same order, got others")
    if second_weight < 0:
        raise InvalidInputError(f"second_weight must be >= 0, got {second_weight}")
    both = np.hstack([first.unit_vectors, np.float32(second_weight) * second.unit_vectors])
    return WordVectors(first.vocabulary, reduce_dim(both, dim))


def train_cbow(
    vocabulary: Vocabulary,
    tokens: NDArray[np.unsignedinteger],
    context_offsets: NDArray[np.int64],
    *,
    config: CbowConfig | None = None,
    scratch_dir: Path | None = None,
) -> WordVectors:
    """Unit vectors ``[V, dim]`` trained on a corpus by gensim, their mean removed.

    Args:
        vocabulary: The words.
        tokens: Vocabulary rows of the corpus; ``V`` is an unknown word, which is left out.
        context_offsets: In tokens; windows do not cross them.
        config: The settings.
        scratch_dir: Where the text for gensim is written; None: the system's folder for temporary files.
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
        )
    vectors = model.wv.vectors[[model.wv.key_to_index[word] for word in vocabulary.words]]
    return WordVectors(vocabulary, unit_rows(vectors - vectors.mean(axis=0)))


def _write_text(
    vocabulary: Vocabulary, tokens: NDArray[np.unsignedinteger], offsets: NDArray[np.int64], path: Path
) -> int:
    """Writes the known words, one context per line; returns the number of words."""
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


def distill(
    vocabulary: Vocabulary,
    encoder_path: str | Path,
    *,
    sentences: Sequence[NDArray[np.integer]] = (),
    config: DistillConfig | None = None,
) -> WordVectors:
    """Unit vectors ``[V, dim]``: every word encoded separately, reduced, and fitted to encoded sentences.

    Args:
        vocabulary: The words.
        encoder_path: Folder of a sentence-transformers model.
        sentences: Word rows of sentences, encoded as their known words; empty: the words' own embeddings remain.
        config: The settings.
    """
    config = config or DistillConfig()
    model = open_encoder(encoder_path)
    embeddings = unit_rows(_encode(model, vocabulary.words, config.batch_size))
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
            _encode(model, texts, config.batch_size) @ axes.T,
            weights=config.sif_alpha / (config.sif_alpha + vocabulary.probabilities),
            ridge=config.ridge,
        )
    return WordVectors(vocabulary, unit_rows(vectors))


def fit_to_sentences(
    vectors_VD: NDArray[np.floating],
    sentences: Sequence[NDArray[np.integer]],
    targets_SD: NDArray[np.floating],
    *,
    weights: NDArray[np.floating],
    ridge: float = 0.3,
) -> NDArray[np.float32]:
    """Ridge regression of sentence embeddings on averages of word vectors, ``[V, D]``, not at unit length.

    Solves ``min_C ||A (X + C) - T||^2 + ridge ||C||^2`` by conjugate gradients and returns ``X + C``. Row ``s`` of
    ``A`` holds the weights of the words of sentence ``s``, divided by their sum; ``A X`` and ``T`` are centred, and
    every target has the length of its sentence's average. Words in no sentence do not change.

    Args:
        vectors_VD: The initial vectors ``X``.
        sentences: Rows of ``vectors_VD``, at least one for each sentence.
        targets_SD: Embeddings of the sentences.
        weights: Positive weight of each word in an average, ``[V]``.
        ridge: More than 0; more keeps the vectors closer to the initial ones.
    """
    from sklearn.linear_model import Ridge

    if ridge <= 0:
        raise InvalidInputError(f"ridge must be > 0, got {ridge}")
    if targets_SD.shape != (len(sentences), vectors_VD.shape[1]):
        shape = (len(sentences), vectors_VD.shape[1])
        raise InvalidInputError(f"targets must have shape {shape}, got {targets_SD.shape}")
    lengths = [len(rows) for rows in sentences]
    if not lengths or min(lengths) == 0:
        raise InvalidInputError("sentences must have at least one word each, got an empty one")
    values = np.concatenate([weights[rows] / weights[rows].sum() for rows in sentences]).astype(np.float32)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    averaging_SV = csr_matrix((values, np.concatenate(sentences), starts), shape=(len(sentences), len(weights)))
    averages_SD = averaging_SV @ vectors_VD
    averages_SD = averages_SD - averages_SD.mean(axis=0)
    units_SD = unit_rows(targets_SD - targets_SD.mean(axis=0))
    residual_SD = units_SD * np.linalg.norm(averages_SD, axis=1, keepdims=True) - averages_SD
    model = Ridge(alpha=ridge, fit_intercept=False, solver="sparse_cg", max_iter=_CG_STEPS, tol=1e-6)
    change_DV = model.fit(averaging_SV, residual_SD).coef_
    return np.ascontiguousarray(vectors_VD + change_DV.T, dtype=np.float32)


def _encode(model: "SentenceTransformer", texts: Sequence[str], batch_size: int) -> NDArray[np.float32]:
    embeddings = model.encode(list(texts), batch_size=batch_size, convert_to_numpy=True, show_progress_bar=False)
    return np.asarray(embeddings, dtype=np.float32)


def open_encoder(path: str | Path) -> "SentenceTransformer":
    """The sentence encoder in a folder."""
    require_extra("backbone", "sentence_transformers")
    from sentence_transformers import SentenceTransformer

    try:
        return SentenceTransformer(str(path), device="cpu", local_files_only=True)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"expected a sentence-transformers model in {path}, got: {error}") from error


def read_word_pieces(encoder_path: str | Path) -> list[str]:
    """Pieces of an encoder's WordPiece tokenizer, in its order."""
    try:
        tokenizer = PieceTokenizer.from_file(str(Path(encoder_path) / "tokenizer.json"))
    except Exception as error:  # the package raises no narrower exception
        raise CheckpointError(f"expected tokenizer.json in {encoder_path}, got: {error}") from error
    pieces = tokenizer.get_vocab(with_added_tokens=False)
    return sorted(pieces, key=pieces.__getitem__)


def add_pieces(
    words: WordVectors, word_pieces: Sequence[str], *, min_words: int = 2, ridge: float = 0.1
) -> WordVectors:
    """The words at unit length, then vectors of word pieces, so that a word outside the vocabulary has a vector.

    Fitted so that a word of the vocabulary, read as its pieces, is near its own vector: ridge regression of ``sqrt(n)
    w`` on the sum of its ``n`` pieces. Pieces are at most of unit length, so that they do not dominate a text.

    Args:
        words: Word vectors; pieces among them are replaced.
        word_pieces: Candidates in the notation of WordPiece: ``goat`` begins a word, ``##herd`` continues one.
        min_words: Pieces that occur in fewer words of the vocabulary are left out; single characters stay.
        ridge: Weight of the squared length of a piece's vector; more makes rare pieces shorter.
    """
    if ridge <= 0 or min_words < 1:
        raise ConfigError(f"expected ridge > 0 and min_words >= 1, got {ridge} and {min_words}")
    words = words.without_pieces()
    marked = [
        piece if piece.startswith(PIECE_MARK) else piece + PIECE_MARK
        for piece in dict.fromkeys(word_pieces)
        if any(map(str.isalnum, piece))
    ]
    counts = _count_pieces(words.vocabulary, marked)
    chosen = [piece for piece in marked if counts[piece] >= min_words or len(piece) == len(PIECE_MARK) + 1]
    if not chosen:
        raise ConfigError(f"expected pieces of {min_words} words, got none among {len(word_pieces)}")
    vocabulary = _with_pieces(words.vocabulary, chosen)
    splits = [vocabulary.pieces(word) for word in words.vocabulary.words]
    rows = np.array([row for row, parts in enumerate(splits) if parts])
    lengths = np.array([len(splits[row]) for row in rows])
    parts = np.fromiter(chain.from_iterable(splits), dtype=np.int64)
    owners = np.repeat(np.arange(len(rows)), lengths)
    is_word = parts < len(words)  # a beginning that is a word keeps its vector
    targets_ND = np.sqrt(lengths, dtype=np.float32)[:, None] * words.unit_vectors[rows]
    np.subtract.at(targets_ND, owners[is_word], words.unit_vectors[parts[is_word]])
    ones = np.ones(int(np.count_nonzero(~is_word)), dtype=np.float32)
    design_NP = csr_matrix((ones, (owners[~is_word], parts[~is_word] - len(words))), shape=(len(rows), len(chosen)))
    gram_PP = (design_NP.T @ design_NP).toarray()
    gram_PP[np.diag_indices_from(gram_PP)] += ridge
    vectors_PD = scipy.linalg.solve(gram_PP, design_NP.T @ targets_ND, assume_a="pos", overwrite_a=True)
    vectors_PD /= np.maximum(1.0, np.linalg.norm(vectors_PD, axis=1, keepdims=True))
    return WordVectors(vocabulary, np.concatenate([words.unit_vectors, vectors_PD]))


def _with_pieces(vocabulary: Vocabulary, pieces: Sequence[str]) -> Vocabulary:
    """Adds pieces with a count of 1, so that their frequency does not reduce the weight of a rare word."""
    return Vocabulary(
        [*vocabulary.words, *pieces],
        np.concatenate([vocabulary.counts, np.ones(len(pieces), dtype=np.int64)]),
        total_count=vocabulary.total_count + len(pieces),
    )


def _count_pieces(vocabulary: Vocabulary, pieces: Sequence[str]) -> Counter[str]:
    """For each piece the number of words of several pieces that contain it."""
    candidates = _with_pieces(vocabulary, pieces)
    splits = map(candidates.pieces, vocabulary.words)
    return Counter(candidates.words[row] for parts in splits if len(parts) > 1 for row in parts)
