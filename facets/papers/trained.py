r"""What a model of papers knows besides its network: authors, citing papers, the papers they belong to.

::

    tables.safetensors     vectors of authors and citing papers: one byte a number with scales, or half precision
    recommendation.json    how scores are mixed, where the papers are, whose encoder made their sentence vectors
    papers.safetensors.xz  words of the papers, who wrote and who cites them   \  or `papers` in
    papers.json.xz         ids, names, titles                                   | recommendation.json names
    sentences.safetensors.xz  sentence vectors of the papers, if the model      | another folder, relative
                           has them                                            /

Shape letters: I papers, J authors or citing papers, D dimensions, P pairs, C components of sentence vectors.
"""

import json
import lzma
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from facets.errors import CheckpointError
from facets.language.vectors import dequantize, quantize
from facets.papers.reading import MAX_ABSTRACT_CHARS, SentenceVectors
from facets.papers.records import CandidateKind
from facets.storage import write_whole

KINDS = ("authors", "citations")
_FORMAT = 1
_SENTENCES_FILE = "sentences.safetensors.xz"
_SCALES_SUFFIX = ".scales"
_BYTE_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 0, "pb": 0}]  # bytes that stand for themselves


@dataclass(frozen=True, slots=True)
class TrainedPapers:
    """The papers a model was trained on, as far as an author or a citing paper of the tables needs them."""

    ids: Sequence[str]  # `I` ids
    titles: Sequence[str]  # `I` titles
    years: NDArray[np.int32]  # `[I]` int32, 0 when unknown
    rows: NDArray[np.uint16]  # typed word rows of all papers, uint16
    offsets: NDArray[np.int64]  # `[I + 1]` int64 into `rows`
    column_ids: Mapping[str, Sequence[str]]  # by kind, `J` ids of authors or citing papers, ascending
    # By kind, `J` names of authors, titles of citing papers (empty when unknown).
    column_names: Mapping[str, Sequence[str]]
    # By kind, `[P, 2]` int64: paper, author or citing paper; ascending by the second.
    pairs: Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True, kw_only=True, slots=True)
class SentenceSettings:
    """Sentence vectors beside the word averages of a document."""

    share: float  # s, their weight beside the words, in (0, 1); tuned on development data
    encoder: str  # folder of the model of passages that makes them, relative to the checkpoint
    space: str  # name of the space of its vectors
    abstract_chars: int  # characters of an abstract that are read for it

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ValueError(f"share must lie between 0 and 1, got {self.share}")
        if not 0 <= self.abstract_chars <= MAX_ABSTRACT_CHARS:
            raise ValueError(f"abstract_chars must be in [0, {MAX_ABSTRACT_CHARS}], got {self.abstract_chars}")


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoringSettings:
    """How scores are mixed."""

    # By kind, the share of the facets in the hybrid score, tuned on development data.
    facet_weights: Mapping[str, float]
    # By kind, `max` or `average`: how cosines with a candidate's papers become one score.
    document_modes: Mapping[str, str]
    # Name of another document similarity -> weights like `facet_weights`, for evaluation.
    other_weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    sentences: SentenceSettings | None = None  # of the documents; None: these are word averages alone


@dataclass(frozen=True, slots=True)
class PaperTables:
    """The trained vectors."""

    vectors: Mapping[str, NDArray[np.float32]]  # by kind, `[J, D]` float32
    # By kind, `[D, D]` float32, what the sum of a candidate's facets is multiplied by.
    spreads: Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class PapersPart:
    """What ``read_papers_part`` has read; ``sentences`` is None where the settings have none."""

    tables: PaperTables
    settings: ScoringSettings
    papers: TrainedPapers
    sentences: SentenceVectors | None
    files: Sequence[Path]


def write_papers_part(
    folder: Path,
    tables: PaperTables,
    settings: ScoringSettings,
    *,
    papers: TrainedPapers | None,
    papers_path: str = ".",
) -> None:
    """Writes the files above but for sentence vectors; ``papers`` only where ``papers_path`` is ``.``.

    Each file appears whole or not at all.
    """
    arrays: dict[str, NDArray[Any]] = {}
    for kind in KINDS:
        name = f"{kind}.vectors"
        arrays[name], arrays[name + _SCALES_SUFFIX] = quantize(tables.vectors[kind])
    arrays |= {f"{kind}.spread": tables.spreads[kind].astype(np.float32) for kind in KINDS}
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    write_whole(folder / "tables.safetensors", save(contiguous))
    if papers_path == "." and papers is not None:
        arrays = {
            "rows": papers.rows,
            "lengths": np.diff(papers.offsets).astype(np.int32),
            "years": papers.years.astype(np.int16),
        }
        arrays |= {f"{kind}.pairs": papers.pairs[kind].astype(np.int32) for kind in KINDS}
        write_whole(folder / "papers.safetensors.xz", lzma.compress(save(arrays)))  # words compress to two thirds
        texts = {
            "ids": list(papers.ids),
            "titles": list(papers.titles),
            **{f"{kind}.ids": list(papers.column_ids[kind]) for kind in KINDS},
            **{f"{kind}.names": list(papers.column_names[kind]) for kind in KINDS},
        }
        write_whole(folder / "papers.json.xz", lzma.compress(json.dumps(texts, ensure_ascii=False).encode()))
    values = {
        "format": _FORMAT,
        "papers": papers_path,
        "facet_weights": dict(settings.facet_weights),
        "document_modes": dict(settings.document_modes),
        "other_weights": {name: dict(weights) for name, weights in settings.other_weights.items()},
        "sentences": None if settings.sentences is None else asdict(settings.sentences),
    }
    write_whole(folder / "recommendation.json", json.dumps(values, indent=2) + "\n")


def write_sentence_vectors(folder: Path, sentences: SentenceVectors) -> None:
    """Writes the sentence vectors of the papers of a folder."""
    arrays: dict[str, NDArray[Any]] = {
        # A component is followed by itself: components of small variance then compress well.
        "values": np.ascontiguousarray(sentences.values.T),
        "axes": sentences.axes,
        "center": sentences.center,
    }
    write_whole(folder / _SENTENCES_FILE, lzma.compress(save(arrays), filters=_BYTE_FILTERS))


def change_settings(folder: Path, changes: Mapping[str, object]) -> None:
    """Replaces some values of ``recommendation.json``.

    Raises:
        CheckpointError: The file is missing or damaged.
    """
    path = folder / "recommendation.json"
    values = {**_json(path, Path.read_bytes), **changes}
    write_whole(path, json.dumps(values, indent=2) + "\n")


def read_papers_part(folder: Path, *, read: Callable[[Path], bytes] = Path.read_bytes) -> PapersPart:
    """Reads what ``write_papers_part`` and ``write_sentence_vectors`` wrote; ``read`` gives the content of a file.

    Raises:
        CheckpointError: A file is missing, damaged, or they do not fit each other.
    """
    path = folder / "recommendation.json"
    values = _json(path, read)
    if values.get("format") != _FORMAT:
        raise CheckpointError(f"{path}: expected format {_FORMAT}, got {values.get('format')!r}")
    with _reading(path):
        settings = ScoringSettings(
            facet_weights={kind: float(values["facet_weights"][kind]) for kind in KINDS},
            document_modes={kind: str(values["document_modes"][kind]) for kind in KINDS},
            other_weights=dict(values.get("other_weights", {})),
            sentences=SentenceSettings(**values["sentences"]) if values.get("sentences") else None,
        )
        papers_folder = (folder / str(values["papers"])).resolve()
    tables_path = folder / "tables.safetensors"
    arrays = _load(tables_path, read)
    with _reading(tables_path):
        tables = PaperTables(
            {kind: _vectors(arrays, f"{kind}.vectors") for kind in KINDS},
            {kind: arrays[f"{kind}.spread"].astype(np.float32) for kind in KINDS},
        )
    papers, files = _read_known_papers(papers_folder, read)
    for kind in KINDS:
        if len(tables.vectors[kind]) != len(papers.column_ids[kind]):
            raise CheckpointError(
                f"{tables_path}: expected {len(papers.column_ids[kind])} vectors of {kind}, "
                f"got {len(tables.vectors[kind])}"
            )
        if not np.isfinite(tables.vectors[kind]).all():
            raise CheckpointError(f"{tables_path}: vectors of {kind} have NaN or infinite values")
    files = [path, tables_path, *files]
    sentences = None
    if settings.sentences is not None:
        sentences = _read_sentence_vectors(papers_folder / _SENTENCES_FILE, read, num_papers=len(papers.ids))
        files.append(papers_folder / _SENTENCES_FILE)
    return PapersPart(tables, settings, papers, sentences, files)


def _read_sentence_vectors(path: Path, read: Callable[[Path], bytes], *, num_papers: int) -> SentenceVectors:
    arrays = _load(path, read)
    with _reading(path):
        axes, center, values = arrays["axes"], arrays["center"], arrays["values"]
    if axes.shape != (len(center), len(values)) or values.shape != (len(values), num_papers):
        raise CheckpointError(
            f"{path}: expected vectors of {num_papers} papers and axes for them, got {values.shape} and {axes.shape}"
        )
    if not (np.isfinite(axes).all() and np.isfinite(center).all()):
        raise CheckpointError(f"{path}: axes have NaN or infinite values")
    return SentenceVectors(axes, center, np.ascontiguousarray(values.T))


def _read_known_papers(folder: Path, read: Callable[[Path], bytes]) -> tuple[TrainedPapers, list[Path]]:
    arrays_path, texts_path = folder / "papers.safetensors.xz", folder / "papers.json.xz"
    arrays = _load(arrays_path, read)
    texts = _json(texts_path, read)
    with _reading(arrays_path):
        papers = TrainedPapers(
            ids=texts["ids"],
            titles=texts["titles"],
            years=arrays["years"].astype(np.int32),
            rows=arrays["rows"],
            offsets=np.concatenate([[0], np.cumsum(arrays["lengths"], dtype=np.int64)]).astype(np.int64),
            column_ids={kind: texts[f"{kind}.ids"] for kind in KINDS},
            column_names={kind: texts[f"{kind}.names"] for kind in KINDS},
            pairs={kind: arrays[f"{kind}.pairs"].astype(np.int64) for kind in KINDS},
        )
    num_papers = len(papers.ids)
    fits = (
        len(papers.titles) == num_papers == len(papers.years) == len(papers.offsets) - 1
        and papers.offsets[-1] == len(papers.rows)
        and all(
            not len(papers.pairs[k]) or (papers.pairs[k].max(axis=0) < (num_papers, len(papers.column_ids[k]))).all()
            for k in KINDS
        )
    )
    if not fits:
        raise CheckpointError(f"{arrays_path} and {texts_path} do not belong together")
    return papers, [arrays_path, texts_path]


def _vectors(arrays: Mapping[str, NDArray[Any]], name: str) -> NDArray[np.float32]:
    """A matrix of one byte a number, or of half precision."""
    if name + _SCALES_SUFFIX in arrays:
        return dequantize(arrays[name], arrays[name + _SCALES_SUFFIX])
    vectors: NDArray[np.float32] = arrays[name].astype(np.float32)
    return vectors


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Whatever is wrong with a file is a CheckpointError that names it."""
    try:
        yield
    except KeyError as error:
        raise CheckpointError(f"{path}: expected a value or tensor named {error}") from error
    except (SafetensorError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: it is damaged, or a value is wrong: {error}") from error


def _load(path: Path, read: Callable[[Path], bytes]) -> dict[str, NDArray[Any]]:
    with _reading(path):
        return dict(load(_content(path, read)))


def _json(path: Path, read: Callable[[Path], bytes]) -> dict[str, Any]:
    with _reading(path):
        return dict(json.loads(_content(path, read)))


def _content(path: Path, read: Callable[[Path], bytes]) -> bytes:
    try:
        content = read(path)
        return lzma.decompress(content) if path.suffix == ".xz" else content
    except FileNotFoundError as error:
        raise CheckpointError(f"{path}: the file is missing") from error
    except (lzma.LZMAError, EOFError, OSError) as error:
        raise CheckpointError(f"{path}: it is damaged: {error}") from error


class TrainedLookup:
    """The pairs of the training by paper and by candidate.

    Attributes:
        row_of: Row of each paper, by id.
        column_of: By kind, column of each candidate, by id.
    """

    def __init__(self, papers: TrainedPapers) -> None:
        self._papers = papers
        self.row_of = {paper_id: row for row, paper_id in enumerate(papers.ids)}
        self.column_of = {
            kind: {key: column for column, key in enumerate(papers.column_ids[kind])} for kind in CandidateKind
        }
        self._starts = {
            kind: np.searchsorted(papers.pairs[kind][:, 1], np.arange(len(papers.column_ids[kind]) + 1))
            for kind in CandidateKind
        }

    def papers_of(self, kind: CandidateKind, key: str) -> list[str]:
        """Ids of a candidate's papers; none of an unknown one."""
        column = self.column_of[kind].get(key)
        if column is None:
            return []
        first, last = self._starts[kind][column : column + 2]
        return [self._papers.ids[row] for row in self._papers.pairs[kind][first:last, 0]]

    def candidates_of(self, kind: CandidateKind, paper_id: str) -> list[str]:
        """Ids of who wrote, or who cites, a paper; none of an unknown one."""
        row = self.row_of.get(paper_id)
        if row is None:
            return []
        papers_P, columns_P = self._by_paper[kind]
        first, last = np.searchsorted(papers_P, [row, row + 1])
        return [self._papers.column_ids[kind][column] for column in columns_P[first:last]]

    def words_of(self, paper_id: str) -> NDArray[np.uint16]:
        """Typed word rows of a known paper."""
        row, offsets = self.row_of[paper_id], self._papers.offsets
        return self._papers.rows[offsets[row] : offsets[row + 1]]

    @cached_property
    def _by_paper(self) -> dict[CandidateKind, tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """By kind, papers ``[P]``, ascending, and their candidates ``[P]``; the first addition needs them."""
        found = {}
        for kind in CandidateKind:
            pairs_P2 = self._papers.pairs[kind]
            order = np.argsort(pairs_P2[:, 0], kind="stable")
            found[kind] = pairs_P2[order, 0], pairs_P2[order, 1]
        return found
