"""Text corpora: reading them in a stream, packing them into arrays of word rows, opening what was packed.

Tokenizing happens once: worker processes turn blocks of documents into words numbered within the block, this
process renumbers them over the whole corpus and writes the numbers to a temporary file; when all words are
counted, the numbers become vocabulary rows. The result does not depend on the number of workers.
"""

import hashlib
import html
import json
import logging
import os
import re
import shutil
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from glob import glob
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from facets.errors import CheckpointError, ConfigError
from facets.language.files import read_lines
from facets.language.tokenizer import Tokenizer
from facets.language.vocabulary import Vocabulary
from facets.storage import write_atomically

_TITLE = "# "
ItemT = TypeVar("ItemT")
FORMAT = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class CorpusMeta:
    """``meta.json`` of a packed corpus: where it comes from and how much it holds."""

    format: int
    files: tuple[tuple[str, str], ...]  # name and SHA-256 of each file, in reading order
    num_documents: int
    num_paragraphs: int
    num_sentences: int
    num_tokens: int
    num_unknown: int  # tokens outside the vocabulary
    num_dropped_sentences: int  # shorter than min_words or mostly not letters
    num_words: int  # V
    max_words: int
    min_count: int
    min_words: int


def expand_files(patterns: Sequence[str]) -> list[Path]:
    """Files that match the patterns, each once, sorted within a pattern.

    Raises:
        ConfigError: A pattern matches no file.
    """
    files: dict[Path, None] = {}
    for pattern in patterns:
        found = sorted(path for path in map(Path, glob(pattern)) if path.is_file())
        if not found:
            raise ConfigError(f"corpus files must exist, got {pattern!r}, which matches no file")
        files.update(dict.fromkeys(found))
    return list(files)


def read_titled_documents(path: Path, *, blank_ends: bool = False) -> Iterator[tuple[str, list[str]]]:
    """Title and paragraphs of each document of one file, in order; documents without a paragraph are left out.

    A line ``# Title`` starts a new document, every other line is a paragraph. Files ending in ``.xz`` or ``.gz`` are
    unpacked on the way; only one document is in memory at a time.

    Args:
        path: The file.
        blank_ends: Whether an empty line ends a document; what follows has no title. Else it is passed over.

    Raises:
        InvalidInputError: A line is not UTF-8 or the file is cut or damaged; the message names file and line.
        ConfigError: The file cannot be opened.
    """
    title, paragraphs = "", list[str]()
    for line in read_lines(path):
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
    """Documents of one file as lists of paragraphs, without titles; an empty line starts a new one, too."""
    return (paragraphs for _, paragraphs in read_titled_documents(path, blank_ends=True))


def in_blocks(items: Iterable[ItemT], size_of: Callable[[ItemT], int], most: int) -> Iterator[list[ItemT]]:
    """Items in their order in blocks, each cut once it has reached a size."""
    block, size = list[ItemT](), 0
    for item in items:
        block.append(item)
        size += size_of(item)
        if size >= most:
            yield block
            block, size = [], 0
    if block:
        yield block


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PackedCorpus:
    """A corpus as word rows, memory-mapped: nothing is read until it is used.

    Offsets have one entry more than there are things: thing ``i`` is ``[offsets[i], offsets[i + 1])``.

    Attributes:
        path: The folder.
        tokens: ``[T]``, uint16 or uint32: vocabulary rows of all sentences one after the other; ``V`` is unknown.
        sentence_offsets: ``[S + 1]``, int64, in tokens.
        paragraph_offsets: ``[P + 1]``, int64, in sentences.
        document_offsets: ``[Dc + 1]``, int64, in sentences.
        vocabulary: The words of the rows.
        meta: Origin and counts.
    """

    path: Path
    tokens: NDArray[np.unsignedinteger]
    sentence_offsets: NDArray[np.int64]
    paragraph_offsets: NDArray[np.int64]
    document_offsets: NDArray[np.int64]
    vocabulary: Vocabulary
    meta: CorpusMeta

    @property
    def num_sentences(self) -> int:
        """How many sentences there are."""
        return len(self.sentence_offsets) - 1

    def sentence(self, row: int) -> NDArray[np.unsignedinteger]:
        """Word rows of one sentence, ``[L]``."""
        return self.tokens[self.sentence_offsets[row] : self.sentence_offsets[row + 1]]

    @classmethod
    def open(cls, path: Path) -> "PackedCorpus":
        """Opens and checks a packed folder.

        Raises:
            ConfigError: There is no such folder.
            CheckpointError: A file is missing, cut, or does not fit the others.
        """
        if not path.is_dir():
            raise ConfigError(f"a packed corpus is a folder, got {path}, which is none")
        meta = _read_meta(path / "meta.json")
        vocabulary = Vocabulary.load(path / "vocabulary.tsv")
        if len(vocabulary) != meta.num_words:
            raise CheckpointError(f"{path}: expected {meta.num_words} words, got {len(vocabulary)}")
        tokens = _map_array(path / "tokens.npy", ("uint16", "uint32"), meta.num_tokens)
        offsets: dict[str, NDArray[np.int64]] = {}
        counts = (("sentence", meta.num_tokens), ("paragraph", meta.num_sentences), ("document", meta.num_sentences))
        for name, end in counts:
            file, length = path / f"{name}_offsets.npy", getattr(meta, f"num_{name}s") + 1
            offsets[f"{name}_offsets"] = _map_array(file, ("int64",), length)
            _check_offsets(file, offsets[f"{name}_offsets"], end)
        if len(tokens) and int(tokens.max()) > len(vocabulary):
            raise CheckpointError(f"{path / 'tokens.npy'}: expected rows up to {len(vocabulary)}, got {tokens.max()}")
        return cls(path=path, tokens=tokens, **offsets, vocabulary=vocabulary, meta=meta)


def write_meta(path: Path, meta: CorpusMeta) -> None:
    """Writes ``meta.json``; a folder without it is not a packed corpus, so it is written last."""
    with write_atomically(path, durable=False) as part:
        part.write_text(json.dumps(asdict(meta), indent=2) + "\n", encoding="utf-8")


def _read_meta(path: Path) -> CorpusMeta:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        meta = CorpusMeta(**{**values, "files": tuple(map(tuple, values["files"]))})
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror}; the corpus was not packed to the end") from error
    except (ValueError, TypeError, KeyError) as error:
        raise CheckpointError(f"{path}: expected the description of a packed corpus, got {error}") from error
    if meta.format != FORMAT:
        raise CheckpointError(f"{path}: expected format {FORMAT}, got {meta.format}")
    return meta


def _map_array(path: Path, dtypes: tuple[str, ...], length: int) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error}") from error
    except ValueError as error:
        raise CheckpointError(f"{path}: expected {length} values, got a damaged file: {error}") from error
    if array.dtype.name not in dtypes or array.shape != (length,):
        raise CheckpointError(
            f"{path}: expected {length} values of {' or '.join(dtypes)}, got {array.dtype} {array.shape}"
        )
    return array


def _check_offsets(path: Path, offsets: NDArray[Any], end: int) -> None:
    values = np.asarray(offsets)
    if values[0] != 0 or values[-1] != end or bool(np.any(np.diff(values) <= 0)):
        raise CheckpointError(f"{path}: expected offsets growing from 0 to {end}, got others")


logger = logging.getLogger(__name__)

BLOCK_CHARS = 2_000_000
_MIN_LETTER_SHARE = 0.5
_ROWS_AT_A_TIME = 10_000_000
# Tags, templates, table rows, magic words, the places of formulas and source code.
_MARKUP = re.compile(
    r"</?[a-zA-Z][^<>]{0,80}/?>|\{\{[^{}]{0,200}\}\}|\{\{|\}\}|\|\||__[A-Z]{3,}__|\b(?:formula|codice)_\d+"
)
# Links and emphasis: they stand close around words.
_BRACKETS = re.compile(r"\[\[|\]\]|'{2,}")
_SPACES = re.compile(r"\s+")


@dataclass(slots=True)
class _Block:
    """Some documents, tokenized; words are numbered within the block."""

    words: list[str] = field(default_factory=list)
    tokens: NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, dtype=np.uint32))
    sentence_lengths: list[int] = field(default_factory=list)  # in tokens
    paragraph_lengths: list[int] = field(default_factory=list)  # in sentences
    document_lengths: list[int] = field(default_factory=list)  # in sentences
    num_dropped: int = 0
    num_chars: int = 0


def clean_paragraph(text: str) -> str:
    """The text without markup crumbs such as ``<br>``, ``[[`` or ``&amp;``; runs of white space become a space.

    Example:
        >>> clean_paragraph("Salt &amp; pepper<br>are [[spices]].")
        'Salt & pepper are spices.'
    """
    return _SPACES.sub(" ", _BRACKETS.sub("", _MARKUP.sub(" ", html.unescape(text)))).strip()


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
    """Writes a packed corpus and opens it.

    Args:
        files: Text files, plain, ``.xz`` or ``.gz`` (see ``read_documents``).
        out_dir: Folder to write; created when missing. An older packed corpus in it is replaced.
        max_words: Most words of the vocabulary; the most frequent ones stay, ties in alphabetical order.
        min_count: A word must occur at least this often.
        vocabulary: Take these words and their counts instead of choosing them: then word vectors that exist already
            fit the corpus. ``max_words`` and ``min_count`` have no say.
        min_words: Sentences with fewer words (tokens with a letter) are dropped, and so are those in which
            less than half of the characters are letters.
        num_workers: Processes that tokenize; all cores when not given.
        show_progress: Show a progress bar on standard error.

    Returns:
        The corpus, opened.

    Raises:
        ConfigError: A number is out of range, a file cannot be read, or no sentence is left.
        InvalidInputError: A file is not UTF-8 or damaged.
    """
    for name, value in (("max_words", max_words), ("min_count", min_count), ("min_words", min_words)):
        if value < 1:
            raise ConfigError(f"{name} must be >= 1, got {value}")
    workers = num_workers or os.cpu_count() or 1
    out_dir.mkdir(parents=True, exist_ok=True)
    (out_dir / "meta.json").unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=out_dir, prefix=".packing-") as scratch:
        numbers = Path(scratch) / "numbers"
        collected, counts = _collect(files, numbers, min_words, workers, show_progress)
        if not collected.sentence_lengths:
            raise ConfigError(f"the corpus must have a sentence of {min_words} words, got none in {len(files)} files")
        if vocabulary is None:
            vocabulary, rows = _choose_words(collected.words, counts, max_words=max_words, min_count=min_count)
        else:
            rows = vocabulary.rows(collected.words).astype(np.uint32)
        if not len(vocabulary):
            raise ConfigError(f"min_count must leave a word, got {min_count} and counts up to {counts.max()}")
        num_unknown = _write_tokens(numbers, rows, Path(scratch) / "tokens.npy", len(vocabulary))
        shutil.move(Path(scratch) / "tokens.npy", out_dir / "tokens.npy")
    vocabulary.save(out_dir / "vocabulary.tsv")
    _save_offsets(collected, out_dir)
    write_meta(
        out_dir / "meta.json",
        CorpusMeta(
            format=FORMAT,
            files=tuple((path.name, file_sha256(path)) for path in files),
            num_documents=len(collected.document_lengths),
            num_paragraphs=len(collected.paragraph_lengths),
            num_sentences=len(collected.sentence_lengths),
            num_tokens=int(counts.sum()),
            num_unknown=num_unknown,
            num_dropped_sentences=collected.num_dropped,
            num_words=len(vocabulary),
            max_words=max_words,
            min_count=min_count,
            min_words=min_words,
        ),
    )
    return PackedCorpus.open(out_dir)


def _save_offsets(collected: _Block, out_dir: Path) -> None:
    for name, lengths in (
        ("sentence", collected.sentence_lengths),
        ("paragraph", collected.paragraph_lengths),
        ("document", collected.document_lengths),
    ):
        np.save(out_dir / f"{name}_offsets.npy", np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))


def _collect(
    files: Sequence[Path], numbers_path: Path, min_words: int, workers: int, show_progress: bool
) -> tuple[_Block, NDArray[np.int64]]:
    """The whole corpus but for its tokens, which go to a file as word numbers; and how often each word occurs."""
    numbers: dict[str, int] = {}
    counts: Counter[int] = Counter()
    result = _Block()
    progress = tqdm(desc="packing", unit="char", unit_scale=True, disable=not show_progress)
    with progress, numbers_path.open("wb") as out:
        for block in _tokenized_blocks(files, min_words, workers):
            local = np.array([numbers.setdefault(word, len(numbers)) for word in block.words], dtype=np.uint32)
            local[block.tokens].tofile(out)
            counts.update(
                dict(zip(local.tolist(), np.bincount(block.tokens, minlength=len(local)).tolist(), strict=True))
            )
            result.sentence_lengths += block.sentence_lengths
            result.paragraph_lengths += block.paragraph_lengths
            result.document_lengths += block.document_lengths
            result.num_dropped += block.num_dropped
            progress.update(block.num_chars)
    result.words = list(numbers)
    return result, np.array([counts[number] for number in range(len(numbers))], dtype=np.int64)


def _tokenized_blocks(files: Sequence[Path], min_words: int, workers: int) -> Iterator[_Block]:
    """Blocks in the order of the text; a few are in flight, so a slow reader never fills the memory."""
    read = chain.from_iterable(map(read_documents, files))
    blocks = in_blocks(read, lambda paragraphs: sum(map(len, paragraphs)), BLOCK_CHARS)
    if workers == 1:
        for documents in blocks:
            yield _tokenize_block(documents, min_words)
        return
    with ProcessPoolExecutor(workers) as pool:
        waiting: deque[Future[_Block]] = deque()
        try:
            for documents in blocks:
                waiting.append(pool.submit(_tokenize_block, documents, min_words))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


_process_tokenizer: list[Tokenizer] = []


def _tokenize_block(documents: list[list[str]], min_words: int) -> _Block:
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
    """Enough words with a letter, and at least half of the characters are letters."""
    text = "".join(words)
    num_letters = len(text) if text.isalpha() else sum(map(str.isalpha, text))
    if num_letters < _MIN_LETTER_SHARE * len(text):
        return False
    return sum(map(_has_letter, words)) >= min_words


def _has_letter(word: str) -> bool:
    return word.isalpha() or any(map(str.isalpha, word))


def _choose_words(
    words: Sequence[str], counts: NDArray[np.int64], *, max_words: int, min_count: int
) -> tuple[Vocabulary, NDArray[np.uint32]]:
    """The vocabulary, and the row of every word number (``V`` outside the vocabulary)."""
    frequent = np.flatnonzero(counts >= min_count).tolist()
    chosen = sorted(frequent, key=lambda number: (-counts[number], words[number]))[:max_words]
    rows = np.full(len(counts), len(chosen), dtype=np.uint32)
    rows[chosen] = np.arange(len(chosen), dtype=np.uint32)
    return Vocabulary([words[number] for number in chosen], counts[chosen], total_count=int(counts.sum())), rows


def _write_tokens(numbers_path: Path, rows: NDArray[np.uint32], out_path: Path, num_words: int) -> int:
    """Turns word numbers into rows, a piece at a time; returns how many are unknown."""
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
