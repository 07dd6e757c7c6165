"""Where the points of a collection are: in a shard of Qdrant Edge in this process, or in a Qdrant server or cluster.

Shape letters: Q queries, J facets of a query, F facets of a document, D dimensions.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from shutil import rmtree
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import numpy as np
from numpy.typing import NDArray

from facets.errors import ConfigError, DiskFullError, IndexAwayError, StorageError
from facets.extras import require_extra

VECTOR = "facets"
MARK = 2**62  # number of the point that says up to which revision of the store there may be points
_INDEXING_KB = 2_000  # of a segment: a smaller one is compared without codes
_SCROLLED = 10_000  # points whose numbers come back at once
_COPIES = 2  # of each shard in a cluster
_TIMEOUT_S = 10
_CHECK_TIMEOUT_S = 1
_AWAY_S = 2.0  # who did not answer is not asked again for so long: searches by words do not wait for it each time

Found = tuple[NDArray[np.int64], NDArray[np.float32]]


class Points(Protocol):
    """The points of one collection.

    Every method raises IndexAwayError where nobody answers, StorageError where what is asked cannot be done.
    """

    kind: str

    def rows(self, *, empty: bool) -> NDArray[np.int64]:
        """Numbers of all points, or of those without facets."""

    def upsert(self, rows: Sequence[int], facets: Sequence[NDArray[np.floating]]) -> None:
        """Adds points: facets ``[F, D]`` of each, F may be 0."""

    def delete(self, rows: Sequence[int]) -> None:
        """Deletes points."""

    def search(
        self, query_QJD: NDArray[np.float32], limit: int, *, among: NDArray[np.int64] | None, oversampling: float
    ) -> list[Found]:
        """The best points of each query, best first, among these if there are any; 0 oversampling: all compared."""

    def mark(self, revision: int) -> None:
        """Says, before points are sent, up to which revision of the store there may be some from now on."""

    def marked(self) -> int:
        """What :meth:`mark` said last; 0: nothing."""

    def settle(self) -> None:
        """Makes codes of what was added, and keeps it."""


class EdgePoints:
    """A shard of Qdrant Edge in a folder, for this process alone: half precision, and binary codes in memory.

    There is no graph: one of multivectors takes 60 ms a document to build and finds half.
    """

    kind = "edge"

    def __init__(self, folder: Path, dim: int) -> None:
        """Opens the shard, or makes one; one that cannot be read is made anew, for it is derived."""
        require_extra("edge", "qdrant_edge")
        import qdrant_edge

        self._edge, self._folder = qdrant_edge, folder
        with self._errors():
            try:
                self._shard = qdrant_edge.EdgeShard.load(str(folder)) if folder.exists() else self._made(dim)
            except Exception as error:  # whatever is wrong with it
                if "WouldBlock" in str(error):  # another process has it
                    raise
                rmtree(folder)
                self._shard = self._made(dim)

    def _made(self, dim: int) -> Any:
        edge = self._edge
        self._folder.mkdir(parents=True)
        vector = edge.EdgeVectorParams(
            size=dim,
            distance=edge.Distance.Dot,
            multivector_config=edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim),
            datatype=edge.VectorStorageDatatype.Float16,
            quantization_config=edge.BinaryQuantizationConfig(memory=edge.Memory.Pinned),
        )
        config = edge.EdgeConfig(
            vectors={VECTOR: vector},
            hnsw_config=edge.HnswIndexConfig(m=0, ef_construct=4, full_scan_threshold=10**9),
            optimizers=edge.EdgeOptimizersConfig(indexing_threshold=_INDEXING_KB),
        )
        return edge.EdgeShard.create(str(self._folder), config)

    def rows(self, *, empty: bool) -> NDArray[np.int64]:
        """See :class:`Points`."""
        edge = self._edge
        wanted = edge.Filter(must_not=[edge.HasVectorCondition(VECTOR)]) if empty else None
        settings = {"filter": wanted, "limit": _SCROLLED, "with_payload": False}
        with self._errors():
            return _all_rows(lambda offset: self._shard.scroll(edge.ScrollRequest(offset=offset, **settings)))

    def upsert(self, rows: Sequence[int], facets: Sequence[NDArray[np.floating]]) -> None:
        """See :class:`Points`."""
        pairs = zip(rows, facets, strict=True)
        points = [self._edge.Point(row, {VECTOR: own.tolist()} if len(own) else {}, {}) for row, own in pairs]
        with self._errors():
            self._shard.update(self._edge.UpdateOperation.upsert_points(points))

    def mark(self, revision: int) -> None:
        """See :class:`Points`."""
        with self._errors():
            mark = self._edge.Point(MARK, {}, {"revision": revision})
            self._shard.update(self._edge.UpdateOperation.upsert_points([mark]))

    def marked(self) -> int:
        """See :class:`Points`."""
        with self._errors():
            return _revision_of(self._shard.retrieve([MARK], with_payload=True, with_vector=False))

    def delete(self, rows: Sequence[int]) -> None:
        """See :class:`Points`."""
        with self._errors():
            self._shard.update(self._edge.UpdateOperation.delete_points(list(rows)))

    def search(
        self, query_QJD: NDArray[np.float32], limit: int, *, among: NDArray[np.int64] | None, oversampling: float
    ) -> list[Found]:
        """See :class:`Points`."""
        edge = self._edge
        codes = edge.QuantizationSearchParams(ignore=not oversampling, rescore=True, oversampling=oversampling or None)
        wanted = None if among is None else edge.Filter(must=[edge.HasIdCondition(set(among.tolist()))])
        parameters = edge.SearchParams(exact=not oversampling, quantization=codes)
        found = []
        with self._errors():
            for query_JD in query_QJD:
                query = edge.Query.Nearest(query_JD.tolist(), using=VECTOR)
                request = edge.QueryRequest(query=query, limit=limit, filter=wanted, params=parameters)
                found.append(_found(self._shard.query(request)))
        return found

    def settle(self) -> None:
        """See :class:`Points`."""
        with self._errors():
            self._shard.optimize()
            self._shard.flush()

    def close(self) -> None:
        """Keeps everything and lets go of the folder."""
        with self._errors():
            self._shard.flush()
            self._shard.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # of Rust, without classes of their own
            raise StorageError(f"Qdrant Edge in {self._folder}: {error}") from error


class ServerPoints:
    """A collection of a Qdrant server or cluster.

    ``server``: where it is. ``name``: of the collection, which is made where it is not there.

    Raises:
        StorageError: The collection there is of another kind.
    """

    kind = "qdrant"

    def __init__(self, server: "QdrantServer", name: str, dim: int) -> None:
        from qdrant_client import models

        self._server, self._client, self._name, self._models = server, server.client, name, models
        if not server.has(name):
            self._make(dim)
        with self._errors():
            params = self._client.get_collection(name).config.params.vectors
        held = params.get(VECTOR) if isinstance(params, dict) else None
        if held is None or held.size != dim or held.distance != models.Distance.DOT:
            what = "no multivector of facets" if held is None else f"{held.size} dimensions and {held.distance}"
            raise StorageError(f"collection {name} of Qdrant has {what}, expected {dim} dimensions and Dot")

    def _make(self, dim: int) -> None:
        models = self._models
        vector = models.VectorParams(
            size=dim,
            distance=models.Distance.DOT,
            multivector_config=models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM),
            datatype=models.Datatype.FLOAT16,
            on_disk=True,
            hnsw_config=models.HnswConfigDiff(m=0),
            quantization_config=models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=True)),
        )
        with self._errors():
            self._client.create_collection(self._name, vectors_config={VECTOR: vector}, replication_factor=_COPIES)

    def rows(self, *, empty: bool) -> NDArray[np.int64]:
        """See :class:`Points`."""
        models = self._models
        wanted = models.Filter(must_not=[models.HasVectorCondition(has_vector=VECTOR)]) if empty else None
        settings = {"scroll_filter": wanted, "limit": _SCROLLED, "with_payload": False}
        with self._errors():
            return _all_rows(lambda offset: self._client.scroll(self._name, offset=offset, **settings))

    def upsert(self, rows: Sequence[int], facets: Sequence[NDArray[np.floating]]) -> None:
        """See :class:`Points`."""
        pairs = zip(rows, facets, strict=True)
        points = [
            self._models.PointStruct(id=row, vector={VECTOR: own.tolist()} if len(own) else {}, payload={})
            for row, own in pairs
        ]
        with self._errors():
            self._client.upsert(self._name, points=points, wait=True)

    def mark(self, revision: int) -> None:
        """See :class:`Points`."""
        mark = self._models.PointStruct(id=MARK, vector={}, payload={"revision": revision})
        with self._errors():
            self._client.upsert(self._name, points=[mark], wait=True)

    def marked(self) -> int:
        """See :class:`Points`."""
        with self._errors():
            return _revision_of(self._client.retrieve(self._name, [MARK], with_payload=True))

    def delete(self, rows: Sequence[int]) -> None:
        """See :class:`Points`."""
        with self._errors():
            self._client.delete(self._name, points_selector=self._models.PointIdsList(points=list(rows)), wait=True)

    def search(
        self, query_QJD: NDArray[np.float32], limit: int, *, among: NDArray[np.int64] | None, oversampling: float
    ) -> list[Found]:
        """See :class:`Points`."""
        models = self._models
        codes = models.QuantizationSearchParams(
            ignore=not oversampling, rescore=True, oversampling=oversampling or None
        )
        wanted = None if among is None else models.Filter(must=[models.HasIdCondition(has_id=among.tolist())])
        requests = [
            models.QueryRequest(
                query=query_JD.tolist(),
                using=VECTOR,
                filter=wanted,
                params=models.SearchParams(exact=not oversampling, quantization=codes),
                limit=limit,
            )
            for query_JD in query_QJD
        ]
        with self._errors():
            replies = self._client.query_batch_points(self._name, requests=requests)
        return [_found(reply.points) for reply in replies]

    def settle(self) -> None:
        """The server does it by itself."""

    def _errors(self) -> AbstractContextManager[None]:
        return self._server.errors(self._name)


class QdrantServer:
    """A Qdrant server or cluster; it is connected to with the first call, and let alone while it does not answer.

    ``url``: ``qdrant://HOST[:PORT][?api_key=KEY]``. ``client``: used in place of one for that address.

    Raises:
        ConfigError: That is no address.
        ImportError: The client is not installed.
    """

    def __init__(self, url: str, client: Any = None) -> None:
        require_extra("qdrant", "qdrant_client")
        self.client = client or _client_of(url, _TIMEOUT_S)
        self._probe = client or _client_of(url, _CHECK_TIMEOUT_S)
        self._away_until, self._said = 0.0, ""

    def has(self, name: str) -> bool:
        """Whether there is a collection of that name."""
        with self.errors(name):
            return bool(self.client.collection_exists(name))

    def drop(self, name: str) -> None:
        """Deletes a collection, if there is one."""
        with self.errors(name):
            self.client.delete_collection(name)

    def check(self) -> None:
        """Asks whether it answers, within a second or so.

        Raises:
            StorageError: It does not, or refuses the key.
        """
        self._away_until = 0.0
        with self.errors("(health)"):
            self._probe.get_collections()

    @contextmanager
    def errors(self, name: str) -> Iterator[None]:
        """What the client raises for a collection, as errors by cause.

        Raises:
            DiskFullError: There is no room.
            StorageError: It refuses what is asked, or the key.
            IndexAwayError: Nobody answers, or the answer is that of a server in trouble; or it was so a moment ago.
        """
        if time.monotonic() < self._away_until:
            raise IndexAwayError(self._said)
        try:
            yield
        except Exception as error:
            said = " ".join(str(error).split())[:300]
            if "no space" in said.lower() or "disk" in said.lower():
                raise DiskFullError(f"Qdrant has no room for collection {name}: {said}") from error
            if getattr(error, "status_code", None) in (400, 401, 403, 404, 422):
                raise StorageError(f"Qdrant refuses what is asked of collection {name}: {said}") from error
            self._away_until = time.monotonic() + _AWAY_S
            self._said = f"Qdrant does not answer for collection {name}: {said}"
            raise IndexAwayError(self._said) from error


def _found(points: Sequence[Any]) -> Found:
    some = [point for point in points if point.id != MARK]
    rows = np.fromiter((point.id for point in some), dtype=np.int64, count=len(some))
    return rows, np.fromiter((point.score for point in some), dtype=np.float32, count=len(some))


def _all_rows(scroll: Callable[[Any], tuple[Sequence[Any], Any]]) -> NDArray[np.int64]:
    found, offset = list[int](), None
    while True:
        points, offset = scroll(offset)
        found += (int(point.id) for point in points if point.id != MARK)
        if offset is None:
            return np.array(sorted(found), dtype=np.int64)


def _revision_of(marks: Iterable[Any]) -> int:
    return max((int(mark.payload["revision"]) for mark in marks), default=0)


def _client_of(url: str, timeout_s: int) -> Any:
    from qdrant_client import QdrantClient

    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or 6333
    except ValueError as error:
        raise ConfigError(f"index must be qdrant://HOST[:PORT], got {url.split('?')[0]!r}") from error
    if not host:
        raise ConfigError(f"index must be qdrant://HOST[:PORT], got {url.split('?')[0]!r}")
    key = parse_qs(parts.query).get("api_key", [None])[0]
    return QdrantClient(host=host, port=port, api_key=key, https=False, timeout=timeout_s, check_compatibility=False)
