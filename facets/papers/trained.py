"""The files of a paper model besides its network: authors, citing papers, and the papers they belong to.

::

    tables.safetensors        vectors of authors and citing papers, one byte per number with scales
    recommendation.json       how scores are mixed, the encoder of sentence vectors
    papers.safetensors.xz     words of the papers, and pairs of papers and candidates
    papers.json.xz            ids, names, titles
    sentences.safetensors.xz  sentence vectors of the papers, if the model has them

Shape letters: I papers, J authors or citing papers, D dimensions, P pairs, C components of sentence vectors.
"""

import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from facets.arrays import Floats, Ints, Ints32
from facets.errors import CheckpointError
from facets.language.vectors import StoredRows, quantize
from facets.papers.reading import MAX_ABSTRACT_CHARS, SentenceVectors
from facets.papers.records import CandidateKind
from facets.storage.files import reading, write_whole

_FORMAT = 1
_SETTINGS_FILE, _TABLES_FILE = "recommendation.json", "tables.safetensors"
_PAPERS_FILE, _TEXTS_FILE, _SENTENCES_FILE = "papers.safetensors.xz", "papers.json.xz", "sentences.safetensors.xz"
_BYTE_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 0, "pb": 0}]  # for independent bytes


@dataclass(frozen=True, slots=True)
class TrainedPapers:
    """The papers a model was trained on: written by an author, or cited by a paper, of its tables."""

    ids: Sequence[str]  # `I` ids
    titles: Sequence[str]  # `I` titles
    years: Ints32  # `[I]` int32, 0: unknown
    rows: NDArray[np.uint16]  # typed word rows of all papers
    offsets: Ints  # `[I + 1]` int64 into `rows`
    column_ids: Mapping[str, Sequence[str]]  # by kind, `J` ids of authors or citing papers, ascending
    column_names: Mapping[str, Sequence[str]]  # by kind, `J` names of authors, or titles (empty: unknown)
    pairs: Mapping[str, Ints]  # by kind, `[P, 2]` int64: paper, candidate

    def words_of(self, row: int) -> NDArray[np.uint16]:
        """Typed word rows of a paper."""
        return self.rows[self.offsets[row] : self.offsets[row + 1]]


@dataclass(frozen=True, kw_only=True, slots=True)
class SentenceSettings:
    """How documents combine sentence vectors with word averages."""

    share: float  # s, weight of the sentence vectors, in (0, 1); tuned on development data
    encoder: str  # folder of the passage model that computes them, relative to the checkpoint
    space: str  # name of the encoder's vector space
    abstract_chars: int  # characters of an abstract that the encoder reads

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ValueError(f"share must lie between 0 and 1, got {self.share}")
        if not 0 <= self.abstract_chars <= MAX_ABSTRACT_CHARS:
            raise ValueError(f"abstract_chars must be in [0, {MAX_ABSTRACT_CHARS}], got {self.abstract_chars}")


@dataclass(frozen=True, kw_only=True, slots=True)
class AdditionSettings:
    """How authors added after training are scored: their similarity counts as ``offset + scale * similarity``."""

    encoder: str  # folder of the passage model that encodes title and abstract, relative to the checkpoint
    space: str  # name of the encoder's vector space
    words_share: float  # weight of the cosine of words; the cosine of passages has the rest, up to 1
    scale: float  # tuned on authors that the model has not seen
    offset: float  # makes scores comparable with those of authors of the training


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoringSettings:
    """How scores are mixed."""

    facet_weights: Mapping[str, float]  # by kind, share of the facets in the score; tuned on development data
    sentences: SentenceSettings | None = None  # None: documents are only word averages
    additions: AdditionSettings | None = None  # None: added authors are scored as those of the training


@dataclass(frozen=True, slots=True)
class PaperTables:
    """The trained vectors."""

    vectors: Mapping[str, Floats | StoredRows]  # by kind, `[J, D]`
    spreads: Mapping[str, Floats]  # by kind, `[D, D]` float32, reduces the weight of what all papers share


@dataclass(frozen=True, slots=True)
class PapersPart:
    """What the files hold; ``sentences`` is None where the settings have none."""

    tables: PaperTables
    settings: ScoringSettings
    papers: TrainedPapers
    sentences: SentenceVectors | None = None


def files_of(folder: Path, settings: ScoringSettings) -> list[Path]:
    """The files of a part with these settings."""
    names = [_SETTINGS_FILE, _TABLES_FILE, _PAPERS_FILE, _TEXTS_FILE]
    return [folder / name for name in [*names, *([_SENTENCES_FILE] if settings.sentences is not None else [])]]


def write_papers_part(folder: Path, part: PapersPart) -> None:
    """Writes the files; each write is atomic."""
    tables: dict[str, NDArray[Any]] = {}
    for kind in CandidateKind:
        tables[f"{kind}.vectors"], tables[f"{kind}.vectors.scales"] = quantize(part.tables.vectors[kind][:])
        tables[f"{kind}.spread"] = part.tables.spreads[kind].astype(np.float32)
    write_whole(folder / _TABLES_FILE, save({name: np.ascontiguousarray(array) for name, array in tables.items()}))
    papers = part.papers
    by_candidate = {kind: pairs[np.lexsort(pairs.T)] for kind, pairs in papers.pairs.items()}
    arrays = {
        "rows": papers.rows,
        "lengths": np.diff(papers.offsets).astype(np.int32),
        "years": papers.years.astype(np.int16),
        **{f"{kind}.pairs": by_candidate[kind].astype(np.int32) for kind in CandidateKind},
    }
    write_whole(folder / _PAPERS_FILE, lzma.compress(save(arrays)))  # words compress to two thirds
    texts = {
        "ids": list(papers.ids),
        "titles": list(papers.titles),
        **{f"{kind}.ids": list(papers.column_ids[kind]) for kind in CandidateKind},
        **{f"{kind}.names": list(papers.column_names[kind]) for kind in CandidateKind},
    }
    write_whole(folder / _TEXTS_FILE, lzma.compress(json.dumps(texts, ensure_ascii=False).encode()))
    write_whole(folder / _SETTINGS_FILE, json.dumps({"format": _FORMAT, **asdict(part.settings)}, indent=2) + "\n")
    if part.sentences is not None:
        write_sentence_vectors(folder, part.sentences)


def write_sentence_vectors(folder: Path, sentences: SentenceVectors) -> None:
    """Writes the sentence vectors of a folder's papers."""
    values = np.ascontiguousarray(sentences.values.T)  # component by component: those of small variance compress well
    arrays = {"values": values, "axes": sentences.axes, "center": sentences.center}
    write_whole(folder / _SENTENCES_FILE, lzma.compress(save(arrays), filters=_BYTE_FILTERS))


def change_settings(folder: Path, changes: Mapping[str, object]) -> None:
    """Replaces some values of ``recommendation.json``; raises CheckpointError when it is missing or damaged."""
    path = folder / _SETTINGS_FILE
    write_whole(path, json.dumps({**_read_json(path), **changes}, indent=2) + "\n")


def read_papers_part(folder: Path) -> PapersPart:
    """Reads what ``write_papers_part`` wrote; raises CheckpointError if files are missing, damaged or do not match."""
    settings, papers = read_settings_part(folder), _read_papers(folder)
    tables_path = folder / _TABLES_FILE
    arrays = _read_arrays(tables_path)
    with reading(tables_path):
        vectors: dict[str, Floats | StoredRows] = {
            k: StoredRows(arrays[f"{k}.vectors"], arrays[f"{k}.vectors.scales"]) for k in CandidateKind
        }
        tables = PaperTables(vectors, {kind: arrays[f"{kind}.spread"].astype(np.float32) for kind in CandidateKind})
        for kind in CandidateKind:
            expected = len(papers.column_ids[kind])
            if len(vectors[kind]) != expected:
                raise ValueError(f"expected {expected} vectors of {kind}, got {len(vectors[kind])}")
    sentences = None
    if settings.sentences is not None:
        sentences = _read_sentence_vectors(folder / _SENTENCES_FILE, num_papers=len(papers.ids))
    return PapersPart(tables, settings, papers, sentences)


def read_settings_part(folder: Path) -> ScoringSettings:
    """Reads only the settings; raises as ``read_papers_part``."""
    path = folder / _SETTINGS_FILE
    values = _read_json(path)
    if values.get("format") != _FORMAT:
        raise CheckpointError(f"{path}: expected format {_FORMAT}, got {values.get('format')!r}")
    with reading(path):
        return ScoringSettings(
            facet_weights={kind: float(values["facet_weights"][kind]) for kind in CandidateKind},
            sentences=SentenceSettings(**values["sentences"]) if values.get("sentences") else None,
            additions=AdditionSettings(**values["additions"]) if values.get("additions") else None,
        )


def _read_papers(folder: Path) -> TrainedPapers:
    arrays, texts = _read_arrays(folder / _PAPERS_FILE), _read_json(folder / _TEXTS_FILE)
    with reading(folder / _PAPERS_FILE):
        papers = TrainedPapers(
            ids=texts["ids"],
            titles=texts["titles"],
            years=arrays["years"].astype(np.int32),
            rows=arrays["rows"],
            offsets=np.concatenate([[0], np.cumsum(arrays["lengths"], dtype=np.int64)]).astype(np.int64),
            column_ids={kind: texts[f"{kind}.ids"] for kind in CandidateKind},
            column_names={kind: texts[f"{kind}.names"] for kind in CandidateKind},
            pairs={kind: arrays[f"{kind}.pairs"].astype(np.int64) for kind in CandidateKind},
        )
        num_papers = len(papers.ids)
        fits = len(papers.titles) == num_papers == len(papers.years) == len(papers.offsets) - 1
        fits = fits and papers.offsets[-1] == len(papers.rows)
        for kind, pairs in papers.pairs.items():
            lengths = num_papers, len(papers.column_ids[kind])
            fits = fits and (not len(pairs) or bool((pairs.max(axis=0) < lengths).all()))
        if not fits:
            raise ValueError(f"it does not belong to {_TEXTS_FILE}")
    return papers


def _read_sentence_vectors(path: Path, *, num_papers: int) -> SentenceVectors:
    arrays = _read_arrays(path)
    with reading(path):
        axes, center, values = arrays["axes"], arrays["center"], arrays["values"]
        if axes.shape != (len(center), len(values)) or values.shape[1:] != (num_papers,):
            raise ValueError(f"expected {num_papers} papers, and axes for them, got {values.shape} and {axes.shape}")
        if not (np.isfinite(axes).all() and np.isfinite(center).all()):
            raise ValueError("axes have NaN or infinite values")
    return SentenceVectors(axes, center, np.ascontiguousarray(values.T))


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    with reading(path):
        return load(lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes())


def _read_json(path: Path) -> dict[str, Any]:
    with reading(path):
        return dict(json.loads(lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()))
