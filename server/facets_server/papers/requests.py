"""Requests about papers as checked values of the library."""

from dataclasses import replace

from facets_proto.v1 import papers_pb2

from facets.documents import And, Filter, Range
from facets.errors import ErrorPath, InvalidInputError
from facets.papers.records import MAX_EXAMPLE_WEIGHT, CandidateKind, NewAuthor, Paper, PaperOptions
from facets_server.documents.requests import filter_of
from facets_server.papers.checks import check_author, check_distinct, check_ids, check_papers
from facets_server.papers.ranking import CandidateQuery, NameQuery, PaperQuery
from facets_server.runtime.limits import LimitsConfig, check_count
from facets_server.runtime.records import record_of, top_k_of

__all__ = [
    "added_papers_of",
    "bulk_kind_of",
    "candidate_query_of",
    "name_query_of",
    "new_authors_of",
    "paper_query_of",
]

_KINDS: dict[int, CandidateKind] = {
    papers_pb2.CANDIDATE_KIND_AUTHORS: CandidateKind.AUTHORS,
    papers_pb2.CANDIDATE_KIND_CITATIONS: CandidateKind.CITATIONS,
}


def candidate_query_of(
    request: papers_pb2.RecommendAuthorsRequest
    | papers_pb2.RecommendCitationsRequest
    | papers_pb2.RecommendBulkRequest,
    limits: LimitsConfig,
    *,
    is_bulk: bool = False,
) -> CandidateQuery:
    """A request as checked papers and options.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
    """
    check_count(request.papers, ("papers",), limits.max_texts_per_request)
    papers = tuple(record_of(message, Paper) for message in request.papers)
    check_papers([(("papers", i), paper) for i, paper in enumerate(papers)], limits, need_id=False)
    options = _options(request.options, limits)
    if options.evidence and not is_bulk and options.top_k * len(papers) > limits.max_evidence_hits:
        raise InvalidInputError(
            f"x papers with evidence is {options.top_k * len(papers)}, the limit is {limits.max_evidence_hits}",
            path=("options", "top_k"),
        )
    return CandidateQuery(papers=papers, options=options)


def paper_query_of(request: papers_pb2.RankPapersRequest, limits: LimitsConfig) -> PaperQuery:
    """A request as checked ids, papers or collection, and options.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
    """
    kind = _kind(request.kind)
    check_count(request.ids, ("ids",), limits.max_queries_per_search)
    check_ids(request.ids, ("ids",))
    source = request.WhichOneof("source")
    if source is None:
        raise InvalidInputError("is missing, expected a collection or papers", path="source")
    papers: tuple[Paper, ...] = ()
    if source == "papers":
        check_count(request.papers.papers, ("papers", "papers"), limits.max_texts_per_request)
        papers = tuple(record_of(message, Paper) for message in request.papers.papers)
        check_papers([(("papers", "papers", i), paper) for i, paper in enumerate(papers)], limits, need_id=False)
        check_distinct([paper.id for paper in papers], ("papers", "papers"), "id")
        if request.HasField("filter"):
            raise InvalidInputError("is about documents of a collection, got papers", path="filter")
    top_k = top_k_of(request, ("top_k",), limits)
    if request.evidence and top_k * len(request.ids) > limits.max_evidence_hits:
        raise InvalidInputError(
            f"x ids with evidence is {top_k * len(request.ids)}, the limit is {limits.max_evidence_hits}",
            path="top_k",
        )
    _check_years(request, ())
    _check_facet_weight(request, ("facet_weight",))
    options = record_of(request, PaperOptions, top_k=top_k)
    is_collection = source == "collection"
    if is_collection:
        options = replace(options, excluded_ids=(), from_year=None, to_year=None)
    return PaperQuery(
        kind=kind,
        ids=tuple(request.ids),
        collection=request.collection,
        papers=papers,
        filter=_paper_filter(request) if is_collection else None,
        options=options,
        excluded=frozenset(request.excluded_ids),
        min_revision=request.min_revision or None,
    )


def added_papers_of(request: papers_pb2.AddPapersRequest, limits: LimitsConfig) -> tuple[Paper, ...]:
    """Papers to add, each with an id of its own.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
    """
    check_count(request.papers, ("papers",), limits.max_documents_per_upsert)
    papers = tuple(record_of(message, Paper) for message in request.papers)
    check_papers([(("papers", i), paper) for i, paper in enumerate(papers)], limits, need_id=True)
    check_distinct([paper.id for paper in papers], ("papers",), "id")
    return papers


def new_authors_of(request: papers_pb2.AddAuthorsRequest, limits: LimitsConfig) -> tuple[NewAuthor, ...]:
    """Authors to add, each with at least one paper.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
    """
    check_count(request.authors, ("authors",), limits.max_documents_per_upsert)
    num_papers = sum(len(author.papers) for author in request.authors)
    if num_papers > limits.max_texts_per_request:
        raise InvalidInputError(
            f"have {num_papers} papers, the limit is {limits.max_texts_per_request}", path="authors"
        )
    authors = tuple(record_of(message, NewAuthor) for message in request.authors)
    fields = [
        (("authors", i, "papers", j), paper)
        for i, author in enumerate(authors)
        for j, paper in enumerate(author.papers)
    ]
    check_papers(fields, limits, need_id=False)
    for i, author in enumerate(authors):
        check_author(author.author, ("authors", i, "author"))
        if not author.papers and not author.paper_ids:
            raise InvalidInputError("has no items, expected at least one", path=("authors", i, "papers"))
        check_ids(author.paper_ids, ("authors", i, "paper_ids"))
    check_distinct([author.author.key for author in authors], ("authors",), "author")
    return authors


def name_query_of(request: papers_pb2.FindCandidatesRequest, limits: LimitsConfig) -> NameQuery:
    """A request as checked texts.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
    """
    kind = _kind(request.kind)
    check_count(request.texts, ("texts",), limits.max_queries_per_search)
    check_ids(request.texts, ("texts",))
    return NameQuery(kind, tuple(request.texts), top_k_of(request, ("top_k",), limits))


def bulk_kind_of(request: papers_pb2.RecommendBulkRequest) -> CandidateKind:
    """What a bulk request asks for.

    Raises:
        InvalidInputError: It does not say.
    """
    return _kind(request.kind)


def _kind(number: int) -> CandidateKind:
    if number not in _KINDS:
        raise InvalidInputError(f"must be authors or citations, got number {number}", path="kind")
    return _KINDS[number]


def _options(message: papers_pb2.PaperOptions, limits: LimitsConfig) -> PaperOptions:
    _check_years(message, ("options",))
    weight = message.example_weight
    if not 0 <= weight <= MAX_EXAMPLE_WEIGHT:
        rule = f"must be in [0, {MAX_EXAMPLE_WEIGHT:g}], got {weight}"
        raise InvalidInputError(rule, path=("options", "example_weight"))
    _check_facet_weight(message, ("options", "facet_weight"))
    return record_of(message, PaperOptions, ("options",), top_k=top_k_of(message, ("options", "top_k"), limits))


def _check_facet_weight(message: papers_pb2.PaperOptions | papers_pb2.RankPapersRequest, path: ErrorPath) -> None:
    if not 0 <= message.facet_weight <= 1:
        raise InvalidInputError(f"must be in [0, 1], got {message.facet_weight}", path=path)


def _check_years(message: papers_pb2.PaperOptions | papers_pb2.RankPapersRequest, path: ErrorPath) -> None:
    from_year, to_year = message.from_year, message.to_year
    if message.HasField("from_year") and message.HasField("to_year") and from_year > to_year:
        raise InvalidInputError(f"must be <= to_year, got {from_year} > {to_year}", path=(*path, "from_year"))


def _paper_filter(request: papers_pb2.RankPapersRequest) -> Filter | None:
    parts: list[Filter] = []
    wanted = filter_of(request)
    if wanted is not None:
        parts.append(wanted)
    if request.HasField("from_year") or request.HasField("to_year"):
        years = [getattr(request, name) if request.HasField(name) else None for name in ("from_year", "to_year")]
        parts.append(Range("year", gte=years[0], lte=years[1]))
    return And(parts) if parts else None
