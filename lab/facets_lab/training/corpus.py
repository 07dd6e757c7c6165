"""Text corpora: reading them, packing them into arrays of word rows, opening packed ones.

Worker processes turn blocks of documents into words numbered within the block; the main process renumbers them over the
corpus. The result does not depend on the number of workers.
"""

import html
import os
import re
import zipfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from glob import glob
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
import typer
from numpy.typing import NDArray
from tqdm import tqdm

from facets.arrays import Bools, Ints
from facets.errors import CheckpointError, ConfigError
from facets.language.sentences import sentences_of
from facets.language.tokenizer import Tokenizer, grouped
from facets.language.vocabulary import Vocabulary
from facets_lab.evaluation.files import read_texts

_TITLE = "# "
BLOCK_CHARS = 2_000_000
_MIN_LETTER_SHARE = 0.5
_MIN_WORDS = 3  # with a letter; shorter sentences are dropped
# Tags, templates, table rows, magic words, placeholders of formulas and source code.
_MARKUP = re.compile(
    r"</?[a-zA-Z][^<>]{0,80}/?>|\{\{[^{}]{0,200}\}\}|\{\{|\}\}|\|\||__[A-Z]{3,}__|\b(?:formula|codice)_\d+"
)
_BRACKETS = re.compile(r"\[\[|\]\]|'{2,}")  # links and emphasis, adjacent to words
_SPACES = re.compile(r"\s+")

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


def expand_files(patterns: Iterable[str | Path]) -> list[Path]:
    """Distinct files that match the patterns, sorted within each pattern."""
    files: dict[Path, None] = {}
    for pattern in patterns:
        matches = sorted(path for path in map(Path, glob(str(pattern))) if path.is_file())
        if not matches:
            raise ConfigError(f"corpus files must exist, got {str(pattern)!r}, which matches no file")
        files.update(dict.fromkeys(matches))
    return list(files)


def read_titled_documents(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Title and paragraphs of each document of a file; documents without a paragraph are left out.

    A line ``# Title`` starts a document, an empty line ends it; every other line is a paragraph. ``.xz`` and ``.gz``
    files are decompressed; only one document is in memory at a time.
    """
    title, paragraphs = "", list[str]()
    for line in read_texts(path):
        is_title = line.startswith(_TITLE)
        if is_title or not line:
            if paragraphs:
                yield title, paragraphs
            title, paragraphs = line.removeprefix(_TITLE).strip() if is_title else "", []
        else:
            paragraphs.append(line)
    if paragraphs:
        yield title, paragraphs


def clean_paragraph(text: str) -> str:
    """The text without markup such as ``<br>``, ``[[`` or ``&amp;`` and with single spaces.

    Example:
        >>> clean_paragraph("Salt &amp; pepper<br>are [[spices]].")
        'Salt & pepper are spices.'
    """
    return _SPACES.sub(" ", _BRACKETS.sub("", _MARKUP.sub(" ", html.unescape(text)))).strip()


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
    sentence_offsets: Ints  # [S + 1], int64, in tokens
    paragraph_offsets: Ints  # [P + 1], int64, in sentences
    document_offsets: Ints  # [Dc + 1], int64, in sentences
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
            tokens = np.load(path / "tokens.npy", mmap_mode="r", allow_pickle=False)
            with np.load(path / "offsets.npz", allow_pickle=False) as arrays:
                offsets: dict[str, Any] = {name: arrays[name] for name in arrays.files}
            return cls(path=path, tokens=tokens, vocabulary=Vocabulary.load(path / "vocabulary.tsv"), **offsets)
        except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise CheckpointError(f"{path}: expected a packed corpus, got: {error}") from error


def gather(tokens: NDArray[np.integer], starts: Ints, lengths: Ints) -> tuple[Ints, Bools]:
    """Rows ``[B, L]`` of runs of a corpus, padded with 0, and the mask of real tokens."""
    steps = np.arange(max(1, int(lengths.max(initial=0))))
    mask = steps < lengths[:, None]
    positions = np.where(mask, starts[:, None] + steps, 0)
    return np.where(mask, tokens[positions].astype(np.int64), 0), mask


@dataclass(frozen=True, slots=True)
class _Block:
    """Tokenized documents; words are numbered within the block."""

    words: list[str]
    tokens: NDArray[np.uint32]
    lengths: tuple[list[int], list[int], list[int]]  # tokens of sentences, sentences of paragraphs and of documents
    num_chars: int


def pack(
    files: Annotated[list[str], typer.Argument(help="Corpus: '# Title', a paragraph per line, empty line; .xz, .gz.")],
    out: Annotated[Path, typer.Option(help="Folder of the packed corpus; an older one is replaced.")],
    max_words: Annotated[int, typer.Option(min=1, help="Most frequent words to keep.")] = 64_000,
    min_count: Annotated[int, typer.Option(min=1, help="Words with a lower count become <unk>.")] = 5,
    words: Annotated[
        Path | None, typer.Option(help="Folder of word vectors whose vocabulary is used, such as models/facets-en.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Tokenizing processes; default: one per core.")] = None,
) -> None:
    """Split, tokenize and pack a corpus.

    Example: facets-train pack corpus/*.txt.xz --out runs/packed
    """
    paths = expand_files(files)
    vocabulary = None if words is None else Vocabulary.load(words / "vocabulary.tsv").without_pieces()
    out.mkdir(parents=True, exist_ok=True)
    (out / "offsets.npz").unlink(missing_ok=True)
    numbers: dict[str, int] = {}
    parts: list[NDArray[np.uint32]] = []
    lengths: tuple[list[int], list[int], list[int]] = ([], [], [])
    with tqdm(desc="packing", unit="char", unit_scale=True, disable=None) as progress:
        for block in _tokenized_blocks(paths, workers or os.cpu_count() or 1):
            local = np.array([numbers.setdefault(word, len(numbers)) for word in block.words], dtype=np.uint32)
            parts.append(local[block.tokens])
            for kept, more in zip(lengths, block.lengths, strict=True):
                kept += more
            progress.update(block.num_chars)
    if not lengths[0]:
        raise ConfigError(f"the corpus must have a sentence of {_MIN_WORDS} words, got none in {len(paths)} files")
    tokens: NDArray[Any] = np.concatenate(parts)
    if vocabulary is None:
        vocabulary = _most_frequent(list(numbers), np.bincount(tokens), max_words=max_words, min_count=min_count)
    dtype = np.uint16 if len(vocabulary) < np.iinfo(np.uint16).max else np.uint32
    tokens = vocabulary.rows(list(numbers)).astype(dtype)[tokens]
    np.save(out / "tokens.npy", tokens)
    vocabulary.save(out / "vocabulary.tsv")
    names = ("sentence_offsets", "paragraph_offsets", "document_offsets")
    offsets = {name: np.cumsum([0, *values], dtype=np.int64) for name, values in zip(names, lengths, strict=True)}
    # Written last, because only a folder with this file is a packed corpus.
    np.savez(out / "offsets.npz", allow_pickle=False, **offsets)


def _most_frequent(words: Sequence[str], counts: Ints, *, max_words: int, min_count: int) -> Vocabulary:
    """The most frequent words, ties in alphabetical order."""
    frequent = np.flatnonzero(counts >= min_count).tolist()
    chosen = sorted(frequent, key=lambda number: (-counts[number], words[number]))[:max_words]
    if not chosen:
        raise ConfigError(f"min_count must leave a word, got {min_count} and counts up to {counts.max()}")
    return Vocabulary([words[number] for number in chosen], counts[chosen], total_count=int(counts.sum()))


def _tokenized_blocks(files: Sequence[Path], num_workers: int) -> Iterator[_Block]:
    documents = (paragraphs for file in files for _, paragraphs in read_titled_documents(file))
    blocks = grouped(documents, BLOCK_CHARS, size=lambda paragraphs: sum(map(len, paragraphs)))
    if num_workers == 1:
        yield from map(_tokenize_block, blocks)
        return
    with ProcessPoolExecutor(num_workers) as pool:
        yield from map_in_order(pool, _tokenize_block, blocks, max_waiting=2 * num_workers)


@cache
def _tokenizer() -> Tokenizer:
    return Tokenizer()


def _tokenize_block(documents: list[list[str]]) -> _Block:
    numbers: dict[str, int] = {}
    tokens: list[int] = []
    lengths: tuple[list[int], list[int], list[int]] = ([], [], [])
    for document in documents:
        texts = ([sentence.text for sentence in sentences_of(clean_paragraph(text))] for text in document)
        paragraphs = [list(filter(_is_sentence, _tokenizer().words(of_paragraph))) for of_paragraph in texts]
        sentences = list(chain.from_iterable(paragraphs))
        tokens += [numbers.setdefault(word, len(numbers)) for words in sentences for word in words]
        lengths[0].extend(map(len, sentences))
        lengths[1].extend(filter(None, map(len, paragraphs)))
        lengths[2].extend(filter(None, [len(sentences)]))
    num_chars = sum(map(len, chain.from_iterable(documents)))
    return _Block(list(numbers), np.array(tokens, np.uint32), lengths, num_chars)


def _is_sentence(words: list[str]) -> bool:
    """Whether enough words have a letter and at least half of the characters are letters."""
    text = "".join(words)
    num_letters = len(text) if text.isalpha() else sum(map(str.isalpha, text))
    if num_letters < _MIN_LETTER_SHARE * len(text):
        return False
    return sum(word.isalpha() or any(map(str.isalpha, word)) for word in words) >= _MIN_WORDS
