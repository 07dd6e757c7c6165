"""Requests about papers as checked values of the library."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from facets_proto.v1 import papers_pb2 as pb

from facets.documents import AllOf, Filter, Range
from facets.errors import ErrorPath, InvalidInputError
from facets.papers.records import MAX_EXAMPLE_WEIGHT, Author, CandidateKind, NewAuthor, Paper, PaperOptions
from facets_server.documents.requests import filter_of
from facets_server.papers.ranking import CandidateQuery, NameQuery, PaperQuery
from facets_server.runtime.limits import LimitsConfig, check_count, raise_first, text_problem
from facets_server.runtime.records import record_of, top_k_of

_MAX_ID_BYTES = 512
_KINDS: dict[int, CandidateKind] = {
    pb.CANDIDATE_KIND_AUTHORS: CandidateKind.AUTHORS,
    pb.CANDIDATE_KIND_CITATIONS: CandidateKind.CITATIONS,
}


def candidate_query_of(
    request: pb.RecommendAuthorsRequest | pb.RecommendCitationsRequest | pb.RecommendBulkRequest,
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
    _check_papers([(("papers", i), paper) for i, paper in enumerate(papers)], limits, need_id=False)
    options = _options(request.options, limits)
    if options.evidence and not is_bulk and options.top_k * len(papers) > limits.max_evidence_hits:
        raise InvalidInputError(
            f"x papers with evidence is {options.top_k * len(papers)}, the limit is {limits.max_evidence_hits}",
            path=("options", "top_k"),
        )
    return CandidateQuery(papers=papers, options=options)


def paper_query_of(request: pb.RankPapersRequest, limits: LimitsConfig) -> PaperQuery:
    """A request as checked ids, papers or collection, and options.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
    """
    kind = _kind(request.kind)
    check_count(request.ids, ("ids",), limits.max_queries_per_search)
    _check_ids(request.ids, ("ids",))
    source = request.WhichOneof("source")
    if source is None:
        raise InvalidInputError("is missing, expected a collection or papers", path="source")
    papers: tuple[Paper, ...] = ()
    if source == "papers":
        check_count(request.papers.papers, ("papers", "papers"), limits.max_texts_per_request)
        papers = tuple(record_of(message, Paper) for message in request.papers.papers)
        _check_papers([(("papers", "papers", i), paper) for i, paper in enumerate(papers)], limits, need_id=False)
        _check_distinct([paper.id for paper in papers], ("papers", "papers"), "id")
        if request.HasField("where"):
            raise InvalidInputError("is about documents of a collection, got papers", path="where")
    top_k = top_k_of(request, ("top_k",), limits)
    if request.evidence and top_k * len(request.ids) > limits.max_evidence_hits:
        raise InvalidInputError(
            f"x ids with evidence is {top_k * len(request.ids)}, the limit is {limits.max_evidence_hits}", path="top_k"
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
        where=_paper_filter(request) if is_collection else None,
        options=options,
        excluded=frozenset(request.excluded_ids),
        min_revision=request.min_revision or None,
    )


def added_papers_of(request: pb.AddPapersRequest, limits: LimitsConfig) -> tuple[Paper, ...]:
    """Papers to add, each with an id of its own.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
    """
    check_count(request.papers, ("papers",), limits.max_documents_per_upsert)
    papers = tuple(record_of(message, Paper) for message in request.papers)
    _check_papers([(("papers", i), paper) for i, paper in enumerate(papers)], limits, need_id=True)
    _check_distinct([paper.id for paper in papers], ("papers",), "id")
    return papers


def new_authors_of(request: pb.AddAuthorsRequest, limits: LimitsConfig) -> tuple[NewAuthor, ...]:
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
    _check_papers(fields, limits, need_id=False)
    for i, author in enumerate(authors):
        _check_author(author.author, ("authors", i, "author"))
        if not author.papers and not author.paper_ids:
            raise InvalidInputError("has no items, expected at least one", path=("authors", i, "papers"))
        _check_ids(author.paper_ids, ("authors", i, "paper_ids"))
    _check_distinct([author.author.key for author in authors], ("authors",), "author")
    return authors


def name_query_of(request: pb.FindCandidatesRequest, limits: LimitsConfig) -> NameQuery:
    """A request as checked texts.

    Raises:
        InvalidInputError: A rule of the request is broken; ``path`` says where.
    """
    kind = _kind(request.kind)
    check_count(request.texts, ("texts",), limits.max_queries_per_search)
    _check_ids(request.texts, ("texts",))
    return NameQuery(kind, tuple(request.texts), top_k_of(request, ("top_k",), limits))


def bulk_kind_of(request: pb.RecommendBulkRequest) -> CandidateKind:
    """What a bulk request asks for.

    Raises:
        InvalidInputError: It does not say.
    """
    return _kind(request.kind)


def _kind(number: int) -> CandidateKind:
    if number not in _KINDS:
        raise InvalidInputError(f"must be authors or citations, got number {number}", path="kind")
    return _KINDS[number]


def _options(message: pb.PaperOptions, limits: LimitsConfig) -> PaperOptions:
    _check_years(message, ("options",))
    weight = message.example_weight
    if not 0 <= weight <= MAX_EXAMPLE_WEIGHT:
        rule = f"must be in [0, {MAX_EXAMPLE_WEIGHT:g}], got {weight}"
        raise InvalidInputError(rule, path=("options", "example_weight"))
    _check_facet_weight(message, ("options", "facet_weight"))
    return record_of(message, PaperOptions, ("options",), top_k=top_k_of(message, ("options", "top_k"), limits))


def _check_facet_weight(message: pb.PaperOptions | pb.RankPapersRequest, path: ErrorPath) -> None:
    if not 0 <= message.facet_weight <= 1:
        raise InvalidInputError(f"must be in [0, 1], got {message.facet_weight}", path=path)


def _check_years(message: pb.PaperOptions | pb.RankPapersRequest, path: ErrorPath) -> None:
    from_year, to_year = message.from_year, message.to_year
    if message.HasField("from_year") and message.HasField("to_year") and from_year > to_year:
        raise InvalidInputError(f"must be <= to_year, got {from_year} > {to_year}", path=(*path, "from_year"))


def _paper_filter(request: pb.RankPapersRequest) -> Filter | None:
    parts: list[Filter] = []
    wanted = filter_of(request)
    if wanted is not None:
        parts.append(wanted)
    if request.HasField("from_year") or request.HasField("to_year"):
        years = [getattr(request, name) if request.HasField(name) else None for name in ("from_year", "to_year")]
        parts.append(Range("year", gte=years[0], lte=years[1]))
    return AllOf(parts) if parts else None


def _check_papers(papers: Sequence[tuple[ErrorPath, Paper]], limits: LimitsConfig, *, need_id: bool) -> None:
    """Names the first papers that break a rule, all at once."""
    raise_first(problem for path, paper in papers for problem in _paper_problems(path, paper, limits, need_id=need_id))


def _paper_problems(
    path: ErrorPath, paper: Paper, limits: LimitsConfig, *, need_id: bool
) -> Iterator[InvalidInputError]:
    problem = text_problem(paper.title, (*path, "title"), limits.max_text_bytes)
    if problem is not None:
        yield problem
    num_bytes = len(paper.abstract.encode())
    if num_bytes > limits.max_long_text_bytes:
        yield InvalidInputError(
            f"has {num_bytes} bytes, the limit is {limits.max_long_text_bytes}", path=(*path, "abstract")
        )
    if need_id and not paper.id:
        yield InvalidInputError("is empty, expected a name", path=(*path, "id"))
    names: list[tuple[ErrorPath, str]] = [((*path, "id"), paper.id)] if paper.id else []
    names += [((*path, "cited_by_ids", i), name) for i, name in enumerate(paper.cited_by_ids)]
    names += [((*path, "authors", i, "name"), author.key) for i, author in enumerate(paper.authors)]
    for where, name in names:
        name_problem = _name_problem(name, where)
        if name_problem is not None:
            yield name_problem


def _name_problem(name: str, path: ErrorPath) -> InvalidInputError | None:
    if not name.strip():
        return InvalidInputError("is empty, expected a name", path=path)
    if len(name.encode()) > _MAX_ID_BYTES:
        return InvalidInputError(f"has {len(name.encode())} bytes, the limit is {_MAX_ID_BYTES}", path=path)
    return None


def _check_author(author: Author, path: ErrorPath) -> None:
    """Refuses an author with neither a name nor an id, or one that is too long."""
    problem = _name_problem(author.key, (*path, "name"))
    if problem is not None:
        raise problem


def _check_ids(ids: Sequence[str], path: ErrorPath) -> None:
    """Refuses ids that are empty or too long; ``path`` is that of the list."""
    for i, name in enumerate(ids):
        problem = _name_problem(name, (*path, i))
        if problem is not None:
            raise problem


def _check_distinct(ids: Sequence[str], path: ErrorPath, part: str) -> None:
    """Refuses an id that comes twice; empty ones may. ``part`` of an entry holds the id."""
    seen: set[str] = set()
    for i, name in enumerate(ids):
        if name and name in seen:
            raise InvalidInputError(f"is {name!r}, as an earlier one is: expected distinct ones", path=(*path, i, part))
        seen.add(name)
