"""Requests about papers as checked values of the library."""

from facets_proto.v1 import papers_pb2

from facets.documents import And, Filter, Range
from facets.errors import ErrorPath, InvalidInputError
from facets.papers.records import MAX_EXAMPLE_WEIGHT, Author, CandidateKind, NewAuthor, Paper, PaperOptions
from facets_server.documents.filter_requests import filter_from_proto
from facets_server.papers.checks import check_author, check_distinct, check_ids, check_papers
from facets_server.papers.ranking import CandidateQuery, NameQuery, PaperQuery
from facets_server.runtime.limits import LimitsConfig, check_count, check_number

__all__ = [
    "added_papers_from_proto",
    "bulk_kind_from_proto",
    "candidate_query_from_proto",
    "name_query_from_proto",
    "new_authors_from_proto",
    "paper_query_from_proto",
]

_DEFAULT_TOP_K = 10
_DEFAULT_EXAMPLE_WEIGHT = PaperOptions().example_weight
_KINDS: dict[int, CandidateKind] = {
    papers_pb2.CANDIDATE_KIND_AUTHORS: CandidateKind.AUTHORS,
    papers_pb2.CANDIDATE_KIND_CITATIONS: CandidateKind.CITATIONS,
}


def candidate_query_from_proto(
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
    papers = tuple(_paper(message) for message in request.papers)
    check_papers([(("papers", i), paper) for i, paper in enumerate(papers)], limits, need_id=False)
    options = _options(request.options, limits)
    if options.evidence and not is_bulk and options.top_k * len(papers) > limits.max_evidence_hits:
        raise InvalidInputError(
            f"x papers with evidence is {options.top_k * len(papers)}, the limit is {limits.max_evidence_hits}",
            path=("options", "top_k"),
        )
    return CandidateQuery(papers=papers, options=options)


def paper_query_from_proto(request: papers_pb2.RankPapersRequest, limits: LimitsConfig) -> PaperQuery:
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
        papers = tuple(_paper(message) for message in request.papers.papers)
        check_papers([(("papers", "papers", i), paper) for i, paper in enumerate(papers)], limits, need_id=False)
        check_distinct([paper.id for paper in papers], ("papers", "papers"), "id")
        if request.HasField("filter"):
            raise InvalidInputError("is about documents of a collection, got papers", path="filter")
    top_k = _top_k(request, ("top_k",), limits)
    if request.evidence and top_k * len(request.ids) > limits.max_evidence_hits:
        raise InvalidInputError(
            f"x ids with evidence is {top_k * len(request.ids)}, the limit is {limits.max_evidence_hits}",
            path="top_k",
        )
    years = _years(request, ())
    is_collection = source == "collection"
    return PaperQuery(
        kind=kind,
        ids=tuple(request.ids),
        collection=request.collection,
        papers=papers,
        filter=_paper_filter(request, years) if is_collection else None,
        options=PaperOptions(
            top_k=top_k,
            excluded_ids=() if is_collection else tuple(request.excluded_ids),
            from_year=None if is_collection else years[0],
            to_year=None if is_collection else years[1],
            facet_weight=_facet_weight(request, ("facet_weight",)),
            evidence=request.evidence,
        ),
        excluded=frozenset(request.excluded_ids),
        min_revision=request.min_revision or None,
    )


def added_papers_from_proto(request: papers_pb2.AddPapersRequest, limits: LimitsConfig) -> tuple[Paper, ...]:
    """Papers to add, each with an id of its own.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
    """
    check_count(request.papers, ("papers",), limits.max_documents_per_upsert)
    papers = tuple(_paper(message) for message in request.papers)
    check_papers([(("papers", i), paper) for i, paper in enumerate(papers)], limits, need_id=True)
    check_distinct([paper.id for paper in papers], ("papers",), "id")
    return papers


def new_authors_from_proto(request: papers_pb2.AddAuthorsRequest, limits: LimitsConfig) -> tuple[NewAuthor, ...]:
    """Authors to add, each with at least one paper.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
    """
    check_count(request.authors, ("authors",), limits.max_documents_per_upsert)
    authors = tuple(
        NewAuthor(_author(message.author), tuple(map(_paper, message.papers)), tuple(message.paper_ids))
        for message in request.authors
    )
    fields = [
        (("authors", i, "papers", j), paper)
        for i, author in enumerate(authors)
        for j, paper in enumerate(author.papers)
    ]
    if len(fields) > limits.max_texts_per_request:
        raise InvalidInputError(
            f"have {len(fields)} papers, the limit is {limits.max_texts_per_request}", path="authors"
        )
    check_papers(fields, limits, need_id=False)
    for i, author in enumerate(authors):
        check_author(author.author, ("authors", i, "author"))
        if not author.papers and not author.paper_ids:
            raise InvalidInputError("has no items, expected at least one", path=("authors", i, "papers"))
        check_ids(author.paper_ids, ("authors", i, "paper_ids"))
    check_distinct([author.author.key for author in authors], ("authors",), "author")
    return authors


def name_query_from_proto(request: papers_pb2.FindCandidatesRequest, limits: LimitsConfig) -> NameQuery:
    """A request as checked texts.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
    """
    kind = _kind(request.kind)
    check_count(request.texts, ("texts",), limits.max_queries_per_search)
    check_ids(request.texts, ("texts",))
    return NameQuery(kind, tuple(request.texts), _top_k(request, ("top_k",), limits))


def bulk_kind_from_proto(request: papers_pb2.RecommendBulkRequest) -> CandidateKind:
    """What a bulk request asks for.

    Raises:
        InvalidInputError: It does not say.
    """
    return _kind(request.kind)


def _kind(number: int) -> CandidateKind:
    if number not in _KINDS:
        raise InvalidInputError(f"must be authors or citations, got number {number}", path="kind")
    return _KINDS[number]


def _paper(message: papers_pb2.Paper) -> Paper:
    return Paper(
        title=message.title,
        abstract=message.abstract,
        id=message.id,
        authors=tuple(_author(author) for author in message.authors),
        cited_by_ids=tuple(message.cited_by_ids),
        year=message.year if message.HasField("year") else None,
        excluded_ids=tuple(message.excluded_ids),
    )


def _author(message: papers_pb2.Author) -> Author:
    return Author(message.name, message.id)


def _options(message: papers_pb2.PaperOptions, limits: LimitsConfig) -> PaperOptions:
    from_year, to_year = _years(message, ("options",))
    weight = message.example_weight if message.HasField("example_weight") else _DEFAULT_EXAMPLE_WEIGHT
    if not 0 <= weight <= MAX_EXAMPLE_WEIGHT:
        rule = f"must be in [0, {MAX_EXAMPLE_WEIGHT:g}], got {weight}"
        raise InvalidInputError(rule, path=("options", "example_weight"))
    return PaperOptions(
        top_k=_top_k(message, ("options", "top_k"), limits),
        excluded_ids=tuple(message.excluded_ids),
        candidates=tuple(message.candidates.ids) if message.HasField("candidates") else None,
        from_year=from_year,
        to_year=to_year,
        positive_ids=tuple(message.positive_ids),
        negative_ids=tuple(message.negative_ids),
        example_weight=weight,
        facet_weight=_facet_weight(message, ("options", "facet_weight")),
        evidence=message.evidence,
    )


def _top_k(
    message: papers_pb2.PaperOptions | papers_pb2.RankPapersRequest | papers_pb2.FindCandidatesRequest,
    path: ErrorPath,
    limits: LimitsConfig,
) -> int:
    top_k = message.top_k if message.HasField("top_k") else min(_DEFAULT_TOP_K, limits.max_top_k)
    return check_number(top_k, path, limits.max_top_k)


def _facet_weight(message: papers_pb2.PaperOptions | papers_pb2.RankPapersRequest, path: ErrorPath) -> float | None:
    if not message.HasField("facet_weight"):
        return None
    if not 0 <= message.facet_weight <= 1:
        raise InvalidInputError(f"must be in [0, 1], got {message.facet_weight}", path=path)
    return message.facet_weight


def _years(
    message: papers_pb2.PaperOptions | papers_pb2.RankPapersRequest, path: ErrorPath
) -> tuple[int | None, int | None]:
    from_year = message.from_year if message.HasField("from_year") else None
    to_year = message.to_year if message.HasField("to_year") else None
    if from_year is not None and to_year is not None and from_year > to_year:
        raise InvalidInputError(f"must be <= to_year, got {from_year} > {to_year}", path=(*path, "from_year"))
    return from_year, to_year


def _paper_filter(request: papers_pb2.RankPapersRequest, years: tuple[int | None, int | None]) -> Filter | None:
    parts: list[Filter] = []
    if request.HasField("filter"):
        parts.append(filter_from_proto(request.filter))
    if years != (None, None):
        parts.append(Range("year", gte=years[0], lte=years[1]))
    return And(parts) if parts else None
