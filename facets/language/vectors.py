"""Static word vectors: the target space of sentences and phrases, nearest words, and storage as 1 byte per number."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save

from facets.arrays import Bools, Floats, Ints, Vectors
from facets.errors import InvalidInputError
from facets.language.interruption import check_interrupted
from facets.language.vocabulary import Vocabulary
from facets.storage.files import content_hash, reading, write_whole

if TYPE_CHECKING:
    from torch import Tensor

_TENSOR = "vectors"
_SCALES = "vectors.scales"
_VECTORS_FILE = "vectors.safetensors"
_VOCABULARY_FILE = "vocabulary.tsv"
QUERIES_AT_A_TIME = 16
_WORDS_AT_A_TIME = 4096  # few enough to fit the CPU cache
_GROUP = 64  # numbers that share a scale
_LARGEST = 127
_SMALLEST_SCALE = float(np.finfo(np.float16).tiny)
# Loaded word vectors by the hashes of their files, so that models share equal ones.
_loaded: "WeakValueDictionary[bytes, WordVectors]" = WeakValueDictionary()


class StoredRows:
    """A matrix as ``quantize`` stores it; indexing gives rows as float32."""

    def __init__(self, values: NDArray[np.int8], scales: NDArray[np.float16]) -> None:
        """Raises ValueError if the scales do not fit, or are not finite."""
        _check_scales(values, scales)
        if not np.isfinite(scales).all():
            raise ValueError("scales have NaN or infinite values")
        self._values, self._scales, self.shape = values, scales, values.shape

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        values = self._values[rows]
        scales = self._scales[rows].reshape(-1, self._scales.shape[1])
        return dequantize(values.reshape(-1, self.shape[1]), scales).reshape(values.shape)


class WordVectors:
    """A vector for each word of a vocabulary.

    Example:
        >>> vocabulary = Vocabulary(["cat", "dog", "car"], np.array([3, 2, 1]))
        >>> words = WordVectors(vocabulary, np.array([[1.0, 0.1], [1.0, 0.2], [0.0, 1.0]]))
        >>> [[word for word, _ in nearest] for nearest in words.nearest(words.vectors[:1], top_k=2)]
        [['cat', 'dog']]
    """

    def __init__(
        self, vocabulary: Vocabulary, vectors: NDArray[np.generic], *, scales: NDArray[np.float16] | None = None
    ) -> None:
        """``vectors``: ``[V, D]`` floating point, or integers with ``scales``, see ``quantize``.

        Raises InvalidInputError if the shape does not fit the vocabulary or a value is not finite, ValueError if the
        shape of the scales does not fit.
        """
        self.vocabulary = vocabulary
        kept: NDArray[Any] = np.ascontiguousarray(vectors, dtype=np.float32 if scales is None else np.int8)
        self._kept: tuple[NDArray[Any], Vectors | None] = kept, scales
        if scales is not None:
            _check_scales(kept, scales)
        if kept.ndim != 2 or len(kept) != len(vocabulary):
            raise InvalidInputError(f"vectors must have shape ({len(vocabulary)}, D), got {kept.shape}")
        finite = np.isfinite(kept if scales is None else scales).all(axis=1)
        if not finite.all():
            word = vocabulary.words[int(np.argmin(finite))]
            raise InvalidInputError(f"vectors must be finite, got NaN or infinity for the word {word!r}")

    def __len__(self) -> int:
        return len(self._kept[0])

    @property
    def dim(self) -> int:
        """Number of dimensions of a vector."""
        return int(self._kept[0].shape[1])

    @property
    def vectors(self) -> Floats:
        """Vectors of the words, ``[V, D]`` float32; computed on each access if they are kept as bytes."""
        return self._rows(slice(None))

    def of(self, words: Sequence[str]) -> Floats:
        """Unit vectors of lower-case words, ``[N, D]``: a sum for words split into pieces, zero for unknown words."""
        rows_M, counts_N = self.vocabulary.split_rows(words)
        is_known_M = rows_M < len(self)
        vectors_ND = np.zeros((len(words), self.dim), dtype=np.float32)
        owners_M = np.repeat(np.arange(len(words)), counts_N)
        np.add.at(vectors_ND, owners_M[is_known_M], self.units(rows_M[is_known_M]))
        return unit_rows(vectors_ND)

    def _rows(self, rows: slice | NDArray[np.integer]) -> Floats:
        kept, scales = self._kept
        return kept[rows] if scales is None else dequantize(kept[rows], scales[rows])

    def units(self, rows: slice | NDArray[np.integer]) -> Floats:
        """``unit_vectors[rows]``, ``[len(rows), D]``, without computing those of all words."""
        vectors_RD = self._rows(rows)
        return np.divide(vectors_RD, self._lengths(vectors_RD, rows))

    def _lengths(self, vectors_RD: Floats, rows: slice | NDArray[np.integer]) -> Floats:
        """What the vectors of some rows are divided by to get unit vectors, ``[R, 1]``."""
        lengths_R1 = np.linalg.norm(vectors_RD, axis=1, keepdims=True)
        stays_R1 = self.vocabulary.is_piece[rows, None] | (lengths_R1 == 0)
        return np.where(stays_R1, np.float32(1.0), lengths_R1)

    @property
    def unit_vectors(self) -> Floats:
        """Vectors at unit length, ``[V, D]``, computed on each access; zero vectors and pieces keep their length.

        A piece such as ``##s`` has a short vector, because it hardly changes the word that it ends.
        """
        return self.units(slice(len(self)))

    def stored_units(self) -> tuple[NDArray[Any], Floats | None]:
        """``unit_vectors`` as they are stored: bytes ``[V, D]`` and the scales of equal groups of a row, ``[V, G]``.

        The scales are None if the vectors are kept as floats.
        """
        kept, scales = self._kept
        if scales is None or not has_equal_groups(kept, scales):
            return self.unit_vectors, None
        return kept, scales / self._lengths(self.vectors, slice(len(self)))

    def nearest(self, queries: Vectors, top_k: int, *, excluded: Bools | None = None) -> list[list[tuple[str, float]]]:
        """The whole words with the highest cosine to each query, best first, ties in vocabulary order.

        ``queries``: ``[N, D]``, of any norm; a zero vector has cosine 0 with every word. ``excluded``: words to leave
        out, as ``Vocabulary.is_stop``. Raises InvalidInputError for another shape, values that are not finite, and
        ``top_k`` below 1.
        """
        queries = np.asarray(queries, dtype=np.float32)
        if queries.ndim != 2 or queries.shape[1] != self.dim:
            raise InvalidInputError(f"queries must have shape (N, {self.dim}), got {queries.shape}")
        if not np.isfinite(queries).all():
            raise InvalidInputError("queries must be finite, got NaN or infinity")
        if top_k < 1:
            raise InvalidInputError(f"top_k must be >= 1, got {top_k}")
        units = unit_rows(queries)
        result: list[list[tuple[str, float]]] = []
        for start in range(0, len(units), QUERIES_AT_A_TIME):
            result += self._nearest_block(units[start : start + QUERIES_AT_A_TIME], top_k, excluded)
        return result

    @cached_property
    def _codes(self) -> "tuple[Ints, NDArray[np.int8], Tensor, float]":
        """Rows of the W whole words, 1-byte codes ``[W, D]``, inverse norms ``[W]``, and the error of a cosine."""
        import torch

        from facets.index.exact import document_codes

        rows = np.flatnonzero(~self.vocabulary.is_piece[:-1])
        codes, inverse, error = np.empty((len(rows), self.dim), np.int8), np.empty(len(rows), np.float32), 0.0
        for start in range(0, len(rows), _WORDS_AT_A_TIME):
            some = slice(start, start + _WORDS_AT_A_TIME)
            coded = document_codes(unit_rows(self._rows(rows[some]))[:, None])
            codes[some], inverse[some], error = coded[0][:, 0], coded[1][:, 0], max(error, float(coded[2].max()))
        # 1e-5 allows for rounding in float sums.
        return rows, codes, torch.from_numpy(inverse), error + 1e-5

    def _nearest_block(self, units: Floats, top_k: int, excluded: Bools | None) -> list[list[tuple[str, float]]]:
        import torch

        from facets.index.exact import CodedQuery

        rows, codes_WD, inverse_W, error = self._codes
        left_out = rows[:0] if excluded is None else np.flatnonzero(excluded[rows])
        top_k = min(top_k, len(rows) - len(left_out))
        if top_k == 0:
            return [[] for _ in units]
        query = CodedQuery(units[:, None])
        scores_NW = torch.empty(len(units), len(rows))
        for start in range(0, len(rows), _WORDS_AT_A_TIME):
            check_interrupted()
            some = slice(start, start + _WORDS_AT_A_TIME)
            torch.mul(query.times(codes_WD[some]).T, inverse_W[some], out=scores_NW[:, some])
        scores_NW[:, torch.from_numpy(left_out)] = -torch.inf
        # All words that may be as good as the k-th best are compared again in float.
        kth_N1 = scores_NW.topk(top_k).values[:, -1:]
        is_near_NW = scores_NW >= kth_N1 - 2 * (error + torch.from_numpy(query.error))
        result = []
        for unit, is_near in zip(units, is_near_NW.numpy(), strict=True):
            # A zero vector is equally near to all words.
            near = rows[np.flatnonzero(is_near)[: None if unit.any() else top_k]]
            cosines = unit_rows(self._rows(near)) @ unit
            best = np.argsort(-cosines, kind="stable")[:top_k]
            result.append([(self.vocabulary.words[near[place]], float(cosines[place])) for place in best])
        return result

    def save(self, folder: Path) -> None:
        """Writes ``vectors.safetensors``, one byte per number, and ``vocabulary.tsv``."""
        folder.mkdir(parents=True, exist_ok=True)
        values, scales = quantize(self.vectors)
        write_whole(folder / _VECTORS_FILE, save({_TENSOR: values, _SCALES: scales}))
        self.vocabulary.save(folder / _VOCABULARY_FILE)

    @classmethod
    def load(cls, folder: Path) -> "WordVectors":
        """Reads what ``save`` wrote; raises CheckpointError if a file is missing, damaged or does not fit the other."""
        path, words = folder / _VECTORS_FILE, folder / _VOCABULARY_FILE
        with reading(folder):
            key = content_hash(words) + content_hash(path)
        if (loaded := _loaded.get(key)) is not None:
            return loaded
        vocabulary = Vocabulary.load(words)
        with reading(path):
            tensors = load_file(path)
            if set(tensors) != {_TENSOR, _SCALES}:
                raise ValueError(f"expected the tensors {_TENSOR} and {_SCALES}, got {sorted(tensors)}")
            loaded = _loaded[key] = cls(vocabulary, tensors[_TENSOR], scales=tensors[_SCALES])
        return loaded


def unit_rows(vectors: Vectors) -> Floats:
    """Rows at unit length, float32; zero rows stay zero.

    Example:
        >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
        [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, norms, out=np.zeros_like(vectors, dtype=np.float32), where=norms > 0)


def quantize(matrix: Vectors) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """Rounds a matrix to 255 levels for each group of 64 numbers of a row.

    ``matrix``: ``[N, M]``, finite, with magnitudes below 65,504. Returns integers ``[N, M]`` and the scales of the
    groups, ``[N, ceil(M / 64)]``.
    """
    matrix = np.asarray(matrix, dtype=np.float32)
    groups = np.arange(0, matrix.shape[1], _GROUP)
    largest = np.maximum.reduceat(np.abs(matrix), groups, axis=1)
    scales = np.maximum(largest / _LARGEST, _SMALLEST_SCALE).astype(np.float16)
    values = np.rint(matrix / _spread(scales, matrix.shape[1]))
    return np.clip(values, -_LARGEST, _LARGEST).astype(np.int8), scales


def dequantize(values: NDArray[np.int8], scales: NDArray[np.float16]) -> Floats:
    """The inverse of ``quantize``, ``[N, M]``; each number is within half a level of the original."""
    _check_scales(values, scales)
    if values.shape[1] % _GROUP:
        return values * _spread(scales, values.shape[1])
    groups = values.reshape(*scales.shape, _GROUP) * scales.astype(np.float32)[..., None]
    return groups.reshape(values.shape)


def has_equal_groups(values: "NDArray[Any] | Tensor", scales: "NDArray[Any] | Tensor") -> bool:
    """Whether each scale is of as many numbers of a row as the others."""
    return scales.shape[1] == 1 or values.shape[1] % _GROUP == 0


def _check_scales(values: NDArray[np.generic], scales: Vectors) -> None:
    if values.ndim != 2 or scales.shape != (len(values), -(-values.shape[1] // _GROUP)):
        raise ValueError(f"expected a scale for {_GROUP} numbers of a row of {values.shape}, got {scales.shape}")


def _spread(scales: NDArray[np.float16], width: int) -> Floats:
    return np.repeat(scales.astype(np.float32), _GROUP, axis=1)[:, :width]
