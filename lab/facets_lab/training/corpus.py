"""Text corpora: reading them, packing them into arrays of word rows, opening packed ones.

Worker processes turn blocks of documents into words numbered within the block; the main process renumbers them over the
corpus and writes the numbers to a temporary file. When all words are counted, the numbers become vocabulary rows. The
result does not depend on the number of workers.
"""

import hashlib
import html
import json
import os
import re
import shutil
import tempfile
import zipfile
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from glob import glob
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from facets.errors import CheckpointError, ConfigError
from facets.language.tokenizer import Tokenizer
from facets.language.vocabulary import Vocabulary
from facets.storage.files import write_atomically
from facets_lab.evaluation.files import read_texts

FORMAT = 1
_TITLE = "# "
BLOCK_CHARS = 2_000_000
_MIN_LETTER_SHARE = 0.5
_ROWS_AT_A_TIME = 10_000_000
# Tags, templates, table rows, magic words, placeholders of formulas and source code.
_MARKUP = re.compile(
    r"</?[a-zA-Z][^<>]{0,80}/?>|\{\{[^{}]{0,200}\}\}|\{\{|\}\}|\|\||__[A-Z]{3,}__|\b(?:formula|codice)_\d+"
)
_BRACKETS = re.compile(r"\[\[|\]\]|'{2,}")  # links and emphasis, adjacent to words
_SPACES = re.compile(r"\s+")

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


def expand_files(patterns: Sequence[str]) -> list[Path]:
    """Distinct files that match the patterns, sorted within each pattern."""
    files: dict[Path, None] = {}
    for pattern in patterns:
        matches = sorted(path for path in map(Path, glob(pattern)) if path.is_file())
        if not matches:
            raise ConfigError(f"corpus files must exist, got {pattern!r}, which matches no file")
        files.update(dict.fromkeys(matches))
    return list(files)


def read_titled_documents(path: Path, *, blank_ends: bool = False) -> Iterator[tuple[str, list[str]]]:
    """Title and paragraphs of each document of a file; documents without a paragraph are left out.

    A line ``# Title`` starts a document; every other line is a paragraph. With ``blank_ends`` an empty line also ends a
    document. ``.xz`` and ``.gz`` files are decompressed; only one document is in memory at a time.
    """
    title, paragraphs = "", list[str]()
    for line in read_texts(path):
        is_title = line.startswith(_TITLE)
        if is_title or (blank_ends and not line):
            if paragraphs:
                yield title, paragraphs
            title, paragraphs = line.removeprefix(_TITLE).strip() if is_title else "", []
        elif line:
            paragraphs.append(line)
    if paragraphs:
        yield title, paragraphs


def read_documents(path: Path) -> Iterator[list[str]]:
    """Paragraphs of each document of a file; an empty line also starts a new document."""
    return (paragraphs for _, paragraphs in read_titled_documents(path, blank_ends=True))


def clean_paragraph(text: str) -> str:
    """The text without markup such as ``<br>``, ``[[`` or ``&amp;`` and with single spaces.

    Example:
        >>> clean_paragraph("Salt &amp; pepper<br>are [[spices]].")
        'Salt & pepper are spices.'
    """
    return _SPACES.sub(" ", _BRACKETS.sub("", _MARKUP.sub(" ", html.unescape(text)))).strip()


def in_blocks(items: Iterable[ItemT], size_of: Callable[[ItemT], int], max_size: int) -> Iterator[list[ItemT]]:
    """Groups items into blocks, in order; a block ends once its size reaches ``max_size``."""
    block, size = list[ItemT](), 0
    for item in items:
        block.append(item)
        size += size_of(item)
        if size >= max_size:
            yield block
            block, size = [], 0
    if block:
        yield block


def map_in_order(
    pool: Executor, function: Callable[[ItemT], ResultT], items: Iterable[ItemT], *, max_waiting: int
) -> Iterator[ResultT]:
    """Results in the order of the items; at most ``max_waiting`` items are in memory."""
    waiting: deque[Future[ResultT]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > max_waiting:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PackedCorpus:
    """A corpus as memory-mapped word rows; item ``i`` of an offset array is ``[offsets[i], offsets[i + 1])``."""

    path: Path  # the folder
    tokens: NDArray[np.unsignedinteger]  # vocabulary rows of all sentences, uint16 or uint32; V is an unknown word
    sentence_offsets: NDArray[np.int64]  # [S + 1], int64, in tokens
    paragraph_offsets: NDArray[np.int64]  # [P + 1], int64, in sentences
    document_offsets: NDArray[np.int64]  # [Dc + 1], int64, in sentences
    vocabulary: Vocabulary  # the words of the rows

    @property
    def num_sentences(self) -> int:
        """Number of sentences, S."""
        return len(self.sentence_offsets) - 1

    def sentence(self, row: int) -> NDArray[np.unsignedinteger]:
        """Word rows of one sentence."""
        return self.tokens[self.sentence_offsets[row] : self.sentence_offsets[row + 1]]

    @classmethod
    def open(cls, path: Path) -> "PackedCorpus":
        """Opens a packed folder."""
        if not path.is_dir():
            raise ConfigError(f"a packed corpus is a folder, got {path}")
        try:
            meta = json.loads((path / "meta.json").read_text(encoding="utf-8"))
            tokens = np.load(path / "tokens.npy", mmap_mode="r", allow_pickle=False)
            with np.load(path / "offsets.npz", allow_pickle=False) as arrays:
                offsets: dict[str, Any] = {name: arrays[name] for name in arrays.files}
            corpus = cls(path=path, tokens=tokens, vocabulary=Vocabulary.load(path / "vocabulary.tsv"), **offsets)
        except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise CheckpointError(f"{path}: expected a packed corpus, got: {error}") from error
        if meta.get("format") != FORMAT:
            raise CheckpointError(f"{path}: expected format {FORMAT}, got {meta.get('format')}")
        ends = corpus.sentence_offsets[-1], corpus.paragraph_offsets[-1], corpus.document_offsets[-1]
        if ends != (len(tokens), corpus.num_sentences, corpus.num_sentences):
            raise CheckpointError(f"{path}: expected arrays that belong together, got other lengths: {ends}")
        if len(corpus.vocabulary) != meta["num_words"]:
            raise CheckpointError(f"{path}: expected {meta['num_words']} words, got {len(corpus.vocabulary)}")
        return corpus


@dataclass(slots=True)
class _Block:
    """Tokenized documents; words are numbered within the block."""

    words: list[str] = field(default_factory=list)
    tokens: NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, dtype=np.uint32))
    sentence_lengths: list[int] = field(default_factory=list)  # in tokens
    paragraph_lengths: list[int] = field(default_factory=list)  # in sentences
    document_lengths: list[int] = field(default_factory=list)  # in sentences
    num_dropped: int = 0  # sentences
    num_chars: int = 0


def pack_corpus(
    files: Sequence[Path],
    out_dir: Path,
    *,
    max_words: int = 64_000,
    min_count: int = 5,
    min_words: int = 3,
    vocabulary: Vocabulary | None = None,
    num_workers: int | None = None,
    show_progress: bool = True,
) -> PackedCorpus:
    """Writes a packed corpus and opens it; an older one in the folder is replaced.

    Args:
        files: Text files, see ``read_documents``.
        out_dir: Folder to write.
        max_words: Maximum size of the vocabulary: the most frequent words, ties in alphabetical order.
        min_count: Rarer words become unknown.
        min_words: Sentences with fewer words that have a letter are dropped, and so are those with less than half
            letters.
        vocabulary: Words and counts to use instead, so that existing word vectors fit the corpus.
        num_workers: Tokenizing processes; None: one per core.
        show_progress: Show a progress bar on standard error.
    """
    for name, value in (("max_words", max_words), ("min_count", min_count), ("min_words", min_words)):
        if value < 1:
            raise ConfigError(f"{name} must be >= 1, got {value}")
    out_dir.mkdir(parents=True, exist_ok=True)
    (out_dir / "meta.json").unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=out_dir, prefix=".packing-") as scratch:
        numbers = Path(scratch) / "numbers"
        blocks = _tokenized_blocks(files, min_words, num_workers or os.cpu_count() or 1)
        corpus, counts = _collect(blocks, numbers, show_progress)
        if not corpus.sentence_lengths:
            raise ConfigError(f"the corpus must have a sentence of {min_words} words, got none in {len(files)} files")
        if vocabulary is None:
            vocabulary, rows = _choose_words(corpus.words, counts, max_words=max_words, min_count=min_count)
        else:
            rows = vocabulary.rows(corpus.words).astype(np.uint32)
        if not len(vocabulary):
            raise ConfigError(f"min_count must leave a word, got {min_count} and counts up to {counts.max()}")
        num_unknown = _write_tokens(numbers, rows, Path(scratch) / "tokens.npy", len(vocabulary))
        shutil.move(Path(scratch) / "tokens.npy", out_dir / "tokens.npy")
    vocabulary.save(out_dir / "vocabulary.tsv")
    lengths = {
        "sentence_offsets": corpus.sentence_lengths,
        "paragraph_offsets": corpus.paragraph_lengths,
        "document_offsets": corpus.document_lengths,
    }
    offsets = {name: np.concatenate([[0], np.cumsum(values, dtype=np.int64)]) for name, values in lengths.items()}
    np.savez(out_dir / "offsets.npz", allow_pickle=False, **offsets)
    meta = {
        "format": FORMAT,
        "files": [(path.name, _sha256(path)) for path in files],
        "num_documents": len(corpus.document_lengths),
        "num_paragraphs": len(corpus.paragraph_lengths),
        "num_sentences": len(corpus.sentence_lengths),
        "num_tokens": int(counts.sum()),
        "num_unknown": num_unknown,
        "num_dropped_sentences": corpus.num_dropped,
        "num_words": len(vocabulary),
        "max_words": max_words,
        "min_count": min_count,
        "min_words": min_words,
    }
    # Written last, because only a folder with this file is a packed corpus.
    with write_atomically(out_dir / "meta.json", durable=False) as part:
        part.write_text(json.dumps(meta, indent=2) + "\n", encoding="utf-8")
    return PackedCorpus.open(out_dir)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _collect(blocks: Iterable[_Block], numbers_path: Path, show_progress: bool) -> tuple[_Block, NDArray[np.int64]]:
    """The corpus without its tokens, which go to a file as word numbers, and the count of each word."""
    numbers: dict[str, int] = {}
    counts: Counter[int] = Counter()
    corpus = _Block()
    progress = tqdm(desc="packing", unit="char", unit_scale=True, disable=not show_progress)
    with progress, numbers_path.open("wb") as out:
        for block in blocks:
            local = np.array([numbers.setdefault(word, len(numbers)) for word in block.words], dtype=np.uint32)
            local[block.tokens].tofile(out)
            block_counts = np.bincount(block.tokens, minlength=len(local)).tolist()
            counts.update(dict(zip(local.tolist(), block_counts, strict=True)))
            corpus.sentence_lengths += block.sentence_lengths
            corpus.paragraph_lengths += block.paragraph_lengths
            corpus.document_lengths += block.document_lengths
            corpus.num_dropped += block.num_dropped
            progress.update(block.num_chars)
    corpus.words = list(numbers)
    return corpus, np.array([counts[number] for number in range(len(numbers))], dtype=np.int64)


def _tokenized_blocks(files: Sequence[Path], min_words: int, num_workers: int) -> Iterator[_Block]:
    documents = chain.from_iterable(map(read_documents, files))
    blocks = in_blocks(documents, lambda paragraphs: sum(map(len, paragraphs)), BLOCK_CHARS)
    tasks = ((block, min_words) for block in blocks)
    if num_workers == 1:
        yield from map(_tokenize_block, tasks)
        return
    with ProcessPoolExecutor(num_workers) as pool:
        yield from map_in_order(pool, _tokenize_block, tasks, max_waiting=2 * num_workers)


_process_tokenizer: list[Tokenizer] = []


def _tokenize_block(task: tuple[list[list[str]], int]) -> _Block:
    documents, min_words = task
    if not _process_tokenizer:
        _process_tokenizer.append(Tokenizer())
    tokenizer = _process_tokenizer[0]
    block = _Block()
    numbers: dict[str, int] = {}
    tokens: list[int] = []
    for document in documents:
        num_before_document = len(block.sentence_lengths)
        for paragraph in document:
            num_before_paragraph = len(block.sentence_lengths)
            block.num_chars += len(paragraph)
            texts = [sentence.text for sentence in tokenizer.sentences(clean_paragraph(paragraph))]
            for words in tokenizer.words(texts):
                if not _is_sentence(words, min_words):
                    block.num_dropped += 1
                    continue
                tokens += [numbers.setdefault(word, len(numbers)) for word in words]
                block.sentence_lengths.append(len(words))
            if (length := len(block.sentence_lengths) - num_before_paragraph) > 0:
                block.paragraph_lengths.append(length)
        if (length := len(block.sentence_lengths) - num_before_document) > 0:
            block.document_lengths.append(length)
    block.words = list(numbers)
    block.tokens = np.array(tokens, dtype=np.uint32)
    return block


def _is_sentence(words: list[str], min_words: int) -> bool:
    """Whether enough words have a letter and at least half of the characters are letters."""
    text = "".join(words)
    num_letters = len(text) if text.isalpha() else sum(map(str.isalpha, text))
    if num_letters < _MIN_LETTER_SHARE * len(text):
        return False
    return sum(word.isalpha() or any(map(str.isalpha, word)) for word in words) >= min_words


def _choose_words(
    words: Sequence[str], counts: NDArray[np.int64], *, max_words: int, min_count: int
) -> tuple[Vocabulary, NDArray[np.uint32]]:
    """The vocabulary, and the row of every word number; ``V`` for unknown words."""
    frequent = np.flatnonzero(counts >= min_count).tolist()
    chosen = sorted(frequent, key=lambda number: (-counts[number], words[number]))[:max_words]
    rows = np.full(len(counts), len(chosen), dtype=np.uint32)
    rows[chosen] = np.arange(len(chosen), dtype=np.uint32)
    return Vocabulary([words[number] for number in chosen], counts[chosen], total_count=int(counts.sum())), rows


def _write_tokens(numbers_path: Path, rows: NDArray[np.uint32], out_path: Path, num_words: int) -> int:
    """Turns word numbers into rows, one piece at a time; returns how many are unknown."""
    numbers = np.memmap(numbers_path, dtype=np.uint32, mode="r")
    dtype = np.uint16 if num_words < np.iinfo(np.uint16).max else np.uint32
    out = np.lib.format.open_memmap(out_path, mode="w+", dtype=dtype, shape=numbers.shape)
    num_unknown = 0
    for start in range(0, len(numbers), _ROWS_AT_A_TIME):
        piece = rows[numbers[start : start + _ROWS_AT_A_TIME]]
        out[start : start + _ROWS_AT_A_TIME] = piece
        num_unknown += int(np.count_nonzero(piece == num_words))
    out.flush()
    return num_unknown
