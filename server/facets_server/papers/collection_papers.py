"""Encodes documents of a collection as papers, and caches them for the next request.

A collection holds facets of another model, so each revision of a document is encoded once. The number of cached papers
is bounded; the least recently used collection is evicted first. What a call has encoded when its time runs out is
cached, too.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from facets_proto.v1 import papers_pb2 as pb

from facets.documents import AllOf, CollectionEngine, Filter, Range, StoredDocument
from facets.errors import InvalidInputError
from facets.papers.records import Paper, PaperFacets
from facets_server.documents.requests import filter_of
from facets_server.papers.served import ServedPapers
from facets_server.runtime.call_context import CallContext

PAGE_SIZE = 1000
_PAPERS_AT_A_TIME = 64


@dataclass(frozen=True, slots=True)
class RankablePapers:
    """Papers of a collection in the order of their ids."""

    named: list[tuple[str, str]]  # ids and titles
    facets: PaperFacets
    index_revision: int  # revision of the collection that was read


_Encoded = tuple[int, PaperFacets]  # revision of a document, and its facets


class CollectionPapers:
    """Encoded papers of all collections, for all models."""

    def __init__(self, engine: CollectionEngine, *, max_papers: int) -> None:
        self._engine = engine
        self._max_papers = max_papers
        self._kept: OrderedDict[tuple[str, str, str], dict[str, _Encoded]] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, served: ServedPapers, request: pb.RankPapersRequest, call: CallContext) -> RankablePapers:
        """The papers of a collection that a request asks for; what was encoded before the deadline passes is kept.

        Raises:
            NotFoundError: The collection does not exist.
            NotReadyError: ``min_revision`` lies in the future.
            InvalidInputError: More papers match than are kept, or a document has no words.
        """
        collection, excluded = request.collection, frozenset(request.excluded_ids)
        record = self._engine.record(collection)
        try:
            documents, revision = self._documents(collection, call, _filter_of(request), request.min_revision or None)
        except InvalidInputError:  # the page token is invalid if the collection was made again between two pages
            self._engine.record(collection, record)
            raise
        documents = [document for document in documents if document.id not in excluded]
        key = (served.info.revision, collection, record.create_time.isoformat())
        bucket = self._bucket(key, len(documents))
        known = {document.id: bucket.get(document.id) for document in documents}
        encoded = {d.id: entry for d in documents if (entry := known[d.id]) is not None and entry[0] == d.revision}
        missing = [document for document in documents if document.id not in encoded]
        for start in range(0, len(missing), _PAPERS_AT_A_TIME):
            some = missing[start : start + _PAPERS_AT_A_TIME]
            with served.exclusive(call) as engine:
                facets = engine.encode([paper_of(document) for document in some])
            new = {document.id: (document.revision, _row(facets, i)) for i, document in enumerate(some)}
            encoded |= new
            bucket.update(new)
        return RankablePapers(
            named=[(document.id, paper_of(document).title) for document in documents],
            facets=_stack([encoded[document.id][1] for document in documents]),
            index_revision=revision,
        )

    def _documents(
        self, collection: str, call: CallContext, where: Filter | None, min_revision: int | None
    ) -> tuple[list[StoredDocument], int]:
        documents: list[StoredDocument] = []
        token, revision = "", 0
        while True:
            call.check()
            with call.stages.measured("store"):
                page = self._engine.list_documents(
                    collection, page_size=PAGE_SIZE, page_token=token, where=where, min_revision=min_revision
                )
            documents += page.documents
            revision = revision or page.index_revision
            token = page.next_page_token
            if len(documents) > self._max_papers:
                rule = f"{collection!r} has more than {self._max_papers} papers that match, the limit"
                raise InvalidInputError(rule, path="collection")
            if not token:
                return documents, revision

    def _bucket(self, key: tuple[str, str, str], num_needed: int) -> dict[str, _Encoded]:
        """The kept papers of a collection; forgets others until ``num_needed`` papers fit."""
        with self._lock:
            bucket = self._kept.setdefault(key, {})
            self._kept.move_to_end(key)
            while len(self._kept) > 1 and sum(map(len, self._kept.values())) + num_needed > self._max_papers:
                self._kept.popitem(last=False)
            if len(bucket) + num_needed > 2 * self._max_papers:  # many belong to deleted documents
                bucket = self._kept[key] = {}
            return bucket


def _filter_of(request: pb.RankPapersRequest) -> Filter | None:
    years = {"gte": request.from_year} if request.HasField("from_year") else {}
    years |= {"lte": request.to_year} if request.HasField("to_year") else {}
    filters = [filter_of(request), Range("year", **years) if years else None]
    given = [one for one in filters if one is not None]
    return AllOf(given) if given else None


def paper_of(document: StoredDocument) -> Paper:
    """A document as a paper: title and abstract from its payload, else the first line and the rest of its text."""
    title, abstract = document.payload.get("title"), document.payload.get("abstract")
    if isinstance(title, str) and title.strip():
        return Paper(title, abstract if isinstance(abstract, str) else "", id=document.id)
    first, _, rest = document.text.strip().partition("\n")
    return Paper(first.strip(), rest.strip(), id=document.id)


def _row(facets: PaperFacets, row: int) -> PaperFacets:
    return PaperFacets(*(array[row].copy() for array in facets.arrays))


def _stack(papers: Sequence[PaperFacets]) -> PaperFacets:
    if not papers:
        nothing = np.zeros((0, 1), np.float32)
        return PaperFacets(np.zeros((0, 1, 1), np.float32), nothing, nothing, nothing)
    return PaperFacets(*(np.stack(arrays) for arrays in zip(*(paper.arrays for paper in papers), strict=True)))
