"""An index on Qdrant: points of a server, or of a shard in this process (Qdrant Edge), each a document with its facets.

A point has the row as its number and the document's facets as one multivector. Under DOT its score is
``sum_j max_k q_j . F_k``, which is ours because the norm of a query's facet is its weight; COSINE would normalise the
query and lose the weights. Zero facets are not sent, for they would beat negative cosines, and a document without any
is a point without vector. What is found are candidates: scores come from the store. Points are derived and never
change; a row number is never used again, so sending one twice, by two servers perhaps, changes nothing. A deleted
document is hidden at once, and its point goes when no search that began before can want it.

What is to be sent is what the store has and Qdrant has not: the store itself is the outbox, and no second list of it
can differ from the truth. Until its points are acknowledged a document is in the exact tail of every server.

Shape letters: N documents, Q queries, J facets of a query, S places of K facets, D dimensions.
"""

import logging
import time
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from shutil import rmtree

import numpy as np
from numpy.typing import NDArray

from facets.errors import ConfigError
from facets.extras import require_extra
from facets.index.base import Chunks, FacetIndex, FacetSource, IndexBackend
from facets.index.candidates import HALF_PRECISION_ERROR, Candidates, select_candidates
from facets.index.config import EngineConfig
from facets.index.qdrant_points import EdgePoints, Found, Points, QdrantServer, ServerPoints

logger = logging.getLogger(__name__)

DELETE_AFTER_S = 600.0  # the longest search
_BATCH = 256  # points of one request
MOST_IDS = 20_000  # documents that pass a filter whose numbers are sent with a query; of more, more are asked for
_OVERSAMPLING = (16.0, 32.0)  # of binary codes, without and with a filter: see docs/run/cluster.md
_CODE_BITS = 128  # shorter codes say less


class QdrantIndex(FacetIndex):
    """The points of a collection that this process knows; others may be there, which it passes over."""

    score_error = 2 * HALF_PRECISION_ERROR  # points and queries are in half precision

    def __init__(
        self, points: Points, rows: NDArray[np.int64], *, source: FacetSource | None, num_facets: int, dim: int
    ) -> None:
        """Takes the points of these rows, ascending; the source tells the revision of those that come."""
        super().__init__(num_facets=num_facets, dim=dim)
        self._points, self.kind = points, points.kind
        self._source = source
        self._rows = rows
        self._num_documents = len(rows)
        self._empty = points.rows(empty=True)
        self._sent = np.empty(0, dtype=np.int64)  # points that are there already
        self._gone: list[tuple[float, NDArray[np.int64]]] = []  # since when

    @property
    def slots(self) -> NDArray[np.int64]:
        """Row number of every document, ascending."""
        return self._rows

    def prepare(self, rows: NDArray[np.int64], facets_SKD: NDArray[np.floating]) -> NDArray[np.int64]:
        """Sends points, which no search looks at yet."""
        firsts = np.flatnonzero(np.diff(rows, prepend=-1))
        parts = [place.reshape(-1, self.dim) for place in np.split(facets_SKD, firsts[1:])]
        facets = [part[part.any(axis=1)] for part in parts]
        if self._source is not None:
            self._points.mark(self._source.revision())
        for start in range(0, len(firsts), _BATCH):
            some = slice(start, start + _BATCH)
            self._points.upsert(rows[firsts[some]].tolist(), facets[some])
        self._sent = rows[firsts]
        self._empty = np.union1d(
            self._empty, [row for row, own in zip(self._sent, facets, strict=True) if not len(own)]
        )
        return super().prepare(rows, facets_SKD)

    def add_prepared(
        self, rows: NDArray[np.int64], facets_SKD: NDArray[np.floating], prepared: NDArray[np.integer]
    ) -> None:
        """Lets searches see points that :meth:`prepare` has sent."""
        known = np.unique(rows)
        self._rows = np.union1d(self._rows, known)
        self._num_documents = len(self._rows)
        self._hide(np.setdiff1d(self._sent, known))
        self._sent = self._sent[:0]

    def remove(self, rows: NDArray[np.int64]) -> int:
        """Hides documents; see :meth:`FacetIndex.remove`."""
        known = np.intersect1d(self._rows, rows)
        self._rows = np.setdiff1d(self._rows, known, assume_unique=True)
        self._num_documents = len(self._rows)
        self._hide(known)
        return len(known)

    def _hide(self, rows: NDArray[np.int64]) -> None:
        if len(rows):
            self._gone.append((time.monotonic(), rows))
            self.num_masked += len(rows)

    def purge(self) -> None:
        """Deletes points that were hidden before the longest search began."""
        while self._gone and time.monotonic() - self._gone[0][0] > DELETE_AFTER_S:
            rows = self._gone[0][1]
            self._points.delete(rows.tolist())
            self._gone.pop(0)
            self.num_masked -= len(rows)
            self._empty = np.setdiff1d(self._empty, rows)

    def settle(self) -> None:
        """Makes codes of what was added."""
        self._points.settle()

    def search(
        self,
        query_QJD: NDArray[np.float32],
        top_k: int,
        *,
        allowed_rows: NDArray[np.int64] | None = None,
        exhaustive: bool = False,
    ) -> Candidates:
        """Finds candidates; see :meth:`FacetIndex.search`.

        The numbers of the documents that pass a filter go along where they are few, else more points are asked for.
        What comes back is looked up again, and more is asked for until there is enough.
        """
        allowed, share = self._rows, 1.0
        if allowed_rows is not None:
            allowed = np.intersect1d(allowed, allowed_rows, assume_unique=True)
            share = len(allowed) / max(1, len(self._rows))
        if not len(allowed):
            none = np.empty((len(query_QJD), 0))
            return Candidates(rows=none.astype(np.int64), scores=none.astype(np.float32), exhaustive=True)
        empty = np.intersect1d(allowed, self._empty, assume_unique=True)
        among = allowed if share < 1 and len(allowed) <= MOST_IDS else None
        oversampling = 0.0 if exhaustive else _OVERSAMPLING[share < 1] * max(1.0, _CODE_BITS / self.dim)
        limit = int(2 * top_k * (1 if among is not None else 1 / share)) + 1
        wanted = min(top_k, len(allowed) - len(empty))
        while True:
            lines = self._points.search(query_QJD, limit, among=among, oversampling=oversampling)
            kept = [np.isin(rows, allowed) for rows, _ in lines]
            if all(
                len(rows) < limit or self._suffices(scores, own, wanted)
                for (rows, scores), own in zip(lines, kept, strict=True)
            ):
                break
            limit *= 2
        return self._joined(lines, kept, empty, top_k=top_k, exhaustive=exhaustive)

    def _suffices(self, scores: NDArray[np.float32], kept: NDArray[np.bool_], wanted: int) -> bool:
        """Whether enough was found, and whatever may tie with the last one wanted."""
        own = scores[kept]
        return len(own) >= wanted and not (wanted and scores[-1] >= own[wanted - 1] - 2 * self.score_error)

    def _joined(
        self,
        lines: Sequence[Found],
        kept: Sequence[NDArray[np.bool_]],
        empty: NDArray[np.int64],
        *,
        top_k: int,
        exhaustive: bool,
    ) -> Candidates:
        width = max(int(own.sum()) for own in kept) + len(empty)
        rows_QC = np.full((len(lines), width), -1, dtype=np.int64)
        scores_QC = np.full((len(lines), width), -np.inf, dtype=np.float32)
        for query, ((rows, scores), own) in enumerate(zip(lines, kept, strict=True)):
            found = int(own.sum())
            rows_QC[query, :found], scores_QC[query, :found] = rows[own], scores[own]
            rows_QC[query, found : found + len(empty)] = empty
            scores_QC[query, found : found + len(empty)] = 0.0
        return select_candidates(rows_QC, scores_QC, top_k, margin=2 * self.score_error, exhaustive=exhaustive)


class QdrantBackend(IndexBackend):
    """Qdrant in this process (``edge``) or at an address (``qdrant://HOST[:PORT][?api_key=KEY]``)."""

    def __init__(self, config: EngineConfig, server: QdrantServer | None = None) -> None:
        """Connects to nobody yet.

        ``config``: ``index`` says where. ``server``: used in place of that address.

        Raises:
            ConfigError: That is no address, or the library for it is not installed.
        """
        self._shards: dict[Path, EdgePoints] = {}
        self._source: FacetSource | None = None
        self._name, self._folder = "", Path()
        try:
            if config.index == "edge":
                require_extra("edge", "qdrant_edge")
            self._server = server or (None if config.index == "edge" else QdrantServer(config.index))
            self.dependency = "" if self._server is None else "qdrant"
        except ImportError as error:
            raise ConfigError(f"index {config.index.split('?')[0]}: {error}") from error

    def of(self, name: str, folder: Path) -> "QdrantBackend":
        """The backend of one collection."""
        bound = copy(self)  # the shards are of all
        bound._name, bound._folder = name, folder / f"{name}.edge"
        return bound

    def open(self, source: FacetSource) -> QdrantIndex | None:
        """The points that are there; None: there are none, or they are of a store that went back since."""
        self._source = source
        if self._server is None and not self._folder.exists():
            return None
        if self._server is not None and not self._server.has(self._name):
            return None
        points = self._points(source.dim)
        if points.marked() > source.revision():  # rows that were lost with the store may have been given again
            logger.warning("points of %s are newer than the store, which was restored: they are sent anew", self._name)
            self.drop()
            return None
        rows = points.rows(empty=False)
        return self._index(points, rows, source.num_facets, source.dim) if len(rows) else None

    def build(self, chunks: Chunks, *, num_documents: int, num_facets: int) -> QdrantIndex | None:
        """Sends the documents that are not there."""
        index, there, none = None, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        for rows, facets_SKD in chunks():
            if index is None:
                points = self._points(facets_SKD.shape[2])
                there = points.rows(empty=False)
                index = self._index(points, none, num_facets, facets_SKD.shape[2])
            held = np.isin(rows, there)
            index.add(rows[~held], facets_SKD[~held])
            index.add_prepared(rows[held], facets_SKD[held], rows[held])
        if index is not None:
            index.settle()
        return index

    def _index(self, points: Points, rows: NDArray[np.int64], num_facets: int, dim: int) -> QdrantIndex:
        return QdrantIndex(points, rows, source=self._source, num_facets=num_facets, dim=dim)

    def check(self) -> None:
        """Asks the server whether it answers; see :meth:`IndexBackend.check`."""
        if self._server is not None:
            self._server.check()

    def drop(self) -> None:
        """Deletes the points of the collection."""
        if self._server is not None:
            self._server.drop(self._name)
            return
        shard = self._shards.pop(self._folder, None)
        if shard is not None:
            shard.close()
        rmtree(self._folder, ignore_errors=True)

    def close(self) -> None:
        """Closes the shards of all collections."""
        while self._shards:
            self._shards.popitem()[1].close()

    def _points(self, dim: int) -> Points:
        if self._server is not None:
            return ServerPoints(self._server, self._name, dim)
        if self._folder not in self._shards:
            self._shards[self._folder] = EdgePoints(self._folder, dim)
        return self._shards[self._folder]
