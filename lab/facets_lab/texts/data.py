"""Training batches of sentence and phrase models: texts in, words of what stands beside them as targets.

Every batch is drawn from the seed and its place (epoch and chunk, or step), so that any step can be made again without
replaying the ones before it: resuming is exact.

Shape suffixes: B texts, L tokens or words of a text, N targets, V words, T word pieces of a text.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from facets.config import AtLeastOne, FacetModelConfig, NonNegative, Share
from facets.errors import ConfigError
from facets.model.network import BackboneEncoder
from facets_lab.training.corpus import PackedCorpus
from facets_lab.training.loop import BatchSize, TrainingConfig


class SentenceTrainingConfig(TrainingConfig):
    """Training of a sentence model (Chang 2022, algorithm 1)."""

    corpus: str  # folder of a packed corpus
    words: str  # folder of word vectors, same vocabulary as the corpus
    name: str = "facets-en"
    inputs: Literal["sentences", "phrases"] = "sentences"  # phrases: one to three words, targets from five around
    targets: Literal["around", "next"] = "around"  # words of the sentences before and after, or of what follows alone
    loss: Literal["sparse_coding", "kmeans"] = "sparse_coding"  # kmeans is the ablation
    start_from: str = ""  # checkpoint folder whose weights to begin with; "": by chance
    l1_weight: NonNegative = 0.4  # lambda of eq. 3.1
    num_steps: AtLeastOne = 12_000
    batch_size: BatchSize = 256  # sentences a step
    max_targets: AtLeastOne = 30  # words of the neighbouring sentences a text is trained on
    input_tokens: AtLeastOne = 32  # a training input is cut after so many tokens
    long_input_rate: Share = 0.02  # of inputs that run on over the next sentences
    long_input_tokens: AtLeastOne = 96  # and are cut only here, so that long texts are met too
    validation_share: Annotated[float, Field(gt=0, lt=1)] = 0.01  # of the documents, never trained on
    validation_sentences: AtLeastOne = 4096
    model: FacetModelConfig = FacetModelConfig()

    @model_validator(mode="after")
    def _check(self) -> Self:
        limit = self.model.max_tokens
        for field in ("input_tokens", "long_input_tokens"):
            self.require(field, getattr(self, field) <= limit, f"<= model.max_tokens ({limit})")
        return self


# Batches that are sorted by length together: enough for hardly any padding, few enough to stay random.
_BATCHES_PER_CHUNK = 64
# Words of a neighbouring sentence beyond this many are never drawn as targets.
_MAX_NEIGHBOUR_TOKENS = 64


@dataclass(frozen=True, slots=True)
class SentenceBatch:
    """One step's inputs and targets.

    Attributes:
        rows: Word rows, ``[B, L]`` int64, padded with 0.
        lengths: Real tokens of each text, ``[B]`` int64.
        targets: Word rows of the targets, ``[B, N]`` int64, padded with 0.
        target_mask: True at real targets, ``[B, N]``.
        negatives: Row of the batch whose targets are a text's negatives, ``[B]`` int64, never its own.
    """

    rows: NDArray[np.int64]
    lengths: NDArray[np.int64]
    targets: NDArray[np.int64]
    target_mask: NDArray[np.bool_]
    negatives: NDArray[np.int64]


class SentenceStream:
    """Cuts a packed corpus into training and validation batches.

    Attributes:
        corpus: What is cut.
        config: How.
        training_sentences: Those that can be trained on, ascending.
        validation_sentences: Those of documents that never are.

    Raises:
        ConfigError: The corpus is too small for one batch on either side.
    """

    def __init__(self, corpus: PackedCorpus, config: SentenceTrainingConfig) -> None:
        self.corpus = corpus
        self.config = config
        offsets = corpus.document_offsets
        num_documents = len(offsets) - 1
        # [S] document of every sentence; neighbours never cross a document's border.
        self._document_of = np.repeat(np.arange(num_documents), np.diff(offsets))
        is_validation = held_out_documents(corpus, config)[self._document_of]
        alone = np.diff(offsets)[self._document_of] < 2
        if config.targets == "next":  # nothing follows the last sentence of a document
            alone |= np.append(self._document_of[1:] != self._document_of[:-1], True)
        self.training_sentences = np.flatnonzero(~is_validation & ~alone)
        self.validation_sentences = np.flatnonzero(is_validation & ~alone)
        for name, sentences in (
            ("training", self.training_sentences),
            ("validation", self.validation_sentences),
        ):
            if len(sentences) < config.batch_size:
                raise ConfigError(
                    f"{corpus.path} leaves {len(sentences)} {name} sentences, one batch needs {config.batch_size}"
                )

    @property
    def num_train_sentences(self) -> int:
        """Sentences that can be trained on; one epoch presents each about once."""
        return len(self.training_sentences)

    def training_batches(self, start_step: int) -> Iterator[SentenceBatch]:
        """Endless batches from step ``start_step`` on, the same ones in every run with this seed."""
        batch_size = self.config.batch_size
        # A corpus smaller than a chunk is one chunk an epoch; the last incomplete batch is dropped.
        chunk_batches = min(_BATCHES_PER_CHUNK, self.num_train_sentences // batch_size)
        chunks_per_epoch = self.num_train_sentences // (batch_size * chunk_batches)
        epoch = -1
        for chunk in range(start_step // chunk_batches, np.iinfo(np.int64).max):
            if chunk // chunks_per_epoch != epoch:
                epoch = chunk // chunks_per_epoch
                order = np.random.default_rng([self.config.seed, 1, epoch]).permutation(self.training_sentences)
            first = (chunk % chunks_per_epoch) * batch_size * chunk_batches
            rng = np.random.default_rng([self.config.seed, 2, chunk])
            batches = self.length_sorted(order[first : first + batch_size * chunk_batches], rng)
            skip = start_step - chunk * chunk_batches if chunk == start_step // chunk_batches else 0
            for position, (sentences, ends, lengths) in enumerate(batches):
                # Drawn from its own generator, so that skipped batches change nothing.
                batch_rng = np.random.default_rng([self.config.seed, 3, chunk, position])
                if position >= skip:
                    yield self._batch(sentences, ends, lengths, batch_rng)

    def validation_batches(self) -> list[SentenceBatch]:
        """The same held-out batches every time; targets and negatives included."""
        rng = np.random.default_rng([self.config.seed, 4])
        count = min(self.config.validation_sentences, len(self.validation_sentences))
        sentences = rng.choice(self.validation_sentences, count - count % self.config.batch_size, replace=False)
        return [self._batch(*parts, rng) for parts in self.length_sorted(sentences, rng)]

    def length_sorted(
        self, sentences: NDArray[np.int64], rng: np.random.Generator
    ) -> list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """Batches of (first sentence, sentence after the last, tokens) of like length, in random order."""
        offsets = self.corpus.sentence_offsets
        is_long = rng.random(len(sentences)) < self.config.long_input_rate
        limits = np.where(is_long, self.config.long_input_tokens, self.config.input_tokens)
        # A long input takes in the following sentences up to its token limit or its document's last but one.
        reach = np.searchsorted(offsets, offsets[sentences] + self.config.long_input_tokens, side="right") - 1
        last = self.corpus.document_offsets[self._document_of[sentences] + 1] - 1
        ends = np.where(is_long, np.maximum(sentences + 1, np.minimum(reach, last)), sentences + 1)
        lengths = np.minimum(offsets[ends] - offsets[sentences], limits)
        order = np.argsort(lengths, kind="stable")
        batches = order.reshape(-1, self.config.batch_size)
        return [(sentences[b], ends[b], lengths[b]) for b in rng.permutation(batches)]

    def _batch(
        self,
        sentences: NDArray[np.int64],
        ends: NDArray[np.int64],
        lengths: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> SentenceBatch:
        offsets = self.corpus.sentence_offsets
        rows, _ = gather(self.corpus.tokens, offsets[sentences], lengths)
        targets, target_mask = self._draw_targets(sentences, ends, rng)
        # A random cyclic shift: every text is somebody's negative, nobody its own.
        negatives = np.roll(np.arange(len(sentences)), rng.integers(1, len(sentences)))
        return SentenceBatch(rows, lengths, targets, target_mask, negatives)

    def _draw_targets(
        self, sentences: NDArray[np.int64], ends: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Up to ``max_targets`` non-stop words of the sentences around or of what follows, at random, ``[B, N]``."""
        offsets = self.corpus.sentence_offsets
        documents = self._document_of[sentences]
        only_next = self.config.targets == "next"
        first = sentences if only_next else np.maximum(sentences - 1, self.corpus.document_offsets[documents])
        after_next = self.corpus.document_offsets[documents + 1]
        last = after_next if only_next else np.minimum(ends + 1, after_next)
        num_before = np.minimum(offsets[sentences] - offsets[first], _MAX_NEIGHBOUR_TOKENS)
        num_after = np.minimum(offsets[last] - offsets[ends], _MAX_NEIGHBOUR_TOKENS)
        before, before_mask = gather(self.corpus.tokens, offsets[sentences] - num_before, num_before)
        after, after_mask = gather(self.corpus.tokens, offsets[ends], num_after)
        rows = np.concatenate([before, after], axis=1)
        mask = np.concatenate([before_mask, after_mask], axis=1) & ~self.corpus.vocabulary.is_stop[rows]
        keys = np.where(mask, rng.random(rows.shape, dtype=np.float32), np.float32(2.0))
        num_targets = min(self.config.max_targets, rows.shape[1])
        chosen = np.argpartition(keys, num_targets - 1, axis=1)[:, :num_targets]
        target_mask = np.take_along_axis(mask, chosen, axis=1)
        return np.where(target_mask, np.take_along_axis(rows, chosen, axis=1), 0), target_mask


def held_out_documents(corpus: PackedCorpus, config: SentenceTrainingConfig) -> NDArray[np.bool_]:
    """True at the documents that are never trained on, the same ones for every kind of input."""
    num_documents = len(corpus.document_offsets) - 1
    order = np.random.default_rng([config.seed, 0]).permutation(num_documents)
    is_held_out = np.zeros(num_documents, dtype=np.bool_)
    is_held_out[order[: max(1, round(num_documents * config.validation_share))]] = True
    return is_held_out


def gather(
    tokens: NDArray[np.integer], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Token rows ``[B, L]`` of runs of a corpus, padded with 0, and the mask of real ones."""
    steps = np.arange(max(1, int(lengths.max(initial=0))))
    mask = steps < lengths[:, None]
    positions = np.where(mask, starts[:, None] + steps, 0)
    return np.where(mask, tokens[positions].astype(np.int64), 0), mask


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


# Longer words of a corpus are markup or noise; a backbone reads only so much of them.
_MAX_PIECES_OF_A_WORD = 8


class WordPieceTable:
    """The word pieces of every word of a vocabulary, so that a packed corpus trains a backbone model.

    A backbone splits at spaces and punctuation before it looks for pieces, so the pieces of a text are those of its
    words one after the other; words outside the vocabulary become the backbone's unknown piece.

    Example:
        >>> table = WordPieceTable([[7, 8], [9]], unknown_piece=1)
        >>> rows, lengths = table.pieces(np.array([[1, 0, 2], [1, 0, 0]]), np.array([3, 1]), max_pieces=8)
        >>> rows.tolist(), lengths.tolist()
        ([[9, 7, 8, 1], [9, 0, 0, 0]], [4, 1])
    """

    def __init__(self, pieces: Sequence[Sequence[int] | NDArray[np.int64]], *, unknown_piece: int) -> None:
        """Keeps the pieces of each word.

        Args:
            pieces: Piece ids of the ``V`` words; a word without any counts as unknown.
            unknown_piece: Id that stands for row ``V``.
        """
        rows = [np.asarray(ids[:_MAX_PIECES_OF_A_WORD], dtype=np.int64) for ids in pieces]
        unknown = np.array([unknown_piece], dtype=np.int64)
        rows = [ids if len(ids) else unknown for ids in rows] + [unknown]
        self._counts_V = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        self._starts_V = np.concatenate([[0], np.cumsum(self._counts_V)[:-1]])
        self._ids = np.concatenate(rows)

    @classmethod
    def of_backbone(cls, encoder: BackboneEncoder, words: Sequence[str]) -> "WordPieceTable":
        """The table of a backbone and a vocabulary's words."""
        return cls(encoder.tokenize(words, _MAX_PIECES_OF_A_WORD), unknown_piece=encoder.pieces.unknown_id)

    def pieces(
        self, rows_BL: NDArray[np.int64], lengths_B: NDArray[np.int64], *, max_pieces: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Word rows of texts as word pieces.

        Args:
            rows_BL: Word rows, ``[B, L]``, in ``[0, V]``, padded at the end with anything.
            lengths_B: Words of each text.
            max_pieces: Longer texts are cut.

        Returns:
            Piece ids ``[B, T]`` padded with 0, and the number of pieces of each text ``[B]``; T >= 1.
        """
        counts_BL = np.where(np.arange(rows_BL.shape[1]) < lengths_B[:, None], self._counts_V[rows_BL], 0)
        ends_BL = np.cumsum(counts_BL, axis=1)
        totals_B = np.minimum(ends_BL[:, -1], max_pieces)
        steps_T = np.arange(max(1, int(totals_B.max())))
        # Which word each place belongs to: the number of words that end at or before it.
        marks_BT = np.zeros((len(rows_BL), len(steps_T) + 1), dtype=np.int64)
        texts_BL = np.broadcast_to(np.arange(len(rows_BL))[:, None], ends_BL.shape)
        np.add.at(marks_BT, (texts_BL, np.minimum(ends_BL, len(steps_T))), 1)
        words_BT = np.minimum(np.cumsum(marks_BT[:, :-1], axis=1), rows_BL.shape[1] - 1)
        offsets_BT = steps_T - np.take_along_axis(ends_BL - counts_BL, words_BT, axis=1)
        mask_BT = steps_T < totals_B[:, None]
        places_BT = self._starts_V[np.take_along_axis(rows_BL, words_BT, axis=1)] + offsets_BT
        return np.where(mask_BT, self._ids[np.where(mask_BT, places_BT, 0)], 0), totals_B
