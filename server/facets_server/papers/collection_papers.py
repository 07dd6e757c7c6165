"""The documents of a collection as papers, encoded by a model of papers and kept for the next question.

A collection holds texts and facets of a model for sentences; a model of papers needs its own. Each document is encoded
once for each of its revisions; what is kept is bounded by a number of papers, the collection asked last staying
longest. A call that runs out of time leaves what it has encoded, so that the next one goes on from there.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from facets.documents import CollectionEngine, Filter, StoredDocument
from facets.errors import InvalidInputError
from facets.papers.records import Paper, PaperFacets
from facets_server.papers.served import ServedPapers
from facets_server.runtime.call_context import CallContext

PAGE_SIZE = 1000
_PAPERS_AT_A_TIME = 64


@dataclass(frozen=True, slots=True)
class RankablePapers:
    """Papers of a collection, in the order of their ids.

    Attributes:
        ids: Of the documents.
        titles: Entry i belongs to ids[i].
        facets: Row i belongs to ids[i].
        index_revision: What was read.
    """

    ids: tuple[str, ...]
    titles: tuple[str, ...]
    facets: PaperFacets
    index_revision: int


@dataclass(frozen=True, slots=True)
class _Kept:
    revision: int
    facets: PaperFacets  # of one paper


class CollectionPapers:
    """Encoded papers of all collections, for all models."""

    def __init__(self, engine: CollectionEngine, *, max_papers: int) -> None:
        self._engine = engine
        self._max_papers = max_papers
        self._kept: OrderedDict[tuple[str, str, str], dict[str, _Kept]] = OrderedDict()
        self._lock = threading.Lock()

    def read(
        self,
        served: ServedPapers,
        collection: str,
        call: CallContext,
        *,
        where: Filter | None,
        excluded: frozenset[str],
        min_revision: int | None,
    ) -> RankablePapers:
        """The papers of a collection that match.

        Raises:
            NotFoundError: No such collection.
            NotReadyError: ``min_revision`` lies in the future.
            InvalidInputError: The collection has more papers than are kept, or a document has no words.
            DeadlineExceededError: The time was up; ask again.
        """
        record = self._engine.record(collection)
        try:
            documents, revision = self._documents(collection, call, where, min_revision)
        except InvalidInputError:  # a page may be one of another collection that was made meanwhile: that is no mistake
            self._engine.record(collection, record)
            raise
        documents = [document for document in documents if document.id not in excluded]
        key = (served.info.revision, collection, record.created.isoformat())
        bucket = self._bucket(key, len(documents))
        known = {document.id: bucket.get(document.id) for document in documents}
        kept = {d.id: one for d in documents if (one := known[d.id]) is not None and one.revision == d.revision}
        missing = [document for document in documents if document.id not in kept]
        for start in range(0, len(missing), _PAPERS_AT_A_TIME):
            some = missing[start : start + _PAPERS_AT_A_TIME]
            with served.exclusive(call) as papers_engine:
                facets = papers_engine.encode([paper_of(document) for document in some])
            new = {document.id: _Kept(document.revision, _row(facets, i)) for i, document in enumerate(some)}
            kept |= new
            bucket.update(new)
        return RankablePapers(
            ids=tuple(document.id for document in documents),
            titles=tuple(paper_of(document).title for document in documents),
            facets=_stack([kept[document.id].facets for document in documents]),
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
                raise InvalidInputError(
                    f"{collection!r} has more than {self._max_papers} papers that match, the limit", path="collection"
                )
            if not token:
                return documents, revision

    def _bucket(self, key: tuple[str, str, str], num_needed: int) -> dict[str, _Kept]:
        """What is kept of a collection; forgets others until there is room for ``num_needed`` papers of it."""
        with self._lock:
            bucket = self._kept.setdefault(key, {})
            self._kept.move_to_end(key)
            while len(self._kept) > 1 and sum(map(len, self._kept.values())) + num_needed > self._max_papers:
                self._kept.popitem(last=False)
            if len(bucket) + num_needed > 2 * self._max_papers:  # many of them of documents that are gone
                bucket = self._kept[key] = {}
            return bucket


def paper_of(document: StoredDocument) -> Paper:
    """A document as a paper: its payload's title and abstract, else the first line of its text and the rest."""
    title, abstract = document.payload.get("title"), document.payload.get("abstract")
    if isinstance(title, str) and title.strip():
        return Paper(title, abstract if isinstance(abstract, str) else "", id=document.id)
    first, _, rest = document.text.strip().partition("\n")
    return Paper(first.strip(), rest.strip(), id=document.id)


def _row(facets: PaperFacets, row: int) -> PaperFacets:
    return PaperFacets(
        facets.facets[row].copy(),
        facets.author_magnitudes[row].copy(),
        facets.citation_magnitudes[row].copy(),
        facets.documents[row].copy(),
    )


def _stack(papers: Sequence[PaperFacets]) -> PaperFacets:
    if not papers:
        nothing = np.zeros((0, 1), np.float32)
        return PaperFacets(np.zeros((0, 1, 1), np.float32), nothing, nothing, nothing)
    return PaperFacets(
        np.stack([paper.facets for paper in papers]),
        np.stack([paper.author_magnitudes for paper in papers]),
        np.stack([paper.citation_magnitudes for paper in papers]),
        np.stack([paper.documents for paper in papers]),
    )
