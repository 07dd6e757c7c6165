"""What the clients do with papers, their authors and who cites them (see ``core/operations.py``)."""

from collections.abc import Sequence
from typing import TypeVar

from facets_proto.v1 import papers_pb2 as pb

from facets_client.core.commands import Operation, move_indices
from facets_client.core.convert import from_filter
from facets_client.core.operations import RoomOperations, least, text_bytes, with_evidence
from facets_client.core.values import check_text, unsigned
from facets_client.errors import FacetsClientError
from facets_client.filters import Filter
from facets_client.papers import convert
from facets_client.papers.results import (
    AddedAuthors,
    AddedPapers,
    BulkCandidates,
    CandidateKind,
    CandidateRankings,
    FoundCandidates,
    NewAuthor,
    Paper,
    PaperOptions,
    PaperRankings,
)

# Papers of one bulk request: few enough to be answered within a timeout, enough to look candidates up rarely.
_BULK_PAPERS = 128

RequestT = TypeVar("RequestT", pb.RecommendAuthorsRequest, pb.RecommendCitationsRequest)
ResponseT = TypeVar("ResponseT", pb.RecommendAuthorsResponse, pb.RecommendCitationsResponse)


class PaperOperations(RoomOperations):
    """RecommendationService."""

    def recommend_authors(
        self, papers: Sequence[Paper], options: PaperOptions | None = None, *, model: str = ""
    ) -> Operation[CandidateRankings]:
        """The authors that each paper suits best.

        Args:
            papers: At least one.
            options: Which authors, and how they are scored; None: ten, all authors, the server's weights.
            model: Name; empty: the server's default model of papers.

        Returns:
            Entry i belongs to papers[i]; empty when no author is left.
        """
        request, response = pb.RecommendAuthorsRequest, pb.RecommendAuthorsResponse
        return (yield from self._recommend(request, response, papers, options, model))

    def recommend_citations(
        self, papers: Sequence[Paper], options: PaperOptions | None = None, *, model: str = ""
    ) -> Operation[CandidateRankings]:
        """The papers that would most likely cite each paper.

        Args:
            papers: At least one.
            options: Which citing papers, and how they are scored; None: ten, all of them, the server's weights.
            model: Name; empty: the server's default model of papers.

        Returns:
            Entry i belongs to papers[i]; empty when no citing paper is left.
        """
        request, response = pb.RecommendCitationsRequest, pb.RecommendCitationsResponse
        return (yield from self._recommend(request, response, papers, options, model))

    def _recommend(
        self,
        request: type[RequestT],
        response: type[ResponseT],
        papers: Sequence[Paper],
        options: PaperOptions | None,
        model: str,
    ) -> Operation[CandidateRankings]:
        options = options or PaperOptions()
        wanted = convert.from_options(options)
        messages = [convert.from_paper(paper) for paper in papers]
        parts = yield from self._requests.call_parts(
            "papers",
            [message.ByteSize() for message in messages],
            lambda part: request(papers=messages[part], model=model, options=wanted),
            response,
            max_items=lambda limits: least(
                limits.max_texts_per_request, with_evidence(limits, evidence=options.evidence, top_k=options.top_k)
            ),
            model=model,
            repeated_bytes=wanted.ByteSize(),
        )
        return convert.to_candidate_rankings(parts)

    def recommend_bulk(
        self,
        kind: CandidateKind,
        papers: Sequence[Paper],
        options: PaperOptions | None = None,
        *,
        model: str = "",
    ) -> Operation[BulkCandidates]:
        """Ids and scores alone, for thousands of papers against thousands of candidates.

        Args:
            kind: ``authors`` or ``citations``.
            papers: Any number, in requests of 128.
            options: As for ``recommend_authors``.
            model: Name; empty: the server's default model of papers.
        """
        number = convert.kind_number(kind)
        wanted = convert.from_options(options or PaperOptions())
        messages = [convert.from_paper(paper) for paper in papers]
        parts = yield from self._requests.call_parts(
            "papers",
            [message.ByteSize() for message in messages],
            lambda part: pb.RecommendBulkRequest(kind=number, papers=messages[part], model=model, options=wanted),
            pb.RecommendBulkResponse,
            max_items=lambda limits: least(_BULK_PAPERS, limits.max_texts_per_request),
            model=model,
            repeated_bytes=wanted.ByteSize(),
        )
        return convert.to_bulk(parts)

    def rank_papers(
        self,
        kind: CandidateKind,
        ids: Sequence[str],
        *,
        collection: str = "",
        papers: Sequence[Paper] | None = None,
        top_k: int = 10,
        where: Filter | None = None,
        exclude: Sequence[str] = (),
        facet_weight: float | None = None,
        evidence: bool = False,
        min_revision: int = 0,
        model: str = "",
    ) -> Operation[PaperRankings]:
        """Papers for authors or citing papers, best first.

        Args:
            kind: What the ids are: ``authors`` or ``citations``.
            ids: At least one; NotFoundError with near ones when one is unknown.
            collection: Where the papers are; a document's payload has ``title``, ``abstract`` and ``year``, or its
                text begins with a line that is the title.
            papers: Instead, papers of the caller's.
            top_k: Papers for each id.
            where: Condition on the payload of documents; on papers of the caller's one on the year alone, e.g.
                ``Range("year", gte=2015)``.
            exclude: Ids of papers never listed.
            facet_weight: Share of the facets in the score, in [0, 1]; None: tuned for the model.
            evidence: Say why.
            min_revision: Read only this revision of the collection or a later one; 0: any.
            model: Name; empty: the server's default model of papers.
        """
        if bool(collection) == (papers is not None):
            raise ValueError("expected collection or papers, got " + ("both" if collection else "neither"))
        for name in (*ids, *exclude):
            check_text(name)
        wanted = pb.RankPapersRequest(
            kind=convert.kind_number(kind),
            model=model,
            top_k=unsigned(top_k, "top_k"),
            excluded_ids=exclude,
            facet_weight=facet_weight,
            evidence=evidence,
            min_revision=unsigned(min_revision, "min_revision", bits=64),
        )
        if papers is not None:
            if where is not None:
                wanted.years.CopyFrom(convert.from_years(where))
            return convert.merged_rankings((yield from self._rank_given(wanted, ids, papers)), top_k)
        wanted.collection = collection
        condition = from_filter(where)
        if condition is not None:
            wanted.filter.CopyFrom(condition)
        return convert.to_rankings((yield from self._rank(wanted, ids)), is_collection=True)

    def _rank_given(
        self, wanted: pb.RankPapersRequest, ids: Sequence[str], papers: Sequence[Paper]
    ) -> Operation[list[PaperRankings]]:
        """Ranks the caller's papers, some at a time."""
        messages = [convert.from_paper(paper) for paper in papers]
        found: list[PaperRankings] = []
        # Papers are scored one by one: the best of all are the best among the best of each request.
        for part in (
            yield from self._requests.cut(
                "papers",
                [message.ByteSize() for message in messages],
                max_items=lambda limits: limits.max_texts_per_request,
                model=wanted.model,
                repeated_bytes=wanted.ByteSize() + sum(text_bytes(name) + 4 for name in ids),
            )
        ):
            wanted.papers.CopyFrom(pb.PaperList(papers=messages[part]))
            try:
                replies = yield from self._rank(wanted, ids)
            except FacetsClientError as error:
                move_indices(error, "papers", part.start)
                raise
            found.append(convert.to_rankings(replies, is_collection=False, offset=part.start))
        return found

    def _rank(self, wanted: pb.RankPapersRequest, ids: Sequence[str]) -> Operation[list[pb.RankPapersResponse]]:
        """Asks for a few ids at a time."""

        def request(part: slice) -> pb.RankPapersRequest:
            made = pb.RankPapersRequest(ids=ids[part])
            made.MergeFrom(wanted)
            return made

        return (
            yield from self._requests.call_parts(
                "ids",
                [text_bytes(name) for name in ids],
                request,
                pb.RankPapersResponse,
                max_items=lambda limits: least(
                    limits.max_queries_per_search, with_evidence(limits, evidence=wanted.evidence, top_k=wanted.top_k)
                ),
                model=wanted.model,
                repeated_bytes=wanted.ByteSize(),
            )
        )

    def add_papers(self, papers: Sequence[Paper], *, model: str = "") -> Operation[AddedPapers]:
        """Adds papers with their authors and citing papers, without training; durable on return.

        Each request is stored whole or not at all; a long input takes several, and an error in a later
        one leaves the earlier ones stored.
        """
        messages = [convert.from_paper(paper) for paper in papers]
        parts = yield from self._requests.call_parts(
            "papers",
            [message.ByteSize() for message in messages],
            lambda part: pb.AddPapersRequest(papers=messages[part], model=model),
            pb.AddPapersResponse,
            max_items=lambda limits: limits.max_documents_per_upsert,
            model=model,
        )
        return convert.to_added_papers(parts)

    def add_authors(self, authors: Sequence[NewAuthor], *, model: str = "") -> Operation[AddedAuthors]:
        """Adds authors by what they wrote, without training; durable on return, as ``add_papers``."""
        messages = [convert.from_new_author(author) for author in authors]
        most = max((len(author.papers) for author in authors), default=0) or 1
        parts = yield from self._requests.call_parts(
            "authors",
            [message.ByteSize() for message in messages],
            lambda part: pb.AddAuthorsRequest(authors=messages[part], model=model),
            pb.AddAuthorsResponse,
            # So few that their papers are within the limit, too.
            max_items=lambda limits: least(
                max(1, (limits.max_texts_per_request or most) // most), limits.max_documents_per_upsert
            ),
            model=model,
        )
        return convert.to_added_authors(parts)

    def find_candidates(
        self, kind: CandidateKind, texts: Sequence[str], *, top_k: int = 10, model: str = ""
    ) -> Operation[FoundCandidates]:
        """Authors or citing papers by ids or names that need not be quite right, closest first.

        Args:
            kind: ``authors`` or ``citations``.
            texts: Ids or names as somebody remembers them.
            top_k: Most candidates for each text.
            model: Name; empty: the server's default model of papers.
        """
        for text in texts:
            check_text(text)
        number, most = convert.kind_number(kind), unsigned(top_k, "top_k")
        parts = yield from self._requests.call_parts(
            "texts",
            [text_bytes(text) for text in texts],
            lambda part: pb.FindCandidatesRequest(kind=number, texts=texts[part], top_k=most, model=model),
            pb.FindCandidatesResponse,
            max_items=lambda limits: limits.max_queries_per_search,
            model=model,
        )
        return convert.to_found(parts)
