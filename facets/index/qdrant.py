"""An index on a Qdrant server or cluster: each document is a point with its facets as a multivector.

The id of a point is the row of the document. Under DOT its score is ours, because the norm of a query's facet is its
weight. Zero facets are not sent, because they would beat negative cosines. A row is never used again, so a point never
changes, and sending it twice, even by two servers, is harmless. A deleted document is hidden at once; its point is
deleted when no search can need it any more. What the store has and Qdrant does not have remains to be sent.
Shape letters: N documents, Q queries, J facets of a query, S places of K facets, D dimensions.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
from numpy.typing import NDArray

from facets.arrays import Bools, Floats, Ints, Vectors
from facets.errors import ConfigError, DiskFullError, IndexAwayError, StorageError
from facets.extras import require_extra
from facets.index.base import Chunks, FacetIndex, FacetSource, IndexBackend
from facets.index.candidates import HALF_PRECISION_ERROR, Candidates, padded, select_candidates
from facets.index.config import EngineConfig

logger = logging.getLogger(__name__)

DELETE_AFTER_S = 600.0  # upper bound of the duration of a search
MAX_FILTER_IDS = 20_000  # with more allowed documents, more points are requested instead of sending their ids
_POINTS_AT_A_TIME = 256  # in one upsert
_IDS_AT_A_TIME = 10_000  # in one reply
_OVERSAMPLING = (16.0, 32.0)  # of binary codes, without and with a filter; measured, see docs/run/cluster.md
_MIN_CODE_BITS = 128  # shorter binary codes need more oversampling
_VECTOR = "facets"
_MARK = 2**62  # id of a point that records up to which revision of the store there may be points
_NUM_REPLICAS = 2
_TIMEOUT_S = 10
_CHECK_TIMEOUT_S = 1
_RETRY_AFTER_S = 2.0  # a server that did not answer is not called for this time, so that searches by words do not wait


class QdrantServer:
    """A Qdrant server or cluster; it is contacted with the first call."""

    def __init__(self, url: str, client: Any = None) -> None:
        """``url``: ``qdrant://HOST[:PORT][?api_key=KEY]``. ``client``: used instead of a client for that address."""
        require_extra("qdrant", "qdrant_client")
        self.client = client or connect(url, _TIMEOUT_S)
        self._check_client = client or connect(url, _CHECK_TIMEOUT_S)
        self._retry_at, self._failure = 0.0, ""

    def check(self) -> None:
        """Raises StorageError, after about a second, if the server does not answer or rejects the key."""
        self._retry_at = 0.0
        with self.errors("(health)"):
            self._check_client.get_collections()

    @contextmanager
    def errors(self, name: str) -> Iterator[None]:
        """Turns errors of the client for a collection into ours.

        DiskFullError, StorageError if the server rejects the request or the key, or IndexAwayError if it does not
        answer or failed, now or within the last two seconds.
        """
        if time.monotonic() < self._retry_at:
            raise IndexAwayError(self._failure)
        try:
            yield
        except Exception as error:
            message = " ".join(str(error).split())[:300]
            if "no space" in message.lower() or "disk" in message.lower():
                raise DiskFullError(f"Qdrant has no space for collection {name}: {message}") from error
            if getattr(error, "status_code", None) in (400, 401, 403, 404, 422):
                raise StorageError(f"Qdrant rejects the request for collection {name}: {message}") from error
            self._retry_at = time.monotonic() + _RETRY_AFTER_S
            self._failure = f"Qdrant does not answer for collection {name}: {message}"
            raise IndexAwayError(self._failure) from error


def connect(url: str, timeout_s: int) -> Any:
    """A client of the server at ``qdrant://HOST[:PORT]``; raises ConfigError for another form."""
    from qdrant_client import QdrantClient

    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or 6333
    except ValueError:
        host, port = None, 0
    if not host:
        raise ConfigError(f"index must be qdrant://HOST[:PORT], got {url.split('?')[0]!r}")
    key = parse_qs(parts.query).get("api_key", [None])[0]
    return QdrantClient(host=host, port=port, api_key=key, https=False, timeout=timeout_s, check_compatibility=False)


class QdrantPoints:
    """The points of one collection; every method raises the errors of :meth:`QdrantServer.errors`."""

    def __init__(self, server: QdrantServer, name: str, dim: int) -> None:
        """Creates the collection if it does not exist."""
        from qdrant_client import models

        self._server, self._client, self._name, self._models = server, server.client, name, models
        wanted = models.VectorParams(
            size=dim,
            distance=models.Distance.DOT,
            multivector_config=models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM),
            datatype=models.Datatype.FLOAT16,
            on_disk=True,
            hnsw_config=models.HnswConfigDiff(m=0),  # a graph of multivectors takes 60 ms per document and finds half
            quantization_config=models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=True)),
        )
        with server.errors(name):
            if not self._client.collection_exists(name):
                self._client.create_collection(name, vectors_config={_VECTOR: wanted}, replication_factor=_NUM_REPLICAS)

    def rows(self, *, empty: bool) -> Ints:
        """Ids of all points, or of those without facets, ascending."""
        models = self._models
        condition = models.Filter(must_not=[models.HasVectorCondition(has_vector=_VECTOR)]) if empty else None
        rows, offset = list[int](), None
        with self._server.errors(self._name):
            while True:
                points, offset = self._client.scroll(
                    self._name, scroll_filter=condition, limit=_IDS_AT_A_TIME, with_payload=False, offset=offset
                )
                rows += (int(point.id) for point in points if point.id != _MARK)
                if offset is None:
                    return np.array(sorted(rows), dtype=np.int64)

    def upsert(self, rows: Sequence[int], facets: Sequence[Vectors], **payload: int) -> None:
        """Adds points with their facets, ``[facets, D]`` each, possibly none."""
        vectors = ({_VECTOR: own.tolist()} if len(own) else {} for own in facets)
        points = [
            self._models.PointStruct(id=row, vector=vector, payload=payload)
            for row, vector in zip(rows, vectors, strict=True)
        ]
        with self._server.errors(self._name):
            self._client.upsert(self._name, points=points, wait=True)

    def mark(self, revision: int) -> None:
        """Records, before points are sent, up to which revision of the store there may be points."""
        self.upsert([_MARK], [np.empty(0)], revision=revision)

    def marked_revision(self) -> int:
        """The revision that :meth:`mark` recorded last; 0: none."""
        with self._server.errors(self._name):
            marks = self._client.retrieve(self._name, [_MARK], with_payload=True)
        return max((int(mark.payload["revision"]) for mark in marks), default=0)

    def delete(self, rows: Sequence[int]) -> None:
        """Deletes points."""
        with self._server.errors(self._name):
            self._client.delete(self._name, points_selector=self._models.PointIdsList(points=list(rows)), wait=True)

    def search(
        self, query_QJD: Floats, limit: int, *, allowed_rows: Ints | None, oversampling: float
    ) -> list[tuple[Ints, Floats]]:
        """The best points of each query, best first; ``oversampling``: of binary codes; 0: all points are compared."""
        models, ids = self._models, [] if allowed_rows is None else allowed_rows.tolist()
        condition = models.Filter(must=[models.HasIdCondition(has_id=ids)]) if ids else None
        codes = models.QuantizationSearchParams(
            ignore=not oversampling, rescore=True, oversampling=oversampling or None
        )
        params = models.SearchParams(exact=not oversampling, quantization=codes)
        requests = [
            models.QueryRequest(query=query_JD.tolist(), using=_VECTOR, filter=condition, params=params, limit=limit)
            for query_JD in query_QJD
        ]
        with self._server.errors(self._name):
            replies = self._client.query_batch_points(self._name, requests=requests)
        found = [[(point.id, point.score) for point in reply.points if point.id != _MARK] for reply in replies]
        return [
            (np.array([id for id, _ in points], np.int64), np.array([score for _, score in points], np.float32))
            for points in found
        ]


class QdrantIndex(FacetIndex):
    """The points of a collection that this process knows; points sent by other servers are ignored."""

    kind = "qdrant"
    score_error = 2 * HALF_PRECISION_ERROR  # points and queries are in half precision

    def __init__(
        self, points: QdrantPoints, rows: Ints, *, source: FacetSource | None, num_facets: int, dim: int
    ) -> None:
        """``rows``: known points, ascending. ``source``: gives the revision to mark before points are sent."""
        super().__init__(num_facets=num_facets, dim=dim)
        self._points = points
        self._source = source
        self._rows = rows
        self._num_documents = len(rows)
        self._empty = points.rows(empty=True)
        self._sent = np.empty(0, dtype=np.int64)  # points that no search may find yet
        self._hidden: list[tuple[float, Ints]] = []  # time, deleted rows

    @property
    def slots(self) -> Ints:
        """Row of every document, ascending."""
        return self._rows

    def prepare(self, rows: Ints, facets_SKD: Vectors) -> Ints:
        """Sends points; searches ignore them until :meth:`add_prepared`."""
        firsts = np.flatnonzero(np.diff(rows, prepend=-1))
        of_documents = [places.reshape(-1, self.dim) for places in np.split(facets_SKD, firsts[1:])]
        facets = [own[own.any(axis=1)] for own in of_documents]
        if self._source is not None:
            self._points.mark(self._source.revision())
        for start in range(0, len(firsts), _POINTS_AT_A_TIME):
            some = slice(start, start + _POINTS_AT_A_TIME)
            self._points.upsert(rows[firsts[some]].tolist(), facets[some])
        self._sent = rows[firsts]
        without_facets = [row for row, own in zip(self._sent, facets, strict=True) if not len(own)]
        self._empty = np.union1d(self._empty, without_facets)
        return super().prepare(rows, facets_SKD)

    def add_prepared(self, rows: Ints, facets_SKD: Vectors, prepared: NDArray[np.integer]) -> None:
        """Makes points that :meth:`prepare` has sent visible to searches."""
        added = np.unique(rows)
        self._rows = np.union1d(self._rows, added)
        self._num_documents = len(self._rows)
        self._hide(np.setdiff1d(self._sent, added))
        self._sent = self._sent[:0]

    def remove(self, rows: Ints) -> int:
        """Hides documents."""
        removed = np.intersect1d(self._rows, rows)
        self._rows = np.setdiff1d(self._rows, removed, assume_unique=True)
        self._num_documents = len(self._rows)
        self._hide(removed)
        return len(removed)

    def _hide(self, rows: Ints) -> None:
        if len(rows):
            self._hidden.append((time.monotonic(), rows))
            self.num_masked += len(rows)

    def purge(self) -> None:
        """Deletes points that were hidden so long ago that no running search can need them."""
        while self._hidden and time.monotonic() - self._hidden[0][0] > DELETE_AFTER_S:
            rows = self._hidden[0][1]
            self._points.delete(rows.tolist())
            self._hidden.pop(0)
            self.num_masked -= len(rows)
            self._empty = np.setdiff1d(self._empty, rows)

    def search(
        self, query_QJD: Floats, num_candidates: int, *, allowed_rows: Ints | None = None, exhaustive: bool = False
    ) -> Candidates:
        """Finds candidates.

        Ids of a few allowed documents are sent with the query; with many, more points are requested. Requests are
        repeated with a larger limit until enough allowed points are found.
        """
        allowed, share = self._rows, 1.0
        if allowed_rows is not None:
            allowed = np.intersect1d(allowed, allowed_rows, assume_unique=True)
            share = len(allowed) / max(1, len(self._rows))
        if not len(allowed):
            none = np.empty(0, np.int64), np.empty(0, np.float32)
            return select_candidates(*padded([none] * len(query_QJD)), num_candidates, margin=0, exhaustive=True)
        empty = np.intersect1d(allowed, self._empty, assume_unique=True)
        sent_ids = allowed if share < 1 and len(allowed) <= MAX_FILTER_IDS else None
        oversampling = 0.0 if exhaustive else _OVERSAMPLING[share < 1] * max(1.0, _MIN_CODE_BITS / self.dim)
        limit = int(2 * num_candidates * (1 if sent_ids is not None else 1 / share)) + 1
        num_wanted = min(num_candidates, len(allowed) - len(empty))
        while True:
            found = self._points.search(query_QJD, limit, allowed_rows=sent_ids, oversampling=oversampling)
            kept = [np.isin(rows, allowed) for rows, _ in found]
            if all(
                len(rows) < limit or self._is_enough(scores, own, num_wanted)
                for (rows, scores), own in zip(found, kept, strict=True)
            ):
                break
            limit *= 2
        zeros = np.zeros(len(empty), dtype=np.float32)
        rows_QC, scores_QC = padded(
            [
                (np.concatenate([empty, rows[own]]), np.concatenate([zeros, scores[own]]))
                for (rows, scores), own in zip(found, kept, strict=True)
            ]
        )
        return select_candidates(rows_QC, scores_QC, num_candidates, margin=2 * self.score_error, exhaustive=exhaustive)

    def _is_enough(self, scores: Floats, kept: Bools, num_wanted: int) -> bool:
        """Whether enough points were found, and all that may tie with the last one wanted."""
        own = scores[kept]
        if len(own) < num_wanted:
            return False
        return not (num_wanted and scores[-1] >= own[num_wanted - 1] - 2 * self.score_error)


class QdrantBackend(IndexBackend):
    """Indexes on the server that the settings name."""

    dependency = "qdrant"

    def __init__(self, config: EngineConfig, server: QdrantServer | None = None) -> None:
        self._source: FacetSource | None = None
        self._name = ""
        try:
            self._server = server or QdrantServer(config.index)
        except ImportError as error:
            raise ConfigError(f"index {config.index.split('?')[0]}: {error}") from error

    def of(self, name: str) -> "QdrantBackend":
        """The backend of one collection."""
        bound = copy(self)
        bound._name = name
        return bound

    def open(self, source: FacetSource) -> QdrantIndex | None:
        """The existing points; None if there are none, or the store has lost writes since they were sent."""
        self._source = source
        with self._server.errors(self._name):
            if not self._server.client.collection_exists(self._name):
                return None
        points = QdrantPoints(self._server, self._name, source.dim)
        if points.marked_revision() > source.revision():  # rows that were lost with the store may be given again
            logger.warning("points of %s are newer than the store, which was restored: sending them again", self._name)
            self.drop()
            return None
        rows = points.rows(empty=False)
        if not len(rows):
            return None
        return QdrantIndex(points, rows, source=source, num_facets=source.num_facets, dim=source.dim)

    def build(self, chunks: Chunks, *, num_documents: int, num_facets: int) -> QdrantIndex | None:
        """Sends the documents that Qdrant does not have yet."""
        index, existing = None, np.empty(0, dtype=np.int64)
        for rows, facets_SKD in chunks():
            if index is None:
                dim = facets_SKD.shape[2]
                points = QdrantPoints(self._server, self._name, dim)
                existing = points.rows(empty=False)
                index = QdrantIndex(points, existing[:0], source=self._source, num_facets=num_facets, dim=dim)
            is_there = np.isin(rows, existing)
            index.add(rows[~is_there], facets_SKD[~is_there])
            index.add_prepared(rows[is_there], facets_SKD[is_there], rows[is_there])
        return index

    def check(self) -> None:
        """Checks that the server answers."""
        self._server.check()

    def drop(self) -> None:
        """Deletes the points of the collection."""
        with self._server.errors(self._name):
            self._server.client.delete_collection(self._name)
