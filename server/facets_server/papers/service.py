"""RecommendationService; long requests are processed in parts, so that others do not wait for them."""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from facets_proto.codec import message_of, to_message
from facets_proto.v1 import papers_pb2 as pb
from facets_proto.v1 import papers_pb2_grpc
from numpy.typing import NDArray

from facets.documents import AllOf, CollectionEngine, Filter, Range, StoredDocument
from facets.documents.filters import validate
from facets.errors import ErrorPath, InvalidInputError
from facets.language.interruption import check_interrupted
from facets.model.contract import ModelInfo
from facets.papers.engine import PaperEngine
from facets.papers.reading import MAX_ABSTRACT_CHARS, MAX_TITLE_CHARS
from facets.papers.records import (
    BulkCandidates,
    CandidateKind,
    NewAuthor,
    Paper,
    PaperFacets,
    PaperOptions,
    RankedCandidate,
    RankedPaper,
)
from facets_server.documents.requests import filter_of
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import LimitsConfig
from facets_server.runtime.errors import ITEM, FieldNames, in_request
from facets_server.runtime.fair_queue import FairLock
from facets_server.runtime.models import ServedModel, TaskModels
from facets_server.runtime.requests import check_list_of_texts, check_not_empty, check_product, check_texts, record_of

_MAX_ID_BYTES = 512
_PAPERS_AT_A_TIME, _CANDIDATES_AT_A_TIME, _DOCUMENTS_AT_A_TIME = 32, 2000, 64
_BULK_PAPERS_AT_A_TIME = 128  # larger than elsewhere: each turn looks up the candidates again
_MAX_TITLE_CHARS = 500  # of a ranked paper; the same papers are ranked for many ids
_MAX_UNKNOWN = 100  # unknown names that are returned; the others are counted
# Arguments of the library -> fields of the requests for candidates, and of the request for papers.
_CANDIDATE_FIELDS: FieldNames = {
    "papers": ("papers", ITEM),
    "candidates": ("options", "candidates", "ids"),
    "excluded_ids": ("options", "excluded_ids"),
}
_PAPER_FIELDS: FieldNames = {"papers": ("papers", "papers", ITEM)}
_WARM_UP_PAPERS = (
    Paper("A title"),
    Paper("A longer title that warms up the model", "And an abstract of one sentence, with a few words more."),
)


def _papers_of(messages: Sequence[pb.Paper], path: ErrorPath, limits: LimitsConfig) -> tuple[Paper, ...]:
    """One or more papers in the field at ``path``; raises InvalidInputError."""
    check_not_empty(messages, path)
    papers = tuple(record_of(message, Paper) for message in messages)
    check_texts(text for i, paper in enumerate(papers) for text in _texts_of(paper, (*path, i), limits))
    return papers


@dataclass(frozen=True, slots=True)
class _Asked:
    """What requests that name a kind of candidates have in common."""

    kind: CandidateKind


def new_authors_of(request: pb.AddAuthorsRequest, limits: LimitsConfig) -> tuple[NewAuthor, ...]:
    """Authors to add; raises InvalidInputError."""
    check_not_empty(request.authors, ("authors",))
    num_papers = sum(len(author.papers) for author in request.authors)
    if num_papers > limits.max_texts_per_request:
        rule = f"have {num_papers} papers, the limit is {limits.max_texts_per_request}"
        raise InvalidInputError(rule, path="authors")
    authors = tuple(record_of(message, NewAuthor) for message in request.authors)
    check_texts(text for i, new in enumerate(authors) for text in _texts_of_author(new, ("authors", i), limits))
    return authors


def _texts_of_author(new: NewAuthor, path: ErrorPath, limits: LimitsConfig) -> Iterator[tuple[ErrorPath, str, int]]:
    """As ``_texts_of``, for an author with papers."""
    for i, paper in enumerate(new.papers):
        yield from _texts_of(paper, (*path, "papers", i), limits)
    yield (*path, "author", "name"), new.author.key, _MAX_ID_BYTES
    for i, name in enumerate(new.paper_ids):
        yield (*path, "paper_ids", i), name, _MAX_ID_BYTES


def _texts_of(paper: Paper, path: ErrorPath, limits: LimitsConfig) -> Iterator[tuple[ErrorPath, str, int]]:
    """Texts, ids and names of a paper, with their paths and limits of bytes."""
    yield (*path, "title"), paper.title, limits.max_text_bytes
    if paper.abstract.strip():
        yield (*path, "abstract"), paper.abstract, limits.max_long_text_bytes
    if paper.id:
        yield (*path, "id"), paper.id, _MAX_ID_BYTES
    for i, name in enumerate(paper.cited_by_ids):
        yield (*path, "cited_by_ids", i), name, _MAX_ID_BYTES
    for i, author in enumerate(paper.authors):
        yield (*path, "authors", i, "name"), author.key, _MAX_ID_BYTES


class ServedPapers(ServedModel[PaperEngine]):
    """A model of papers; allows one reader and one writer at a time, which do not wait for each other."""

    def __init__(self, info: ModelInfo, engine: PaperEngine) -> None:
        super().__init__(info, engine)
        self._writers = FairLock()

    def writing(self, call: CallContext) -> AbstractContextManager[PaperEngine]:
        """Like ``exclusive``, for additions."""
        return self.exclusive(call, self._writers)

    def unknown(self, kind: CandidateKind, ids_or_names: Sequence[str]) -> list[str]:
        """The given texts that are neither the id nor the name of a candidate."""
        table = self.engine.state.tables[kind]
        return [text for text in ids_or_names if text not in table.row_of_id and text not in table.rows_of_name]

    def probe(self, call: CallContext) -> None:
        """Recommends candidates for fixed papers."""
        options = PaperOptions(top_k=1, evidence=True)
        with self.exclusive(call) as engine:
            for kind in CandidateKind:
                if engine.size(kind):
                    engine.recommend(kind, _WARM_UP_PAPERS, options)

    def close(self) -> None:
        """Refuses further work and closes the file of the additions."""
        super().close()
        self._writers.close()
        self.engine.close()


_KeptPaper: TypeAlias = tuple[str, PaperFacets]  # title and facets


class CollectionPapers:
    """Documents of collections, encoded as papers and cached for the next request, for all models.

    A collection holds facets of another model, so each revision of a document is read and encoded once. The least
    recently used papers are evicted first. What a call has encoded when its time runs out is cached, too.
    """

    def __init__(self, engine: CollectionEngine, *, max_papers: int) -> None:
        self._engine = engine
        self._max_papers = max_papers
        # By revision of the model, name and creation of the collection, id and revision of the document.
        self._kept: OrderedDict[tuple[object, ...], _KeptPaper] = OrderedDict()
        self._lock = threading.Lock()

    def read(
        self, served: ServedPapers, kind: CandidateKind, request: pb.RankPapersRequest, call: CallContext
    ) -> tuple[list[tuple[str, str]], PaperFacets | tuple[()], int]:
        """Ids and titles of the papers that a request asks for, their facets if any, and the revision that was read."""
        collection, excluded, where = request.collection, frozenset(request.excluded_ids), _filter_of(request)
        validate(where)
        with self._engine.view(collection) as (view, record), call.stages.measured("store"):
            revision = view.check_revision(request.min_revision or None)
            rows = view.page(record, after="", limit=self._max_papers + 1, where=where, source="")
            if len(rows) > self._max_papers:
                rule = f"{collection!r} has more than {self._max_papers} papers that match, the limit"
                raise InvalidInputError(rule, path="collection")
            revisions = {document.id: document.revision for document in view.document_names(rows)}
        passages = served.engine.compares_passages(kind, request.ids)
        prefix = (served.info.revision, collection, record.create_time, passages)
        kept = {id: self._used((*prefix, id, number)) for id, number in revisions.items() if id not in excluded}
        missing = [id for id, paper in kept.items() if paper is None]
        for start in range(0, len(missing), _DOCUMENTS_AT_A_TIME):
            found = self._papers(collection, missing[start : start + _DOCUMENTS_AT_A_TIME], call)
            with served.exclusive(call) as engine:
                facets = engine.encode([paper for paper, _ in found], passages=passages)
            for i, (paper, number) in enumerate(found):
                own = paper.title[:_MAX_TITLE_CHARS], PaperFacets(*(array[i].copy() for array in facets.arrays))
                kept[paper.id] = self._used((*prefix, paper.id, number), own)
        self._engine.record(collection, record)  # raises if another one was read
        papers = {id: paper for id, paper in kept.items() if paper is not None}  # the others were deleted meanwhile
        arrays = [facets.arrays for _, facets in papers.values()]
        named = [(id, title) for id, (title, _) in papers.items()]
        return named, PaperFacets(*map(np.stack, zip(*arrays, strict=True))) if arrays else (), revision

    def _papers(self, collection: str, ids: Sequence[str], call: CallContext) -> list[tuple[Paper, int]]:
        """Papers and their revisions; read one by one, because a text may be large."""
        found = []
        for id in ids:
            check_interrupted()
            with call.stages.measured("store"):
                found += [(paper_of(one), one.revision) for one in self._engine.get(collection, [id]).documents]
        return found

    def _used(self, key: tuple[object, ...], paper: _KeptPaper | None = None) -> _KeptPaper | None:
        """The cached paper, else ``paper``, which is then cached."""
        with self._lock:
            found = self._kept.get(key, paper)
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
    """A document as a paper: title and abstract from its payload, else the first line and the rest of its text.

    Of a text, only the characters that models read.
    """
    title, abstract = document.payload.get("title"), document.payload.get("abstract")
    if isinstance(title, str) and title.strip():
        return Paper(title, abstract if isinstance(abstract, str) else "", id=document.id)
    first, _, rest = document.text.strip().partition("\n")
    title, abstract = first.strip()[:MAX_TITLE_CHARS], rest.strip()[:MAX_ABSTRACT_CHARS]
    return Paper(title, abstract, id=document.id)


@dataclass(frozen=True)
class RecommendationService(papers_pb2_grpc.RecommendationServiceServicer):
    """Recommends authors and citing papers."""

    models: TaskModels[ServedPapers]
    papers: CollectionPapers
    limits: LimitsConfig

    def RecommendAuthors(self, request: pb.RecommendAuthorsRequest, call: CallContext) -> pb.RecommendAuthorsResponse:
        """Authors for a batch of papers."""
        return message_of(pb.RecommendAuthorsResponse, **self._candidates(CandidateKind.AUTHORS, request, call))

    def RecommendCitations(
        self, request: pb.RecommendCitationsRequest, call: CallContext
    ) -> pb.RecommendCitationsResponse:
        """Citing papers for a batch of papers."""
        return message_of(pb.RecommendCitationsResponse, **self._candidates(CandidateKind.CITATIONS, request, call))

    def RecommendBulk(self, request: pb.RecommendBulkRequest, call: CallContext) -> pb.RecommendBulkResponse:
        """Ids and scores for many papers; each id is sent once."""
        served = self.models.get(request.model)
        kind = record_of(request, _Asked).kind
        papers = _papers_of(request.papers, ("papers",), self.limits)
        options = record_of(request.options, PaperOptions, ("options",))
        parts = []
        for start in range(0, len(papers), _BULK_PAPERS_AT_A_TIME):
            some = papers[start : start + _BULK_PAPERS_AT_A_TIME]
            with in_request(_CANDIDATE_FIELDS, start=start), served.exclusive(call) as engine:
                parts.append(engine.recommend_bulk(kind, some, options))
        call.num_items = len(papers)
        candidate_ids, results = _joined(parts)
        unknown = served.unknown(kind, options.candidates or ())
        return message_of(
            pb.RecommendBulkResponse,
            candidate_ids=candidate_ids,
            results=results,
            unknown_candidates=unknown[:_MAX_UNKNOWN],
            num_unknown_candidates=len(unknown),
            model=served.info,
            timings=call,
        )

    def RankPapers(self, request: pb.RankPapersRequest, call: CallContext) -> pb.RankPapersResponse:
        """Papers for authors or citing papers."""
        served, limits = self.models.get(request.model), self.limits
        kind, ids = record_of(request, _Asked).kind, tuple(request.ids)
        check_not_empty(ids, ("ids",))
        check_list_of_texts(ids, "ids", max_bytes=_MAX_ID_BYTES)
        call.num_items, source = len(ids), request.WhichOneof("source")
        options, revision = record_of(request, PaperOptions), 0
        if options.evidence:
            check_product("ids", options.top_k, len(ids), limits.max_evidence_hits)
        if source == "papers":
            papers = _papers_of(request.papers.papers, ("papers", "papers"), limits)
            if request.HasField("where"):
                raise InvalidInputError("applies to a collection only, got papers", path="where")
            with in_request(_PAPER_FIELDS), served.exclusive(call) as engine:
                rankings = engine.rank_papers(kind, ids, papers, options=options)
            named = [(paper.id, paper.title) for paper in papers]
        elif source == "collection":
            named, facets, revision = self.papers.read(served, kind, request, call)
            with served.exclusive(call) as engine:
                rankings = engine.rank_papers(kind, ids, facets, options=options)
        else:
            raise InvalidInputError("is missing, expected a collection or papers", path="source")

        def message(ranked: RankedPaper) -> pb.RankedPaper:
            paper_id, title = named[ranked.position]
            position = 0 if request.collection else ranked.position  # a position in a collection is useless to callers
            return to_message(ranked, pb.RankedPaper, id=paper_id, title=title[:_MAX_TITLE_CHARS], position=position)

        return message_of(
            pb.RankPapersResponse,
            rankings=[[message(ranked) for ranked in ranking] for ranking in rankings],
            num_papers=len(named),
            index_revision=revision,
            model=served.info,
            timings=call,
        )

    def AddPapers(self, request: pb.AddPapersRequest, call: CallContext) -> pb.AddPapersResponse:
        """Stores papers and fits their authors and citing papers."""
        served = self.models.get(request.model)
        papers = _papers_of(request.papers, ("papers",), self.limits)
        call.num_items = len(papers)
        with served.writing(call) as engine:
            result = engine.add_papers(papers)
        unknown = result.unknown_citations
        return to_message(
            result,
            pb.AddPapersResponse,
            unknown_citations=unknown[:_MAX_UNKNOWN],
            num_unknown_citations=len(unknown),
            model=served.info,
            timings=call,
        )

    def AddAuthors(self, request: pb.AddAuthorsRequest, call: CallContext) -> pb.AddAuthorsResponse:
        """Fits and stores authors."""
        served = self.models.get(request.model)
        authors = new_authors_of(request, self.limits)
        call.num_items = len(authors)
        with served.writing(call) as engine:
            result = engine.add_authors(authors)
        return to_message(result, pb.AddAuthorsResponse, model=served.info, timings=call)

    def FindCandidates(self, request: pb.FindCandidatesRequest, call: CallContext) -> pb.FindCandidatesResponse:
        """Candidates by id or name."""
        served = self.models.get(request.model)
        kind = record_of(request, _Asked).kind
        check_not_empty(request.texts, ("texts",))
        check_list_of_texts(request.texts, "texts", max_bytes=_MAX_ID_BYTES)
        options = {"top_k": request.top_k} if request.HasField("top_k") else {}
        call.num_items = len(request.texts)
        results = []
        for text in request.texts:
            call.check()
            results.append(served.engine.find(kind, text, **options))
        size, made = served.engine.size(kind), pb.FindCandidatesResponse
        return message_of(made, results=results, num_candidates=size, model=served.info, timings=call)

    def _candidates(
        self, kind: CandidateKind, request: pb.RecommendAuthorsRequest | pb.RecommendCitationsRequest, call: CallContext
    ) -> dict[str, object]:
        served = self.models.get(request.model)
        papers = _papers_of(request.papers, ("papers",), self.limits)
        options = record_of(request.options, PaperOptions, ("options",))
        if options.evidence:
            check_product("papers", options.top_k, len(papers), self.limits.max_evidence_hits, ("options", "top_k"))
        results: list[list[RankedCandidate]] = []
        step = min(_PAPERS_AT_A_TIME, _CANDIDATES_AT_A_TIME // options.top_k)
        for start in range(0, len(papers), step):
            with in_request(_CANDIDATE_FIELDS, start=start), served.exclusive(call) as engine:
                results += engine.recommend(kind, papers[start : start + step], options)
        call.num_items = len(results)
        return {"results": results, "model": served.info, "timings": call}


def _joined(parts: Sequence[BulkCandidates]) -> tuple[list[str], list[tuple[NDArray[np.int64], NDArray[np.float32]]]]:
    """Distinct candidate ids, and for each paper the indices of its candidates in that list and their scores."""
    index_of_id: dict[str, int] = {}
    results = []
    for part in parts:
        used = np.unique(part.rows[part.rows >= 0])
        index_of_row = np.zeros(int(used[-1]) + 1 if len(used) else 1, np.int64)
        for row in used:
            index_of_row[row] = index_of_id.setdefault(part.candidate_ids[int(row)], len(index_of_id))
        for rows, scores in zip(part.rows, part.scores, strict=True):
            results.append((index_of_row[rows[rows >= 0]], scores[rows >= 0]))
    return list(index_of_id), results
