"""RecommendationService: who would write and who would cite a paper, and which papers suit somebody."""

from facets_proto.codec import message_of, to_message
from facets_proto.v1 import papers_pb2 as pb
from facets_proto.v1 import papers_pb2_grpc

from facets.papers.records import CandidateKind
from facets_server.papers.collection_papers import CollectionPapers
from facets_server.papers.ranking import rank_candidates, rank_candidates_in_bulk, rank_papers
from facets_server.papers.replies import added_papers_to_message, bulk_to_message, rankings_to_message
from facets_server.papers.requests import (
    added_papers_of,
    bulk_kind_of,
    candidate_query_of,
    name_query_of,
    new_authors_of,
    paper_query_of,
)
from facets_server.papers.served import PaperModels
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.limits import LimitsConfig


class RecommendationService(papers_pb2_grpc.RecommendationServiceServicer):
    """Recommends authors and citing papers."""

    def __init__(self, models: PaperModels, papers: CollectionPapers, limits: LimitsConfig) -> None:
        self._models = models
        self._papers = papers
        self._limits = limits

    def RecommendAuthors(self, request: pb.RecommendAuthorsRequest, call: CallContext) -> pb.RecommendAuthorsResponse:
        """Authors for a batch of papers."""
        served = self._models.get(request.model)
        query = candidate_query_of(request, self._limits)
        results = rank_candidates(served, CandidateKind.AUTHORS, query, call)
        return message_of(pb.RecommendAuthorsResponse, results=results, model=served.info, timings=call)

    def RecommendCitations(
        self, request: pb.RecommendCitationsRequest, call: CallContext
    ) -> pb.RecommendCitationsResponse:
        """Citing papers for a batch of papers."""
        served = self._models.get(request.model)
        query = candidate_query_of(request, self._limits)
        results = rank_candidates(served, CandidateKind.CITATIONS, query, call)
        return message_of(pb.RecommendCitationsResponse, results=results, model=served.info, timings=call)

    def RecommendBulk(self, request: pb.RecommendBulkRequest, call: CallContext) -> pb.RecommendBulkResponse:
        """Ids and scores for many papers."""
        served = self._models.get(request.model)
        kind = bulk_kind_of(request)
        query = candidate_query_of(request, self._limits, is_bulk=True)
        parts = rank_candidates_in_bulk(served, kind, query, call)
        unknown = served.unknown(kind, query.options.candidates or ())
        return bulk_to_message(parts, unknown, served.info, call)

    def RankPapers(self, request: pb.RankPapersRequest, call: CallContext) -> pb.RankPapersResponse:
        """Papers for authors or citing papers."""
        served = self._models.get(request.model)
        query = paper_query_of(request, self._limits)
        ranked = rank_papers(served, query, self._papers, call)
        return rankings_to_message(ranked, served.info, call, is_collection=bool(query.collection))

    def AddPapers(self, request: pb.AddPapersRequest, call: CallContext) -> pb.AddPapersResponse:
        """Stores papers and fits their authors and citing papers."""
        served = self._models.get(request.model)
        papers = added_papers_of(request, self._limits)
        call.num_items = len(papers)
        with served.writing(call) as engine:
            result = engine.add_papers(papers)
        return added_papers_to_message(result, served.info, call)

    def AddAuthors(self, request: pb.AddAuthorsRequest, call: CallContext) -> pb.AddAuthorsResponse:
        """Fits and stores authors."""
        served = self._models.get(request.model)
        authors = new_authors_of(request, self._limits)
        call.num_items = len(authors)
        with served.writing(call) as engine:
            result = engine.add_authors(authors)
        return to_message(result, pb.AddAuthorsResponse, model=served.info, timings=call)

    def FindCandidates(self, request: pb.FindCandidatesRequest, call: CallContext) -> pb.FindCandidatesResponse:
        """Candidates by id or name."""
        served = self._models.get(request.model)
        query = name_query_of(request, self._limits)
        call.num_items = len(query.texts)
        found = []
        for text in query.texts:
            call.check()
            found.append(served.engine.find(query.kind, text, top_k=query.top_k))
        size, made = served.engine.size(query.kind), pb.FindCandidatesResponse
        return message_of(made, results=found, num_candidates=size, model=served.info, timings=call)
