# ruff: noqa: N802 (gRPC names the methods)
"""RecommendationService of the fake server: scores made of hashes, honest filters, faults on demand."""

import zlib

import grpc
from facets_proto.v1 import common_pb2, papers_pb2
from fake_world import Service, fail, status_of

pb = papers_pb2
AUTHORS = ("Ann", "Bob", "Cat", "Dee", "Eve")
CITING = ("c1", "c2", "c3")
MODEL = common_pb2.ModelVersion(name="papers", revision="p1")


def fake_score(title, candidate):
    """Of a paper and a candidate, always the same."""
    return zlib.crc32(f"{title}|{candidate}".encode()) / 2**32


class PaperService(Service):
    service = papers_pb2.DESCRIPTOR.services_by_name["RecommendationService"]

    """Knows ``AUTHORS`` and ``CITING``; refuses papers whose title has REFUSE.

    Attributes:
        papers: Added papers.
        authors: Added authors.
    """

    def __init__(self, world):
        super().__init__(world)
        self.papers = {}
        self.authors = {}

    def _refuse(self, context, field, message, code=grpc.StatusCode.INVALID_ARGUMENT, reason="INVALID_INPUT"):
        fail(context, status_of(code, message, reason=reason, field=field))

    def _check(self, papers, context, field="papers", limit=None):
        limit = limit or self.world.max_texts
        if len(papers) > limit:
            self._refuse(context, field, f"{field} has {len(papers)} items, the limit is {limit}")
        for i, paper in enumerate(papers):
            if "REFUSE" in paper.title or not paper.title.strip():
                self._refuse(context, f"{field}[{i}].title", f"{field}[{i}].title is refused")

    def _ranked(self, kind, paper, options):
        known = AUTHORS if kind == pb.CANDIDATE_KIND_AUTHORS else CITING
        left = {*known} - {*options.excluded_ids} - {*paper.excluded_ids}
        if options.HasField("candidates"):
            left &= {*options.candidates.ids}
        return sorted(left, key=lambda name: (-fake_score(paper.title, name), name))[: options.top_k or 10]

    def _results(self, kind, request):
        for paper in request.papers:
            items = [
                pb.RankedCandidate(
                    id=name,
                    name=f"Name {name}",
                    score=fake_score(paper.title, name),
                    facet_score=0.25,
                    document_score=0.75,
                    evidence=self._evidence() if request.options.evidence else None,
                )
                for name in self._ranked(kind, paper, request.options)
            ]
            yield pb.CandidateRanking(candidates=items)

    @staticmethod
    def _evidence():
        return pb.CandidateEvidence(
            facet=2,
            nearest_words=[common_pb2.NearestWord(word="boat", cosine=0.9)],
            nearest_papers=[pb.NearestPaper(id="p1", title="About [bold]boats\x1b[31m", cosine=0.5)],
        )

    def RecommendAuthors(self, request, context):
        self._check(request.papers, context)
        return pb.RecommendAuthorsResponse(results=self._results(pb.CANDIDATE_KIND_AUTHORS, request), model=MODEL)

    def RecommendCitations(self, request, context):
        self._check(request.papers, context)
        return pb.RecommendCitationsResponse(results=self._results(pb.CANDIDATE_KIND_CITATIONS, request), model=MODEL)

    def RecommendBulk(self, request, context):
        self._check(request.papers, context)
        ranked = [self._ranked(request.kind, paper, request.options) for paper in request.papers]
        ids = sorted({name for names in ranked for name in names})
        results = [
            pb.BulkResult(
                candidates=[ids.index(name) for name in names], scores=[fake_score(paper.title, name) for name in names]
            )
            for paper, names in zip(request.papers, ranked, strict=True)
        ]
        known = {*AUTHORS, *CITING}
        unknown = [name for name in request.options.candidates.ids if name not in known]
        return pb.RecommendBulkResponse(
            candidate_ids=ids,
            results=results,
            unknown_candidates=unknown,
            num_unknown_candidates=len(unknown),
            model=MODEL,
        )

    def RankPapers(self, request, context):
        known = AUTHORS if request.kind == pb.CANDIDATE_KIND_AUTHORS else CITING
        for name in request.ids:
            if name not in known:
                message = f"{name!r} is unknown, near: {known[0]}"
                self._refuse(context, "", message, grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
        if request.WhichOneof("source") == "collection":
            self.world.need_collection(request.collection, context)
            documents = self.world.documents[request.collection].values()
            papers = [pb.Paper(id=document.id, title=document.text) for document in documents]
        else:
            papers = list(request.papers.papers)
            self._check(papers, context, "papers.papers")
        rankings = []
        for name in request.ids:
            rows = sorted(range(len(papers)), key=lambda i, name=name: -fake_score(papers[i].title, name))
            ranked = [
                pb.RankedPaper(
                    id=papers[i].id,
                    title=papers[i].title,
                    score=fake_score(papers[i].title, name),
                    position=i,
                    evidence=self._evidence() if request.evidence else None,
                )
                for i in rows
                if papers[i].id not in request.excluded_ids
            ]
            rankings.append(pb.PaperRanking(papers=ranked[: request.top_k or 10]))
        return pb.RankPapersResponse(
            rankings=rankings, num_papers=len(papers), index_revision=self.world.revision, model=MODEL
        )

    def AddPapers(self, request, context):
        self._check(request.papers, context, limit=self.world.max_documents)
        self.papers |= {paper.id: paper for paper in request.papers}
        return pb.AddPapersResponse(
            num_papers=len(request.papers),
            num_authors=sum(len(paper.authors) for paper in request.papers),
            unknown_citations=[name for paper in request.papers for name in paper.cited_by_ids],
            num_unknown_citations=sum(len(paper.cited_by_ids) for paper in request.papers),
            model=MODEL,
        )

    def AddAuthors(self, request, context):
        for author in request.authors:
            for paper_id in author.paper_ids:
                status = status_of(
                    grpc.StatusCode.NOT_FOUND, f"{paper_id!r} is unknown", reason="NOT_FOUND", resource_type="paper"
                )
                fail(context, status)
        self.authors |= {author.author.id or author.author.name: author for author in request.authors}
        return pb.AddAuthorsResponse(
            num_authors=len(request.authors), num_papers=sum(len(author.papers) for author in request.authors)
        )

    def FindCandidates(self, request, context):
        known = AUTHORS if request.kind == pb.CANDIDATE_KIND_AUTHORS else CITING
        results = [
            pb.FoundCandidates(candidates=[pb.Candidate(id=name, name=name) for name in known if name[0] == text[0]])
            for text in request.texts
        ]
        return pb.FindCandidatesResponse(results=results, num_candidates=len(known), model=MODEL)
