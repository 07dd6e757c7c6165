"""Reads requests about papers into records of the library."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from facets_proto.v1 import papers_pb2 as pb

from facets.documents import AllOf, Filter, Range
from facets.errors import ErrorPath, InvalidInputError
from facets.papers.records import CandidateKind, NewAuthor, Paper, PaperOptions
from facets_server.documents.requests import filter_of
from facets_server.runtime.config import LimitsConfig
from facets_server.runtime.requests import (
    check_count,
    check_number,
    check_product,
    raise_first,
    record_of,
    text_problem,
)

_MAX_ID_BYTES = 512
_KINDS: dict[int, CandidateKind] = {
    pb.CANDIDATE_KIND_AUTHORS: CandidateKind.AUTHORS,
    pb.CANDIDATE_KIND_CITATIONS: CandidateKind.CITATIONS,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class PaperQuery:
    """A request to rank papers.

    Attributes:
        kind: What the ids are.
        ids: Ids of authors or citing papers.
        collection: Collection that holds the papers; empty: they are in ``papers``.
        papers: Papers that the caller sent.
        where: Filter on the documents of the collection, including the years.
        options: Options; they include years and excluded ids only for papers that the caller sent.
        excluded: Ids of documents to leave out.
        min_revision: Revision whose writes the read must include.
    """

    kind: CandidateKind
    ids: tuple[str, ...]
    collection: str
    papers: tuple[Paper, ...]
    where: Filter | None
    options: PaperOptions
    excluded: frozenset[str]
    min_revision: int | None


def candidate_query_of(
    request: pb.RecommendAuthorsRequest | pb.RecommendCitationsRequest | pb.RecommendBulkRequest,
    limits: LimitsConfig,
    *,
    is_bulk: bool = False,
) -> tuple[tuple[Paper, ...], PaperOptions]:
    """Reads the papers and options of a request.

    Raises:
        InvalidInputError: The request breaks a rule.
    """
    check_count(request.papers, ("papers",), limits.max_texts_per_request)
    papers = tuple(record_of(message, Paper) for message in request.papers)
    _check_papers([(("papers", i), paper) for i, paper in enumerate(papers)], limits)
    options = record_of(request.options, PaperOptions, ("options",))
    check_number(options.top_k, ("options", "top_k"), limits.max_top_k)
    if options.evidence and not is_bulk:
        check_product("papers", options.top_k, len(papers), limits.max_evidence_hits, ("options", "top_k"))
    return papers, options


def paper_query_of(request: pb.RankPapersRequest, limits: LimitsConfig) -> PaperQuery:
    """A request to rank papers.

    Raises:
        InvalidInputError: The request breaks a rule.
    """
    kind = kind_of(request.kind)
    check_names(request.ids, ("ids",), limits.max_queries_per_search)
    source = request.WhichOneof("source")
    if source is None:
        raise InvalidInputError("is missing, expected a collection or papers", path="source")
    papers: tuple[Paper, ...] = ()
    if source == "papers":
        check_count(request.papers.papers, ("papers", "papers"), limits.max_texts_per_request)
        papers = tuple(record_of(message, Paper) for message in request.papers.papers)
        _check_papers([(("papers", "papers", i), paper) for i, paper in enumerate(papers)], limits)
        if request.HasField("where"):
            raise InvalidInputError("is about documents of a collection, got papers", path="where")
    options = record_of(request, PaperOptions)
    check_number(options.top_k, ("top_k",), limits.max_top_k)
    if options.evidence:
        check_product("ids", options.top_k, len(request.ids), limits.max_evidence_hits)
    where = None
    if source == "collection":
        where = _with_years(filter_of(request), options.from_year, options.to_year)
        options = record_of(request, PaperOptions, excluded_ids=(), from_year=None, to_year=None)
    return PaperQuery(
        kind=kind,
        ids=tuple(request.ids),
        collection=request.collection,
        papers=papers,
        where=where,
        options=options,
        excluded=frozenset(request.excluded_ids),
        min_revision=request.min_revision or None,
    )


def added_papers_of(request: pb.AddPapersRequest, limits: LimitsConfig) -> tuple[Paper, ...]:
    """Papers to add.

    Raises:
        InvalidInputError: The request breaks a rule.
    """
    check_count(request.papers, ("papers",), limits.max_documents_per_upsert)
    papers = tuple(record_of(message, Paper) for message in request.papers)
    _check_papers([(("papers", i), paper) for i, paper in enumerate(papers)], limits)
    return papers


def new_authors_of(request: pb.AddAuthorsRequest, limits: LimitsConfig) -> tuple[NewAuthor, ...]:
    """Authors to add.

    Raises:
        InvalidInputError: The request breaks a rule.
    """
    check_count(request.authors, ("authors",), limits.max_documents_per_upsert)
    num_papers = sum(len(author.papers) for author in request.authors)
    if num_papers > limits.max_texts_per_request:
        rule = f"have {num_papers} papers, the limit is {limits.max_texts_per_request}"
        raise InvalidInputError(rule, path="authors")
    authors = tuple(record_of(message, NewAuthor) for message in request.authors)
    papers = [
        (("authors", i, "papers", j), paper)
        for i, author in enumerate(authors)
        for j, paper in enumerate(author.papers)
    ]
    _check_papers(papers, limits)
    for i, author in enumerate(authors):
        raise_first(_name_problems([(("authors", i, "author", "name"), author.author.key)]))
        check_names(author.paper_ids, ("authors", i, "paper_ids"), len(author.paper_ids), least=0)
    return authors


def kind_of(number: int) -> CandidateKind:
    """The kind of candidates that a request names.

    Raises:
        InvalidInputError: It names none.
    """
    if number not in _KINDS:
        raise InvalidInputError(f"must be authors or citations, got number {number}", path="kind")
    return _KINDS[number]


def check_names(names: Sequence[str], path: ErrorPath, limit: int, *, least: int = 1) -> None:
    """Checks the number of names or ids, and that none is empty or too long.

    Raises:
        InvalidInputError: The list breaks a rule.
    """
    check_count(names, path, limit, least=least)
    raise_first(_name_problems(((*path, i), name) for i, name in enumerate(names)))


def _with_years(where: Filter | None, from_year: int | None, to_year: int | None) -> Filter | None:
    filters = [] if where is None else [where]
    if from_year is not None or to_year is not None:
        filters.append(Range("year", gte=from_year, lte=to_year))
    return AllOf(filters) if filters else None


def _check_papers(papers: Sequence[tuple[ErrorPath, Paper]], limits: LimitsConfig) -> None:
    """Raises the first problems of papers at once."""
    raise_first(problem for path, paper in papers for problem in _paper_problems(path, paper, limits))


def _paper_problems(path: ErrorPath, paper: Paper, limits: LimitsConfig) -> Iterator[InvalidInputError]:
    problem = text_problem(paper.title, (*path, "title"), limits.max_text_bytes)
    if problem is not None:
        yield problem
    num_bytes = len(paper.abstract.encode())
    if num_bytes > limits.max_long_text_bytes:
        rule = f"has {num_bytes} bytes, the limit is {limits.max_long_text_bytes}"
        yield InvalidInputError(rule, path=(*path, "abstract"))
    names: list[tuple[ErrorPath, str]] = [((*path, "id"), paper.id)] if paper.id else []
    names += [((*path, "cited_by_ids", i), name) for i, name in enumerate(paper.cited_by_ids)]
    names += [((*path, "authors", i, "name"), author.key) for i, author in enumerate(paper.authors)]
    yield from _name_problems(names)


def _name_problems(names: Iterable[tuple[ErrorPath, str]]) -> Iterator[InvalidInputError]:
    for path, name in names:
        num_bytes = len(name.encode())
        if not name.strip():
            yield InvalidInputError("is empty, expected a name", path=path)
        elif num_bytes > _MAX_ID_BYTES:
            yield InvalidInputError(f"has {num_bytes} bytes, the limit is {_MAX_ID_BYTES}", path=path)
