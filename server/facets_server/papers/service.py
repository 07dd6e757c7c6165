"""RecommendationService; long requests are processed in parts, so that others do not wait for them."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
from facets_proto.codec import message_of, to_message
from facets_proto.v1 import papers_pb2 as pb
from facets_proto.v1 import papers_pb2_grpc
from numpy.typing import NDArray

from facets.errors import ErrorPath, InvalidInputError
from facets.model.contract import ModelInfo
from facets.papers.engine import PaperEngine
from facets.papers.records import (
    BulkCandidates,
    CandidateKind,
    NewAuthor,
    Paper,
    PaperOptions,
    RankedCandidate,
    RankedPaper,
)
from facets_server.papers.collection_papers import CollectionPapers
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import LimitsConfig
from facets_server.runtime.errors import ITEM, FieldNames, in_request
from facets_server.runtime.fair_queue import FairLock
from facets_server.runtime.models import ServedModel, TaskModels
from facets_server.runtime.requests import check_list_of_texts, check_not_empty, check_product, check_texts, record_of

_MAX_ID_BYTES = 512
_PAPERS_AT_A_TIME = 32
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
_KINDS: dict[int, CandidateKind] = {
    pb.CANDIDATE_KIND_AUTHORS: CandidateKind.AUTHORS,
    pb.CANDIDATE_KIND_CITATIONS: CandidateKind.CITATIONS,
}


def _papers_of(messages: Sequence[pb.Paper], path: ErrorPath, limits: LimitsConfig) -> tuple[Paper, ...]:
    """One or more papers in the field at ``path``; raises InvalidInputError."""
    check_not_empty(messages, path)
    papers = tuple(record_of(message, Paper) for message in messages)
    check_texts(text for i, paper in enumerate(papers) for text in _texts_of(paper, (*path, i), limits))
    return papers


def _candidate_query_of(
    request: pb.RecommendAuthorsRequest | pb.RecommendCitationsRequest | pb.RecommendBulkRequest,
    limits: LimitsConfig,
    *,
    is_bulk: bool = False,
) -> tuple[tuple[Paper, ...], PaperOptions]:
    """Papers and options of a request; raises InvalidInputError."""
    papers = _papers_of(request.papers, ("papers",), limits)
    options = record_of(request.options, PaperOptions, ("options",))
    if options.evidence and not is_bulk:
        check_product("papers", options.top_k, len(papers), limits.max_evidence_hits, ("options", "top_k"))
    return papers, options


def _ranking_options_of(request: pb.RankPapersRequest, limits: LimitsConfig) -> PaperOptions:
    """Options of a request; years and excluded ids only for papers that the caller sent; raises InvalidInputError."""
    options = record_of(request, PaperOptions)
    if options.evidence:
        check_product("ids", options.top_k, len(request.ids), limits.max_evidence_hits)
    if request.WhichOneof("source") == "collection":  # years and ids are those of its documents
        return record_of(request, PaperOptions, excluded_ids=(), from_year=None, to_year=None)
    return options


def new_authors_of(request: pb.AddAuthorsRequest, limits: LimitsConfig) -> tuple[NewAuthor, ...]:
    """Authors to add; raises InvalidInputError."""
    check_not_empty(request.authors, ("authors",))
    num_papers = sum(len(author.papers) for author in request.authors)
    if num_papers > limits.max_texts_per_request:
        rule = f"have {num_papers} papers, the limit is {limits.max_texts_per_request}"
        raise InvalidInputError(rule, path="authors")
    authors = tuple(record_of(message, NewAuthor) for message in request.authors)
    check_texts(
        text
        for i, author in enumerate(authors)
        for j, paper in enumerate(author.papers)
        for text in _texts_of(paper, ("authors", i, "papers", j), limits)
    )
    for i, author in enumerate(authors):
        check_texts([(("authors", i, "author", "name"), author.author.key, _MAX_ID_BYTES)])
        check_list_of_texts(author.paper_ids, "authors", i, "paper_ids", max_bytes=_MAX_ID_BYTES)
    return authors


def _kind_of(number: int) -> CandidateKind:
    """The kind of candidates that a request names; raises InvalidInputError."""
    if number not in _KINDS:
        raise InvalidInputError(f"must be authors or citations, got number {number}", path="kind")
    return _KINDS[number]


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
            for kind, recommend in (
                (CandidateKind.AUTHORS, engine.recommend_authors),
                (CandidateKind.CITATIONS, engine.recommend_citations),
            ):
                if engine.size(kind):
                    recommend(_WARM_UP_PAPERS, options)

    def close(self) -> None:
        """Refuses further work and closes the file of the additions."""
        super().close()
        self._writers.close()
        self.engine.close()


@dataclass(frozen=True)
class RecommendationService(papers_pb2_grpc.RecommendationServiceServicer):
    """Recommends authors and citing papers."""

    models: TaskModels[ServedPapers]
    papers: CollectionPapers
    limits: LimitsConfig

    def RecommendAuthors(self, request: pb.RecommendAuthorsRequest, call: CallContext) -> pb.RecommendAuthorsResponse:
        """Authors for a batch of papers."""
        fields = self._candidates(CandidateKind.AUTHORS, request, call)
        return message_of(pb.RecommendAuthorsResponse, **fields, timings=call)

    def RecommendCitations(
        self, request: pb.RecommendCitationsRequest, call: CallContext
    ) -> pb.RecommendCitationsResponse:
        """Citing papers for a batch of papers."""
        fields = self._candidates(CandidateKind.CITATIONS, request, call)
        return message_of(pb.RecommendCitationsResponse, **fields, timings=call)

    def RecommendBulk(self, request: pb.RecommendBulkRequest, call: CallContext) -> pb.RecommendBulkResponse:
        """Ids and scores for many papers; each id is sent once."""
        served = self.models.get(request.model)
        kind = _kind_of(request.kind)
        papers, options = _candidate_query_of(request, self.limits, is_bulk=True)
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
        kind, ids = _kind_of(request.kind), tuple(request.ids)
        check_not_empty(ids, ("ids",))
        check_list_of_texts(ids, "ids", max_bytes=_MAX_ID_BYTES)
        call.num_items, source = len(ids), request.WhichOneof("source")
        if source == "papers":
            papers = _papers_of(request.papers.papers, ("papers", "papers"), limits)
            if request.HasField("where"):
                raise InvalidInputError("applies to a collection only, got papers", path="where")
            options, revision = _ranking_options_of(request, limits), 0
            with in_request(_PAPER_FIELDS), served.exclusive(call) as engine:
                rankings = engine.rank_papers(kind, ids, papers, options=options)
            named = [(paper.id, paper.title) for paper in papers]
        elif source == "collection":
            options = _ranking_options_of(request, limits)
            named, facets, revision = self.papers.read(served, kind, request, call)
            with served.exclusive(call) as engine:
                rankings = engine.rank_papers(kind, ids, facets if named else (), options=options)
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
        kind = _kind_of(request.kind)
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
        papers, options = _candidate_query_of(request, self.limits)
        results: list[list[RankedCandidate]] = []
        for start in range(0, len(papers), _PAPERS_AT_A_TIME):
            with in_request(_CANDIDATE_FIELDS, start=start), served.exclusive(call) as engine:
                recommend = engine.recommend_authors if kind is CandidateKind.AUTHORS else engine.recommend_citations
                results += recommend(papers[start : start + _PAPERS_AT_A_TIME], options)
        call.num_items = len(results)
        return {"results": results, "model": served.info}


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
