"""Text corpora: reading them in a stream, packing them into arrays of word rows, opening what was packed."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from facets.errors import CheckpointError, ConfigError
from facets.language.files import read_lines
from facets.language.vocabulary import Vocabulary
from facets.storage import write_atomically

__all__ = ["CorpusMeta", "PackedCorpus", "expand_files", "read_documents"]

_TITLE = "# "
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


def read_documents(path: Path) -> Iterator[list[str]]:
    """Documents of one file as lists of paragraphs, in order; titles are left out.

    A line ``# Title`` or an empty line starts a new document, every other line is a paragraph. Files ending in
    ``.xz`` or ``.gz`` are unpacked on the way; only one document is in memory at a time.

    Raises:
        InvalidInputError: A line is not UTF-8 or the file is cut or damaged; the message names file and line.
        ConfigError: The file cannot be opened.
    """
    paragraphs: list[str] = []
    for line in read_lines(path):
        if line.startswith(_TITLE) or not line:
            if paragraphs:
                yield paragraphs
            paragraphs = []
        else:
            paragraphs.append(line)
    if paragraphs:
        yield paragraphs


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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

    def __init__(
        self,
        path: Path,
        *,
        tokens: NDArray[np.unsignedinteger],
        sentence_offsets: NDArray[np.int64],
        paragraph_offsets: NDArray[np.int64],
        document_offsets: NDArray[np.int64],
        vocabulary: Vocabulary,
        meta: CorpusMeta,
    ) -> None:
        self.path = path
        self.tokens = tokens
        self.sentence_offsets = sentence_offsets
        self.paragraph_offsets = paragraph_offsets
        self.document_offsets = document_offsets
        self.vocabulary = vocabulary
        self.meta = meta

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
        sentences = _map_array(path / "sentence_offsets.npy", ("int64",), meta.num_sentences + 1)
        paragraphs = _map_array(path / "paragraph_offsets.npy", ("int64",), meta.num_paragraphs + 1)
        documents = _map_array(path / "document_offsets.npy", ("int64",), meta.num_documents + 1)
        _check_offsets(path / "sentence_offsets.npy", sentences, meta.num_tokens)
        _check_offsets(path / "paragraph_offsets.npy", paragraphs, meta.num_sentences)
        _check_offsets(path / "document_offsets.npy", documents, meta.num_sentences)
        if len(tokens) and int(tokens.max()) > len(vocabulary):
            raise CheckpointError(f"{path / 'tokens.npy'}: expected rows up to {len(vocabulary)}, got {tokens.max()}")
        return cls(
            path,
            tokens=tokens,
            sentence_offsets=sentences,
            paragraph_offsets=paragraphs,
            document_offsets=documents,
            vocabulary=vocabulary,
            meta=meta,
        )


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
