"""Encodes documents of a collection as papers, and caches them for the next request.

A collection holds facets of another model, so each revision of a document is encoded once. The least recently used
papers are evicted first. What a call has encoded when its time runs out is cached, too.
"""

import threading
from collections import OrderedDict

import numpy as np
from facets_proto.v1 import papers_pb2 as pb

from facets.documents import AllOf, CollectionEngine, Filter, Range, StoredDocument
from facets.errors import InvalidInputError
from facets.papers.engine import PaperEngine
from facets.papers.records import CandidateKind, Paper, PaperFacets
from facets_server.documents.requests import filter_of
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.models import ServedModel

PAGE_SIZE = 1000
_PAPERS_AT_A_TIME = 64


class CollectionPapers:
    """Encoded papers of all collections, for all models."""

    def __init__(self, engine: CollectionEngine, *, max_papers: int) -> None:
        self._engine = engine
        self._max_papers = max_papers
        # By revision of the model, name and creation of the collection, id and revision of the document.
        self._kept: OrderedDict[tuple[object, ...], PaperFacets] = OrderedDict()
        self._lock = threading.Lock()

    def read(
        self, served: ServedModel[PaperEngine], kind: CandidateKind, request: pb.RankPapersRequest, call: CallContext
    ) -> tuple[list[tuple[str, str]], PaperFacets | tuple[()], int]:
        """Ids and titles of the papers that a request asks for, their facets if any, and the revision that was read."""
        collection, excluded = request.collection, frozenset(request.excluded_ids)
        record = self._engine.record(collection)
        try:
            documents, revision = self._documents(collection, call, _filter_of(request), request.min_revision or None)
        except InvalidInputError:  # the page token is invalid if the collection was made again between two pages
            self._engine.record(collection, record)
            raise
        documents = [document for document in documents if document.id not in excluded]
        passages = served.engine.compares_passages(kind, request.ids)
        prefix = (served.info.revision, collection, record.create_time, passages)
        encoded = {document.id: self._used((*prefix, document.id, document.revision)) for document in documents}
        missing = [document for document in documents if encoded[document.id] is None]
        for start in range(0, len(missing), _PAPERS_AT_A_TIME):
            some = missing[start : start + _PAPERS_AT_A_TIME]
            with served.exclusive(call) as engine:
                facets = engine.encode([paper_of(document) for document in some], passages=passages)
            for i, document in enumerate(some):
                row = PaperFacets(*(array[i].copy() for array in facets.arrays))
                encoded[document.id] = self._used((*prefix, document.id, document.revision), row)
        named = [(document.id, paper_of(document).title) for document in documents]
        papers = [paper.arrays for paper in encoded.values() if paper is not None]
        return named, PaperFacets(*map(np.stack, zip(*papers, strict=True))) if papers else (), revision

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

    def _used(self, key: tuple[object, ...], facets: PaperFacets | None = None) -> PaperFacets | None:
        """The cached facets of a paper, else ``facets``, which are then cached."""
        with self._lock:
            found = self._kept.get(key, facets)
            if found is not None:
                self._kept[key] = found
                self._kept.move_to_end(key)
                if len(self._kept) > self._max_papers:
                    self._kept.popitem(last=False)
            return found


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
