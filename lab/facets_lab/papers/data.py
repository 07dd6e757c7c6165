"""Papers as arrays, training batches (parts of similar length, the pairs of the whole batch), and word vectors.

A general vocabulary lacks many words of a field, so words get singular vectors of the papers' own tf-idf matrix.
Shape suffixes: I or N papers, B papers of a batch, T words of all papers, L words of a paper, P pairs, J authors or
citing papers, U those of a batch, V words, D dimensions.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Annotated, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import svds

from facets.arrays import Floats, Ints, take_groups
from facets.config import AtLeastOne, FacetModelConfig, NonNegative, Positive, VectorWidth
from facets.errors import InvalidInputError
from facets.language.tokenizer import Tokenizer, grouped
from facets.language.vectors import unit_rows
from facets.language.vocabulary import Vocabulary
from facets.model.passage_encoding import length_batches
from facets.papers.reading import typed_rows
from facets.papers.records import Author, CandidateKind, Paper, year_of_id
from facets.papers.trained import TrainedPapers
from facets_lab.evaluation.files import NonBlank, Record, read_records
from facets_lab.training.corpus import gather
from facets_lab.training.loop import BatchSize, OptimizerConfig, TrainingConfig

_TEXTS_AT_A_TIME = 4096
_ENCODED_TOKENS = 16_384  # approximate number in one forward pass when all papers are encoded
_NUM_PARTS = 4  # parts of a batch, by length: little padding, and every batch has short and long papers


class PaperTrainingConfig(TrainingConfig):
    """Training of a model of papers with its author and citing-paper tables (Chang 2022, section 3.4, B.3 to B.5)."""

    data: str  # JSON lines {"id", "title", "abstract", "authors", "cited_by"}; .xz and .gz too
    name: str = "facets-papers-en"
    word_dim: VectorWidth = 256
    min_word_count: AtLeastOne = 3
    max_words: Annotated[int, Field(ge=1, lt=32_767)] = 32_000  # stored in 16 bits with the type
    min_author_papers: AtLeastOne = 2  # authors with fewer papers get no vector
    min_cited_papers: AtLeastOne = 5  # citing papers that cite fewer get no vector
    author_weight: NonNegative = 1.0  # alpha of eq. 3.14, for means over pairs (the paper's 5:1:10 is for sums)
    citation_weight: NonNegative = 1.0  # beta
    autoencoder_weight: NonNegative = 0.1  # gamma of eq. B.3
    temperature: Positive = 0.1  # of the softmax over the papers of a batch
    word_learning_rate: NonNegative = 3e-3  # words are trained as in B.5
    num_steps: AtLeastOne = 600
    batch_size: BatchSize = 512  # papers per step
    input_tokens: AtLeastOne = 64  # a training input is cut after so many words
    word_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.3  # share of the words of a training input that are left out
    validation_papers: AtLeastOne = 2000  # never trained on
    validate_every: AtLeastOne = 200  # steps
    checkpoint_every: AtLeastOne = 200  # steps
    model: FacetModelConfig = FacetModelConfig(num_facets=5, hidden_dim=128)
    optimizer: OptimizerConfig = OptimizerConfig(warmup_steps=30)

    @model_validator(mode="after")
    def _check(self) -> Self:
        limit = self.model.max_tokens
        self.require("input_tokens", self.input_tokens <= limit, f"<= model.max_tokens ({limit})")
        return self


class _AuthorRecord(Record):
    name: str = ""
    id: str = ""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not (self.name or self.id):
            raise ValueError("must have a name or an id")
        return self


class _PaperRecord(Record):
    id: NonBlank
    title: NonBlank
    abstract: str | None = None
    authors: list[str | _AuthorRecord] | None = None
    cited_by: list[NonBlank] | None = None
    year: int | None = None


def read_papers(path: Path) -> list[Paper]:
    """Papers of JSON lines, in order; without ``year``, the year is taken from an id of the ACL Anthology."""
    papers: dict[str, Paper] = {}
    for place, record in read_records(_PaperRecord, path):
        if record.id in papers:
            raise InvalidInputError(f"{place}: expected distinct ids, got {record.id!r} twice")
        # Real lists have empty names where an author was lost.
        authors = [_AuthorRecord(name=a) if isinstance(a, str) else a for a in record.authors or () if a != ""]
        papers[record.id] = Paper(
            title=record.title,
            abstract=record.abstract or "",
            id=record.id,
            authors=tuple(Author(author.name or author.id, author.id) for author in authors),
            cited_by_ids=tuple(record.cited_by or ()),
            year=year_of_id(record.id) if record.year is None else record.year,
        )
    return list(papers.values())


def build_vocabulary(papers: Sequence[Paper], config: PaperTrainingConfig) -> Vocabulary:
    """The words of titles and abstracts, most frequent first, ties by word."""
    counts: Counter[str] = Counter()
    tokenizer, min_count = Tokenizer(), config.min_word_count
    for part in grouped(papers, _TEXTS_AT_A_TIME, size=lambda _: 1):
        for words in tokenizer.words([f"{paper.title} \n {paper.abstract}" for paper in part]):
            counts.update(words)
    kept = sorted((word for word, num in counts.items() if num >= min_count), key=lambda w: (-counts[w], w))
    kept = kept[: config.max_words]
    if not kept:
        raise InvalidInputError(f"expected a word that occurs {min_count} times in the papers, got none")
    return Vocabulary(kept, np.array([counts[word] for word in kept]), total_count=counts.total())


def build_corpus(papers: Sequence[Paper], vocabulary: Vocabulary, config: PaperTrainingConfig) -> TrainedPapers:
    """Word rows of papers, and their pairs with authors and citing papers, by paper."""
    tokenizer = Tokenizer()
    rows: list[NDArray[np.uint16]] = []
    for part in grouped(papers, _TEXTS_AT_A_TIME, size=lambda _: 1):
        rows += typed_rows(tokenizer, vocabulary, [p.title for p in part], [p.abstract for p in part])
    titles = {paper.id: paper.title for paper in papers}
    names = {author.key: author.name for paper in papers for author in paper.authors}
    wrote = [{author.key for author in paper.authors} for paper in papers]
    cite = [set(paper.cited_by_ids) for paper in papers]
    columns = {
        CandidateKind.AUTHORS: (wrote, names, config.min_author_papers),
        CandidateKind.CITATIONS: (cite, titles, config.min_cited_papers),
    }
    ids: dict[str, list[str]] = {}
    shown: dict[str, list[str]] = {}
    pairs: dict[str, Ints] = {}
    for kind, (keys_of, label_of, min_papers) in columns.items():
        counts = Counter(chain.from_iterable(keys_of))
        ids[kind] = sorted(key for key, num in counts.items() if num >= min_papers)
        shown[kind] = [label_of.get(key, "") for key in ids[kind]]
        column = {key: number for number, key in enumerate(ids[kind])}
        cells = [(row, column[key]) for row, keys in enumerate(keys_of) for key in sorted(keys) if key in column]
        pairs[kind] = np.array(cells, dtype=np.int64).reshape(-1, 2)
    if not any(ids.values()):
        raise InvalidInputError(
            f"expected an author of {config.min_author_papers} papers or a paper that cites "
            f"{config.min_cited_papers}, got none in {len(papers)} papers"
        )
    return TrainedPapers(
        ids=[paper.id for paper in papers],
        titles=[paper.title for paper in papers],
        years=np.array([paper.year or 0 for paper in papers], dtype=np.int32),
        rows=np.concatenate(rows),
        offsets=np.cumsum([0, *map(len, rows)], dtype=np.int64),
        column_ids=ids,
        column_names=shown,
        pairs=pairs,
    )


class BatchPairs(NamedTuple):
    """The positive pairs of a batch with authors, or with citing papers."""

    columns: Ints  # [U] int64, distinct rows of the table, ascending
    numbers: Ints  # [P] int64, positions of the pairs in the corpus
    pairs: Ints  # [P, 2] int64: paper of the batch, position in columns
    weights: Floats  # [P] float32, r of eq. 3.12


class PaperBatch(NamedTuple):
    """A batch, its papers sorted by length."""

    parts: list[tuple[Ints, Ints]]  # padded typed rows [b, L] and lengths [b]
    pairs: dict[CandidateKind, BatchPairs]
    negatives: Ints  # [B] int64, another paper for each, for the autoencoder


class PaperStream:
    """Endless training batches and fixed validation batches; the same ones for the same seed."""

    def __init__(self, corpus: TrainedPapers, config: PaperTrainingConfig) -> None:
        self._corpus = corpus
        self._config = config
        num_papers = len(corpus.ids)
        order = np.random.default_rng([config.seed, 0]).permutation(num_papers)
        num_validation = min(config.validation_papers, num_papers // 5)
        self.validation_papers = np.sort(order[:num_validation])
        self.training_papers = np.sort(order[num_validation:])
        self._batch_size = max(2, min(config.batch_size, len(self.training_papers)))
        # [I + 1]: the pairs of paper i are offsets[i]:offsets[i + 1].
        self._offsets = {
            kind: np.searchsorted(pairs_P2[:, 0], np.arange(num_papers + 1)).astype(np.int64)
            for kind, pairs_P2 in corpus.pairs.items()
        }
        self._weights = {kind: _pair_weights(pairs_P2[:, 1]) for kind, pairs_P2 in corpus.pairs.items()}

    def training_batches(self, start_step: int = 0) -> Iterator[PaperBatch]:
        """Batches from a step on; each epoch has a different order."""
        per_epoch = max(1, len(self.training_papers) // self._batch_size)
        for step in count(start_step):
            epoch, number = divmod(step, per_epoch)
            order = np.random.default_rng([self._config.seed, 1, epoch]).permutation(self.training_papers)
            papers = order[number * self._batch_size : (number + 1) * self._batch_size]
            rng = np.random.default_rng([self._config.seed, 2, step])
            yield self.batch(papers, rng, word_dropout=self._config.word_dropout)

    def validation_batches(self) -> list[PaperBatch]:
        """The held-out papers, without word dropout."""
        rng = np.random.default_rng([self._config.seed, 3])
        papers = rng.permutation(self.validation_papers)
        size = min(self._batch_size, len(papers))
        return [self.batch(papers[i : i + size], rng) for i in range(0, len(papers) - size + 1, size)] if size else []

    def all_papers(self, max_tokens: int) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Every paper once, by length: positions ``[b]``, padded typed rows ``[b, L]``, lengths ``[b]``."""
        rng = np.random.default_rng(0)
        lengths = np.minimum(np.diff(self._corpus.offsets), max_tokens)
        for papers in length_batches(lengths, max_tokens=_ENCODED_TOKENS):
            yield papers, *self._part(papers, rng, 0.0, max_tokens)

    def batch(self, papers: Ints, rng: np.random.Generator, *, word_dropout: float = 0.0) -> PaperBatch:
        """One batch of the given papers."""
        offsets = self._corpus.offsets
        lengths = np.minimum(offsets[papers + 1] - offsets[papers], self._config.input_tokens)
        papers = papers[np.argsort(lengths, kind="stable")]
        split = [part for part in np.array_split(papers, _NUM_PARTS) if len(part)]
        parts = [self._part(part, rng, word_dropout, self._config.input_tokens) for part in split]
        pairs = {kind: self._pairs(kind, papers) for kind in CandidateKind}
        # A random cyclic shift gives every paper another one as its negative.
        negatives = np.roll(np.arange(len(papers)), int(rng.integers(1, len(papers))) if len(papers) > 1 else 0)
        return PaperBatch(parts, pairs, negatives)

    def _part(self, papers: Ints, rng: np.random.Generator, word_dropout: float, max_tokens: int) -> tuple[Ints, Ints]:
        starts = self._corpus.offsets[papers]
        lengths = np.minimum(self._corpus.offsets[papers + 1] - starts, max_tokens)
        rows, real = gather(self._corpus.rows, starts, lengths)
        kept = real
        if word_dropout:
            kept = real & (rng.random(real.shape, dtype=np.float32) >= word_dropout)
            kept[:, 0] |= ~kept.any(axis=1) & real[:, 0]  # one word stays
        # Kept words first, in order: a stable sort of the mask.
        order = np.argsort(~kept, axis=1, kind="stable")
        lengths = kept.sum(axis=1)
        width = max(1, int(lengths.max()))
        rows = np.take_along_axis(rows, order[:, :width], axis=1)
        return np.where(np.arange(width) < lengths[:, None], rows, 0), lengths

    def _pairs(self, kind: CandidateKind, papers: Ints) -> BatchPairs:
        columns_P = self._corpus.pairs[kind][:, 1]
        chosen, starts = take_groups(self._offsets[kind], papers)
        rows = np.repeat(np.arange(len(papers)), np.diff(starts))
        columns, inverse = np.unique(columns_P[chosen], return_inverse=True)
        pairs = np.stack([rows, inverse], axis=1).astype(np.int64)
        return BatchPairs(columns, chosen, pairs, self._weights[kind][chosen])


def _pair_weights(columns_P: Ints) -> Floats:
    """Weights r of eq. 3.12: inverse of the column's number of papers, with mean 1."""
    weights = 1.0 / np.bincount(columns_P)[columns_P]
    return (weights / weights.mean() if len(weights) else weights).astype(np.float32)


def word_counts(rows: NDArray[np.uint16], offsets: Ints, num_words: int) -> csr_matrix:
    """How often each text, ``rows[offsets[n]:offsets[n + 1]]``, has each known word of any type, ``[N, V]`` float32."""
    words = rows.astype(np.int64) % (num_words + 1)
    texts = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    known = words < num_words
    ones = np.ones(int(known.sum()), dtype=np.float32)
    return csr_matrix((ones, (texts[known], words[known])), shape=(len(offsets) - 1, num_words))


def singular_word_vectors(counts_NV: csr_matrix, dim: int, *, seed: int = 1) -> Floats:
    """Unit vectors of the words, ``[V, D]``: right singular vectors of the tf-idf matrix of the texts.

    Weights are ``(1 + log count) log(N / texts)``, with texts and then words at unit length.
    """
    num_texts, num_words = counts_NV.shape
    if min(num_texts, num_words) <= dim:
        raise InvalidInputError(
            f"word_dim must be below the number of papers and of words, {num_texts} and {num_words}, got {dim}"
        )
    frequency_V = np.asarray((counts_NV > 0).sum(axis=0)).ravel()
    weighted = counts_NV.copy()
    weighted.data = 1.0 + np.log(weighted.data)
    weighted = weighted @ diags(np.log(num_texts / (1.0 + frequency_V)).clip(min=0.0))
    lengths_N = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    weighted = (diags(1.0 / np.maximum(lengths_N, 1e-9)) @ weighted).astype(np.float32)
    start = np.random.default_rng(seed).standard_normal(min(weighted.shape)).astype(np.float32)
    _, _, rows_DV = svds(weighted, k=dim, v0=start, tol=1e-2)
    return unit_rows(np.ascontiguousarray(rows_DV[::-1].T))
